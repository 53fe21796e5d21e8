-- test_live_publisher.lua -- what a training tells its window of what its memory reads: the weights of softmax are there at every
-- step that is shown, however the rollout is cut, and those of the step that is shown.
local t = require "tests.harness"
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local forge = require "tests.fuzz.forge"
local live_channel = require "mneme.insight.episodes.live_channel"
local mn = require "mneme"
local implicit_attention = require "mneme.models.implicit_attention"
local frames = require "mneme.insight.episodes.frames"
local shell = require "tests.support.shell"
local live_publisher = require "mneme.insight.episodes.live_publisher"

local folder = shell.folder()

-- Train a little; f(frame, rows of the piece before this one) at every step of copy 1.
local function watched(core, settings, f)
  mn.manual_seed(4)
  local env = mn.env("tmaze", { corridor = 20, num_envs = 2, seed = 1 })
  local agent = mn.agent { env = env, hidden = 8, core = mn.core(core) }
  local cfg = { steps = 64, num_steps = 11, seed = 1 }
  for key, value in pairs(settings) do cfg[key] = value end
  local learner = mn.a2c(cfg, env, agent)
  local writer = live_publisher.writer(learner, folder .. "/live", "test", function() return learner.step end)
  local film, reader, tell = frames.new(), live_channel.reader(folder .. "/live"), learner.watch
  writer.due, writer.wanted = function() return true end, 1
  reader:next_env()                                -- from the first snapshot on
  learner.watch = function(at, piece)
    tell(at, piece)
    f(film:add(reader:next()), at - piece.first)
  end
  learner:begin()
  for _ = 1, 3 do learner:rollout() end
  writer:close()
end

local small = { "gtrxl", d_in = 16, d_model = 8, n_layers = 2, n_heads = 2, d_head = 4, d_ffn = 8, memory = 5 }

for _, case in ipairs { { 0 }, { 4 }, { 1 }, { 0, "rollout" }, { 4, "rollout" }, { 1, "rollout" } } do
  local horizon, sees = case[1], case[2] or "memory"
  t.test(("gtrxl shows what it attends to, horizon=%d, sees=%s"):format(horizon, sees), function()
    local shown = 0
    small.sees = sees
    watched(small, { horizon = horizon }, function(frame, row)
      local reach = 5 + (sees == "rollout" and row or 0)
      t.eq(implicit_attention.problem(frame), nil)
      for layer = 0, 1 do
        for head = 0, 1 do
          local w, n, unseen, beside = implicit_attention.weights(frame, layer, head)
          local sum, seen = 0, 0
          for j = 0, n - 1 do
            sum, seen = sum + w[j], seen + (w[j] > 0 and 1 or 0)
            t.eq(w[j] > 0, n - 1 - j <= reach, ("step %d of %d, row %d"):format(j, n, row))
          end
          t.eq(n, frame.step + 1) t.eq(unseen, 0)
          t.near(beside, 0, 1e-6)
          t.near(sum, 1, 1e-5)
          t.eq(seen, math.min(frame.step, reach) + 1)
          shown = shown + 1
        end
      end
    end)
    t.eq(shown, 3 * 11 * 4)
  end)
end

t.test("weights that are told are those of the step that is shown", function()
  local core, last = { "transformer", d_in = 16, d_model = 8, n_layers = 1, n_heads = 2, d_head = 4, d_ffn = 8, memory = 6 }, nil
  watched(core, {}, function(frame)
    local q = frame.probes["layers.0.q"].values
    for head = 0, 1 do
      local w, n = implicit_attention.weights(frame, 0, head)
      local sum, share = 0, {}
      for j = math.max(0, n - 7), n - 1 do
        local k, score = frame.history[j + 1].probes["layers.0.k"].values, 0
        for i = 4 * head, 4 * head + 3 do score = score + q[i] * k[i] end
        share[j] = math.exp(score / 2)
        sum = sum + share[j]
      end
      for j = 0, n - 1 do t.near(w[j], (share[j] or 0) / sum, 1e-5) end
    end
    last = frame
  end)
  t.ok(last.step > 6)
end)

t.test("a live file with other shapes, places, names or counters is refused in words", function()
  local learner, path = forge.learner(), folder .. "/forged"
  local writer = live_publisher.writer(learner, path, "a title", function() return 0 end)
  writer.due = function() return true end
  for _ = 1, 2 do learner:advance() end
  writer:close()
  local whole, snapshot = forge.live_parts((files.read(path)))
  local function says(text, bytes)
    files.write(path, { forge.live_file(text, bytes or snapshot) })
    local ok, problem = pcall(function() frames.new():add(live_channel.reader(path):next()) end)
    return not ok and errors.is(problem) and tostring(problem) or ok and "taken" or "raw: " .. tostring(problem)
  end
  t.eq(says(whole), "taken")
  for _, change in ipairs { { '("observation": .-"shape": )%b[]', "%1[312000000, 1e-06]", "has no shape" },
    { '("world": )%d+', "%1-400", "has no shape" }, { '("world": )%d+', "%1400000", "fields take" }, { '"gates": %[%]', '"gates": ["more"]', "fields take" },
    { '("num_envs": )2(, "obs)', "%10.5%2", "counts no" },
    { '"title": "a title"', '"title": {}', "not a text" }, { '"layout": 2', '"layout": 1', "not one of Mneme's" },
    { '"id": "tmaze%-v0"', '"id": "../x.lua"', "unknown environment" }, { '"dims": "%u+"', '"dims": "HHHHHH"', "has no shape" } } do
    local text, n = whole:gsub(change[1], change[2], 1)
    t.eq(n, 1, change[1] .. " in " .. whole)
    t.ok(says(text):find(change[3]), change[2] .. ": " .. says(text))
  end
  local noted = ffi.new("double[1]", 1e9)
  t.ok(says(whole, snapshot:sub(1, 64) .. ffi.string(noted, 8) .. snapshot:sub(73)):find "its noted is 1e%+09")
end)

os.execute("rm -r '" .. folder .. "'")
