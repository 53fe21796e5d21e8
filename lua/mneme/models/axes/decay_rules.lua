-- decay_rules.lua -- what a decay keeps, found by trying its function on a few gates; and how kernels get it.
local decays = require "mneme.models.axes.decays"
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local rules = {}

---@class DecayUse what a decay comes to with the gates of a configuration
---@field name string
---@field entry Decay
---@field rest boolean what is kept is the rest of every gate that there is: nothing is computed apart
---@field own boolean? the gate computes keep_v and keep_k itself
---@field head boolean? the gate has one value per head
---@field kept_v string? "each", "head" (of the whole head), "element" (of the matrix); nil: all
---@field kept_k string? "each", "head"; nil: all
---@field product boolean the matrix is multiplied with a product over values and keys
---@field uses table<string, boolean> the gates that it depends on
---@field uniform boolean equal gates keep equal parts in all channels

local OPENINGS = { 0, 0.1, 0.5, 0.9, 1 }        -- of gates, by which a decay is tried
local ABOUT = 1e-6                              -- what rounding may add to a part that is kept

local function refuse(...) errors.raise("core: " .. string.format(...), { status = 2 }) end

local needed = { beta = "a gate of values", gamma = "a gate of keys" }

---Why a decay has no meaning with a gate; nil: it has.
---@param name string of the decay
---@return string?
function rules.lacks(name, gate)
  local entry, both = decays.list[name], {}
  for _, which in ipairs(entry.needs or {}) do both[which] = true end
  for _, which in ipairs(entry.needs or {}) do
    if not needed[which] then refuse("mn.decays.%s.needs names %s, expected \"beta\" or \"gamma\"", name, tostring(which)) end
    if not gate[which] then
      return ("decay=%s needs %s"):format(name, both.beta and both.gamma and "a gate of values and one of keys" or needed[which])
    end
  end
  if name ~= "separable" and not gate.beta and not gate.gamma and not gate.decay then return ("decay=%s needs a gate"):format(name) end
end

-- How many values of a gate a head has; nil: there is none.
local function sizes(cfg, gate, K)
  local function of(n, each) return n and (n == true and each or n(cfg, K)) or nil end
  return of(gate.beta, cfg.d_head), gate.gamma and K or nil
end

-- A gate [1,1,H,n] that is opened so far.
local function opened(H, n, opening) return n and tensor.new { shape = { 1, 1, H, n } }:fill(opening) or nil end

-- What `keep` gives for gates; errors name the decay.
local function call(name, cfg, beta, gamma)
  local results = { pcall(tensor.no_grad, decays.list[name].keep, beta, gamma) }
  if not results[1] then
    local problem, absent = results[2], not beta and "beta" or not gamma and "gamma"
    refuse("decay=%s: keep(beta, gamma) failed%s: %s", name, absent and (" with gate=%s, which has no %s"):format(cfg.gate, absent) or "",
      type(problem) == "table" and problem.message or tostring(problem))
  end
  return results[2], results[3]
end

-- Which kind of result it is, by its shape.
local function kind_of(name, which, x, H, n, K)
  if x == nil then return nil end
  local shape = tensor.is(x) and x:shape() or {}
  local same = shape[1] == 1 and shape[2] == 1 and shape[3] == H
  if same and #shape == 4 and shape[4] == n then return "each" end
  if same and #shape == 4 and shape[4] == 1 then return "head" end
  if same and K and #shape == 5 and shape[4] == n and shape[5] == K then return "element" end
  refuse("decay=%s: keep gave %s as %s, expected [T,B,H,%s] = [1,1,%d,%d]%s, [T,B,H,1], or nil where all is kept", name,
    tensor.is(x) and "[" .. table.concat(shape, ",") .. "]" or "a " .. type(x), which, K and "V" or "K", H, n,
    K and (", [T,B,H,V,K] = [1,1,%d,%d,%d]"):format(H, n, K) or "")
end

-- The least and the greatest value; not a number counts as below all.
local function range(x)
  local low, high, p = math.huge, -math.huge, x:data()
  for i = 0, x:size() - 1 do
    local value = p[i] == p[i] and p[i] or -math.huge
    low, high = math.min(low, value), math.max(high, value)
  end
  return low, high
end

-- A declared `rest` is what keep gives; want nil: nothing.
local function check_rest(name, which, x, want, gates)
  if (x == nil) ~= (want == nil) then
    refuse("decay=%s: its rest says that keep gives %s%s, and it does%s", name, x and "no " or "", which, x and "" or " not")
  end
  local low, high = range(x or tensor.new { want or 0 })
  if x and (math.abs(low - want) > ABOUT or math.abs(high - want) > ABOUT) then
    refuse("decay=%s: its rest says that %s = %g at %s, and keep gives %g", name, which, want, gates, low)
  end
