-- cores.lua -- cores: y, state = core(x, done, state, probe), built by name from lua/mneme/cores/NAME.lua.
-- A core file returns { doc, source, config = defaults, build = function(cfg, given, lenient) }.  `given` holds the settings
-- that the user gave; lenient: settings that conflict are ignored.  Optional fields: equations (text, or function(cfg)),
-- choices = { setting = set of words }, counts = { setting = least integer }, checked = by what values of it were computed that
-- tests/fixtures keep, if they keep some.  `build` returns
--   module      its parameters (mn.nn)
--   forward     function(x, done, state, probe, fresh, acting, sense) -> y, state; fresh: the state is the initial one; acting: see acts;
--               sense: see sensitivities
--   sensitivities  of its layers, where credit may be exact: see exact_credit.lua
--   acts        "steps": a call of one step sees less than the same row of a sequence, and agents act by such calls; `forward` with
--               acting = true computes every row of x as a call of its own would.  Else agents act by rows of a sequence
--   looks_back  how many steps before it can change what a step of acting gives, in terms of the letters of `sizes` and L (layers);
--               nil: any number
--   d_out       size of y's last axis
--   states      names -> axes, as data: { ["layers.0.C"] = "[B,H,V,K]", tick = "[B]" }; B counts environments
--   sizes       the sizes of the letters
--   start       initial values other than 0, by full name or last component: a number, or function(tensor) that fills it
--   constants   last components of states without a gradient, besides tick and mask: { c = true }
--   stops       last components of states through whose final value no gradient goes: { memory = true }
--   claims      what the contract tests may expect; see `claims` below
--   complexity  { step = "2*L*H*V*K", sequence = ..., update = ... }: multiply-adds of the memory alone, for one environment, in terms of
--               the letters of `sizes`, L (layers) and N (steps so far); `sequence` if it is not N*step; `update`: of a step in an update of N steps
--               that follow N others, if it is not step; without it two for each number of the state
--   decomposes  true: an op of it decomposes matrices, which costs more than its axes show
--   cost        operations for the roofline, only if the vector lanes do more than the formula counts
--   reads       how it reads its memory, a word of implicit_attention.lua: for pictures of what it attends to and when it
--               forgets, or of the reason why a step has no weight; nil: it is measured.  approximates = true: the weights are
--               those of the memory that it approximates
--   decays      the gates that forget, for core.remember and half_lives: see gate_start.lua
--   channels    only if files store a state in another layout (agalite's mirrored channels)
local block = require "mneme.models.block"
local errors = require "mneme.base.errors"
local gate_start = require "mneme.models.gate_start"
local registry = require "mneme.base.registry"
local trusted_code = require "mneme.base.trusted_code"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

-- How a core reads its memory, which it declares as `reads`; implicit_attention.lua explains each.
local ways = {
  gated = true, kept = true, delta = true, fastweight = true, gated_delta = true, bonus = true, unlearned = true, averages = true,
  softmax = true, frames = true, joint = true, vector = true, nothing = true,
}

---@class Core
---@field name string
---@field config table every setting and its value
---@field d_out integer the size of y's last axis
---@field module Module its parameters
---@field states table<string, string> names and axes of its states, "[B,H,V,K]"
---@field sizes table<string, integer> what the letters of these axes stand for
---@field reads string how it reads its memory: see implicit_attention.lua
---@field sized table? of a core of a config's settings: what its size was to be (default_core_size.lua)
local Core = {}
Core.__index = Core
Core.__tostring = function(self) return tostring(self.module) end

-- A call, with its arguments checked.  acting: every row as a call of its own would compute it.
local function call(self, x, done, state, probe, acting)
  local function refuse(...) errors.raise(self.name .. ": " .. (...):format(select(2, ...))) end
  if not tensor.is(x) then refuse("x is %s, expected a tensor [T,B,d_in]", tostring(x)) end
  local shape = x:shape()
  if #shape ~= 3 or shape[3] ~= self.config.d_in then refuse("x is [%s], expected [T,B,%d]", table.concat(shape, ","), self.config.d_in) end
  if done then
    local flags, want = tensor.is(done) and table.concat(done:shape(), ",") or "", shape[1] .. "," .. shape[2]
    if flags ~= want then refuse("done is [%s], expected [%s]", flags, want) end
    if done:dtype() ~= "u8" then refuse("done is %s, expected uint8", done:dtype() == "i32" and "int32" or "float32") end
  end
  if state then
    errors.need(self.name .. ": the state", state, nil, "tensors by name, as core:initial(B) gives them")
    for name in pairs(self.states) do
      local s = state[name]
      if not s then refuse("the state has no '%s'", name) end
      if not tensor.is(s) then refuse("state %s is a %s, expected a tensor", name, type(s)) end
      local got, want = table.concat(s:shape(), ","), table.concat(self:state_shape(name, shape[2]), ",")
      if got ~= want then refuse("state %s is [%s], expected [%s]", name, got, want) end
    end
    for name in pairs(state) do if not self.states[name] then refuse("the state has an unexpected '%s'", name) end end
  end
  if probe ~= nil and type(probe) ~= "function" then refuse("the probe is a %s, expected a function(name, tensor)", type(probe)) end
  local function probed(name, t)
    if type(name) ~= "string" or not tensor.is(t) then
      errors.raise(("%s: a probe was given a %s and a %s, expected a name and a tensor"):format(self.name, type(name), tensor.is(t) and "tensor" or type(t)))
    end
    return probe(name, t)
  end
  local y, after = self.forward(x, done, state or self:initial(shape[2]), probe and probed, not state, acting, self.sense)
  local function compare(what, value, want)
    local got = tensor.is(value) and ("[%s]"):format(table.concat(value:shape(), ",")) or value == nil and "nothing" or "a " .. type(value)
    want = ("[%s]"):format(table.concat(want, ","))
    if got == want then return end
    errors.raise(("%s: forward gave %s as %s, expected %s"):format(self.name, got, what, want), { where = errors.position_of(self.forward) })
  end
  compare("y, [T,B,d_out]", y, { shape[1], shape[2], self.d_out })
  for name in pairs(self.states) do compare("state " .. name, type(after) == "table" and after[name] or nil, self:state_shape(name, shape[2])) end
  return y, after
end

---Runs over a sequence, from a state.
---@param x Tensor [T,B,d_in]
---@param done Tensor? [T,B] u8: 1 where an observation starts a new episode
---@param state table<string, Tensor>? nil: the initial state
---@param probe (fun(name: string, t: Tensor): Tensor)? sees, and may replace, what goes on inside; but of tensors of one
---row, whatever T is, it only sees what the last step did: they are worked out when somebody reads them
---@return Tensor y [T,B,d_out]
---@return table<string, Tensor> state after the last step
function Core:__call(x, done, state, probe) return call(self, x, done, state, probe, false) end

---What agents act by: the same, with every row as a call of one step computes it, from the state that the row before it left.  For
---most cores that is what a sequence computes anyway; gtrxl and rmt see more in a sequence (`acts`).
---@param x Tensor [T,B,d_in]
---@param done Tensor?
---@param state table<string, Tensor>?
---@param probe (fun(name: string, t: Tensor): Tensor)?
---@return Tensor y [T,B,d_out]
---@return table<string, Tensor> state after the last step
function Core:act(x, done, state, probe) return call(self, x, done, state, probe, self.acts == "steps") end

---How many steps before it can change what a step of acting gives, besides the episode's beginning.
---@return integer? steps nil: any number
function Core:reach()
  if not next(self.states) then return 0 end
  return self.looks_back and self:evaluate(self.looks_back)
end

---The shape of one state tensor for B environments.
---@param name string of a part of the state
---@param B integer environments
---@return integer[]
function Core:state_shape(name, B)
  local shape = {}
  for letter in self.states[name]:gmatch "[%w]+" do
    shape[#shape + 1] = letter == "B" and B or self.sizes[letter] or tonumber(letter)
  end
  return shape
end

---Which axis of a state tensor counts environments (the batch), from 1.
---@param name string of a part of the state
---@return integer?
function Core:batch_axis(name)
  local axis = 0
  for letter in self.states[name]:gmatch "%w+" do
    axis = axis + 1
    if letter == "B" then return axis end
  end
end

-- What a table keyed by full names or last components says about a state.
local function about(t, name)
  if t[name] ~= nil then return t[name] end
  return t[name:match "[^.]+$"]
end

---Is a state a clock or a mask, without gradient?
---@param name string of a part of the state
---@return boolean
function Core:is_constant(name) return name == "tick" or name == "mask" or about(self.constants, name) or false end

---Does the final state pass no gradient on?
---@param name string of a part of the state
---@return boolean
function Core:is_stopped(name) return about(self.stops, name) or self:is_constant(name) end

---The state before anything was seen, as new leaves.
---@param B integer environments
---@param first integer? the index of the first of them among all; memories that draw random numbers depend on it
---@return table<string, Tensor>
function Core:initial(B, first)
  local state = {}
  for name in pairs(self.states) do
    state[name] = tensor.new { shape = self:state_shape(name, B) }
    local start = about(self.start, name)
    if type(start) == "function" then start(state[name]) elseif start then state[name]:fill(start) end
  end
  for b = 0, first and state.copy and B - 1 or -1 do state.copy:data()[b] = first + b end
  return state
end

---State names in a fixed order.
---@return string[]
function Core:state_names() return tables.keys(self.states) end

---How long the core keeps what it writes, in steps, from its parameters and a zero input: how its gates begin, of a new core.
---@return table[]? layers { shortest, median, longest } over the channels of each layer's state; nil: no gate forgets
Core.half_lives = gate_start.half_lives

---The leaves that an optimiser moves.
---@return Tensor[]
---@param into Tensor[]? a list to add to
function Core:parameters(into) return self.module:parameters(into) end
---The part of the state_dict that is trained.
---@return table<string, Tensor>
function Core:named_parameters() return self.module:named_parameters() end
---Names and tensors; see Module:state_dict.
---@return table<string, Tensor>
function Core:state_dict() return self.module:state_dict() end
---Load values by name; see Module:load_state_dict.
---@param dict table<string, Tensor>
---@param options { strict: boolean }?
---@return string[] missing, string[] unexpected
function Core:load_state_dict(dict, options) return self.module:load_state_dict(dict, options) end

-- ---- what it costs ----

---A formula over the letters of `sizes`, L and N, as a number.
---@param formula string
---@param N integer? steps so far
---@return number
function Core:evaluate(formula, N)
  local letters = tables.merged({ L = self.config.n_layers or 1, N = N, ceil = math.ceil, min = math.min, max = math.max }, self.sizes)
  local f = assert(loadstring("return " .. formula, self.name .. ": complexity " .. formula))
  return setfenv(f, letters)()
end

---The number of floats that one environment's state holds, and the formula that its declaration comes to.
---@return integer floats
---@return string formula "L*(H*V*K + H*K) + 1"
function Core:state_floats()
  local floats, layered, once = 0, {}, {}
  for _, name in ipairs(self:state_names()) do
    local axes = {}
    for letter in self.states[name]:gmatch "%w+" do if letter ~= "B" then axes[#axes + 1] = letter end end
    floats = floats + tables.product(self:state_shape(name, 1))
    local product, layer = #axes > 0 and table.concat(axes, "*") or "1", name:match "^layers%.(%d+)%."
    if not layer then once[#once + 1] = product
    elseif layer == "0" then layered[#layered + 1] = product end
  end
  if #layered > 0 then
    table.insert(once, 1, (#layered > 1 and "L*(%s)" or "L*%s"):format(table.concat(layered, " + ")))
  end
  return floats, #once > 0 and table.concat(once, " + ") or "0"
end

-- Weights that every step multiplies with: all matrices.
local function weights(module)
  local n = 0
  module:each(function(_, t, buffer) if not buffer and #t:shape() > 1 then n = n + t:size() end end)
  return n
end

---The multiply-adds of remembering in a step: as declared, or, of a core that does not say, two for each number of its state (it is
---written and read).
---@return string formula
function Core:step_formula()
  if self.complexity.step then return self.complexity.step end
  local floats, formula = self:state_floats()
  return floats > 0 and ("2*(%s)"):format(formula) or "0"
end

---What a core is and costs, for a context or sequence of N steps.  Multiply-adds of one environment: `weights` of the
---products with parameters in one step; `step` and `sequence` of remembering alone, each { formula, macs }.
---`cost` is the same as floating-point operations of training, for a roofline: products, acting (nil: as forward), forward, backward.
---@param N integer? default 256
---@return table { name, config, parameters, state_floats, state_formula, weights, step, sequence, cost }
function Core:describe(N)
  N = N or 256
  local floats, formula = self:state_floats()
  local step, w = self:step_formula(), weights(self.module)
  local sequence = self.complexity.sequence or step == "0" and "0" or (step:find "[+-]" and "N*(%s)" or "N*%s"):format(step)
  local macs, row = self:evaluate(step, N), self:evaluate(self.complexity.update or step, N)           -- row: of an update
  local cost = self.cost and self.cost() or { products = 2 * w, acting = 2 * (self.acts and macs or row), forward = 2 * row, backward = 5 * row }
  return { name = self.name, config = self.config, parameters = self.module:count(), state_floats = floats,
           state_formula = formula, weights = w, step = { formula = step, macs = macs },
           sequence = { formula = sequence, macs = self:evaluate(sequence, N) }, cost = cost }
end

-- ---- building ----

---What a core claims where it says nothing.
---  steps   a sequence is its single steps: "exact", "until memory is full", "between segment ends"
---  reset   a reset is a fresh start: "exact", "up to tick", "at block starts"
---  state   what is kept: "constant", or "grows" with the episode
---  gradients  those of y and state: "exact", or "in part" where something is held constant on purpose
local claims = { steps = "exact", reset = "exact", state = "constant", gradients = "exact" }

local definitions, generation = {}, trusted_code.generation
local sizes = { fit = nil }            -- default_core_size.lua, which makes cores, puts its function here

---The definition of a core by name, or by the path of its file: { doc, source, config, build }.
local function definition(name)
  if generation ~= trusted_code.generation then definitions, generation = {}, trusted_code.generation end
  if type(name) ~= "string" then errors.raise(("core: the name is a %s, expected a text"):format(type(name))) end
  if not definitions[name] then
    local path = name:find "%.lua$" and name or registry.file("cores", name, "core")
    local d = registry.load(path)()
    if type(d) ~= "table" or type(d.build) ~= "function" or type(d.config) ~= "table" or not d.config.d_in then
      errors.raise(path .. ": a core file returns { doc = ..., source = ..., config = { d_in = 16, ... }, build = function(cfg) ... end }")
    end
    definitions[name] = d
  end
  return definitions[name]
end

-- Words of settings that mean the same in every core; a core's own `choices` go first.
local words = { flow = { gtrxl = true, residual = true, postnorm = true }, embed_act = { relu = true, none = true } }

---The words that a setting of a core knows, as a set; nil: it is no word.
local function known_words(d, key) return (d.choices or {})[key] or words[key] end

-- What a setting must be, beyond having the type of its default.
local function check_value(name, d, key, value)
  local known, least = known_words(d, key), (d.counts or {})[key] or key:find "^[dn]_" and 1
  if known and not rawget(known, value) then errors.unknown(key .. " =", value, tables.keys(known)) end
  if least and type(value) == "number" then errors.whole("core " .. name, key .. " =", value, least) end
  local wrong = key == "conv_size" and value > 16 and "at most 16" or key:find "_eps$" and not (value >= 0) and "at least 0"
  if wrong then errors.raise(("core %s: %s = %g, expected %s"):format(name, key, value, wrong), { status = 2 }) end
end

local function configure(name, d, given, ignore_unknown)
  local cfg, defaults = tables.merged(d.config), d.config
  errors.need("core " .. name .. ": its settings", given, nil, "{ d_model = 64, ... }")
  for key, value in pairs(given) do
    if type(defaults[key]) == "boolean" and (value == 0 or value == 1) then value = value == 1 end       -- core.reset=0
    if defaults[key] == nil then
      if not ignore_unknown then errors.unknown("key of core " .. name, key, tables.keys(defaults)) end
    elseif key == "remember" and type(value) == "number" then cfg[key] = ("%.14g"):format(value)
    elseif type(value) ~= type(defaults[key]) then
      errors.raise(("core %s: %s = %s, expected %s"):format(name, key, tostring(value),
        type(defaults[key]) == "boolean" and "1 or 0 (or true or false)" or "a " .. type(defaults[key])), { status = 2 })
    else
      check_value(name, d, key, value)
      cfg[key] = value
    end
  end
  if given.remember == "published" and d.preset then          -- of a preset that has biases of its own, too
    for key, value in pairs(definition(d.preset[1]).config) do
      if key:find "_bias$" and given[key] == nil then cfg[key] = value end
    end
  end
  return cfg
end

---Refuse settings that a core does not have.
---@param given table<string, any>
local function check_settings(name, given) configure(name, definition(name), given) end

-- What a core's file and its build may give, as words: see the top.
local of_file = "doc source config build equations choices counts checked preset"
local of_build = [[module forward acts looks_back:string d_out states sizes start:table constants:table stops:table claims:table complexity:table
  decomposes:boolean cost:function reads approximates:boolean decays:table channels store_all_channels sensitivities:table no_sensitivities]]

-- What a new file lacks: an error before anything depends on it.
local function check_built(name, core, build)
  local hint = { hint = "lua/mneme/models/cores.lua lists what build returns", where = errors.position_of(build) }
  local function refuse(...) errors.raise(("core %s: "):format(name) .. (...):format(select(2, ...)), hint) end
  if type(core) ~= "table" then refuse("build gave %s, expected a table", tostring(core)) end
  for _, field in ipairs { { "module", "table", "its parameters" }, { "forward", "function", "function(x, done, state, probe)" },
                           { "d_out", "number", "the size of y's last axis" }, { "states", "table", "the names and axes of its states" },
                           { "sizes", "table", "what the letters of its states stand for" } } do
    local key, kind, expected = unpack(field)
    if type(core[key]) ~= kind then refuse("build gave %s = %s, expected %s", key, tostring(core[key]), expected) end
  end
  errors.members("what build of core " .. name .. " gave", core, of_build, build)
  if core.acts ~= nil and core.acts ~= "steps" then refuse("build gave acts = %s, expected \"steps\", or nothing", tostring(core.acts)) end
  errors.members(("claims of core %s"):format(name), core.claims or {}, "steps:string reset:string state:string gradients:string", build)
  errors.members(("complexity of core %s"):format(name), core.complexity or {}, "step:string sequence:string update:string", build)
  for letter, size in pairs(core.sizes) do errors.whole("core " .. name, ("sizes.%s ="):format(letter), size, 0, hint) end
  for key in pairs(core.start or {}) do
    local found = core.states[key]
    for state in pairs(core.states) do found = found or tostring(state):match "[^.]*$" == key end
    if not found then refuse("start has %s, expected one of its states", tostring(key)) end
  end
  for state, axes in pairs(core.states) do
    if type(axes) ~= "string" then refuse("state %s is a %s, expected its axes, such as [B,D]", tostring(state), type(axes)) end
    for letter in axes:gmatch "%w+" do
      if letter ~= "B" and not core.sizes[letter] and not tonumber(letter) then refuse("state %s is %s, and sizes has no %s", state, axes, letter) end
    end
  end
end

---Build a core: core("agalite", { d_in = 16, eta = 4 }), or core { "agalite", d_in = 16 }.
---@param name string|table a name, or the path of a core's file ("mine/core.lua")
---@param config table?
---@param ignore_unknown boolean? for files that list every key of a family: what does not apply is ignored
---@return Core
local function new(name, config, ignore_unknown)
  local sizing
  if type(name) == "table" then
    sizing = sizes.fit and sizes.fit(name, name.d_in, function(c) return c.module end)
    config, name = tables.merged(name), name[1]
    config[1] = nil
  end
  if type(name) ~= "string" then errors.raise("core: expected a name, as in mn.core(\"gru\", { d_in = 16 })") end
  local d = definition(name)
  config = config or {}
  local cfg = configure(name, d, config, ignore_unknown)
  local core = d.build(cfg, config, ignore_unknown)
  errors.members("core " .. name, d, of_file, d.build)
  check_built(name, core, d.build)
  if core.reads ~= nil and not ways[core.reads] then
    errors.unknown(("core %s: reads ="):format(name), tostring(core.reads), tables.keys(ways), nil, errors.position_of(d.build))
  end
  core.name, core.file, core.config = name:match "([^/]+)%.lua$" or name, name:find "%.lua$" and name or nil, cfg
  for _, key in ipairs { "start", "constants", "stops", "complexity", "claims" } do core[key] = core[key] or {} end
  for key, value in pairs(claims) do core.claims[key] = core.claims[key] or value end
  core.sized = sizing
  setmetatable(core, Core)
  for what, formula in pairs(tables.merged(core.complexity, { looks_back = core.looks_back })) do
    local ok, n = pcall(core.evaluate, core, formula, 256)
    if not ok or type(n) ~= "number" or not (n >= 0) then
      errors.raise(("core %s: %s = %s, expected a formula of N, L and the letters of sizes that gives a number"):format(core.name, what, formula),
        { where = errors.position_of(d.build) })
    end
  end
  if cfg.remember then gate_start.apply(core, cfg.remember) end
  return core
end

---A core file for another core with other defaults: core.preset("galite", { gate = "none" }, { doc = ..., source = ... }).
---@param base string the core it is a setting of
---@param keys table<string, any> the values that make it
---@param about_it table { doc, source }
---@return table what a core file returns
local function preset(base, keys, about_it)
  local d = definition(base)
  local config = configure(base, d, keys)
  return { doc = about_it.doc, source = about_it.source, checked = d.checked, choices = d.choices, counts = d.counts,
    equations = d.equations, config = config, preset = { base, keys }, build = d.build }
end

---How the core of a stored run acts, where there is a choice: "memory" or "rollout" (its setting `sees`).
---@param run_core table? { name, config } of a config.json
---@return string? sees nil: there is no choice, or the core's file is gone
local function stored_sees(run_core)
  if type(run_core) ~= "table" or type(run_core.config) ~= "table" then return nil end
  local ok, d = pcall(definition, run_core.name)
  return run_core.config.sees or ok and (d.choices or {}).sees and "rollout" or nil          -- as all did before there was a choice
end

---The core of a stored run.
---@param run_core table { name, config } of a config.json
---@return Core
local function of_run(run_core) return new(tostring(run_core.name), tables.merged(run_core.config, { sees = stored_sees(run_core) }), true) end

---How many steps back the core of a stored run acts on (Core:reach); nil: any number, or the core's file is gone.
---@param run_core table? { name, config } of a config.json
local function stored_reach(run_core)
  if type(run_core) ~= "table" or type(run_core.config) ~= "table" then return nil end
  local ok, core = pcall(of_run, run_core)
  return ok and core:reach() or nil
end

return { new = new, block = block.frame, sizes = sizes, definition = definition, preset = preset, known_words = known_words,
  check_settings = check_settings, of_run = of_run, stored_sees = stored_sees, stored_reach = stored_reach }
