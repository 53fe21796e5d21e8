-- export.lua -- export a run's parameters (.safetensors) or a trajectory (.npz) to other programs.
--   mneme export RUN to=FILE.safetensors [step=N] [best=1]
--   mneme export FILE.mnt to=FILE.npz
-- Parameters keep their names.  Those of gru and lstm get the names and layout of torch.nn.GRU and LSTM
-- (weight_ih_l0 ..., gates r, z, n and i, f, g, o; missing biases are zeros), so that load_state_dict takes
-- them: core.* is the whole of such a core.  A trajectory becomes arrays: actions, rewards, terminated,
-- truncated, and what was recorded at each step.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local npz = require "mneme.tensor.npz"
local run_folder = require "mneme.runs.folder"
local safetensors = require "mneme.tensor.safetensors"
local tensor = require "mneme.tensor.tensor"
local trajectory = require "mneme.episodes.trajectory"

local export = {}
local USAGE = "mneme export RUN to=FILE.safetensors; mneme export FILE.mnt to=FILE.npz"
local PREFIXES = { "agent.", "model." }          -- of parameters in a checkpoint: of agents, of sequence models

-- ---- parameters ----

-- How torch packs a layer: its order of gates, and the source of each of its four tensors.
local packed = { gru = { "r", "z", "n" }, lstm = { "i", "f", "g", "o" } }
local parts = { { "weight_ih", "i", "weight" }, { "weight_hh", "h", "weight" }, { "bias_ih", "i", "bias" }, { "bias_hh", "h", "bias" } }