end

-- One trial: what is kept with gates opened so.  Returns the least of either result.
local function try(use, cfg, n_beta, n_gamma, K, b, g)
  local name, entry, H = use.name, use.entry, cfg.n_heads
  local keep_v, keep_k = call(name, cfg, opened(H, n_beta, b), opened(H, n_gamma, g))
  use.kept_v, use.kept_k = kind_of(name, "keep_v", keep_v, H, cfg.d_head, K), kind_of(name, "keep_k", keep_k, H, K)
  local gates = (n_beta and ("beta = %g"):format(b) or "") .. (n_beta and n_gamma and ", " or "") .. (n_gamma and ("gamma = %g"):format(g) or "")
  local least = {}
  for which, x in pairs { keep_v = keep_v, keep_k = keep_k } do
    local low, high = range(x)
    if not (low >= -ABOUT and high <= 1 + ABOUT) then
      local odd = low >= -ABOUT and high or low
      refuse("decay=%s: %s is %s at %s, expected 0 to 1", name, which, odd == -math.huge and "NaN" or ("%.4g"):format(odd), gates)
    end
    use.uniform, least[which] = use.uniform and high - low <= 10 * ABOUT, low
  end
  if entry.rest then
    check_rest(name, "keep_v", keep_v, n_beta and entry.rest.beta and 1 - b or nil, gates)
    check_rest(name, "keep_k", keep_k, n_gamma and entry.rest.gamma and 1 - g or nil, gates)
  end
  return least
end

local function differ(a, b)
  return math.abs((a.keep_v or 0) - (b.keep_v or 0)) > ABOUT or math.abs((a.keep_k or 0) - (b.keep_k or 0)) > ABOUT
end

---Try a decay on gates that are shut, open and between.
---@param name string? default: the configuration's, where it has a meaning
---@return DecayUse
function rules.examine(cfg, gate, K, name)
  name = gate.decay or name or rules.lacks(cfg.decay, gate) and "separable" or cfg.decay
  local entry, n_beta, n_gamma = decays.list[name], sizes(cfg, gate, K)
  local rest = entry.rest
  local use = { name = name, entry = entry, head = n_beta == 1 and not n_gamma and cfg.d_head > 1, uses = {}, uniform = true,
                rest = rest ~= nil and (not n_beta or rest.beta == true) and (not n_gamma or rest.gamma == true) }
  if gate.decay then
    use.own, use.rest, use.product = true, false, not entry.joint
    return use
  end
  local found = {}
  for i, b in ipairs(OPENINGS) do
    found[i] = {}
    for j, g in ipairs(OPENINGS) do
      found[i][j] = try(use, cfg, n_beta, n_gamma, K, b, g)
      if differ(found[i][j], found[1][j]) then use.uses.beta = true end
      if differ(found[i][j], found[i][1]) then use.uses.gamma = true end
    end
  end
  use.product = use.kept_v ~= "element" and not entry.joint
  if entry.joint and (use.kept_v ~= "each" or use.kept_k ~= "each") then
    refuse("decay=%s: joint = true joins keep_v [T,B,H,V] and keep_k [T,B,H,K], and keep does not give both", name)
  end
  return use
end

-- ---- what kernels get ----

-- What is written through the gates, by names of its own.
local function write_apart(use, args, beta, gamma)
  if beta and args.beta then args[use.head and "write_k" or "write_v"], args.beta = args.beta, nil end
  if gamma and args.gamma then args.write_k, args.p_write_k, args.gamma, args.p_gamma = args.gamma, args.p_gamma, nil, nil end
end

---A layer's gates as what is written and what is kept.
---@param args table of a memory; its gates are changed
---@param seen boolean? what is kept is to be there as tensors, for probes
function rules.apply(use, args, seen)
  local entry, rest = use.entry, use.entry.rest
  if args.write_v or args.write_k then errors.raise "core: a gate writes through beta and gamma, or scales v and k; it sets no write_v or write_k" end
  if use.own then
    if not args.keep_v and not args.keep_k then errors.raise "core: a gate with a decay of its own sets keep_v or keep_k in apply" end
    return write_apart(use, args, true, true)
  end
  if args.keep_v or args.keep_k then errors.raise "core: a gate that sets keep_v or keep_k says with which `decay` they are meant" end
  if rest and (use.rest or not seen) then return write_apart(use, args, not rest.beta, not rest.gamma) end
  local beta, gamma = args.beta, args.gamma
  if gamma and args.p_gamma then gamma = ops.outer(args.p_gamma, gamma) end
  if use.kept_v == "element" then
    args.open = { beta = beta, gamma = gamma }
    return write_apart(use, args, true, true)
  end
  local keep_v, keep_k = entry.keep(beta, gamma)
  write_apart(use, args, true, true)
  if use.kept_v == "head" then keep_v, keep_k = nil, keep_k and keep_k * keep_v or keep_v end
  args.keep_v, args.keep_k = keep_v, keep_k
