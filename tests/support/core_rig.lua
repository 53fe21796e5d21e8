-- core_rig.lua -- the contract's rig, and the cores that the tests sweep: every one found, small, and corners of
-- the axes that cores have.
local ffi = require "ffi"
local registry = require "mneme.base.registry"

local rig = setmetatable({}, { __index = require "mneme.models.contract_rig" })

-- Corners of axes.  eps = 1: near s.q = 0 a read-out is too steep for difference quotients.
local corners = {
  { "gtrxl", sees = "rollout" },
  { "rmt", sees = "rollout" },
  { "longformer", globals = 0, dilation = 2 },
  { "galite", gate = "elementwise" },
  { "galite", gate = "none", feature = "elu1" },
  { "galite", gate = "none", feature = "relu", nu = 2, normalise = false },
  { "galite", feature = "elu1", nu = 2, flow = "residual" },
  { "galite", feature = "outer_elu1", query = "double", flow = "postnorm", embed_act = "none" },
  { "galite", decay = "joint", query = "double", embed_act = "none" },
  { "galite", decay = "joint", feature = "relu", flow = "residual", normalise = false },
  { "galite", decay = "joint", gate = "elementwise", feature = "outer_elu1", flow = "postnorm", den_clamp = 0.1 },
  { "gated_deltanet", flow = "gtrxl", expand_v = 2, conv_size = 2 },
  { "mingru", space = "log" },
  { "rtu", linear = false, act = "tanh" },
  { "s5", discretisation = "bilinear", glu = "full_glu" },
  { "galite", update = "delta", feature = "elu1", nu = 2, flow = "residual" },
  { "galite", update = "delta", feature = "outer_elu1", query = "double", normalise = false },
  { "galite", update = "fastweight", feature = "outer_elu1", flow = "postnorm" },
  { "agalite", r = 1 },
  { "agalite", r = 4, flow = "residual", feature = "outer_elu1" },
  { "agalite", form = "paper", r = 1, flow = "postnorm" },
  { "agalite", form = "paper", r = 3, query = "double" },
  { "agalite", form = "cossin", r = 2, gate = "none", feature = "elu1", normalise = false },
  { "agalite", form = "cossin", r = 5, gate = "elementwise", den_clamp = 0.1 },
  { "agalite", approximation = "random_sign", r = 3 },
  { "galite", approximation = "random_sign", r = 1, gate = "none", feature = "elu1", normalise = false },
  { "galite", approximation = "svd", r = 2 },
  { "galite", approximation = "svd", r = 5, gate = "elementwise", feature = "relu", flow = "residual", query = "double" },
}

local function named(settings)
  local words = {}
  for key, value in pairs(settings) do if key ~= 1 then words[#words + 1] = key .. "=" .. tostring(value) end end
  table.sort(words)
  return table.concat({ settings[1], unpack(words) }, " ")
end

---Every core there is and the corners: { name, settings }.  No core is listed by hand.
function rig.cases()
  local list = {}
  for _, name in ipairs(registry.names "cores") do list[#list + 1] = { name } end
  for _, settings in ipairs(corners) do list[#list + 1] = settings end
  for i, settings in ipairs(list) do list[i] = { name = named(settings), settings = settings } end
  return list
end

ffi.cdef [[
  struct mallinfo2 { size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; };
  struct mallinfo2 mallinfo2(void);
]]
local has_mallinfo = pcall(function() return ffi.C.mallinfo2 end)

---Bytes that malloc has given out (large blocks too); always 0 where the C library does not tell.
function rig.heap()
  if not has_mallinfo then return 0 end
  local info = ffi.C.mallinfo2()
  return tonumber(info.uordblks + info.hblkhd)
end

return rig
