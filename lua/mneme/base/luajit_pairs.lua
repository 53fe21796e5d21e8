-- luajit_pairs.lua -- replaces pairs() in a LuaJIT whose own loses keys.  LuaJIT has an instruction for loops over `next`; where
-- it stops compiling such a loop half-way, the loop ends early, or never (LuaJIT's issues 744, 827 and 1510).  2.1.0-beta3, which
-- Debian 12 has, does both: of 100,000 rounds of a loop within a loop some 60,000 miss keys (tests/project/test_luajit_pairs.lua).
-- The rolling release 2.1.1774896198 misses none.  init.lua and commands/cli.lua install this at start-up; `mneme doctor` reports it.
local next = next

local luajit_pairs = {}

---Does this LuaJIT have the fault?  All versions before the rolling releases (2.1.0 and its betas) count as faulty.
---@return boolean
function luajit_pairs.faulty() return jit.version_num < 20199 end

-- The instruction does not take this function; what it compiles to finds the key again each time.
local function following(t, key) return next(t, key) end

local function complete_pairs(t)
  if type(t) ~= "table" then error(("bad argument #1 to 'pairs' (table expected, got %s)"):format(type(t)), 2) end
  return following, t, nil
end

---Replace the global pairs() of this process where LuaJIT's own is faulty.
function luajit_pairs.install()
  if luajit_pairs.faulty() then _G.pairs = complete_pairs end
end

return luajit_pairs
