-- frames.lua -- turns snapshots of a stepper or a live channel into frames that stay valid, with the history of the episode, so
-- that a scene can draw curves.  It can be rewound to an earlier frame and continue from there.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local state_arrays = require "mneme.models.state_arrays"
local tables = require "mneme.base.tables"

local C = engine.C
local frames = {}
local methods = {}

---@class Frame what a scene draws, as `now`; read-only
---@field title string agent and environment: "agalite on tmaze-v0, corridor 20"
---@field source string? origin: "checkpoint at 300,000 steps", "live, 1,204,224 steps"
---@field canvas ffi.cdata* the environment's drawing
---@field actions string[] names in order
---@field observation table { shape, values }
---@field seen ffi.cdata*? the observation as the environment draws it, where its numbers are codes
---@field observation_groups ObservationGroup[]? what its numbers are, where the environment declares it
---@field action integer the action of this step, from 0
---@field policy number[] probability of each action; empty where unknown
---@field value number estimated discounted return
---@field reward number of the last action; 0 at the start
---@field memory table<string, table> the core's state: name -> { shape, values, dims }
---@field probes table<string, table> gates, keys, retrievals: likewise
---@field truth table<string, number> the environment's facts, which the agent may not observe
---@field step integer of the episode, from 0
---@field episode integer from 0
---@field ret number undiscounted return so far
---@field outcome table? at the end: { score, ret, length }
---@field history table[] one Entry a step of this episode
---@field places table { x, y = float pointers, n }: positions at every step shown so far, of all
---  episodes; the first `been` of them are those up to this frame
---@field been integer
---@field outcomes table[] { score, ret, length } of every episode that ended while shown; the first
---  `ended_before` of them are those up to this frame
---@field ended_before integer
---@field reads string? how the core reads its memory: see implicit_attention.lua
---@field run string? the folder of its run
---@field checkpoint integer? of its run
---@field frame_of (fun(step: integer): Frame?)? the frame of another step of this episode, where it is kept
---@field range table<string, number> end of the colour scale of each kind of memory
---@field n_heads integer
---@field gates string[] the kinds of probes that are gates
---@field agent Agent? that acts; nil: a recorded or live episode
---@field stepper Stepper? that runs it: somewhere else by now
---@field episode_history Entry[]? every step of this episode, where its end is known
---@field changed integer? the last step of this episode before which an intervention was applied
---@field beside Frame[]? those of the other episodes on the page, for shared axes
---@field selection table? { layer, head, step }
---@field status table? of the playback: { playing, speed, hint, note }

---@class Entry a past step; of a live training, which is sampled, the steps in between have only the fields of
---the first line
---@field step integer
---@field value number
---@field reward number
---@field action integer
---@field x number
---@field y number
---@field gates table
---@field policy number[]? probability of each action
---@field norms table<integer, number>? norm of the state of each layer
---@field truth table? as in Frame
---@field observation table? { shape, values }, where it is small
---@field probes table? as in Frame, of the newest steps

local PLACES = 2 ^ 18            -- positions kept; then the list is cleared
local DETAILED = 1024            -- steps of an episode whose probes are kept
local SMALL = 1024               -- elements of an observation that is kept for every step

---@class FrameStore
---@field last Frame? the newest
---@return FrameStore
function frames.new() return setmetatable({ outcomes = {}, ended = 0 }, { __index = methods }) end

local floats = ffi.typeof "float *"

local function copy_array(array)
  local n = state_arrays.size(array.shape)
  local values = ffi.new("float[?]", n)
  if type(array.values) == "table" then
    for i = 1, n do values[i - 1] = array.values[i] end
  elseif ffi.istype(floats, array.values) then ffi.copy(values, array.values, 4 * n)
  else
    for i = 0, n - 1 do values[i] = array.values[i] end
  end
  return { shape = array.shape, dims = array.dims, values = values }, n * 4
end

local function copy_arrays(arrays)
  local copy, bytes = {}, 0
  for name, array in pairs(arrays or {}) do
    local size
    copy[name], size = copy_array(array)
    bytes = bytes + size
  end
  return copy, bytes
end

