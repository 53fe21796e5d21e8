-- peers.lua -- `mneme bench peers torch=PYTHON [rounds=5] [threads=1] [steps=10000]`: training of small recurrent agents next to other
-- programs, by turns: PPO and A2C with a GRU of 64 on CartPole without velocities, 8 environments x 128 steps, 4 epochs and minibatches.
-- PYTHON has torch, gymnasium and sb3-contrib (tests/reference/bench_peers.py); start and imports do not count.  Medians of rounds.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local mn = require "mneme"
local registry = require "mneme.base.registry"
local shell_word = require "mneme.base.shell_word"
local stats = require "mneme.stats"

local C = engine.C
local peers = {}

-- Name of bench_peers.py, what it is, and the learner that is put next to it.
local list = {
  { "recurrent_ppo", "sb3-contrib RecurrentPPO, LSTM 64", "ppo" },
  { "torch_ppo", "PyTorch loop, PPO, GRU 64", "ppo" },
  { "torch_a2c", "PyTorch loop, A2C, GRU 64", "a2c" },
}

local function learner(name)
  mn.manual_seed(1)
  local env = mn.env("noisy_cartpole", { noise = 0, velocities = 0, num_envs = 8, seed = 1 })
  local agent = mn.agent { env = env, core = { "gru", d_model = 64 }, hidden = 64 }
  local l = mn[name]({ seed = 1, lr = 2.5e-4, num_steps = 128, epochs = name == "ppo" and 4 or nil, minibatches = name == "ppo" and 4 or nil }, env, agent)
  l:begin()
  for _ = 1, 10 do l:rollout() l:update() end
  return l
end

-- Steps a second of processor time and of wall time, over `updates` updates.
local function ours(l, updates)
  local cpu, wall = os.clock(), C.mn_clock(false)
  for _ = 1, updates do l:rollout() l:update() end
  local steps = updates * l.T * l.B
  return steps / (os.clock() - cpu), steps / (C.mn_clock(false) - wall)
end

local function theirs(o, name)
  local pipe = io.popen(("%s %s %s %d %d 2>&1"):format(shell_word(o.torch), shell_word(registry.root .. "tests/reference/bench_peers.py"), name, o.steps,
    o.threads))
  local said = pipe:read "*a"
  pipe:close()
  local steps, cpu, wall = said:match(name .. " (%d+) ([%d.]+) ([%d.]+)")
  if not steps then
    errors.raise(("torch=%s: tests/reference/bench_peers.py said: %s"):format(o.torch, said:match "[^\n]*\n?$"), { status = 2, where = false,
      hint = "a Python with torch, gymnasium and sb3-contrib, as in tests/reference/README.md" })
  end
  return steps / cpu, steps / wall
end

local function parse(words)
  local o = { rounds = 5, threads = 1, steps = 10000 }
  for _, word in ipairs(words) do
    local key, value = word:match "^(%w+)=(.*)$"
    if key == "torch" then o.torch = value
    elseif o[key] then
      o[key] = tonumber(value)
      if not o[key] or o[key] < 1 or o[key] % 1 ~= 0 then errors.usage(("bench peers: %s, expected a whole number of at least 1"):format(word)) end
    else errors.unknown("setting of bench peers:", word, { "torch=PYTHON", "rounds=5", "threads=1", "steps=10000" }) end
  end
  if not o.torch then errors.usage "bench peers: expected torch=PYTHON, a Python with torch, gymnasium and sb3-contrib" end
  return o
end

---@param words string[] what follows `mneme bench peers`
---@return integer status
function peers.main(words)
  local o = parse(words)
  engine.open("cpu", o.threads)
  print(("training on CartPole without velocities, 8 environments x 128 steps, %d thread%s, %d rounds by turns; steps a second of processor time (wall):")
    :format(o.threads, o.threads == 1 and "" or "s", o.rounds))
  for _, peer in ipairs(list) do
    local l, a, b, ratio = learner(peer[3]), { {}, {} }, { {}, {} }, {}
    for k = 1, o.rounds do
      a[1][k], a[2][k] = ours(l, 100)
      b[1][k], b[2][k] = theirs(o, peer[1])
      ratio[k] = a[1][k] / b[1][k]
    end
    table.sort(ratio)
    print(("mneme %s, GRU 64 %8.0f (%.0f)   %-34s %6.0f (%.0f)   %.0f times (%.0f - %.0f)"):format(peer[3]:upper(), stats.median(a[1]), stats.median(a[2]),
      peer[2], stats.median(b[1]), stats.median(b[2]), stats.median(ratio), ratio[1], ratio[#ratio]))
    io.stdout:flush()
  end
  return 0
end

return peers
