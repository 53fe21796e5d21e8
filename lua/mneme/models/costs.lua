-- costs.lua -- all cores: `mneme list cores`, the complexities
-- per token and per sequence.  Formulas and numbers come from the cores' declarations (core.lua, describe).
local ffi = require "ffi"
local op_binding = require "mneme.tensor.op_binding"
local catalogue = require "mneme.base.catalogue"
local cores = require "mneme.models.cores"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local grouped = require("mneme.base.format").grouped
local nn = require "mneme.tensor.nn"
local setting_types = require "mneme.base.setting_types"

local C = engine.C
local costs = {}

-- What the letters of the formulas stand for: "H=4 K=256 L=4".
local function sizes(c)
  local parts = { "L=" .. (c.config.n_layers or 1) }
  for _, letter in ipairs(tables.keys(c.sizes)) do parts[#parts + 1] = letter .. "=" .. c.sizes[letter] end
  return table.concat(parts, " ")
end

---Floating-point operations of learning from one step: forward and backward through a core, whose products with the
---weights are taken once forward and twice backward.  What is around the core, and acting, is not counted.
---@param name string of the core
---@param config table its settings
function costs.training(name, config)
  local cost = nn.dry(cores.new, name, config, true):describe().cost
  return 3 * cost.products + cost.forward + cost.backward
end

---Every core with what describe() says of it, under settings that apply to those that have them.
---@param given table<string, string> settings, as texts
---@param N integer the length of a sequence, or how much was seen before a step
---@return { name: string, definition: table, about: table, sizes: string, problem: string? }[] problem: why it has none
function costs.all(given, N)
  local list, used, keys = {}, {}, {}
  for _, name in ipairs(registry.names "cores") do
    local ok, problem = xpcall(function()
      local d, config = cores.definition(name), {}
      for key, default in pairs(d.config) do
        keys[key] = true
        if given[key] then config[key], used[key] = setting_types.parse(key, given[key], default), true end
      end
      local c = nn.dry(cores.new, name, config, true)
      list[#list + 1] = { name = name, definition = d, about = c:describe(N), sizes = sizes(c) }
    end, errors.handler)
    if not ok then list[#list + 1] = { name = name, problem = problem.message } end
    collectgarbage()
  end
  for key in pairs(given) do
    if not used[key] then errors.unknown("key of any core:", key, tables.keys(keys)) end
  end
  return list
end

---What `mneme list cores` prints.
---@param given table<string, string> settings, as texts
---@param N integer as in all
function costs.list(given, N)
  local list = costs.all(given, N)
  local lines = {}
  for _, entry in ipairs(list) do
    local about, d = entry.about, entry.definition
    local function add(...) lines[#lines + 1] = table.concat { ... } end
    add(entry.name, " -- ", d and d.doc or catalogue.first_comment(registry.file("cores", entry.name, "core")))
    if entry.problem then
      add("  cannot be built with these settings: ", entry.problem)
      goto continue
    end
    add("  ", d.source or "no source")
    add("  ", grouped(about.parameters), " parameters; state of one environment ", grouped(about.state_floats), " floats = ",
      about.state_formula, "   (", entry.sizes, ")")
    add("  step      ", grouped(about.weights + about.step.macs), " multiply-adds = ", grouped(about.weights),
      " (weights) + ", about.step.formula)
    add(("  sequence  %s multiply-adds for N=%d = N*%s + %s"):format(grouped(N * about.weights + about.sequence.macs), N,
      grouped(about.weights), about.sequence.formula))
    ::continue::
    add ""
  end
  lines[#lines + 1] = "multiply-adds per environment; L layers, N steps before (step) or in all (sequence); details: mneme help core NAME"
  return table.concat(lines, "\n") .. "\n"
end

-- Operations for each number of a state, by its axes: what the family's equations do to it in a step and in reading it.
local by_axes = { ["[B,H,V,K]"] = 7, ["[B,H,K]"] = 4, ["[B,M,H,V]"] = 4, ["[B,M,H,K]"] = 4 }

-- At most how many multiply-adds an op makes, by its signature: the product of all its axes, or the largest tensor that goes in.
local function most_of(signature, given, kind, shape)
  local of_axis, largest = {}, 0
  for i, input in ipairs(signature.inputs) do
    if given[i - 1].gen ~= 0 then
      local axes, n, at = C.mn_tensor_info(engine.ctx, given + (i - 1), kind, shape), 1, 0
      for k = 0, axes - 1 do n = n * shape[k] end
      largest = math.max(largest, n)
      for letter in (input.axes:find("...", 1, true) and "" or input.axes):gmatch "[^,]+" do
        if at < axes then of_axis[letter] = shape[at] end
        at = at + 1
      end
    end
  end
  local all = 1
  for _, size in pairs(of_axis) do all = all * size end
  return math.max(all, largest)
end

---Counts the multiply-adds of all ops that f applies, from above.
---@param f fun()
---@return number most
function costs.counted(f)
  local kind, shape, before, sum = ffi.new "int[1]", ffi.new("int[?]", C.MN_AXES), op_binding.noting, 0
  op_binding.noting = function(signature, given) sum = sum + most_of(signature, given, kind, shape) end
  local ok, problem = pcall(f)
  op_binding.noting = before
  if not ok then error(problem, 0) end
  return sum
end

---What a head of a layer of the linear family keeps, and operations of a step of one layer's attention by three
---conventions: multiply-adds of remembering as describe() counts them, those with the projections of keys, queries,
---values and gates, and these with every operation of the equations (7 for a number of GaLiTe's matrix: 6 to renew it, 1
---to read it; 4 for one of AGaLiTe's vectors and of s; 3 for a feature).
---@param c Core
---@return table { head = numbers as released files hold them, remembering, attention, by_step }
function costs.attention(c)
  local kept, projections, each = 0, 0, 3 * c.sizes.H * c.sizes.K
  for name, axes in pairs(c.states) do
    if name:find "^layers%.0%." and by_axes[axes] then
      local n = axes:find "M" and c.channels.file or 1
      for letter in axes:gmatch "[HVK]" do n = n * c.sizes[letter] end
      kept, each = kept + n, each + by_axes[axes] * n
    end
  end
  for name, t in pairs(c:state_dict()) do
    if name:find "^layers%.0%.attn%..*weight$" and not name:find "%.out%." then projections = projections + t:size() end
  end
  local remembering = c:evaluate(c.complexity.step, 1) / c.config.n_layers
  return { head = kept / c.sizes.H, remembering = remembering, attention = remembering + projections, by_step = each + projections }
end

return costs
