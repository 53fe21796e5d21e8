-- test_luajit_pairs.lua -- loops over tables come to every key once, however often they run and whatever the compiler makes of them; and what
-- Mneme's files have in place of a global function stays theirs.
local t = require "tests.harness"
local shell = require "tests.support.shell"
local files = require "mneme.base.files"
require "mneme"

-- Without the replacement, the LuaJIT of Debian 12 ends the outer loop after one key from about the 40,000th round on.
t.test("pairs: a loop within a loop comes to all keys, 100,000 times", function()
  local inner, wrong = { 1, 2, 3 }, 0
  local outer = { p = inner, q = inner, r = inner, s = inner, u = inner, v = inner }
  local function leave(...) for _ = 1, 50 do end return ... end          -- ends whatever is being compiled
  for _ = 1, 100000 do
    leave()
    local n = 0
    for _, list in pairs(outer) do
      for _ in pairs(list) do end
      n = n + 1
    end
    if n ~= 6 then wrong = wrong + 1 end
  end
  t.eq(wrong, 0)
end)

t.test("pairs: keys of every kind, none, and what is no table", function()
  local key, seen, n = {}, {}, 0
  local of = { 10, 20, nil, 40, word = "a", [key] = "b", [2.5] = "c", [false] = "d" }
  for k, v in pairs(of) do
    seen[k], n = v, n + 1
    of[k] = nil                                   -- allowed on the way
  end
  t.eq(n, 7)
  t.eq(seen[4], 40)
  t.eq(seen[key], "b")
  t.eq(seen[false], "d")
  t.eq(next(of), nil)
  for _ in pairs {} do t.ok(false, "an empty table has a key") end
  t.raises(function() for _ in pairs(nil) do end end, "test_luajit_pairs.lua:%d+: bad argument #1 to 'pairs' %(table expected, got nil%)")
end)

t.test("require \"mneme\" replaces no global of the process, nor does anything that it loads later", function()
  local dir = shell.folder()
  files.write(dir .. "/all.lua", { [[
local before, fields = {}, {}
for name, value in next, _G do
  before[name] = value
  if type(value) == "table" and value ~= _G and value ~= package.loaded then
    fields[name] = {}
    for key, inner in next, value do fields[name][key] = inner end
  end
end
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 4 }, steps = 64, num_envs = 2, num_steps = 32, hidden = 4, threads = 1, run = "r" }
local env = mn.env { name = "pay", observation = { 2 }, actions = 2, num_envs = 2, seed = 1,
  reset = function(self) self.t = 0 return { 1, 0 } end,
  step = function(self, a) self.t = self.t + 1 return { 0, 1 }, a, self.t > 5, a end }
mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 4 }):train()
local function same()
  for name, value in next, before do if rawget(_G, name) ~= value then error(name .. " was replaced") end end
  for name, list in next, fields do
    for key, value in next, list do
      if name ~= "package" and before[name][key] ~= value then error(name .. "." .. tostring(key) .. " was replaced") end
    end
  end
  for _, name in ipairs { "path", "cpath", "loadlib", "searchpath", "seeall" } do if package[name] ~= fields.package[name] then error(name) end end
end
same()
print "the same"
]] })
  local said = shell.run(dir, ("LUA_PATH='%slua/?.lua;%slua/?/init.lua;;' MNEME_BUILD='%s' luajit all.lua"):format(shell.root, shell.root, shell.build))
  t.ok(said:find "the same\n$", said)
  files.remove_folder(dir)
end)
