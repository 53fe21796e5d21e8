-- peers.lua -- `mneme bench peers`.
local lazy = require "mneme.base.lazy"
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local trusted_code = require "mneme.base.trusted_code"
local shell_quote = require("mneme.base.terminal").shell_quote
local mn = lazy "mneme"
local small = lazy "mneme.commands.bench.small"
local stats = lazy "mneme.stats"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"

local C = engine.C
local options = require "mneme.commands.options"
local peers = { name = "bench peers", doc = "training next to other programs, by turns, on one machine", about = [[
Medians of rounds, start and imports left out.  torch=: PPO and A2C with a GRU of 64 on CartPole without velocities, 8 environments x 128 steps, 4 epochs and
minibatches; PPO once more on Gymnasium's, through the bridge.  official=, jax=: A2C with AGaLiTe on the T-Maze in published size, and PPO with a GRU of 128
on CartPole, next to JAX, which compiles for minutes first.  rl_tools=: PPO of its zoo, GRU 32, on the pendulum's positions, 256 environments x 200 steps.]],
  options = {
    { "torch", "a Python with torch, gymnasium and sb3-contrib (tests/reference/bench_peers.py)", type = "text", example = "python3" },
    { "official", "a Python that can run the released code (tests/reference/bench_official.py)", type = "text", example = "python3" },
    { "agalite", "the released code: a clone of subho406/agalite", type = "text", example = "agalite" },
    { "jax", "a Python that can run PureJaxRL (tests/reference/bench_purejaxrl.py)", type = "text", example = "python3" },
    { "purejaxrl", "a clone of luchris429/purejaxrl", type = "text", example = "purejaxrl" },
    { "rl_tools", "a program of yours: with STEPS THREADS it trains, and prints STEPS PROCESSOR_SECONDS WALL_SECONDS", type = "text", example = "./ppo" },
    options.bench.rounds, options.bench.threads, { "steps", "steps of each", type = "whole", range = { 1 }, default = 10000 },
  } }

-- Name of bench_peers.py, what it is, the learner that is put next to it, and whether that goes through the bridge.
local list = {
  { "recurrent_ppo", "sb3-contrib RecurrentPPO, LSTM 64", "ppo" },
  { "recurrent_ppo", "sb3-contrib RecurrentPPO, LSTM 64", "ppo", true },
  { "torch_ppo", "PyTorch loop, PPO, GRU 64", "ppo" },
  { "torch_a2c", "PyTorch loop, A2C, GRU 64", "a2c" },
}

-- Processor time of this process and, on Linux, of its children: the bridge's workers.
local function processor_time()
  local sum = os.clock()
  for pid in errors.text_of "@/proc/thread-self/children":gmatch "%d+" do
    local user, system = errors.text_of("@/proc/" .. pid .. "/stat"):match(".*%) %S" .. (" %S+"):rep(10) .. " (%d+) (%d+)")
    sum = sum + ((user or 0) + (system or 0)) / 100
  end
  return sum
end

-- Steps a second of processor time and of wall time, over `updates` updates.
local function ours(l, updates)
  local cpu, wall = processor_time(), C.mn_clock(false)
  for _ = 1, updates do l:rollout() l:update() end
  local steps = updates * l.T * l.B
  return steps / (processor_time() - cpu), steps / (C.mn_clock(false) - wall)
end

-- The same of what a program says.
local function said(line)
  local steps, cpu, wall = line:match "(%d+) ([%d.]+) ([%d.]+)%s*$"
  if steps then return steps / cpu, steps / wall end
end

local function theirs(command, o, hint)
  local text = files.output(("%s %d %d 2>&1"):format(command, o.steps, o.threads))
  local cpu, wall = said(text)
  if not cpu then errors.raise(("%s said: %s"):format(command, text:match "[^\n]*\n?$"), { status = 2, where = false, hint = hint }) end
  return cpu, wall
end

-- Rounds of two programs by turns, each a function that returns steps a second of processor time and of wall time; a line.
local function by_turns(rounds, our_name, our, their_name, their)
  local a, b, ratio = { {}, {} }, { {}, {} }, {}
  for k = 1, rounds do
    a[1][k], a[2][k] = our()
    b[1][k], b[2][k] = their()
    ratio[k] = a[1][k] / b[1][k]
  end
  table.sort(ratio)
  print(("mneme %s %8.0f (%.0f)   %-34s %6.0f (%.0f)   %.3g times (%.3g - %.3g)"):format(our_name, stats.median(a[1]), stats.median(a[2]), their_name,
    stats.median(b[1]), stats.median(b[2]), stats.median(ratio), ratio[1], ratio[#ratio]))
  io.stdout:flush()
end

-- What JAX compiles runs in a process of its own, and trains `often` times for each line that is written into a pipe.
local function compiled(o, python, folder, often, our_name, l, updates, their_name)
  local pipe, script = files.temporary(), ("tests/reference/bench_%s.py"):format(python == "jax" and "purejaxrl" or python)
  files.remove(pipe)
  local function told(from)
    local line = from:read "*l"
    if not line then
      errors.raise(("%s=%s %s=%s: %s ended: see %s.log"):format(python, o[python], folder, o[folder], script, pipe), { status = 2,
        where = false, hint = "a Python as in the script's header, and the clone" })
    end
    return line
  end
  os.execute("mkfifo " .. shell_quote(pipe))
  local process = io.popen(("%s=%s %s %s %d <%s 2>%s.log"):format(folder:upper(), shell_quote(o[folder]), shell_quote(o[python]),
    shell_quote(registry.root .. script), often, shell_quote(pipe), shell_quote(pipe .. ".log")))
  local go = io.open(pipe, "w")                                    -- waits for the reader
  told(process)                                                     -- "ready"
  l:begin()
  for _ = 1, 3 do l:rollout() l:update() end
  by_turns(o.rounds, our_name, function() return ours(l, updates) end, their_name, function()
    go:write "go\n"
    go:flush()
    return said(told(process))
  end)
  go:close()
  process:close()
  files.remove(pipe)
  files.remove(pipe .. ".log")
end

local function check(o)
  if not (o.torch or o.official or o.jax or o.rl_tools) then
    errors.usage "bench peers: expected torch=PYTHON, a Python with torch, gymnasium and sb3-contrib, official=PYTHON agalite=FOLDER, \z
jax=PYTHON purejaxrl=FOLDER, or rl_tools=PROGRAM"
  end
  for python, clone in pairs { official = "subho406/agalite", jax = "luchris429/purejaxrl" } do
    local folder = clone:match "[^/]+$"
    if o[python] and not (o[folder] and files.is_folder(o[folder])) then
      errors.usage(("bench peers: %s=%s, expected a folder: a clone of %s"):format(folder, o[folder] or "", clone))
    end
  end
end

function peers.run(o)
  check(o)
  engine.open("cpu", o.threads)
  print(("training, %d thread%s, %d rounds by turns; steps a second of processor time (wall):"):format(o.threads, o.threads == 1 and "" or "s", o.rounds))
  local script = registry.root .. "tests/reference/bench_peers.py"
  for _, peer in ipairs(o.torch and list or {}) do
    local name, about, learner, bridge = unpack(peer, 1, 4)
    if bridge then
      ffi.C.setenv("PYTHON", o.torch, 1)
      trusted_code.name(script)
    end
    local l = small.learner(learner, 64, bridge and { env = mn.env("gym:" .. script .. ":Positions", { workers = o.threads, timeout = 600 }) })
    by_turns(o.rounds, learner:upper() .. ", GRU 64" .. (bridge and ", bridge" or ""), function() return ours(l, bridge and 20 or 100) end, about, function()
      return theirs(("%s %s %s"):format(shell_quote(o.torch), shell_quote(script), name), o,
        "a Python with torch, gymnasium and sb3-contrib, as in tests/reference/README.md")
    end)
    if bridge then l.env:close() end
  end
  if o.official then
    compiled(o, "official", "agalite", 2, "A2C, agalite", published_agents.learner(published_agents.find "agalite"), 10, "AGaLiTe's released code")
  end
  if o.jax then
    local l = small.learner("ppo", 128, { env = mn.env("noisy_cartpole", { noise = 0, velocities = 1, num_envs = 8 }) })
    compiled(o, "jax", "purejaxrl", 4, "PPO, GRU 128", l, 20, "PureJaxRL's recurrent PPO")
  end
  if o.rl_tools then
    local l = small.learner("ppo", 32, { env = mn.env("position_only_pendulum", { num_envs = 256 }), steps = 200, epochs = 1 })
    by_turns(o.rounds, "PPO, GRU 32, pendulum", function() return ours(l, 10) end, "rl-tools", function()
      return theirs(shell_quote(o.rl_tools), o, "it prints STEPS PROCESSOR_SECONDS WALL_SECONDS")
    end)
  end
  return 0
end

return peers
