-- small.lua -- `mneme bench small`.
local lazy = require "mneme.base.lazy"
local engine = require "mneme.base.engine"
local mn = lazy "mneme"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local stats = lazy "mneme.stats"

local C = engine.C
local options = require "mneme.commands.options"
local small = { name = "bench small",
  doc = "training of small recurrent agents, A2C and PPO, by width of the GRU, next to the bound of its products", about = [[
8 environments x 128 steps, PPO with 4 epochs of 4 minibatches; the heads' hidden layers are as wide as the GRU.  The bound: the products of a
rollout once, of an update's forward once and backward twice, at the rate of a product of 1024 (ours or OpenBLAS's) in the same round.  One
thread: processor time.  Two: one and two by turns, by the clock, which other programs slow.  Medians of rounds.]],
  options = {
    { "widths", "of the GRU", type = "wholes", range = { 1 }, default = { 32, 64, 128, 256 }, example = "32,64" },
    options.bench.rounds, { "threads", "CPU threads", type = "whole", range = { 1, 2 }, default = 1 },
    { "seconds", "of a round", type = "number", range = { 0.001 }, default = 1 },
  } }
local ENVS, STEPS, EPOCHS, MINIBATCHES = 8, 128, 4, 4

---A learner, begun and warm.
---@param name string "a2c" or "ppo"
---@param other { env: Env?, steps: integer?, epochs: integer? }? than 128 steps of CartPole without velocities; with `epochs`, one minibatch
---@return OnPolicy
function small.learner(name, width, other)
  mn.manual_seed(1)
  other = other or {}
  local env = other.env or mn.env("noisy_cartpole", { noise = 0, velocities = 0, num_envs = ENVS, seed = 1 })
  local agent, ppo = mn.agent { env = env, core = { "gru", d_model = width }, hidden = width }, name == "ppo"
  local l = mn[name]({ seed = 1, lr = 2.5e-4, num_steps = other.steps or STEPS, epochs = ppo and (other.epochs or EPOCHS) or nil,
    minibatches = ppo and (other.epochs and 1 or MINIBATCHES) or nil }, env, agent)
  l:begin()
  for _ = 1, 10 do l:rollout() l:update() end
  return l
end

-- Operations of a step of training: every matrix of parameters is multiplied once a step.
local function operations(l, name)
  local products = 0
  for _, w in ipairs(l.agent:parameters()) do if #w:shape() > 1 then products = products + 2 * w:size() end end
  return products * (name == "ppo" and 1 + 3 * EPOCHS or 4)
end

-- Steps a second over about `seconds`, by `clock`.
local function rate(l, clock, seconds)
  local start, steps = clock(), 0
  repeat
    l:rollout() l:update()
    steps = steps + l.T * l.B
  until clock() - start > seconds
  return steps / (clock() - start)
end

local function wall() return C.mn_clock(false) end

local function one_thread(o, name, width)
  local l, speed, bound, share = small.learner(name, width), {}, {}, {}
  local flops = operations(l, name)
  for k = 1, o.rounds do
    bound[k], speed[k] = math.max(published_agents.gemm_rates(3, os.clock)), rate(l, os.clock, o.seconds)
    share[k] = 100 * speed[k] * flops / (bound[k] * 1e9)
  end
  table.sort(share)
  print(("%-4s GRU %-4d %9.0f steps/s  %5.0f GFLOP/s of %3.0f  %3.0f %% (%.0f - %.0f)"):format(name:upper(), width, stats.median(speed),
    stats.median(speed) * flops / 1e9, stats.median(bound), stats.median(share), share[1], share[#share]))
end

local function two_threads(o, name, width)
  local l, speed, ratio = small.learner(name, width), { {}, {} }, {}
  for k = 1, o.rounds do
    for threads = 1, 2 do
      engine.check(C.mn_set_threads(engine.ctx, threads))
      rate(l, wall, o.seconds / 10)
      speed[threads][k] = rate(l, wall, o.seconds)
    end
    ratio[k] = speed[2][k] / speed[1][k]
  end
  table.sort(ratio)
  print(("%-4s GRU %-4d %9.0f steps/s on one thread, %9.0f on two, by the clock: %.2f times (%.2f - %.2f)"):format(name:upper(), width,
    stats.median(speed[1]), stats.median(speed[2]), stats.median(ratio), ratio[1], ratio[#ratio]))
end

function small.run(o)
  engine.open("cpu", o.threads)
  for _, name in ipairs { "ppo", "a2c" } do
    for _, width in ipairs(o.widths) do
      if o.threads == 1 then one_thread(o, name, width) else two_threads(o, name, width) end
      io.stdout:flush()
    end
  end
  return 0
end

return small
