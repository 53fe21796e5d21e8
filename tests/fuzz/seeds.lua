-- seeds.lua -- what the fuzzer begins with: for each target a few inputs that are in order, written into FOLDER/TARGET.
--   luajit tests/fuzz/seeds.lua FOLDER
package.path = "./?.lua;./lua/?.lua;./lua/?/init.lua;" .. package.path
local ffi = require "ffi"
local mn = require "mneme"
local causal_map_file = require "mneme.insight.episodes.causal_map_file"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local forge = require "tests.fuzz.forge"
local json = require "mneme.base.json"
local live_channel = require "mneme.insight.episodes.live_channel"
local live_publisher = require "mneme.insight.episodes.live_publisher"
local safetensors = require "mneme.tensor.safetensors"
local tensor = require "mneme.tensor.tensor"

live_channel.history = 16          -- as in run_targets.lua

local C = engine.C
local folder = arg[1]
local made = {}

-- A path for one more input of a target.
local function path(target)
  made[target] = (made[target] or 0) + 1
  files.make_folder(("%s/%s"):format(folder, target))
  return ("%s/%s/%d"):format(folder, target, made[target])
end
local function put(target, text) files.write(path(target), { text }) end

safetensors.write(path "safetensors", { { "w", tensor.new { { 1, 2 }, { 3, 4 } } }, { "n", tensor.new { shape = { 3 }, dtype = "u8" } } },
  { made_by = "hand" })