end

---What a decay is called in the equations of a form: the factors of values, of keys and of the whole head, and its own line.
---@return table { v, k, head, element, joint = texts or nil, doc }
function rules.law(use, gate)
  local rest, law = use.entry.rest, { joint = use.entry.joint, element = use.kept_v == "element" and "keep" or nil }
  if use.own then return { v = "keep_v", k = "keep_k", joint = use.entry.joint } end
  if rest then
    law.v, law.k = gate.beta and rest.beta and "(1-b)" or nil, gate.gamma and rest.gamma and "(1-g)" or nil
  else
    law.v, law.k = use.kept_v and not law.element and "keep_v" or nil, use.kept_k and "keep_k" or nil
    law.doc = ("decay=%s: %s"):format(use.name, use.entry.doc or "")
  end
  if use.head then law.head, law.v, law.k = law.v or law.k, nil, nil end
  return law
end

-- ---- how gates begin ----

-- What is kept per step of every element of a head's state where the gates are opened so: { beta = openings of channels, gamma = ... }; of all heads
-- where they differ.
local function kept_at(use, cfg, gate, K, openings)
  local n_beta, n_gamma = sizes(cfg, gate, K)
  local H, list = cfg.n_heads, {}
  local function open(n, channels)
    local x = opened(H, n, 0.5)
    for i = 0, n and channels and x:size() - 1 or -1 do x:data()[i] = channels[i % #channels + 1] end
    return x
  end
  local keep_v, keep_k = call(use.name, cfg, open(n_beta, openings.beta), open(n_gamma, openings.gamma))
  local heads = n_beta == 1 and H or 1
  local function of_head(x, h)
    local n, part = x and x:size() / H or 1, {}
    for i = 0, n - 1 do part[i + 1] = x and x:data()[h * n + i] or 1 end
    return part
  end
  for h = 0, heads - 1 do
    local keys = of_head(keep_k, h)
    for _, v in ipairs(of_head(keep_v, h)) do
      for _, k in ipairs(use.kept_v == "element" and { 1 } or keys) do list[#list + 1] = use.entry.joint and 1 - (1 - v) * (1 - k) or v * k end
    end
  end
  return list
end

---How the gates of a layer decay together, for gate_start: two functions of its list.
---@return table { elements = fun(gates, keeps): number[], share = fun(gates, keep): number, refuses = string? }; empty: their factors multiply
function rules.start(use, cfg, gate, K)
  local function elements(gates, keeps)
    local openings = {}
    for i, g in ipairs(gates) do
      openings[g.name] = {}
      for c, keep in ipairs(keeps[i]) do openings[g.name][c] = 1 - keep end
    end
    return kept_at(use, cfg, gate, K, openings)
  end
  if use.entry.rest then
    if not use.entry.joint then return {} end
    return { elements = elements, share = function(_, keep) return 1 - math.sqrt(1 - keep) end }
  end
  if not use.uniform then
    return { refuses = ("decay=%s keeps different parts in different channels; beta_bias and gamma_bias set how gates begin"):format(use.name) }
  end
  local LEAST, shared = 1e-6, {}
  local function at(gates, opening)
    local openings = {}
    for _, g in ipairs(gates) do openings[g.name] = { opening } end
    return kept_at(use, cfg, gate, K, openings)[1]
  end
  local function share(gates, keep)
    local shut, open = at(gates, LEAST), at(gates, 1 - LEAST)
    if keep > math.max(shut, open) and keep - math.max(shut, open) > 1e-5 or keep < math.min(shut, open) - 1e-5 then
      refuse("decay=%s keeps %.4g to %.4g of the state per step; a half-life of %.3g steps is %.4g", use.name, math.min(shut, open),
        math.max(shut, open), math.log(0.5) / math.log(keep), keep)
    end
    local low, high, rises = LEAST, 1 - LEAST, open > shut
    for _ = 1, 50 do
      local middle = (low + high) / 2
      if (at(gates, middle) > keep) == rises then high = middle else low = middle end
    end
    return 1 - (low + high) / 2
  end
  return {
    elements = elements,
    share = function(gates, keep)
      shared[keep] = shared[keep] or share(gates, keep)
      return shared[keep]
    end,
  }
end

return rules
