-- test_torch_names.lua -- an unknown name of mn, mn.nn or a tensor is an error that says what to write: for PyTorch's names an
-- expression that runs, else the nearest names.
local t = require "tests.harness"
local mn = require "mneme"
local errors = require "mneme.base.errors"
local torch_names = require "mneme.tensor.torch_names"

t.test("what is suggested for a name of PyTorch runs", function()
  local function scope()
    local x, y = mn.tensor { { 0.1, -0.2, 0.3 }, { 0.4, 0.5, -0.6 } }, mn.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
    return setmetatable({ mn = mn, x = x, y = y, scores = mn.randn(2, 3), a = x, b = y:transpose(), w = mn.randn(3, 3),
      index = mn.tensor { 2, 0, dtype = "i32" }, mask = x:gt(0),
      net = mn.nn.linear(3, 3) }, { __index = { math = math } })
  end
  local ran = 0
  for _, list in pairs(torch_names) do
    for name, entry in pairs(list) do
      t.ok(entry[1] or entry[2], name .. " has no answer")
      if entry[1] then
        local chunk = t.ok(loadstring("return " .. entry[1]), name .. ": " .. entry[1])
        local ok, value = pcall(setfenv(chunk, scope()))
        t.ok(ok and value ~= nil, ("%s: %s: %s"):format(name, entry[1], tostring(value)))
        ran = ran + 1
      end
    end
  end
  t.ok(ran > 80, ran .. " ran")
  mn.clear_tape()
end)

t.test("no name of PyTorch's that is one of ours waits in the table", function()
  local dead = {}
  for name in pairs(torch_names.functions) do
    if pcall(function() return mn[name] end) and rawget(mn.Tensor, name) then dead[#dead + 1] = name end
  end
  for name in pairs(torch_names.nn) do if rawget(mn.nn, name) then dead[#dead + 1] = "nn." .. name end end
  t.ok(#dead == 0, "remove from torch_names.lua: " .. table.concat(dead, " "))
end)

t.test("the error names the user's line and one thing to write", function()
  local x = mn.ones(2, 3)
  for _, case in ipairs {
    { function() return mn.concatenate(x, x) end, "there is no mn.concatenate; write mn.cat { x, y }" },
    { function() return mn.bmm(x, x) end, "write mn.matmul%(a, b%)" },
    { function() return x.T end, "there is no x:T; write x:transpose" },
    { function() return x:cat(0) end, "there is no x:cat; write mn.cat { x, ... }" },
    { function() return x:numpy() end, "x:to_table" },
    { function() return x:cuda() end, "device=cuda is a setting" },
    { function() return mn.nn.LSTM(3, 4) end, 'there is no mn.nn.LSTM; write mn.core%("lstm"' },
    { function() return mn.nn.BatchNorm1d(3) end, "mn.nn.layer_norm" },
    { function() return mn.nn.gru(3, 4) end, 'write mn.core%("gru"' },
    { function() return mn.nn.init.kaiming_uniform end, "there is no mn.nn.init.kaiming_uniform; write mn.nn.init.uniform" },
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
    local said = t.raises(case[1], "test_torch_names.lua:%d+: .*" .. case[2])
    t.ok(#said < 250, "too long: " .. said)
  end
end)

t.test("every table that is reached from mn refuses a name that it does not have", function()
  local seen, strict = {}, 0
  local entries = { gates = true, decays = true, features = true, learners = true }            -- whose members may be absent
  local function look(path, value)
    if type(value) ~= "table" or seen[value] then return end
    seen[value] = true
    local named, members = false, (getmetatable(value) or {}).group or value                    -- a group's members are loaded when they are read
    for key in pairs(members) do named = named or type(key) == "string" end
    if not named then return end
    local ok, problem = pcall(function() return value.no_such_name end)
    t.ok(not ok, path .. ".no_such_name is nil")
    t.ok(tostring(problem):find("no_such_name", 1, true), tostring(problem))
    t.ok(path == "mn.ops" or path == "mn.Tensor" or tostring(problem):find "%(known: %w", path .. ": its members are not named")
    strict = strict + 1
    if not entries[path:match "%w+$"] then
      for key in pairs(members) do if type(key) == "string" then look(path .. "." .. key, value[key]) end end
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

t.test("torch.concat(list, axis), whose name an op has, leads to mn.cat", function()
  local x = mn.ones(2)
  t.raises(function() mn.concat({ x, x }, 0) end, "mn.cat%(list, axis%)")
  t.eq(mn.cat({ x, x }, 0):size(), 4)
end)