-- Without a checksum, so that what is changed is read.
mn.save(folder .. "/saved", { a = { tensor.new { 1, 2 }, { b = tensor.new { 3 }, c = "x", d = "\0\255" } }, step = 3, on = true, far = 1 / 0 })
put("safetensors", (files.read(folder .. "/saved"):gsub("crc32c", "crc32d")))
files.remove(folder .. "/saved")
for _, dtype in ipairs { "BF16", "F16", "BOOL", "I8", "U16", "U32", "I64", "U64", "F64", "F8_E4M3" } do
  local size = dtype:find "64" and 8 or dtype:find "32" and 4 or dtype:find "16" and 2 or 1
  local header = ('{"w":{"dtype":"%s","shape":[2],"data_offsets":[0,%d]}}'):format(dtype, 2 * size)
  put("safetensors", string.char(#header, 0, 0, 0, 0, 0, 0, 0) .. header .. ("\255\1"):rep(size))
end
for _, text in ipairs { '{"a": [1, -2.5e3, true, null], "b": {"c": "\\u00e9\\n"}}', "[]", '"x"', "1e308" } do put("json", text) end
for i = 0, 17 do put("restore", string.char(i, 0, 0, 1, 5, 0, 255)) end
for _, text in ipairs { "x[...,I] w[O,I] b?[O] -> y[...,O] ~~packed[?,?,?] | act=none|relu eps=1e-5", "x[T,B,2]:i32 i[*]:<V -> h'[B,D]",
  "done?[T,B]:bit g[T,B,H,?]:01 -> y[T]" } do put("signatures", text) end
put("config", '{"script": "a.lua", "config": {"corridor": 7, "lr": 0.5, "core": {"name": "gru", "d_model": 4}, "hidden": [1, 2],'
  .. ' "group": {"a": 2, "deep": {"b": "d"}}, "name": "y", "on": true, "seed": 3}}')
put("overrides", "corridor=7\nlr=0.5\ncore=lstm\ncore.d_model=3\ngroup.deep.b=x\nhidden=1,2,3\n--on\nname=y\nenv.corridor=9")
put("map", "########\n#SaA?.1#\n#.....2#\n########")
put("map", "#####\n#S.G#\n#.!.#\n#####")
put("text", "The cat sat on the mat; the cat sat.\n\tna\195\175ve 42\n")
for i = 0, 120, 4 do put("ops", string.char(i, 1, 2, 3, 130, 0, 1, 2, 3, 66, 0, 1, 5, 66, 0, 1, 5, 66, 1, 1, 5)) end
local canvas = files.read "tests/golden/tmaze.png"
put("image", #canvas < 60000 and canvas or canvas:sub(1, 60000))

-- ---- what lies in the folders of runs and studies ----

local learner = forge.learner()
local counters = learner:counters()
counters.logged = 32
for _, lines in ipairs { 0, 3 } do
  put("checkpoint", json.encode { step = 64, lines = lines, score = 0.5, counters = counters } .. (lines > 0 and "\0\1\2\3\30\40\50\200\1\69" or ""))
end
local live, step = folder .. "/live-of-a-training", 0
local writer = live_publisher.writer(learner, live, "a title", function() return step end)
for _ = 1, 2 do
  writer.due = function() return true end
  learner:advance()
  step = step + 16
end
writer:close()
local bytes = files.read(live)
put("live", bytes)
put("live", table.concat({ forge.live_parts(bytes) }, "\0"))
files.remove(live)
put("metrics", '{"step": 4, "charts/score": 0.5}\n{"step": 8, "charts/score": "NaN", "x": 1}\n{"step": 12, "charts/score": 1e3}\n{"st')
put("metrics", '{"step": 4}\n')
local events = folder .. "/events-of-a-log"
engine.check(C.mn_events_begin(engine.ctx, events, "hyperparameters", "|a|b|"))
engine.check(C.mn_events_add(engine.ctx, events, 4, 1, ffi.new("const char *[1]", { "charts/score" }), ffi.new("float[1]", 0.5)))
put("events", "\2" .. files.read(events))
files.remove(events)
put("run_info", json.encode { config = { core = { name = "gru", d_model = 4 }, lr = 0.5, threads = 1 }, script = "fuzz.lua", env = "tmaze-v0", seed = 1,
  commit = "abc", host = "h", device = "cpu", source = { { path = "fuzz.lua", checksum = "0a" } }, data = { { path = "fuzz.txt", checksum = "0b", bytes = 3 } },
  history = { { from_step = 0, program_checksum = "0c", program = "d" },
    { from_step = 4, source_folder = "source-from-4", program_checksum = "0d",
    source = { { path = "fuzz.lua", checksum = "0e" } }, data = {} } } })
put("manifest", json.encode { starts = 1, files = {
  { name = "config.json", bytes = 3, checksum = "0a" }, { name = "source/a.lua", bytes = 4, checksum = "0b" },
  { name = "result.json" } } })
put("declaration", json.encode { script = "fuzz.lua", of = "tmaze", defaults = { lr = 0.5 },
  texts = { { path = "fuzz.md", text = "## Scope\nWords.\n", own = true } }, spec = { title = "t", question = "q", of = "tmaze", settings = { lr = 0.5 },
    axes = { core = { { ["1"] = "gru", d_model = 4, label = "gru" }, "lstm" } }, seeds = { ["1"] = 5, quick = 2 },
    metrics = { score = { ["1"] = "success", range = { 0, "Infinity" } } }, figures = { { ["1"] = "bars", y = "score", x = "core" } },
    claims = { { id = "A", text = "better",
      test = { ["1"] = "better", metric = "score", a = { core = "gru" }, b = { core = "lstm" } } } }, report = { scope = "s" } } })
put("study", json.encode { mneme = "0.2", script = "fuzz.lua", title = "t", settings = "a=1", commit = "c", host = "h",
  runs = { { name = "a=1,seed=1", labels = { a = "1" }, seed = 1, words = { "a=1" } }, { name = "a=2,seed=1", labels = { a = "2" }, seed = 1, words = {} } } })
put("result", json.encode { status = "done", point = { a = "1" }, seed = 1, words = { "a=1" }, metrics = { score = 0.5 },
  series = { s = { x = { 1, 2 }, y = { 3, 4 } } }, resources = { wall_s = 1, cpu_s = 1, peak_mib = 9 }, estimate = { wall_s = 1, peak_mib = 9 } })
local tuned = { tune = { ranges = "lr=1e-5..1e-2:log", by = "score", minimise = false }, trials = 4, steps = 64, first_seed = 1001, points = { {
  name = "core=gru", labels = { core = "gru" }, seeds = 2, trials = 4, picks = { { setting = 1, values = { lr = "1e-3" }, mean = 0.5, seeds = 2, expected = 0.4,
  sd = 0.1 } } } } }
local kept = json.encode { run = "a=1,seed=1", study = "fuzz", seed = 1, info = { config = { a = 1 }, commit = "c", host = "h" }, metrics = { score = 1 },
  resources = { wall_s = 1 }, curves = { step = { 1, 2 }, score = { 0.5, json.null } } } .. "\n"
put("archive", kept)
put("archive", kept .. json.encode { study = "fuzz", tuned = tuned } .. "\n")
local map = forge.causal_map()
files.make_folder(folder .. "/map-of-a-run")
local map_path = causal_map_file.attach(map, folder .. "/map-of-a-run")
map:work()
put("causal_map", (files.read(map_path)))
files.remove_folder(folder .. "/map-of-a-run")
put("tuning", json.encode(tuned))
put("run_list", json.encode { config = { core = { name = "gru" }, steps = 64, stop_score = 1 }, script = "a/b.lua", host = "h" } .. "\0"
  .. '{"step": 32, "charts/score": 0.5}\n{"step": 64, "charts/score": 1}\n')
put("run_list", json.encode { script = "a/b.lua", runs = { { name = "a=1,seed=1" } } })
put("model_sizes", json.encode { parameters = 1234, config = { a = 1 } })
put("outcome", '{"ended": "stop_score", "step": 512, "results": {"score": 0.98, "mean_return": 0.9}}')
put("resources", '{"wall_s": 1.5, "cpu_s": 1, "peak_mib": 20}')
put("report_words", "## Scope\nWords.\n\n- one\n  more\n- two\n\n## Hyperparameters\n- lr, gamma: released code\n- optimiser (Adam): paper\n")
