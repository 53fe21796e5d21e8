-- episode_data.lua -- an episode as plain data for a page in a browser: what every step shows, as numbers, and what is large as
-- bytes in base64.  With an intervention, or two agents, there are two variants; the second one stores only the steps after they part.
local ffi = require "ffi"
local json = require "mneme.base.json"
local implicit_attention = require "mneme.models.implicit_attention"
local state_arrays = require "mneme.models.state_arrays"
local attention_history = require "mneme.view.attention_history"
local pictures = require "mneme.view.episode_pictures"
local selection = require "mneme.view.selection"

local episode_data = {}
local MOST_STEPS = 2000
local ATTENTION, STATE, SEEN = 200000, 160000, 100000       -- bytes of a file at most, of all variants
local FEW = 64                                              -- values of an observation that are stored as numbers
local SEPARATE = 1024                                       -- heads whose state is drawn, at most
local BLOCKS = 400                                          -- of a head's state of one kind, at most

local base64, null = pictures.base64, json.null

-- Four digits; nothing for what is not finite.
local function number(x)
  if type(x) ~= "number" or x - x ~= 0 then return null end
  return tonumber(("%.4g"):format(x))
end


-- A share of 0 .. 1 as a byte.
local function byte(share) return math.floor(255 * math.max(0, math.min(1, share)) + 0.5) end

-- ---- which frames ----

