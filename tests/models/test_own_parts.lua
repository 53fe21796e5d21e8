-- test_own_parts.lua -- what a script brings along (a core's file, gates and feature maps, environments, environments, studies):
-- evaluated as it was trained, and refused by name where it is wrong.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local mn = require "mneme"
local script = require "mneme.runs.script"
local shell = require "tests.support.shell"

local dir = shell.folder()
local function write(name, text) files.write(dir .. "/" .. name, { text }) end
local function run(words) return shell.mneme(dir, words .. " threads=1") end

write("train.lua", [[
local mn = require "mneme"
local cfg = mn.config { gate = false, core = { "gru", d_model = 16 }, corridor = 3, steps = 4e4, num_envs = 16, num_steps = 16, hidden = 16,
  lr = 3e-3, entropy_coef = 0.01 }
if cfg.gate then mn.features.relu = { doc = "mine", rows = function(c) return c.d_head end, map = function(a) return (a * 3):square() end } end
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]])

-- What a run's own log ends with, and what eval says of it.
local function trained_and_evaluated(words, name)
  local said, status = run(("run train.lua %s run=%s"):format(words, name))
  t.eq(status, 0, said)
  local score = tonumber(said:match "score (%S+) over the last")
  said = shell.fine(dir, ("eval %s episodes=300"):format(name))
  return score, tonumber(said:match "success (%S+)")
end

t.test("a core given by its file is evaluated as that file, not as the core of its name", function()
  files.make_folder(dir .. "/mine")
  local text = files.read(require("mneme.base.registry").root .. "lua/mneme/cores/gru.lua")
  local mine, n = text:gsub("i = %(ops%.linear%(x,", "i = (ops.linear(x * -1,")
  t.eq(n, 1, "the core's file reads otherwise now")
  write("mine/gru.lua", mine)
  local score, evaluated = trained_and_evaluated("core=mine/gru.lua core.d_model=16", "path")
  t.ok(score > 0.9 and evaluated > score - 0.1, ("trained to %g, evaluated at %g"):format(score, evaluated))
  t.eq(json.decode((files.read(dir .. "/path/config.json"))).core.name, "mine/gru.lua")
end)

t.test("a feature map that the script puts in the library's place is evaluated by the script", function()
  local core = "core=galite core.n_layers=1 core.d_model=16 core.n_heads=2 core.d_head=8 core.d_ffn=16 core.gate=elementwise core.feature=relu"
  local score, evaluated = trained_and_evaluated("gate=1 steps=6e4 " .. core, "mapped")
  t.ok(math.abs(evaluated - score) < 0.15, ("trained to %g, evaluated at %g"):format(score, evaluated))
  t.eq(json.decode((files.read(dir .. "/mapped/config.json"))).own_words, "feature=relu")
  t.eq(json.decode((files.read(dir .. "/path/config.json"))).own_words, nil)
end)

t.test("entries of gates and feature maps are checked like everything else", function()
  local function built(kind, entry)
    mn[kind].mine = entry
    local ok, problem = pcall(mn.core, { "galite", d_in = 4, n_layers = 1, d_model = 8, n_heads = 2, d_head = 4, d_ffn = 8,
      [kind == "gates" and "gate" or "feature"] = "mine" })
    mn[kind].mine = nil
    return ok, tostring(problem)
  end
  for kind, entry in pairs { gates = { betaa = true }, features = { row = function() return 4 end, map = function(a) return a end } } do
    local ok, problem = built(kind, entry)
    t.ok(not ok and problem:find("key of mn." .. kind .. ".mine: '", 1, true), problem)
  end
  for _, member in ipairs { "beta", "gamma", "p_gamma" } do
    for _, wrong in ipairs { 2.5, 0, "x", {} } do
      local ok, problem = built("gates", { gamma = true, [member] = function() return wrong end })
      t.ok(not ok and problem:find("test_own_parts%.lua:%d+: mn%.gates%.mine: " .. member .. " is "), problem)
    end
  end
  local ok, problem = built("gates", 5)
  t.ok(not ok and problem:find("mn.gates.mine", 1, true), problem)
  t.fails(function() mn.nn.module({ children = { lin = mn.nn.linear(2, 2) } }, function() end) end)
end)

t.test("a core of the library's name in ./cores is not passed over", function()
  files.make_folder(dir .. "/cores")
  write("cores/gru.lua", "error 'mine was loaded'")
  local said, status = run "run train.lua core=gru run=twice"
  t.eq(status, 2, said)
  t.ok(said:find("core 'gru' is there twice", 1, true), said)
  os.remove(dir .. "/cores/gru.lua")
end)

t.test("an environment's own time limit goes with its settings, one that was given stays", function()
  write("maze.lua", [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 4 }, steps = 64, num_envs = 2, num_steps = 8, hidden = 4, limit = 0 }
local env = mn.env("memory_maze", { size = 9, num_envs = 2, seed = cfg.seed, time_limit = cfg.limit > 0 and cfg.limit or nil })
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 4 }):train()
]])
  for limit, length in pairs { [0] = "500.0", [30] = "30.0" } do
    local said, status = run(("run maze.lua limit=%d run=maze%d"):format(limit, limit))
    t.eq(status, 0, said)
    said = shell.mneme(dir, ("eval maze%d episodes=2 size=11"):format(limit))
    t.ok(said:find("length  " .. length, 1, true), said)
  end
