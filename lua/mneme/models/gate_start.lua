-- gate_start.lua -- how the gates of a core begin: core.remember=STEPS sets the half-life of what a new core writes, and
-- core:half_lives() reports it.  Published gates begin half open, so that nothing is left of a step after some twenty others.
-- A core that forgets returns `decays` from build, a list with one entry for each layer, empty where the layer forgets nothing:
--   { gates }   the gates whose factors per step multiply to the decay of the state, each channel of one gate with each of the next; or, with
--     elements = function(gates, keeps) -> the decay of every element of the state where the channels of gate i have the factors keeps[i]
--     share = function(gates, keep) -> the factor that each needs for this decay
--     refuses = why there are no half-lives (text)
-- and a gate is
--   name   for errors;  n: how many channels it has
--   get    function(i) -> the factor that channel i (from 0) keeps per step, with a zero input
--   set    function(keeps): sets the factors of channels 0 .. n-1
--   least  what a channel keeps at least, where that is more than 0
-- The constructors below make gates of biases.
local errors = require "mneme.base.errors"

local start = {}
local LEAST = 1e-6             -- of a gate and of its complement, so that biases stay finite

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
local function logit(p)
  p = math.min(math.max(p, LEAST), 1 - LEAST)
  return math.log(p / (1 - p))
end

-- Channels of a bias [H*n] of a projection by heads: those within a head, or the heads if each has one.
local function channels(bias, H)
  local n = bias:size() / H
  return n > 1 and n or H, function(i, f)
    for h = 0, n > 1 and H - 1 or 0 do f(n > 1 and h * n + i or i) end
  end
end

---A gate that forgets, keep = 1 - sigmoid(bias).
---@param bias Tensor [H*n]
---@param H integer heads
function start.forgets(name, bias, H)
  local n, each = channels(bias, H)
  return { name = name, n = n,
    get = function(i)
      local keep = 0
      each(i, function(at) keep = 1 - sigmoid(bias:data()[at]) end)
      return keep
    end,
    set = function(keeps) for i = 0, n - 1 do each(i, function(at) bias:data()[at] = logit(1 - keeps[i]) end) end end }
end

---A gate that forgets and is an outer product of two, keep = 1 - sigmoid(p) sigmoid(bias): the channels of `bias` differ, p is
---the same for all.
---@param bias Tensor [H*n]
---@param p Tensor [H*m]
---@param H integer heads
function start.forgets_outer(name, bias, p, H)
  local n, each = channels(bias, H)
  return { name = name, n = n,
    get = function(i)
      local keep = 0
      each(i, function(at) keep = 1 - sigmoid(bias:data()[at]) * sigmoid(p:data()[0]) end)
      return keep
    end,
    set = function(keeps)
      local most = 0
      for i = 0, n - 1 do most = math.max(most, 1 - keeps[i]) end
      p:fill(logit(math.sqrt(most)))
      for i = 0, n - 1 do each(i, function(at) bias:data()[at] = logit((1 - keeps[i]) / math.sqrt(most)) end) end
    end }
end

---A gate that keeps, keep = sigmoid(bias), as the forget gate of an LSTM; with `input`, the bias of an input gate, that gate
---begins as 1 - keep (Tallec and Ollivier 2018, section 3).
---@param bias Tensor [n]
---@param input Tensor? [n]
---@param more (fun(i: integer): number)? what else the gate begins with, at a zero input
function start.keeps(name, bias, input, more)
  more = more or function() return 0 end
  return { name = name, n = bias:size(), get = function(i) return sigmoid(bias:data()[i] + more(i)) end,
    set = function(keeps)
      for i = 0, bias:size() - 1 do
        bias:data()[i] = logit(keeps[i]) - more(i)
        if input then input:data()[i] = -bias:data()[i] end
      end
    end }
end

---A decay that is a function of a parameter.
---@param leaf Tensor [n]
---@param keep_of fun(x: number, i: integer): number
---@param value_of fun(keep: number, i: integer): number
function start.decays(name, leaf, keep_of, value_of)
  return { name = name, n = leaf:size(), get = function(i) return keep_of(leaf:data()[i], i) end,
    set = function(keeps) for i = 0, leaf:size() - 1 do leaf:data()[i] = value_of(keeps[i], i) end end }
end

---Parse core.remember.
---@param text string "published", "biases" (what beta_bias and the other biases are set to), "40", "1..200" (half-lives evenly spaced on a logarithmic
---  scale) or "chrono:200" (time constants evenly spaced from 1 to 200: Tallec and Ollivier 2018, Can recurrent neural networks warp time?)
---@return (fun(x: number): number)? half_life by a channel's place in 0..1; nil: as the biases say
function start.parse(text)
  if text == "published" or text == "biases" then return nil end
  if text == "chrono" then
    errors.raise("core: remember = chrono: it is not known how far back is asked for, expected chrono:STEPS, such as chrono:200", { status = 2 })
  end
  local low, high = text:match "^([%d.e+]-)%.%.([%d.e+]+)$"
  local longest = tonumber(text:match "^chrono:(.+)$")
  local one = not low and tonumber(text)
  low, high = tonumber(low), tonumber(high)
  local ok = one and one >= 0.1 and one <= 1e6 or low and high and low >= 0.1 and high >= low and high <= 1e6
    or longest and longest >= 2 and longest <= 1e6
  if not ok then
    errors.raise(("core: remember = %s, expected published, a half-life in steps (40), half-lives of channels (1..200), or chrono:200; 0.1 to 1e6")
      :format(text), { status = 2 })
  end
  if one then return function() return one end end
  if low then return function(x) return low * (high / low) ^ x end end
  return function(x)
    local constant = 1 + (longest - 1) * x
    return math.log(0.5) / math.log(math.max(1 - 1 / constant, LEAST))
  end
