-- luajit_pairs.lua -- pairs() that comes to every key once.  LuaJIT has an instruction of its own for loops over its `next`; where
-- it gives up compiling such a loop that is under way, the loop ends early, or never (LuaJIT's issues 744, 827 and 1510):
-- with Debian 12's it does both.  This one's `next` is another function, which that instruction does not take; what it is
-- compiled to finds the key again each time.
local next = next

local function following(t, key) return next(t, key) end

---As Lua's own, for every script of this process.
function _G.pairs(t)
  if type(t) ~= "table" then error(("bad argument #1 to 'pairs' (table expected, got %s)"):format(type(t)), 2) end
  return following, t, nil
end