end)

t.test("tensors by name are no list: nothing is written", function()
  local path = dir .. "/map.safetensors"
  t.fails(function() require("mneme.tensor.safetensors").write(path, { w = mn.tensor { 1 } }) end)
  t.ok(not files.is_file(path))
end)

t.test("a folder with checkpoints of another run takes no new one", function()
  for _, name in ipairs(files.list(dir .. "/path")) do
    if name ~= "checkpoints" and name ~= "episodes" then os.remove(dir .. "/path/" .. name) end
  end
  local said, status = run "run train.lua run=path"
  t.eq(status, 2, said)
  t.ok(said:find("path has checkpoints of another run", 1, true), said)
end)

t.test("half a line at the end of a log is no line, and a missing folder of checkpoints is made", function()
  local log = files.read(dir .. "/mapped/metrics.jsonl")
  write("mapped/metrics.jsonl", log:sub(1, #log - 20))
  files.remove(dir .. "/mapped/manifest.json")
  local said, status = run "run resume=mapped steps=61000"
  t.eq(status, 0, said)
  for line in files.read(dir .. "/mapped/metrics.jsonl"):gmatch "[^\n]+" do t.ok(json.decode(line), line) end
end)

t.test("an environment's draw writes within its sequence, whole numbers, and asks something", function()
  files.make_folder(dir .. "/datasets")
  local function draws(body)
    write("datasets/own.lua", ('return { doc = "", source = "", config = { length = 8 }, build = function(cfg) return { tokens = 2, classes = 2, '
      .. "length = cfg.length, draw = function(random, token, answer) %s end } end }"):format(body))
    write("words.lua", [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 4, d_in = 8 }, steps = 64, batch = 2, eval_every = 32, eval_batches = 1 }
local dataset = mn.dataset({ "own", length = 8 }, { batch = 2, seed = 1 })
return mn.supervised(cfg, dataset, mn.sequence_model { dataset = dataset, core = mn.core(cfg.core) }):train()
]])
    return run "run words.lua"
  end
  for body, what in pairs {
    ["token[8] = 1"] = "draw: token 8, expected 0 to 7",
    ["answer[100000] = 1"] = "draw: answer 100000, expected 0 to 7",
    ["token[-1] = 1"] = "draw: token -1, expected 0 to 7",
    ["answer[0] = token[9]"] = "draw: token 9, expected 0 to 7",
    ["token[0] = 0.5"] = "draw: token 0 is 0.5, expected a whole number",
    ["token[0] = 1"] = "draw asked nothing",
  } do
    local said, status = draws(body)
    t.eq(status, 1, said)
    t.ok(said:find(what, 1, true), body .. ": " .. said)
  end
  local said, status = draws "token[7] = random:below(2); answer[7] = token[7]"
  t.eq(status, 0, said)
