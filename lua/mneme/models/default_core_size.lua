-- default_core_size.lua -- finds the width at which a model has a given number of parameters, for fair comparisons: mn.sized, and the
-- setting size=, which makes the agent of another core as large as the script's own.
local cores = require "mneme.models.cores"
local errors = require "mneme.base.errors"
local format = require("mneme.base.lazy") "mneme.base.format"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"

local WIDEST, MOST = 4096, 1e12               -- d_model; parameters
local APART = 1.2                              -- models whose parameters differ by more are told apart by their size, too
local NEAR = 1.02                              -- of a number that is asked for, without a reason
local along = { "d_head", "d_ffn" }            -- what a core has of these keeps its share of d_model

-- The settings with another width, or nil where a share of it is no whole number.
local function widened(spec, width, shares)
  local wide = tables.merged({ d_model = width }, spec)
  for _, key in ipairs(along) do
    if shares[key] and spec[key] == nil then
      wide[key] = shares[key] * width / shares.d_model
      if wide[key] % 1 ~= 0 then return nil end
    end
  end
  return wide
end

-- The settings whose count comes nearest to `parameters`, or nil; the least count there is.
local function search(spec, parameters, shares, count)
  local best, nearest, fewest = nil, math.huge, nil
  for width = 4, WIDEST, 2 do
    local wide = widened(spec, width, shares)
    if wide then
      local n = count(wide)
      fewest = fewest or n
      if math.abs(n - parameters) < nearest then best, nearest = wide, math.abs(n - parameters) end
      if n > parameters then break end
    end
  end
  return best, fewest
end

---Settings of a core with the d_model that brings a model nearest to `parameters`; d_head and d_ffn, where they are
---not given, grow with it as in the core's defaults.
---@param spec table { "agalite", n_layers = 2, ... }, without d_model
---@param parameters integer
---@param build fun(core: Core): { module: Module } a model with such a core; what is built here is only counted
---@return table settings for mn.core
local function sized(spec, parameters, build)
  errors.need("sized: the core", spec, 1, '{ "gru", option = ... }')
  if type(parameters) ~= "number" or not (parameters >= 1 and parameters <= MOST) then
    errors.usage(("sized: parameters=%s, expected a number in 1..%g"):format(tostring(parameters), MOST))
  end
  if type(build) ~= "function" then errors.raise(("sized: build is a %s, expected a function"):format(type(build))) end
  local defaults = cores.definition(spec[1]).config
  if spec.d_model then return spec end
  local best, fewest = search(spec, parameters, defaults, function(wide)
    return nn.dry(function()
      local model = build(cores.new(wide))
      errors.need("sized: what build gives", model, "module", "a model")
      return model.module:count()
    end)
  end)
  if not best or parameters < fewest then
    errors.usage(("sized: %s has at least %s parameters here, expected at most %d"):format(spec[1], tostring(fewest), parameters))
  end
  return best
end

-- ---- the setting size= ----

-- What the size of a run's core is to be, a "sizing": { size = "script", "published" or a number; script = the script's own core,
-- { "agalite", n_layers = 2, ... }; given = options of the core that the command line names, a set; same = the core is the script's own, with all
-- its settings; why = the reason, where the size differs from what was asked }.

-- Settings of a core, as mn.config gives them -> its sizing.  A copy has none: where a script copies them, it sizes its core itself.
local wanted = setmetatable({}, { __mode = "k" })

---Notes what the size of a core is to be that a script will make from these settings.
---@param spec table cfg.core
local function want(spec, sizing) wanted[spec] = sizing end

---How many parameters a model with another core would have.
---@param spec table { "gru", ... }
---@param d_in integer? of the core
---@param build fun(core: Core): Module
local function count(spec, d_in, build)
  local settings = tables.merged({ d_in = d_in }, spec)
  settings.remember = nil                  -- counts nothing, and "chrono" asks for an environment
  return nn.dry(function() return build(cores.new(settings)):count() end)
end

-- The layers of a core that names none: as much shallower or deeper than published as the script's own.
local function depth(script, defaults)
  local published = cores.definition(script[1]).config.n_layers
  if not defaults.n_layers or not published or not script.n_layers then return nil end
  return math.max(1, math.floor(defaults.n_layers * script.n_layers / published + 0.5))
end

