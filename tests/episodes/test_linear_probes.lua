-- test_linear_probes.lua -- linear probes on data that is made so that the answer is known: what is there is found, what is not
-- there is not, shuffled answers find nothing, and episodes are not torn.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local stepper = require "mneme.insight.episodes.stepper"
local linear_probes = require "mneme.insight.measure.linear_probes"

local function noise(n, stream)
  local x = ffi.new("float[?]", n)
  engine.C.mn_random_normal(7, stream, 0, x, n)
  return x
end

local function episodes(n, each)
  local list = {}
  for i = 1, n do list[i] = math.floor((i - 1) / (each or 1)) end
  return list
end

t.test("what a direction tells is found; what nothing tells is not", function()
  local n, d = 200, 24
  local x, told, hidden = noise(n * d, 1), {}, {}
  for i = 0, n - 1 do
    told[i + 1] = x[i * d + 3] + 0.5 * x[i * d + 9]
    hidden[i + 1] = noise(1, 100 + i)[0]
  end
  local r = linear_probes.examine { x = x, n = n, d = d, y = told, episode = episodes(n) }
  t.ok(r.score > 0.85, r.score)
  t.ok(r.control < 0.2, r.control)
  t.eq(r.selectivity, r.score - r.control)
  t.eq(r.train, 140) t.eq(r.test, 60)
  r = linear_probes.examine { x = x, n = n, d = d, y = hidden, episode = episodes(n) }
  t.ok(r.score < 0.3 and math.abs(r.selectivity) < 0.3, r.score)
end)

t.test("what is linear is read, in any unit; what is not is 0, not less", function()
  local n, d = 200, 10
  local x, y, square = noise(n * d, 2), {}, {}
  for i = 0, n - 1 do
    y[i + 1] = 1000 + 500 * (3 * x[i * d] - x[i * d + 1])
    square[i + 1] = x[i * d] ^ 2 - 1
  end
  local r = linear_probes.examine { x = x, n = n, d = d, y = y, episode = episodes(n), ridge = 1e-4 }
  t.ok(r.score > 0.999 and r.control < 0.1, r.score)
  for i = 0, n * d - 1 do x[i] = 1e-3 * x[i] + 5 end
  t.ok(linear_probes.examine { x = x, n = n, d = d, y = y, episode = episodes(n), ridge = 1e-4 }.score > 0.99)
  r = linear_probes.examine { x = x, n = n, d = d, y = square, episode = episodes(n) }
  t.ok(r.score >= 0 and r.score < 0.2, r.score)
end)

t.test("more numbers than samples; the same answer again; answers that are all the same", function()
  local n, d = 80, 1000
  local x, y, same = noise(n * d, 3), {}, {}
  for i = 0, n - 1 do
    y[i + 1], same[i + 1] = i % 2, 4
    for j = 0, 99 do x[i * d + j] = x[i * d + j] + (i % 2) end
  end
  local function ask(seed) return linear_probes.examine { x = x, n = n, d = d, y = y, episode = episodes(n), seed = seed } end
  local r = ask(1)
  t.ok(r.score > 0.6 and r.control < 0.2, r.score)
  t.eq(ask(1).control, r.control)
  t.eq(linear_probes.examine { x = x, n = n, d = d, y = same, episode = episodes(n) }, nil)
end)

t.test("samples of one episode stay on one side: what is told by the episode alone is not found", function()
  local n, d, each = 200, 40, 10
  local x, y = ffi.new("float[?]", n * d), {}
  for e = 0, n / each - 1 do
    local name = noise(d, 50 + e)
    for i = e * each, e * each + each - 1 do
      for j = 0, d - 1 do x[i * d + j] = name[j] end
      y[i + 1] = noise(1, 500 + e)[0]
    end
  end
  t.ok(linear_probes.examine { x = x, n = n, d = d, y = y, episode = episodes(n, each) }.score < 0.5)
  t.ok(linear_probes.examine { x = x, n = n, d = d, y = y, episode = episodes(n), ridge = 1e-4 }.score > 0.9)
end)

t.test("what cannot be asked says so", function()
  local x = noise(6, 9)
  t.raises(function() linear_probes.examine { x = x, n = 6, d = 1, y = { 1 }, episode = episodes(6) } end, "1 answers")
  t.raises(function() linear_probes.examine { x = x, n = 6, d = 1, y = episodes(6), episode = episodes(6, 3) } end, "at least 4")
end)

t.test("an agent's memory, by step and head: a window of what was seen holds the cue, no memory does not", function()
  local function probe(core)
    mn.manual_seed(2)
    local env = mn.env("tmaze", { corridor = 6, num_envs = 32, seed = 5 })
    local agent = mn.agent { env = env, core = core, hidden = 8 }
    return linear_probes.agent(stepper.new(env, agent, { seed = 5 }), { episodes = 96, steps = { 0, 2 }, facts = { cue = "class", position = "number" } })
  end
  local r = probe { "gru", d_model = 32 }
  t.ok(r.cue > 0.9 and r.cue_selectivity > 0.2, r.cue)
  t.eq(table.concat(r["cue/L0C0-3"].x, " "), "0 2")
  t.ok(r["cue/all"].y[1] > 0.95)
  t.eq(r["position/L0C0-3"].x[1], 2)
  r = probe { "galite", n_layers = 2, n_heads = 2, d_model = 16, d_head = 8, d_ffn = 16, eta = 2 }
  for _, part in ipairs { "L0H0", "L0H1", "L1H0", "L1H1", "all" } do t.eq(#r["cue/" .. part].x, 2) end
  t.raises(function()
    local env = mn.env("tmaze", { corridor = 6, num_envs = 8, seed = 5 })
    linear_probes.agent(stepper.new(env, mn.agent { env = env, core = "gru", hidden = 8 }), { episodes = 48, steps = { 0 }, facts = { clue = "class" } })
  end, "fact of")
end)