end)

t.test("a Lua environment says with true or false whether an episode is over, and scores from 0 to 1", function()
  for gives, what in pairs { ["0, 0"] = "step gave 0 for whether the episode is over", ["0, 'false'"] = "step gave false for whether",
    ["0, true, 7"] = "step gave 7 as the score, expected a number from 0 to 1" } do
    local step = assert(loadstring(("return function() return { 0 }, %s end"):format(gives)))()
    local world = mn.env({ observation = { 1 }, actions = { "a", "b" }, reset = function() return { 0 } end, step = step, num_envs = 1 })
    world:reset()
    t.raises(function() world:step { 0 } end, what)
  end
end)

t.test("studies that cannot be meant: an axis called seed, themselves, claims without a number, cells without metrics", function()
  local function study(text)
    write("study.lua", 'local mn = require "mneme"\nreturn mn.study { ' .. text .. " }")
    return run "sweep study.lua estimate=0 jobs=1 run=swept"
  end
  for text, what in pairs {
    ["axes = { seed = { 1, 2 } }, run = function() return {} end"] = "axis seed cannot be one",
    ['of = "study.lua", axes = { a = { 1, 2 } }'] = "which is this study itself",
    ['axes = { a = { 1 } }, run = function() return {} end, claims = { { text = "", test = { "at_least", metric = "m", a = { a = 1 }, value = 0/0 } } }']
      = "value is nan, expected a finite number",
    ['axes = { a = { 1 } }, metrics = { score = { "it" } }, run = function() return { scor = 1 } end'] = "run gave none of its metrics (score), but scor",
    ['axes = { a = { 1 } }, metrics = { score = { "it" } }, run = function() return { score = "hi" } end'] = "run gave score = hi, expected a number",
    ['axes = { a = { 1 } }, run = function() return { s = { 1, 2, 3 } } end'] = "run gave s = a list of 3, expected a number, or a series",
    ['axes = { a = { 1 } }, run = function() return { s = { x = { 1, 2 }, y = { 1 } } } end'] = "a series s with 2 places and 1 numbers",
  } do
    local said, status = study(text)
    t.ok(status ~= 0 and (said:find(what, 1, true)), text .. ": " .. said)
    os.execute("rm -rf '" .. dir .. "/swept'")
  end
end)

shell.run(dir, "cd /; rm -r '" .. dir .. "'")

-- ---- the frame of a block ----