-- Tensors of several gates concatenated, zeros for a missing one.
local function joined(from, names, rows, cols)
  local t = tensor.new { shape = cols and { #names * rows, cols } or { #names * rows } }
  local n = rows * (cols or 1)
  for i, name in ipairs(names) do
    if from[name] then ffi.copy(t:data() + (i - 1) * n, from[name]:data(), 4 * n) end
  end
  return t
end

-- One layer's tensors as torch names them; `taken` collects the names that they use.
local function layer_of(from, core, n, prefix, taken, list)
  local gates = packed[core]
  local first = from[("%slayers.%d.i%s.weight"):format(prefix, n, gates[1])]
  if not first then return false end
  local rows, cols = unpack(first:shape())
  for _, part in ipairs(parts) do
    local names = {}
    for i, gate in ipairs(gates) do
      names[i] = ("%slayers.%d.%s%s.%s"):format(prefix, n, part[2], gate, part[3])
      taken[names[i]] = true
    end
    local width = part[3] == "weight" and (part[2] == "i" and cols or rows) or nil
    list[#list + 1] = { ("%s%s_l%d"):format(prefix, part[1], n), joined(from, names, rows, width) }
  end
  return true
end

---Parameters in torch's layout.
---@param from table<string, Tensor> parameters by their own names
---@param core string the core's name
---@return table[] list { name, Tensor }, sorted
function export.for_torch(from, core)
  local list, taken = {}, {}
  if packed[core] then
    local n = 0
    while layer_of(from, core, n, "core.", taken, list) do n = n + 1 end
  end
  for name, t in pairs(from) do
    if not taken[name] then list[#list + 1] = { name, t } end
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

local function export_run(o)
  local run = run_folder.load(o.from)
  local checkpoint = o.step and run:of_step(o.step) or o.best and run:best() or run:latest()
  if not checkpoint then errors.fail(o.from .. ": there is no checkpoint yet") end
  local mine = {}
  for name, t in pairs(checkpoint.tensors) do
    for _, prefix in ipairs(PREFIXES) do
      if name:sub(1, #prefix) == prefix then mine[name:sub(#prefix + 1)] = t end
    end
  end
  local core = run.info.core or {}
  local list = export.for_torch(mine, core.name)
  safetensors.write(o.to, list, { format = "pt", core = tostring(core.name), config = json.encode(core.config or {}),
    step = ("%.0f"):format(checkpoint.step) })
  print(("%s: %d tensors of %s at step %.0f"):format(o.to, #list, o.from, checkpoint.step))
end

-- ---- trajectories ----

local pointers = { f32 = "float *", u8 = "uint8_t *" }

-- A field of all records as one array.
local function column(t, field)
  local n, shape = 1, { t.steps }
  for i, size in ipairs(field.shape) do n, shape[i + 1] = n * size, size end
  local bytes = n * (field.dtype == "f32" and 4 or 1)
  local data = ffi.new("uint8_t[?]", math.max(1, bytes * t.steps))
  for step = 0, t.steps - 1 do ffi.copy(data + step * bytes, t.records + step * t.stride + field.at, bytes) end
  return { name = "mind." .. field.name, dtype = field.dtype, shape = shape, data = ffi.cast(pointers[field.dtype], data), owner = data }
end

---The arrays of a trajectory, as tensor/npz.lua writes them.
---@param t Trajectory
---@return table[]
function export.arrays(t)
  local terminated, truncated = ffi.new("uint8_t[?]", t.steps), ffi.new("uint8_t[?]", t.steps)
  for step = 0, t.steps - 1 do
    terminated[step], truncated[step] = t.flags[step] == 1 and 1 or 0, t.flags[step] == 2 and 1 or 0
  end
  local list = {
    { name = "actions", dtype = "i32", shape = { t.steps }, data = t.actions }, { name = "rewards", dtype = "f32", shape = { t.steps }, data = t.rewards },
    { name = "terminated", dtype = "u8", shape = { t.steps }, data = terminated }, { name = "truncated", dtype = "u8", shape = { t.steps }, data = truncated },
  }
  for _, field in ipairs(t.fields) do list[#list + 1] = column(t, field) end
  local about = json.encode { env = t.env, settings = t.settings, actions = t.names, seed = t.seed, copy = t.copy }
  list[#list + 1] = { name = "about", dtype = "u8", shape = { #about }, data = ffi.cast("const uint8_t *", about), owner = about }
  return list
end

-- ---- the command ----

local function read(words)
  local o = {}
  for _, word in ipairs(words) do
    local key, text = word:match "^%-*(%l+)=(.*)$"
    if not key and not o.from then o.from = word:gsub("(.)/+$", "%1")
    elseif not key then errors.usage(("export: one thing at a time, got '%s' and '%s'"):format(o.from, word), USAGE)
    elseif key == "to" or key == "out" then o.to = text
    elseif key == "step" then
      o.step = tonumber(text) or errors.usage(("export: step=%s, expected a number of steps"):format(text))
    elseif key == "best" then o.best = text == "1" or text == "true"
    else errors.unknown("setting of export:", key, { "best", "out", "step", "to" }) end
  end
  if not o.from then errors.usage("export: which run or trajectory?", USAGE) end
  if not o.to then errors.usage("export: to which file?", USAGE) end
  return o
end

---@param words string[]
function export.main(words)
  local o = read(words)
  local ending = o.to:match "%.(%w+)$"
  if o.from:find "%.mnt$" then
    if ending ~= "npz" then errors.usage(("export: to=%s: a trajectory becomes a .npz"):format(o.to)) end
    local t = trajectory.read(o.from)
    local arrays = export.arrays(t)
    npz.write(o.to, arrays)
    print(("%s: %d steps, %d arrays"):format(o.to, t.steps, #arrays))
  else
    if ending ~= "safetensors" then errors.usage(("export: to=%s: a run's parameters become a .safetensors"):format(o.to),
      "torch reads it: safetensors.torch.load_file; curves as numbers: mneme compare RUN out=FILE.csv") end
    if not files.is_folder(o.from) then errors.usage(o.from .. ": there is no such run", USAGE) end
    export_run(o)
  end
  print(("in Python: %s(%q)"):format(ending == "npz" and "numpy.load" or "safetensors.torch.load_file", o.to))
  return 0
end

return export
