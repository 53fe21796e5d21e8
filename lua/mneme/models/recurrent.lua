-- recurrent.lua -- what the cores gru and lstm share: layers whose state is one or two vectors, and gates whose
-- matrices are in one leaf, so that they are one product.
local ffi = require "ffi"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local recurrent = {}

---The matrices of gates, each orthogonal (gain sqrt 2) on its own, and a bias of each: names i<gate>.weight, h<gate>.weight and <side><gate>.bias.
---@param side string "i" or "h"
---@return Tensor wi [gates*d,d_in]
---@return Tensor wh [gates*d,d]
---@return Tensor bias [gates*d]
---@return table named windows on them, as nn.module takes them
function recurrent.gates(gates, d_in, d, side)
  local wi = tensor.new { shape = { #gates * d, d_in }, grad = true }
  local wh = tensor.new { shape = { #gates * d, d }, grad = true }
  local orthogonal, named = nn.init.orthogonal(math.sqrt(2)), {}
  for i, gate in ipairs(gates) do
    for _, part in ipairs { { "i", wi, d_in }, { "h", wh, d } } do
      local window = tensor.view(part[2], (i - 1) * d * part[3], { d, part[3] })
      orthogonal(window:data(), d, part[3])
      named[#named + 1] = { part[1] .. gate .. ".weight", window }
    end
  end
  local bias = tensor.new { shape = { #gates * d }, grad = true }
  for i, gate in ipairs(gates) do named[#named + 1] = { side .. gate .. ".bias", tensor.view(bias, (i - 1) * d, { d }) } end
  return wi, wh, bias, named
end

-- ---- as torch.nn.GRU and LSTM have them ----

local parts = { { "weight_ih", "i", "weight" }, { "weight_hh", "h", "weight" }, { "bias_ih", "i", "bias" }, { "bias_hh", "h", "bias" } }

-- Tensors of several gates below each other, zeros for a missing one.
local function joined(from, names, rows, cols)
  local t, n = tensor.new { shape = cols and { #names * rows, cols } or { #names * rows } }, rows * (cols or 1)
  for i, name in ipairs(names) do
    if from[name] then ffi.copy(t:data() + (i - 1) * n, from[name]:data(), 4 * n) end
  end
  return t
end

-- Adds rows of x, one gate's part of a packed tensor, to what `own` has under that name.
local function add_part(own, name, x, gate, gates)
  local shape = x:shape()
  shape[1] = shape[1] / gates
  local part, n = tensor.new { shape = shape }, x:size() / gates
  for k = 0, n - 1 do part:data()[k] = own[name] and own[name]:data()[k] + x:data()[gate * n + k] or x:data()[gate * n + k] end
  own[name] = part
end

-- x, where it is a tensor of rows of that many gates; nil: it is not.
local function of_gates(x, gates) return tensor.is(x) and x:dtype() == "f32" and (x:shape()[1] or 1) % gates == 0 and x or nil end

-- Both directions for layers with these gates (in torch's order); has[name]: a bias that a layer has.  Where it has one for torch's two, that
-- is their sum, and the other is written as 0; of a pair that is not whole neither is taken.
local function packing(gates, has)
  local function names_of(n, part)
    return tables.map(gates, function(gate) return ("layers.%d.%s%s.%s"):format(n, part[2], gate, part[3]) end)
  end
  local packed = {}
  function packed.to(dict)
    local made, used, n = {}, {}, 0
    while dict[names_of(n, parts[1])[1]] do
      local rows, cols = unpack(dict[names_of(n, parts[1])[1]]:shape())
      for _, part in ipairs(parts) do
        local names = names_of(n, part)
        for _, name in ipairs(names) do used[name] = true end
        made[("%s_l%d"):format(part[1], n)] = joined(dict, names, rows, part[3] == "weight" and (part[2] == "i" and cols or rows) or nil)
      end
      n = n + 1
    end
    return made, used
  end
  function packed.from(dict)
    local made, used, n = {}, {}, 0
    while dict["weight_ih_l" .. n] do
      for _, part in ipairs(parts) do
        local theirs = ("%s_l%d"):format(part[1], n)
        local x, pair = of_gates(dict[theirs], #gates), of_gates(dict[theirs:gsub("_[ih]h_", { _ih_ = "_hh_", _hh_ = "_ih_" })], #gates)
        if x and (part[3] == "weight" or pair and table.concat(x:shape(), ",") == table.concat(pair:shape(), ",")) then
          used[theirs] = true
          for i, gate in ipairs(gates) do
            local side = part[2]
            if part[3] == "bias" and not has[side .. gate .. ".bias"] then side = side == "i" and "h" or "i" end
            add_part(made, ("layers.%d.%s%s.%s"):format(n, side, gate, part[3]), x, i - 1, #gates)
          end
        end
      end
      n = n + 1
    end
    return made, used
  end
  return packed
end

---Build a core of such layers.
---@param cfg table d_in, d_model, n_layers, reset
---@param layer fun(d_in: integer, d: integer, cfg: table): Module called as m(x, done, ...states) -> y, ...states; its field
---  `decays`: as in gate_start.lua
---@param names string[] of a layer's states
---@param more table? what else build returns, in place of what is usual here; axes of each state, by name or of all, default [B,D]; shows, as which
---  a probe gets y, default the first state; gates in torch's order, of a layer that torch has
function recurrent.build(cfg, layer, names, more)
  local layers, states, decays, has, sensitivities = {}, {}, {}, {}, {}
  local axes, gates, shows = more and more.axes or "[B,D]", more and more.gates, more and more.shows or names[1]
  for n = 0, cfg.n_layers - 1 do
    local built = layer(n == 0 and cfg.d_in or cfg.d_model, cfg.d_model, cfg)
    layers[n + 1], decays[n + 1] = { tostring(n), built }, built.decays
    sensitivities[n + 1] = built.sensitivities and built.sensitivities("layers." .. n .. ".")
    for _, p in ipairs(built.named) do has[p[1]] = true end
    for _, name in ipairs(names) do states["layers." .. n .. "." .. name] = type(axes) == "table" and axes[name] or axes end
  end
  local module = nn.container { { "layers", nn.container(layers) } }
  module.packed = gates and packing(gates, has)
  local core = tables.merged({
    module = module,
    d_out = cfg.d_model, states = states, sizes = { D = cfg.d_model },
    complexity = { step = "3*L*D" }, reads = "vector", decays = decays, sensitivities = sensitivities[1] and sensitivities,
    forward = function(x, done, state, probe, _, _, sense)
      local new = {}
      for n = 0, cfg.n_layers - 1 do
        local prefix, before = "layers." .. n .. ".", {}
        for i, name in ipairs(names) do before[i] = state[prefix .. name] end
        if sense then sense(n + 1, x) end
        local out = { layers[n + 1][2](x, cfg.reset and done or nil, unpack(before)) }
        for i, name in ipairs(names) do new[prefix .. name] = out[i + 1] end
        x = probe and probe(prefix .. shows, out[1]) or out[1]
      end
      return x, new
    end,
  }, more)
  core.axes, core.gates, core.shows = nil, nil, nil
  return core
end

return recurrent