t.test("mn.core.block holds any memory in each frame: a sequence equals its steps, a reset a fresh start; mistakes are named", function()
  local T, B, d = 7, 3, 8
  for _, flow in ipairs { "gtrxl", "residual", "postnorm" } do
    for _, name in ipairs { "gru", "mingru", "lstm" } do
      local memory = mn.core(name, { d_in = d, d_model = d })
      local m = mn.core.block({ d_model = d, d_ffn = 16, flow = flow }, memory)
      local x, done = mn.randn(T, B, d), mn.zeros(T, B, { dtype = "u8" })
      done:data()[4 * B] = 1                                       -- environment 0 begins an episode in row 4
      local y = mn.no_grad(m, x, done, memory:initial(B))
      local state = memory:initial(B)
      for step = 0, T - 1 do
        local row, after = mn.no_grad(m, x:slice(0, step, step + 1), done:slice(0, step, step + 1), state)
        t.ok((row - y:slice(0, step, step + 1)):abs():max():item() < 1e-5, ("%s, %s: row %d"):format(flow, name, step))
        state = after
      end
      local fresh = mn.no_grad(m, x:slice(0, 4, T), nil, memory:initial(B))
      local function first(z) return z:slice(1, 0, 1) end
      t.ok((first(fresh) - first(y:slice(0, 4, T))):abs():max():item() < 1e-5, flow .. ": a reset")
      t.eq(#m:parameters() > #memory:parameters(), true)
    end
  end
  for pattern, call in pairs {
    ["unknown flow = 'gtrx'; did you mean 'gtrxl'"] = function() mn.core.block({ flow = "gtrx" }, mn.nn.linear(64, 64)) end,
    ["memory is a function, expected a module"] = function() mn.core.block({}, function() end) end,
    ["d_ffn is 64x, expected a number"] = function() mn.core.block({ d_ffn = "64x" }, mn.nn.linear(64, 64)) end,
    ["the memory gave %[2,1,3%], expected %[T,B,8%]"] = function() mn.core.block({ d_model = 8 }, mn.nn.linear(8, 3))(mn.randn(2, 1, 8)) end,
  } do t.raises(call, "test_own_parts.lua:%d+: .*" .. pattern) end
end)

t.test("a gate of [T,B,H] has one value a head, as one of [T,B,H,1]", function()
  local state_arrays = require "mneme.models.state_arrays"
  local ffi = require "ffi"
  for _, shape in ipairs { { 4 }, { 4, 1 } } do
    local gate = { shape = shape, values = ffi.new("float[4]", { 0.1, 0.2, 0.3, 0.4 }) }
    t.eq(state_arrays.count(gate, 4), 4)
    for head = 0, 3 do
      local rows, cols, values = state_arrays.slice(gate, head, 4)
      t.eq(rows * cols, 1)
      t.near(values[0], 0.1 * (head + 1), 1e-7)
    end
  end
  t.eq(state_arrays.count({ shape = { 8 } }, 4), 1, "8 units are no heads")
  t.eq(state_arrays.count({ shape = { 4 } }, 1), 1)
end)

t.test("what an environment cannot be is said, with the ways out", function()
  local function env(spec)
    return function()
      spec.reset, spec.step = function() return { 0, 0 } end, function() return { 0, 0 }, 0, true end
      return mn.env(spec)
    end
  end
  for _, observation in ipairs { { image = { part = { 7, 7, 3 } } }, { { 7, 7, 3 }, { 4 } } } do
    t.fails(env { observation = observation, actions = 3 })
  end
  for _, actions in ipairs { { 5, 3 }, { { "a", "b" }, { "c" } }, { low = -1, high = 1, shape = { 1 } }, "continuous" } do
    t.fails(env { observation = { 2 }, actions = actions })
  end
end)

t.test("an attention of one's own that is no module, or gives what is not of the shape of q, is named with its file", function()
  files.make_folder(dir .. "/attentions")
  write("read.lua", [[
local mn = require "mneme"
local cfg = mn.config { reads = "" }
mn.encoder { attention = cfg.reads, max_len = 4, n_layers = 1, d_model = 8, n_heads = 2, d_in = 8 }(mn.ones(2, 4, 8))
]])
  for i, gives in ipairs { "3", "{ forward = function(q) return q end }", "mn.nn.module({}, function() end)",
    "mn.nn.module({}, function(_, q) return q:mean(-1) end)" } do
    write(("attentions/wrong-%d.lua"):format(i),
      ("local mn = require 'mneme'\nreturn { doc = 'x', config = {},\nbuild = function() return %s end }"):format(gives))
    local said, status = run("run read.lua reads=wrong-" .. i)
    t.ok(status == 1 and said:find(("attentions/wrong-%d.lua:3: attention wrong-%d: "):format(i, i), 1, true), said)
  end
  for form, words in pairs { ["v - v:mean(0, true)"] = "one sequence of a batch changes another", ["v - v:mean(2, true)"] = "a token changes an earlier one",
    ["v:cumsum { axis = 2 }"] = false, ["mn.dropout(v)"] = false } do
    write("attentions/mixes.lua", ("local mn = require 'mneme'\nreturn { doc = 'x', config = { causal = true },\n"
      .. "build = function() return mn.nn.module({}, function(_, _, _, v) return %s end) end }"):format(form))
    local said, status = run "run read.lua reads=mixes"
    t.ok(words and status == 1 and said:find("attentions/mixes.lua:3: attention mixes: .*" .. words) or not words and status == 0, form .. ": " .. said)
  end
end)

t.test("an attention of one's own trains its parameters, however its module has them; a wrong definition is named with its file", function()
  write("fit.lua", [[
local mn = require "mneme"
local cfg = mn.config { reads = "", steps = 400, batch = 2, threads = 1 }
local dataset = mn.dataset("copy", { copied = 2, symbols = 3, batch = cfg.batch })
local encoder = mn.encoder { attention = cfg.reads, max_len = dataset.length, n_layers = 1, d_model = 8, n_heads = 2, d_head = 4, d_ffn = 8 }
return mn.supervised(cfg, dataset, mn.sequence_model { dataset = dataset, encoder = encoder }):train()
]])
  local function own(name, members, built)
    write(("attentions/%s.lua"):format(name), ("local mn = require 'mneme'\nreturn { doc = 'x', %s\nbuild = function(cfg, sizes)\n"
      .. "local w = mn.nn.linear(sizes.D, sizes.D) return %s end }"):format(members, built))
    return run(("run fit.lua reads=%s run=%s"):format(name, name))
  end
  local forward = "function(self, q, k, v) return w(v) end"
  for name, built in pairs { class = "mn.nn.module { w = w, forward = " .. forward .. " }", lists = "mn.nn.module({ children = { { 'w', w } } }, "
    .. forward .. ")" } do
    local said, status = own(name, "", built)
    t.eq(status, 0, said)
    t.ok(mn.load(dir .. "/" .. name .. "/checkpoints/step-400.safetensors")["model.core.layers.0.attn.w.weight"], name .. ": w is not in the checkpoint")
  end
  for what, members in pairs { ["extras gave a number"] = "extras = function() return 3 end,", ["extras gave a table with p"] = "extras = function() "
    .. "return { { p = 4 } } end,", ["extras gave a list of 2"] = "extras = function() return { { 'p', 0 } } end,", ["config is a string"] = "config = 'a',",
    ["unknown key of attention wrong: 'reads'"] = "reads = 3,", ["n: expected a text"] = "config = { n = 1 }, about = { n = 3 }," } do
    local said, status = own("wrong", members, "mn.nn.module { w = w, forward = " .. forward .. " }")
    t.ok(status ~= 0 and said:find(what, 1, true) and said:find("attentions/wrong.lua:[23]: "), said)
  end
  local said, status = own("twice", "extras = function() return { { 'q', 4 } } end,", "mn.nn.module { w = w, forward = " .. forward .. " }")
  t.ok(status == 1 and said:find("two tensors are called core.layers.0.attn.q", 1, true) and not files.is_folder(dir .. "/twice"), said)
end)

t.test("a file that is a part of a training is no script, and nothing to check but a core or an environment", function()
  local root = require("mneme.base.registry").root .. "lua/mneme/"
  for folder, kind in pairs { cores = "a core", learners = "a learner", datasets = "a data set", attentions = "an attention" } do
    for _, name in ipairs(mn.names(folder)) do
      local path = root .. folder .. "/" .. name .. ".lua"
      local returned = loadfile(path)()
      t.raises(function() script.no_part(path, returned, "a script") end, ("%s.lua is %s, expected a script"):format(name:gsub("%p", "%%%0"), kind))
      if kind == "a core" then script.no_part(path, returned, "x", "core") end
    end
  end
end)

t.test("a misspelt member of a core's or a data set's file is an error that names it, and the file", function()
  local core = [[
local mn = require "mneme"
return { doc = "x", config = { d_in = 8 }%s, build = function(cfg)
  local l = mn.nn.linear(8, 8)
  return { module = l, d_out = 8, states = {}, sizes = {}%s, forward = function(x) return l(x), {} end }
end }]]
  for pattern, case in pairs {
    ["core.lua:%d+: unknown key of core .*: 'chioces'; did you mean 'choices'"] = { ", chioces = {}", "" },
    ["core.lua:%d+: unknown key of what build of core .* gave: 'complexty'; did you mean 'complexity'"] = { "", ", complexty = {}" },
  } do
    local place = shell.folder()
    files.write(place .. "/core.lua", { core:format(case[1], case[2]) })
    t.raises(function() mn.core(place .. "/core.lua", {}) end, pattern)
  end
  for _, name in ipairs(mn.names "cores") do t.ok(mn.core(name, { d_in = 8 }), name) end
end)