local box = ffi.new "float[4]"

local function copy_canvas(from)
  local canvas = ffi.gc(engine.check(C.mn_canvas_new(engine.ctx)), C.mn_canvas_free)
  C.mn_canvas_bounds(from, box)
  local w, h = box[2] - box[0], box[3] - box[1]
  if w > 0 and h > 0 then engine.check(C.mn_canvas_append(canvas, from, box[0], box[1], w, h, 0)) end
  return canvas
end

local function list(values, n)
  local copy, from = {}, type(values) == "table" and 1 or 0
  for i = 0, n - 1 do copy[i + 1] = values[from + i] end
  return copy
end

-- The mean of every gate, by kind: one value for each head of each layer, layer by layer.
local function gate_means(frame)
  local means = {}
  local layers, _, by_layer = state_arrays.grid(frame.probes, frame.gates)
  for _, kind in ipairs(frame.gates) do
    means[kind] = {}
    for _, layer in ipairs(layers) do
      local array = by_layer[layer][kind]
      for head = 0, array and state_arrays.count(array, frame.n_heads) - 1 or -1 do
        local rows, cols, values = state_arrays.slice(array, head, frame.n_heads)
        local _, mean = state_arrays.summary(values, rows * cols)
        table.insert(means[kind], mean)
      end
    end
  end
  return means
end