end

-- What a core declares, if a layer of it forgets.
local function declared(core)
  for _, layer in ipairs(core.decays or {}) do if #layer > 0 or layer.refuses then return core.decays end end
end

---Set the gates of a new core as core.remember asks.  The half-life is that of what a layer's state holds: gates whose factors
---multiply share it equally.
---@param core Core with `decays`
---@param text string see parse
function start.apply(core, text)
  local half_life = start.parse(text)
  if not half_life then return end
  local layers = declared(core)
  if not layers then
    errors.raise(("core %s: remember=%s makes no difference: it has no gate that forgets"):format(core.name, text), { status = 2 })
  end
  for _, layer in ipairs(layers) do
    if layer.refuses then errors.raise(("core %s: remember=%s: %s"):format(core.name, text, layer.refuses), { status = 2 }) end
    for _, gate in ipairs(layer) do
      local keeps = {}
      for i = 0, gate.n - 1 do
        local keep = 0.5 ^ (1 / half_life((i + 0.5) / gate.n))
        keep = layer.share and layer.share(layer, keep) or keep ^ (1 / #layer)
        if gate.least and keep < gate.least then
          if not text:find "^chrono" then
            errors.raise(("core %s: remember=%s: %s keeps at least %.3g of each step, this half-life takes %.3g"):format(core.name, text, gate.name,
              gate.least, keep), { status = 2 })
          end
          keep = gate.least                                        -- chrono begins with time constants of 1, which keep nothing
        end
        keeps[i] = keep
      end
      gate.set(keeps)
    end
  end
end

-- The decay per step of every element of a layer's state: each channel of a gate with each of the next.
local function elements(layer, keeps)
  if layer.elements then return layer.elements(layer, keeps) end
  local list = keeps[1]
  for k = 2, #keeps do
    local all = {}
    for _, a in ipairs(list) do for _, b in ipairs(keeps[k]) do all[#all + 1] = a * b end end
    list = all
  end
  return list
end

local function steps_of(keep) return keep >= 1 and math.huge or keep <= 0 and 0 or math.log(0.5) / math.log(keep) end

---The half-lives of what a core writes, in steps, from its parameters and a zero input: how its gates begin, of a new core.
---@return table[]? layers { shortest, median, longest } over the elements of each layer's state, math.huge where nothing is forgotten; nil:
---  the core has no gate that forgets, or one whose half-life is not known
function start.half_lives(core)
  local decays, layers = declared(core), {}
  for l, layer in ipairs(decays or {}) do
    if layer.refuses then return nil end
    local keeps = {}
    for k, gate in ipairs(layer) do
      keeps[k] = {}
      for i = 0, gate.n - 1 do keeps[k][i + 1] = gate.get(i) end
    end
    local all = #layer > 0 and elements(layer, keeps) or { 1 }
    table.sort(all)
    local n = #all
    layers[l] = { shortest = steps_of(all[1]), longest = steps_of(all[n]),
      median = (steps_of(all[math.floor((n + 1) / 2)]) + steps_of(all[math.ceil((n + 1) / 2)])) / 2 }
  end
  return decays and layers
end

---One line on half-lives, for help and warnings.
---@param layers table[] from half_lives
---@return string "half-life: 0.7 steps", "half-life: 1.2 to 80 steps (median 9.5)"
---@return number longest over all layers
function start.describe(layers)
  local low, high, middle = math.huge, 0, {}
  for i, layer in ipairs(layers) do
    low, high, middle[i] = math.min(low, layer.shortest), math.max(high, layer.longest), layer.median
  end
  table.sort(middle)
  local same = low == high or high / low < 1.05
  local text = same and ("%.3g"):format(high) or ("%.3g to %.3g"):format(low, high)
  local more = same and "" or (" (median %.3g)"):format(middle[math.ceil(#middle / 2)])
  return ("half-life: %s step%s%s"):format(text, text == "1" and "" or "s", more), high
end

-- ---- a core that cannot look as far back as its environment asks ----

-- Half-lives.  Over 28 of them (the demo: a corridor of 20) every seed learns; over 85 (60) 14 of gate_start's 30 do, over 170 (120) one.
local MOST = 40
local NONE = 149               -- 2^-149 is the least number above 0 in float32

-- What it means for learning that 2^-n is left.
local function left(n)
  return ("2^-%.0f of it is left there with a zero input, "):format(n) .. (n > NONE and "which is 0 in float32, as is its gradient" or "and of its gradient")
end

---@return string? warning "core agalite forgets half of what it writes every 0.71 steps at the start, and the corridor is 200: ..."
function start.warning(core, env)
  local layers, back, steps, words = core:half_lives(), core:reach(), env:horizon()
  if steps and back and back > 0 and steps > back then          -- 0: no memory, on purpose
    return ("core %s acts on the last %d steps at most, and %s: what came before cannot be known there"):format(core.name, back, words)
  end
  if not layers or not steps then return nil end
  local _, longest = start.describe(layers)
  if steps <= MOST * longest then return nil end
  local n, least = steps / longest, math.max(1, math.ceil(steps / 10))
  local half_life = ("%.2g"):format(longest)
  return ("core %s forgets half of what it writes every %s at the start, and %s: %s; core.remember=%d, or any half-life up to %d, begins with "
    .. "gates that keep enough"):format(core.name, half_life == "1" and "step" or half_life .. " steps", words, left(n), least, steps)
end

return start
