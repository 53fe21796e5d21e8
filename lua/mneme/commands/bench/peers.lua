-- peers.lua -- `mneme bench peers`.
local lazy = require "mneme.base.lazy"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local shell_quote = require("mneme.base.terminal").shell_quote
local small = lazy "mneme.commands.bench.small"
local stats = lazy "mneme.stats"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"

local C = engine.C
local options = require "mneme.commands.options"
local peers = { name = "bench peers", doc = "training next to other programs, by turns, on one machine", about = [[
Medians of rounds, start and imports left out.  torch=: PPO and A2C with a GRU of 64 on CartPole without velocities, 8 environments x 128 steps, 4
epochs and minibatches; official=: A2C with AGaLiTe on the T-Maze in published size next to the released code, which compiles for minutes first.]],
  options = {
    { "torch", "a Python with torch, gymnasium and sb3-contrib (tests/reference/bench_peers.py)", type = "text", example = "python3" },
    { "official", "a Python that can run the released code (tests/reference/bench_official.py)", type = "text", example = "python3" },
    { "agalite", "the released code: a clone of subho406/agalite", type = "text", example = "agalite" },
    options.bench.rounds, options.bench.threads, { "steps", "steps of each", type = "whole", range = { 1 }, default = 10000 },
  } }

-- Name of bench_peers.py, what it is, and the learner that is put next to it.
local list = {
  { "recurrent_ppo", "sb3-contrib RecurrentPPO, LSTM 64", "ppo" },
  { "torch_ppo", "PyTorch loop, PPO, GRU 64", "ppo" },
  { "torch_a2c", "PyTorch loop, A2C, GRU 64", "a2c" },
}

-- Steps a second of processor time and of wall time, over `updates` updates.
local function ours(l, updates)
  local cpu, wall = os.clock(), C.mn_clock(false)
  for _ = 1, updates do l:rollout() l:update() end
  local steps = updates * l.T * l.B
  return steps / (os.clock() - cpu), steps / (C.mn_clock(false) - wall)
end

local function theirs(o, name)
  local pipe = io.popen(("%s %s %s %d %d 2>&1"):format(shell_quote(o.torch), shell_quote(registry.root .. "tests/reference/bench_peers.py"), name, o.steps,
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

-- Rounds of two programs by turns, each a function that returns steps a second of processor time and of wall time; a line.
local function by_turns(rounds, our_name, our, their_name, their)
  local a, b, ratio = { {}, {} }, { {}, {} }, {}
  for k = 1, rounds do
    a[1][k], a[2][k] = our()
    b[1][k], b[2][k] = their()
    ratio[k] = a[1][k] / b[1][k]
  end
  table.sort(ratio)
  print(("mneme %s %8.0f (%.0f)   %-34s %6.0f (%.0f)   %.0f times (%.0f - %.0f)"):format(our_name, stats.median(a[1]), stats.median(a[2]), their_name,
    stats.median(b[1]), stats.median(b[2]), stats.median(ratio), ratio[1], ratio[#ratio]))
  io.stdout:flush()
end

-- The released code runs in a process of its own, compiled once, and makes UPDATES updates for each line that is written into a pipe.
local UPDATES = 2

local function official(o)
  local pipe = os.tmpname()
  files.remove(pipe)
  local function told(from)
    local line = from:read "*l"
    if not line then
      errors.raise(("official=%s agalite=%s: tests/reference/bench_official.py ended: see %s.log"):format(o.official, o.agalite, pipe), { status = 2,
        where = false, hint = "a Python as in the script's header, and a clone of subho406/agalite" })
    end
    return line
  end
  os.execute("mkfifo " .. pipe)
  local process = io.popen(("AGALITE=%s %s %s %d <%s 2>%s.log"):format(shell_quote(o.agalite), shell_quote(o.official),
    shell_quote(registry.root .. "tests/reference/bench_official.py"), UPDATES, pipe, pipe))
  local go = io.open(pipe, "w")                                    -- waits for the reader
  told(process)                                                     -- "ready"
  local l = published_agents.learner(published_agents.find "agalite")
  l:begin()
  for _ = 1, 3 do l:rollout() l:update() end
  by_turns(o.rounds, "A2C, agalite", function() return ours(l, 10) end, "AGaLiTe's released code", function()
    go:write "go\n"
    go:flush()
    local steps, cpu, wall = told(process):match "^(%d+) ([%d.]+) ([%d.]+)$"
    return steps / cpu, steps / wall
  end)
  go:close()
  process:close()
  files.remove(pipe)
  files.remove(pipe .. ".log")
end

local function check(o)
  if not o.torch and not o.official then
    errors.usage "bench peers: expected torch=PYTHON, a Python with torch, gymnasium and sb3-contrib, or official=PYTHON agalite=FOLDER"
  end
  if o.official and not (o.agalite and files.is_folder(o.agalite)) then
    errors.usage(("bench peers: agalite=%s, expected a folder: a clone of subho406/agalite"):format(o.agalite or ""))
  end
end

function peers.run(o)
  check(o)
  engine.open("cpu", o.threads)
  print(("training, %d thread%s, %d rounds by turns; steps a second of processor time (wall):"):format(o.threads, o.threads == 1 and "" or "s", o.rounds))
  for _, peer in ipairs(o.torch and list or {}) do
    local l = small.learner(peer[3], 64)
    by_turns(o.rounds, peer[3]:upper() .. ", GRU 64", function() return ours(l, 100) end, peer[2], function() return theirs(o, peer[1]) end)
  end
  if o.official then official(o) end
  return 0
end

return peers