-- The frames of a track in the displayed episode, and the one that shows its end.
local function frames_of(shown, k, from, to, most)
  local line, list, last = shown.tracks[k].timeline, {}, nil
  for at = from, to do
    local i = shown.slots[at][k]
    if i ~= last then list[#list + 1], last = i, i end
  end
  local tick = line.ticks[last]
  local stop, left_out = tick.ended and table.remove(list) or nil, not (tick.ended or tick.over)
  if #list > most then
    stop, left_out = nil, true
    for i = #list, most + 1, -1 do list[i] = nil end
  end
  return list, stop, left_out
end

-- ---- what all steps have in common ----

-- The gates of a frame: kinds, and the head of each row.
local function gate_rows(frame)
  local list = {}
  for _, kind in ipairs(frame.gates) do
    local layers, kinds, by_layer = state_arrays.grid(frame.probes, { kind })
    local rows = {}
    for _, layer in ipairs(layers) do
      local array = by_layer[layer][kinds[1]]
      local n = array and state_arrays.count(array, frame.n_heads) or 0
      for head = 0, n - 1 do rows[#rows + 1] = { layer = layer, head = n > 1 and head or nil } end
    end
    if #rows > 0 then list[#list + 1] = { kind = kind, rows = rows, lo = math.huge, hi = -math.huge } end
  end
  return list
end

-- How the state is divided: an entry for each head's matrix of a kind, and in how many blocks it is drawn.
local function state_cells(frame, steps)
  local layers, kinds, by_layer = state_arrays.grid(frame.memory)
  local list = {}
  for _, layer in ipairs(layers) do
    for _, kind in ipairs(kinds) do
      local array = by_layer[layer][kind]
      local n = array and state_arrays.count(array, frame.n_heads) or 0
      for head = 0, n - 1 do
        local rows, cols = state_arrays.slice(array, head, frame.n_heads)
        list[#list + 1] = { name = kind, layer = layer, head = n > 1 and head or nil, rows = rows, cols = cols, array = { layer, kind, head } }
      end
    end
  end
  local room = #list <= SEPARATE and math.min(BLOCKS, math.floor(STATE / steps / math.max(1, #list))) or 0
  if room < 1 then return {}, #list > 0 end
  local at = 0
  for _, cell in ipairs(list) do
    local tall, wide = 1, 1                                  -- values of a block
    while math.ceil(cell.rows / tall) * math.ceil(cell.cols / wide) > room do
      if cell.rows / tall > cell.cols / wide then tall = tall + 1 else wide = wide + 1 end
    end
    local down, across = math.ceil(cell.rows / tall), math.ceil(cell.cols / wide)
    cell.down, cell.across, cell.tall, cell.wide, cell.at = down, across, tall, wide, at
    at = at + down * across
  end
  return list, false, at
end

-- How an observation is stored: as the environment draws it, as numbers, as bytes of what a panel draws, or as a picture.
local function seen_as(frame, steps)
  local seen = frame.observation
  if not seen then return null end
  local n, shape = state_arrays.size(seen.shape), seen.shape
  local about = { shape = json.array(shape), n = n }
  if frame.seen then about.as, about.rows, about.cols, about.film = "drawing", 1, n, pictures.shapes()
  elseif #shape == 3 and shape[3] == 3 then
    about.as, about.rows, about.cols = "picture", shape[1], shape[2]
  elseif n <= FEW and #shape < 2 then about.as, about.rows, about.cols = "numbers", 1, n
  else
    about.as, about.rows, about.cols = "bytes", #shape < 2 and 1 or shape[1], #shape < 2 and n or shape[2]
    about.parts = n / about.rows / about.cols
    if about.rows * about.cols * steps > SEEN then about.as = "nothing" end
  end
  local groups = about.rows == 1 and frame.observation_groups or {}
  if #groups > 0 then
    about.groups, about.names = json.array {}, json.array {}
    for g, group in ipairs(groups) do
      about.groups[g] = { name = group.name, from = group.from, n = group.n }
      for i = 1, n <= FEW and group.n or 0 do about.names[group.from + i] = group.names[i] end
    end
  end
  return about
end

-- ---- one step ----

-- The truth's numbers, by name.
local function note_truth(into, truth, k)
  for name, value in pairs(truth) do
    if type(value) == "number" then
      into[name] = into[name] or {}
      into[name][k] = number(value)
    end
  end
end

-- One value where all are equal, and nothing missing.
local function squeeze(truths, n)
  for name, list in pairs(truths) do
    local same = true
    for k = 1, n do
      if list[k] == nil then list[k] = null end
      same = same and list[k] == list[1]
    end
    truths[name] = same and n > 0 and list[1] or json.array(list)
  end
  return truths
end

-- Every block of a head's state: of the values in it the one that is farthest from 0.
local function pool(cell, frame, to)
  local name = cell.array
  local _, _, by_layer = state_arrays.grid(frame.memory, { name[2] })
  local rows, cols, values = state_arrays.slice(by_layer[name[1]][name[2]], name[3], frame.n_heads)
  local down, across = cell.down, cell.across
  ffi.fill(to, 4 * down * across)
  for r = 0, rows - 1 do
    local row = math.floor(r / cell.tall) * across
    for c = 0, cols - 1 do
      local v, at = values[r * cols + c], row + math.floor(c / cell.wide)
      if v ~= v or math.abs(v) > math.abs(to[at]) then to[at] = v end
    end
  end
end

-- Bytes of the state at a step: 128 is 0, 1 and 255 are the ends of the kind's colours or beyond, 0 is no number.
local function put_state(about, frame, bytes, at)
  for _, cell in ipairs(about.cells) do
    pool(cell, frame, about.buffer)
    local range = math.max(about.range[cell.name], 1e-30)
    for i = 0, cell.down * cell.across - 1 do
      local v = about.buffer[i]
      bytes[at + cell.at + i] = v ~= v and 0 or 128 + math.floor(127 * math.max(-1, math.min(1, v / range)) + 0.5)
    end
  end
end

-- The attention of all heads at step k (from 0), over steps 0 .. k: roots of shares as bytes.
local function put_attention(about, frame, k, bytes, at)
  for r, row in ipairs(about.rows) do
    local share, n, unseen = attention_history.of(frame, #frame.history, row.layer, row.head)
    for i = unseen, math.min(n, k + 1) - 1 do bytes[at + (r - 1) * (k + 1) + i] = byte(math.sqrt(share[i])) end
  end
end

-- Values of an observation as a panel draws them: of several channels the mean.
local function put_seen(about, seen, bytes, at)
  for cell = 0, about.rows * about.cols - 1 do
    local sum = 0
    for part = 0, about.parts - 1 do sum = sum + seen.values[cell * about.parts + part] end
    bytes[at + cell] = byte((sum / about.parts - about.lo) / math.max(1e-30, about.hi - about.lo))
  end
end

-- ---- a variant ----

-- The tables of one variant, filled step by step.
local function fill(shared, track, list, from, stop)
  local n = #list - from
  local v = { name = track.name or "", from = from, n = #list, policy = {}, value = {}, action = {}, reward = {}, ret = {}, world = {},
    norms = {}, truth = {} }
  local line, world, truths = track.timeline, shared.shapes:film(), {}
  local attention, state, seen = shared.attention, shared.state, shared.seen
  local read_at, stored = 0, {}
  for k = from, #list - 1 do
    if attention.stride and (k - from) % attention.stride == 0 then stored[k], read_at = read_at, read_at + #attention.rows * (k + 1) end
  end
  local read = ffi.new("uint8_t[?]", read_at)
  local size = state.size or 0
  local cells = ffi.new("uint8_t[?]", size * n)
  local view_size = seen ~= null and seen.as == "bytes" and seen.rows * seen.cols or 0
  local views = ffi.new("uint8_t[?]", view_size * n)
  local gates, sprites = {}, seen ~= null and seen.as == "picture" and pictures.sheet(seen.rows, seen.cols, n) or nil
  for g, gate in ipairs(shared.gates) do gates[g] = ffi.new("uint8_t[?]", #gate.rows * n) end
  local numbers, sight = {}, seen ~= null and seen.film and seen.film:film()
  for k = from, #list - 1 do
    local frame, i = line:frame(list[k + 1]), k - from + 1
    local entry = frame.history[#frame.history]
    local policy = {}
    for a = 1, #frame.policy do policy[a] = number(math.floor(frame.policy[a] * 1e4 + 0.5) / 1e4) end
    v.policy[i], v.value[i], v.action[i] = json.array(policy), number(frame.value), frame.action or null
    v.reward[i], v.ret[i] = number(frame.reward), number(frame.ret)
    v.world[i] = world(frame.canvas)
    note_truth(truths, frame.truth, i)
    local norms = {}
    for l = 0, shared.layers - 1 do norms[l + 1] = number((entry.norms or {})[l]) end
    v.norms[i] = json.array(norms)
    for g, gate in ipairs(shared.gates) do
      local means = entry.gates[gate.kind] or {}
      for r = 1, #gate.rows do gates[g][(i - 1) * #gate.rows + r - 1] = byte(((means[r] or gate.lo) - gate.lo) / (gate.hi - gate.lo)) end
    end
    if stored[k] then put_attention(attention, frame, k, read, stored[k]) end
    if size > 0 then put_state(state, frame, cells, (i - 1) * size) end
    if view_size > 0 then put_seen(seen, frame.observation, views, (i - 1) * view_size) end
    if sight then numbers[i] = sight(frame.seen) end
    if sprites then sprites:put(i - 1, frame.observation) end
    if seen ~= null and seen.as == "numbers" then
      local values = {}
      for c = 0, seen.n - 1 do values[c + 1] = number(frame.observation.values[c]) end
      numbers[i] = json.array(values)
    end
  end
  for _, key in ipairs { "policy", "value", "action", "reward", "ret", "world", "norms" } do json.array(v[key]) end
  v.truth = squeeze(truths, n)
  v.gates, v.attention, v.state = {}, base64(read, read_at), base64(cells, size * n)
  for g, gate in ipairs(shared.gates) do v.gates[g] = base64(gates[g], #gate.rows * n) end
  json.array(v.gates)
  if seen == null or seen.as == "nothing" then v.seen = null
  elseif seen.as == "numbers" or sight then v.seen = json.array(numbers)
  elseif seen.as == "bytes" then v.seen = base64(views, view_size * n)
  else v.seen = sprites:write(SEEN * shared.share) end
  local last = stop and line:frame(stop)
  v.outcome = last and { score = number(last.outcome.score), ret = number(last.outcome.ret), length = last.outcome.length,
    reward = number(last.reward) } or null
  return v
end

-- ---- the whole ----

-- Looks at every frame once for what the quantisation of all variants needs: the range of each gate, and of the observation.
local function survey(shared, track, list, from)
  local last = track.timeline:frame(list[#list])
  for kind, range in pairs(last.range) do shared.state.range[kind] = math.max(shared.state.range[kind] or 0, range) end
  for k = from, #list - 1 do
    local entry = last.history[k + 1]
    for _, gate in ipairs(shared.gates) do
      for _, mean in ipairs(entry and entry.gates[gate.kind] or {}) do gate.lo, gate.hi = math.min(gate.lo, mean), math.max(gate.hi, mean) end
    end
    local seen = shared.seen ~= null and shared.seen.as == "bytes" and track.timeline:frame(list[k + 1]).observation
    if seen then
      local least, _, most = state_arrays.summary(seen.values, shared.seen.n)
      shared.seen.lo, shared.seen.hi = math.min(shared.seen.lo or 0, least), math.max(shared.seen.hi or 1, most)
    end
  end
end

-- A part of the memory that a list of rows tells apart.
local function rows_of(list)
  local out = {}
  for i, row in ipairs(list) do out[i] = { layer = row.layer, head = row.head or null } end
  return json.array(out)
end

-- How far apart the steps are whose attention is stored, so that it fits.
local function stride_of(rows, lists, most)
  local stride = 1
  while true do
    local bytes = 0
    for _, one in ipairs(lists) do
      for k = one.from, #one.list - 1, stride do bytes = bytes + rows * (k + 1) end
    end
    if bytes <= most or stride > MOST_STEPS then return stride end
    stride = stride + 1
  end
end

-- What the panels of the memory have in common, of a frame that two variants share, or of the first one.
local function shared_of(frame, steps, lists, share)
  local shared = { share = share / #lists, shapes = pictures.shapes(), gates = gate_rows(frame), layers = 0, seen = seen_as(frame, steps / share) }
  while (frame.history[#frame.history].norms or {})[shared.layers] do shared.layers = shared.layers + 1 end
  local why = implicit_attention.problem(frame)
  local rows = selection.all(implicit_attention.size(frame))
  shared.attention = why and { why = why } or { rows = rows, stride = stride_of(#rows, lists, share * ATTENTION), note = implicit_attention.note(frame, 0) }
  local cells, crowded, size = state_cells(frame, steps / share)
  shared.state = { cells = cells, size = size, range = {}, crowded = crowded }
  local most = 1
  for _, cell in ipairs(cells) do most = math.max(most, cell.down * cell.across) end
  shared.state.buffer = ffi.new("float[?]", most)
  return shared
end

-- Do two frames have the same memory, gates and observation, so that one description fits both?
local function alike(a, b)
  local function names(frame)
    local list = { tostring(frame.reads), frame.n_heads, #frame.actions }
    for _, group in ipairs { "memory", "probes" } do
      local of = {}
      for name, array in pairs(frame[group]) do of[#of + 1] = name .. table.concat(array.shape, "x") end
      table.sort(of)
      list[#list + 1] = table.concat(of, " ")
    end
    list[#list + 1] = frame.observation and table.concat(frame.observation.shape, "x") or ""
    return table.concat(list, "|")
  end
  return names(a) == names(b)
end

-- The last frame of a variant, which knows all of its episode.
local function last_of(one)
  local line, at = one.track.timeline, one.list[#one.list]
  return setmetatable({ episode_history = line:whole(at), changed = line:changed(at), frame_of = function(step) return line:kept(at, step) end },
    { __index = line:frame(at) })
end

---The displayed episode as data.
---@param shown Playback of one track, or of two whose memories have the same parts
---@param options table? { open = the step to show first, 0; at = the step of an intervention; most = steps, of a longer episode the
---  first ones, 2000; share = 1: of the bytes that are for attention, state and observation; measure = of mneme.measure.episode_measures }
---@return table? data for json.encode
---@return string? why not: the two agents differ in their parts
function episode_data.of(shown, options)
  options = options or {}
  local most, share = options.most or MOST_STEPS, options.share or 1
  if shown.at == 0 then shown:forward() end
  while shown:tick_of(1).step < most and not shown:ended() and shown:forward() do end
  local from, to = shown:episode()
  local lists, steps = {}, 0
  for k, track in ipairs(shown.tracks) do
    local list, stop, left_out = frames_of(shown, k, from, to, most)
    local shares = k > 1 and options.at and math.min(options.at, #list) or 0
    lists[k] = { track = track, list = list, stop = stop, left_out = left_out, from = shares }
    steps = steps + #list - shares
  end
  -- the last step: everything that is probed is there
  local last = lists[1].track.timeline:frame(lists[1].list[#lists[1].list])
  for k = 2, #lists do
    local one = lists[k]
    if not alike(last, one.track.timeline:frame(one.list[#one.list])) then return nil, "their memories, gates or observations have other parts" end
  end
  local shared = shared_of(last, steps, lists, share)
  for _, one in ipairs(lists) do survey(shared, one.track, one.list, one.from) end
  for _, gate in ipairs(shared.gates) do
    gate.lo, gate.hi = math.max(0, math.min(gate.lo, gate.hi - 0.02)), math.min(1, math.max(gate.hi, gate.lo + 0.02))
  end
  local data = { title = last.title or "", source = last.source or null, actions = json.array(last.actions), open = options.open or 0,
    at = options.at or null, variants = {}, left_out = lists[1].left_out, most_steps = most }
  for k, one in ipairs(lists) do data.variants[k] = fill(shared, one.track, one.list, one.from, one.stop) end
  json.array(data.variants)
  data.shapes, data.bounds = shared.shapes:list()
  data.shapes_left_out = shared.shapes.left_out or false
  data.gates, data.layers = {}, shared.layers
  for g, gate in ipairs(shared.gates) do data.gates[g] = { kind = gate.kind, lo = number(gate.lo), hi = number(gate.hi), rows = rows_of(gate.rows) } end
  json.array(data.gates)
  local attention = shared.attention
  data.attention = attention.why and { why = attention.why } or { rows = rows_of(attention.rows), stride = attention.stride,
    note = attention.note or null }
  local cells = {}
  for i, c in ipairs(shared.state.cells) do
    cells[i] = { kind = c.name, layer = c.layer, head = c.head or null, rows = c.rows, cols = c.cols, down = c.down, across = c.across, at = c.at }
  end
  local range = {}
  for kind, end_of_colors in pairs(shared.state.range) do range[kind] = number(end_of_colors) end
  data.state = { cells = json.array(cells), size = shared.state.size or 0, range = range, crowded = shared.state.crowded }
  data.seen = shared.seen
  if data.seen ~= null and data.seen.film then data.seen.shapes, data.seen.bounds, data.seen.film, data.seen.groups = data.seen.film:list() end
  local ends = {}
  for k, one in ipairs(lists) do ends[k] = last_of(one) end
  local measures, story = {}, nil
  if options.measure then measures, story = options.measure(ends) end
  data.measures, data.story = json.array(measures), story
  return data
end

return episode_data