-- The kinds of gates among the probes: by name, and all values in 0..1.
local function find_gates(probes)
  local found = {}
  for _, kind in ipairs(state_arrays.gates) do
    local inside = nil
    for name, array in pairs(probes) do
      local _, of = state_arrays.parse(name)
      if of == kind then
        local least, _, greatest = state_arrays.summary(array.values, state_arrays.size(array.shape))
        inside = inside ~= false and least >= 0 and greatest <= 1
      end
    end
    if inside then found[#found + 1] = kind end
  end
  return found
end

local function find_heads(memory)
  for _, array in pairs(memory) do
    local n = array.dims and state_arrays.count(array)
    if n and n > 1 then return n end
  end
  return 1
end

-- The colour scale of each kind of memory: four times the root mean square, or the greatest value
-- where that is less, so that a few outliers do not leave the rest in the dark.  It grows during
-- an episode but never shrinks: colours do not flicker.
local function widen(before, memory)
  local range, most, squares, count = {}, {}, {}, {}
  for name, array in pairs(memory) do
    local _, kind = state_arrays.parse(name)
    local n, sum, top = state_arrays.size(array.shape), squares[kind] or 0, most[kind] or 0
    for i = 0, n - 1 do
      local v = array.values[i]
      if v - v == 0 then sum, top = sum + v * v, math.max(top, math.abs(v)) end     -- finite
    end
    squares[kind], most[kind], count[kind] = sum, top, (count[kind] or 0) + n
  end
  for kind, top in pairs(most) do
    local scale = math.min(top, 4 * math.sqrt(squares[kind] / count[kind]))
    range[kind] = math.max(scale, before and before[kind] or 0)
  end
  return range
end

-- The L2 norm of each layer's state.
local function norms_of(memory)
  local norms = {}
  for name, array in pairs(memory) do
    local layer, n, sum = state_arrays.parse(name) or 0, state_arrays.size(array.shape), 0
    for i = 0, n - 1 do sum = sum + array.values[i] * array.values[i] end
    if n > 1 then norms[layer] = (norms[layer] or 0) + sum end
  end
  for layer, sum in pairs(norms) do norms[layer] = math.sqrt(sum) end
  return norms
end

-- The history entry of a frame.
local function entry_of(frame)
  local truth, seen = frame.truth, frame.observation
  return { step = frame.step, value = frame.value, reward = frame.reward, action = frame.action, did = frame.did,
    x = truth.x or truth.position, y = truth.y, gates = gate_means(frame), truth = truth,
    policy = #frame.policy > 0 and frame.policy or nil, norms = norms_of(frame.memory), probes = frame.probes,
    observation = seen and state_arrays.size(seen.shape) <= SMALL and seen or nil }
end

-- The episode so far.  Where the trainer sent the history, the steps that were shown here get their details.
local function history_of(frame, last, told)
  local mine, history = entry_of(frame), told or {}
  if not told then
    for i, entry in ipairs(last and last.history or {}) do history[i] = entry end
    history[#history + 1] = mine
  else
    local seen = { [mine.step] = mine }
    for _, entry in ipairs(last and last.history or {}) do seen[entry.step] = seen[entry.step] or entry end
    for _, entry in ipairs(told) do
      for key, value in pairs(seen[entry.step] or {}) do if entry[key] == nil then entry[key] = value end end
    end
  end
  local old = history[#history - DETAILED]
  if old then old.probes = nil end
  return history
end

-- Appends the positions of steps that are not in the list yet.
function methods:note_places(frame, same)
  local from = same and same.noted or -1
  for _, entry in ipairs(frame.history) do
    if entry.step > from and entry.x and entry.x - entry.x == 0 then
      local p = self.places
      if not p or p.n == PLACES then
        p = { x = ffi.new("float[?]", PLACES), y = ffi.new("float[?]", PLACES), n = 0 }
        self.places = p
      end
      p.x[p.n], p.y[p.n] = entry.x, entry.y or 0
      p.n = p.n + 1
    end
    frame.noted = entry.step
  end
  frame.places, frame.been = self.places, self.places and self.places.n or 0
end

---Makes a frame of a snapshot, whose pointers may change afterwards.
---@param now table see Frame: its source fills title .. ret, this the rest.  Where now.ended is set,
---  now.reward was the last one of the episode before: see finish
---@return Frame
function methods:add(now)
  local last, frame = self.last, tables.merged(now)
  local memory_bytes, probe_bytes
  if now.ended or now.step == 0 then frame.reward = 0 end
  frame.canvas = copy_canvas(now.canvas)
  local picture = now.sight and now.sight()
  frame.sight, frame.seen = nil, picture and copy_canvas(picture) or nil
  frame.memory, memory_bytes = copy_arrays(now.memory)
  frame.probes, probe_bytes = copy_arrays(now.probes)
  local seen_bytes
  if now.observation then frame.observation, seen_bytes = copy_array(now.observation) end
  frame.policy = list(now.policy, #now.actions)
  local same = last and last.episode == now.episode and last.step < now.step and last or nil
  frame.n_heads = last and last.n_heads or find_heads(frame.memory)
  frame.gates = last and last.gates or find_gates(frame.probes)
  frame.range = widen(same and last.range, frame.memory)
  local truth = now.truth or {}
  frame.truth = truth
  frame.history = history_of(frame, same, now.history)
  self:note_places(frame, same)
  frame.outcomes, frame.ended_before = self.outcomes, self.ended
  frame.bytes = memory_bytes + probe_bytes + (seen_bytes or 0) + 4096 + (now.history and 400 or 16) * #frame.history
  self.last = frame
  return frame
end

---The last frame again, as the end of its episode.
---@param outcome table { score, ret, length }
---@param reward number what the last action brought
---@return Frame
function methods:finish(outcome, reward)
  local frame = tables.merged(self.last)
  frame.outcome, frame.reward, frame.ret = outcome, reward, outcome.ret
  self.ended = self.ended + 1
  self.outcomes[self.ended] = outcome
  frame.ended_before = self.ended
  self.last = frame
  return frame
end

---Rewinds to where a frame was the newest.
---@param frame Frame? nil: to the beginning
function methods:rewind(frame)
  self.last, self.ended = frame, frame and frame.ended_before or 0
  if self.places then self.places.n = frame and math.min(frame.been, PLACES) or 0 end
end

---A second store with the same history, which continues independently.
---@return FrameStore
function methods:fork()
  local other, from = frames.new(), self.places
  for i = 1, self.ended do other.outcomes[i] = self.outcomes[i] end
  other.last, other.ended = self.last, self.ended
  if from then
    local p = { x = ffi.new("float[?]", PLACES), y = ffi.new("float[?]", PLACES), n = from.n }
    ffi.copy(p.x, from.x, 4 * from.n)
    ffi.copy(p.y, from.y, 4 * from.n)
    other.places = p
  end
  return other
end

return frames