-- Why a width's parameters may differ from those that were asked for.
local function reason(width, fewest, parameters)
  if fewest > parameters then return ("its smallest width is %d, and heads and encoder count, too"):format(width) end
  if width == WIDEST then return ("its greatest width is %d"):format(width) end
  return ("of all widths, %d comes nearest"):format(width)
end

---Gives settings of a core the width that `size` asks for, in their place.  Without effect where the width is given, where the core has
---none, and of the script's own core unless a number is asked for or it is named again without its width.
---@param spec table cfg.core, or any settings of a core
---@param d_in integer? of the core
---@param build fun(core: Core): Module the model with such a core
---@return table? sizing nil: no size is asked for these settings
local function fit(spec, d_in, build)
  local sizing = wanted[spec]
  if not sizing then return nil end
  wanted[spec] = nil
  local defaults, own = cores.definition(spec[1]).config, spec[1] == sizing.script[1]
  if sizing.size == "published" or own and sizing.size == "script" and (sizing.same or spec.d_model) then return sizing end
  if sizing.given.d_model or not defaults.d_model then
    sizing.why = defaults.d_model and ("core.d_model=%s is given"):format(tostring(spec.d_model)) or spec[1] .. " has no width to choose"
    return sizing
  end
  local open, shares = tables.merged(spec), {}
  for _, key in ipairs { "d_model", unpack(along) } do
    shares[key] = spec[key] or defaults[key]
    if not sizing.given[key] then open[key] = nil end
  end
  if open.n_layers == nil then open.n_layers = depth(sizing.script, defaults) end
  local parameters = sizing.size == "script" and count(sizing.script, d_in, build) or sizing.size
  local best, fewest = search(open, parameters, shares, function(wide) return count(wide, d_in, build) end)
  if not best then errors.usage(("size=%s: %s has no width that fits"):format(tostring(sizing.size), spec[1]), "core.d_model=N names one") end
  for key, value in pairs(best) do spec[key] = value end
  sizing.same, sizing.why = false, reason(best.d_model, fewest, parameters)
  return sizing
end

---Whether the size that the settings of a core ask for was given to no core.
---@param spec any cfg.core
---@return string? said nil: it was, or the core is the script's own as it is
local function idle(spec)
  local sizing = wanted[spec or 0]
  if not sizing or sizing.size == "published" or sizing.size == "script" and sizing.same then return nil end
  return ("size=%s: without effect, since the script makes its core from a copy of cfg.core"):format(tostring(sizing.size))
end

---How many parameters the script's own model would have, where another core was made in place of its own.
---@param module Module the model
---@param made Core its core
---@param build fun(core: Core): Module such a model with the usual heads; what differs in this one's counts for both
---@return integer? parameters nil: the core is of no script's settings
local function of_script(module, made, build)
  local sizing = made.sized
  if not sizing then return nil end
  if sizing.same then return module:count() end
  local usual = nn.dry(function() return build(made):count() end)
  return module:count() - usual + count(sizing.script, made.config.d_in, build)
end

---What was chosen, in a line; nil: the agent is the script's own, as large as it is.
---@param about table { core = { name }, size, size_why, parameters, script_parameters, script_core } of a config.json
---@return string?
local function text(about)
  if not about.script_parameters then return nil end
  if about.size == "script" and about.core.name == about.script_core and about.parameters == about.script_parameters then return nil end
  local asked = about.size == "script" and about.script_parameters or tonumber(about.size)
  local function apart(n) return math.max(about.parameters / n, n / about.parameters) end
  local name, size, own = about.core.name:match("[^/]*$"):gsub("%.lua$", ""), "size=" .. tostring(about.size), about.script_core
  local has, others = ("%s has %s parameters"):format(name, format.grouped(about.parameters)), format.grouped(about.script_parameters)
  local why = asked and apart(asked) > NEAR and about.size_why
  if why and about.size == "script" then return ("%s, the script's own %s %s. %s did not make them equal: %s"):format(has, own, others, size, why) end
  if why then return ("%s, the script's own %s %s. %s was not reached: %s"):format(has, own, others, size, why) end
  if asked and apart(about.script_parameters) <= NEAR then return ("%s: %s, about as many as the script's own %s (%s)"):format(size, has, own, others) end
  return ("%s: %s, the script's own %s %s (%.3g times as many)"):format(size, has, own, others, about.parameters / about.script_parameters)
end

cores.sizes.fit = fit

return { sized = sized, want = want, fit = fit, idle = idle, of_script = of_script, text = text, APART = APART }
