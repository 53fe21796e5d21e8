-- test_unknown_names.lua -- an unknown name of mn, mn.nn or a tensor is an error with the nearest names.
local t = require "tests.harness"
local mn = require "mneme"
local errors = require "mneme.base.errors"

t.test("the error names the user's line and one thing to write", function()
  local x = mn.ones(2, 3)
  for _, case in ipairs {
    { function() return mn.ops.softmx end, "unknown name 'mn.ops.softmx'; did you mean 'mn.ops.softmax'" },
    { function() return mn.stats.iqmm end, "unknown name 'mn.stats.iqmm'; did you mean 'mn.stats.iqm'" },
    { function() return mn.gates.outr end, "unknown name 'mn.gates.outr'; did you mean 'mn.gates.outer'" },
    { function() return mn.adan end, "did you mean 'mn.adam' or 'mn.atan'%?" },
    { function() return mn.nn.Linear(3, 4) end, "did you mean 'mn.nn.linear'" },
    { function() return mn.nn.LayerNorm(3) end, "did you mean 'mn.nn.layer_norm'" },
    { function() return mn.randm(3) end, "unknown name 'mn.randm'; did you mean 'mn.rand' or 'mn.randn'%?" },
    { function() return mn.Agent {} end, "'mn.agent'" },
    { function() return x:shpe() end, "unknown method or op 'shpe'; did you mean 'shape'%?" },
    { function() return mn.nn.nothing_like_it() end, "unknown name 'mn.nn.nothing_like_it' %(known: .*, %d+ more%)" },
    { function() return mn.stats.median_of_all() end, "%(known: median " },
    { function() return mn.figures.bars end, "%(known: csv export head kind_of_file section svg%)" },
    { function() return mn.nothing_like_it() end, "mneme list ops" },
    { function() return x:nothing_like_it() end, "mneme list ops" },
  } do
    local said = t.raises(case[1], "test_unknown_names.lua:%d+: .*" .. case[2])
    t.ok(#said < 250, "too long: " .. said)
  end
end)

t.test("every table that is reached from mn refuses a name that it does not have", function()
  local seen, strict = {}, 0
  local entries = { gates = true, decays = true, features = true, learners = true }            -- whose members may be absent
  local function look(path, value)
    if type(value) ~= "table" or seen[value] then return end
    seen[value] = true
    local named = false
    for key in pairs(value) do named = named or type(key) == "string" end
    if not named then return end
    local ok, problem = pcall(function() return value.no_such_name end)
    t.ok(not ok, path .. ".no_such_name is nil")
    t.ok(tostring(problem):find("no_such_name", 1, true), tostring(problem))
    t.ok(path == "mn.ops" or path == "mn.Tensor" or tostring(problem):find "%(known: %w", path .. ": its members are not named")
    strict = strict + 1
    if not entries[path:match "%w+$"] then
      for key, inner in pairs(value) do if type(key) == "string" then look(path .. "." .. key, inner) end end
    end
  end
  for _, name in ipairs(mn.names()) do look("mn." .. name, mn[name]) end
  look("mn.ops", mn.ops)
  look("mn.nn.init", mn.nn.init)
  t.ok(strict > 20, strict .. " tables")
  for name in pairs(entries) do
    mn[name].of_a_script = false
    t.eq(mn[name].of_a_script, false, "a script adds entries")
    mn[name].of_a_script = nil
  end
end)

t.test("no more than three names are suggested, the nearest first", function()
  local known = { "alpha", "alpho", "alpht", "alphs", "beta", "alphabet" }
  t.eq(table.concat(errors.closest("alpha", known, 3), " "), "alpha alpho alpht")
  t.eq(table.concat(errors.closest("alphb", known, 3), " "), "alpha alpho alpht")
  t.eq(#errors.closest("zzz", known, 3), 0)
  t.eq(errors.nearest("bet", known), "beta")
end)

t.test("a method that is not called is named in the error that follows", function()
  local x = mn.ones(2)
  for name, f in pairs { shape = function() return x.shape[1] end, grad = function() return x.grad * 2 end, size = function() return #x.size end } do
    local _, why = xpcall(f, errors.handler)
    t.ok(tostring(why):find(("%s is a method: x:%s()"):format(name, name), 1, true), tostring(why))
  end
end)
