-- live_publisher.lua -- publishes a running training for view=1: writes snapshots to RUN/live and starts `mneme view`, which is
-- another process.  The trainer writes at most twenty times a second and never waits.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local state_arrays = require "mneme.models.state_arrays"
local live_channel = require "mneme.insight.episodes.live_channel"
local ranks = require "mneme.tensor.ranks"
local trusted_code = require "mneme.base.trusted_code"
local terminal = require "mneme.base.terminal"

local live_publisher = {}
live_publisher.__index = live_publisher

-- The layout of a [T+1,B,...] tensor: first element, elements per time row, per environment.
local function part(t)
  local shape, n, inner = t:shape(), 1, {}
  for i = 3, #shape do n, inner[#inner + 1] = n * shape[i], shape[i] end
  return { data = t:data(), stride = n, row = n * shape[2], shape = inner }
end

-- A function that gives one environment's part of a probe of one row, [1,B,...,N,3], which is worked out when it is read; as an
-- array of `shape`, where N may be larger: pieces of other lengths see other numbers of steps.
local function asked_reader(t, shape)
  local p = part(t)
  local n, wide = p.shape[#p.shape - 1] * p.shape[#p.shape], state_arrays.size(shape)
  if wide == p.stride then return function(b) return t:data() + b * p.stride end end
  local buffer, rows = ffi.new("float[?]", wide), p.stride / n
  return function(b)
    local data = t:data() + b * p.stride
    for row = 0, rows - 1 do ffi.copy(buffer + row * (wide / rows), data + row * n, 4 * n) end
    return buffer
  end
end

---Write snapshots of a learner while it acts.
---@param path string RUN/live
---@param total fun(): number steps so far
function live_publisher.writer(learner, path, title, total)
  local env, core = learner.env, learner.agent.core
  local parts, about = {}, {}                        -- of each piece of the rollout, which is a plan of its own
  for _, piece in ipairs(learner.pieces) do
    local p = { probes = {}, asked = {}, memory = {}, logits = part(piece.logits) }
    for name, t in pairs(piece.probes) do
      local shape = t:shape()
      local timed = #shape >= 3 and shape[1] == piece.logits:shape()[1]
      if timed then p.probes[name] = part(t) end
      if #shape >= 4 and shape[1] == 1 then p.asked[name] = t end
      if timed or p.asked[name] then
        local inner = part(t).shape
        if not about[name] or state_arrays.size(inner) > state_arrays.size(about[name].shape) then about[name] = { shape = inner } end
      end
    end
    for name, t in pairs(piece.after) do p.memory[name] = state_arrays.env_reader(core, name, t) end
    parts[piece] = p
  end
  for _, p in pairs(parts) do
    for name, t in pairs(p.asked) do p.asked[name] = asked_reader(t, about[name].shape) end
  end
  local writer = live_channel.writer(path, { title = title, env = env, policy = learner.agent:policy_names(), reads = core.reads,
    memory = state_arrays.of_core(core),
    probes = about })
  for _, p in pairs(parts) do                       -- of every step: without pairs, which LuaJIT does not compile
    p.gates = {}
    for i, name in ipairs(writer:gate_probes()) do p.gates[i] = { name = name, part = p.probes[name] } end
  end
  local x = part(learner.x)
  local space = env.action_space
  local now = { policy = ffi.new("float[?]", learner.agent.actions), memory = {}, probes = {},
    did = ffi.new("float[?]", space.size) }
  local B, T = learner.B, learner.T
  local steps, episodes, returns = ffi.new("int[?]", B), ffi.new("int[?]", B), ffi.new("double[?]", B)
  local last = ffi.new("float[?]", B)
  local function count(done, paid)                   -- for every environment, from what the buffers say
    for b = 0, B - 1 do
      if done[b] ~= 0 then
        if steps[b] > 0 then episodes[b] = episodes[b] + 1 end
        steps[b], returns[b], last[b] = 0, 0, 0
      else
        steps[b], returns[b], last[b] = steps[b] + 1, returns[b] + paid[b], paid[b]
      end
    end
  end
  learner.watch = function(t, piece)
    local row, of, at, b = learner.row, parts[piece], t - piece.first, writer.wanted
    count(row.done[t], row.paid[t > 0 and t - 1 or T - 1])
    now.env_index, now.action, now.value = b, space.kind == "discrete" and row.action[t][b] or nil, row.value[t][b]
    for k = 0, space.kind ~= "discrete" and space.size - 1 or -1 do now.did[k] = row.action[t][b * space.size + k] end
    now.reward, now.step, now.episode, now.ret = last[b], steps[b], episodes[b], returns[b]
    for _, gate in ipairs(of.gates) do now.probes[gate.name] = gate.part.data + at * gate.part.row + b * gate.part.stride end
    writer:note(now)
    if not writer:due() then return end
    now.total = total() + t * B
    for name, p in pairs(of.probes) do now.probes[name] = p.data + at * p.row + b * p.stride end
    for name, of_env in pairs(of.asked) do now.probes[name] = of_env(b) end
    now.observation = x.data + t * x.row + b * x.stride
    learner.agent:show_policy(of.logits.data + at * of.logits.row + b * of.logits.stride, now.policy)
    for name, of_env in pairs(of.memory) do now.memory[name] = of_env(b) end
    writer:write(now)
  end
  return writer
end

---The program: next to the library in a build, in ../bin if installed, else in PATH.
function live_publisher.program()
  for _, path in ipairs { engine.build .. "/mneme", engine.build .. "/../bin/mneme" } do
    if files.is_file(path) then return path end
  end
  return "mneme"
end

---An observer of a training (view=1): it opens the live file of the run, and a window if there is a display; nil without view=1.
function live_publisher.open(learner, run, total)
  if ranks.rank ~= 0 or not learner.cfg.view then return nil end
  local title = learner.agent:title(learner.env)
  local writer = live_publisher.writer(learner, run.path .. "/live", title, total)
  if os.getenv "DISPLAY" or os.getenv "WAYLAND_DISPLAY" then
    files.write(run.path .. "/view.log", {})         -- in place of a link
    local trust = (trusted_code.trusted or trusted_code.remember {}) and " trust=1" or ""       -- it is trained here
    os.execute(("%s view %s%s >/dev/null 2>>%s &"):format(terminal.shell_quote(live_publisher.program()), terminal.shell_quote(run.path), trust,
      terminal.shell_quote(run.path .. "/view.log")))
  else
    terminal.note(("view=1: no display; to watch in a browser: mneme view %s web=1"):format(run.path))
  end
  return setmetatable({ writer = writer, learner = learner }, live_publisher)
end

function live_publisher:close()
  self.learner.watch = nil
  self.writer:close()
end

return live_publisher
