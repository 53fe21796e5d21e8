-- core.lua -- memories: y, state = core(x, done, state, probe), built by name from lua/mneme/cores/NAME.lua.
-- A core file returns { doc, source, config = defaults, build = function(cfg) }.  `build` returns
--   module    its parameters (mneme.nn)
--   forward   function(x, done, state, probe) -> y, state
--   d_out     size of y's last axis
--   states    names -> axes, as data: { ["layers.0.C"] = "[B,H,V,K]", tick = "[B]" }
--   sizes     what the letters stand for; start = starting values other than 0
--   claims    what the contract tests may expect: { steps = "exact", reset = "exact", state = "constant" }
--   file_state(name), unfile_state  only where files lay a state out differently (agalite's mirrored channels)
local errors = require "mneme.errors"
local find = require "mneme.find"
local tensor = require "mneme.tensor"

---@class Core
local Core = {}
Core.__index = Core

---@param x Tensor [T,B,d_in]
---@param done Tensor? [T,B] u8: 1 where an observation starts a new episode
---@param state table<string, Tensor>? nil: the initial state
---@param probe (fun(name: string, t: Tensor): Tensor)? sees, and may replace, what goes on inside
---@return Tensor y [T,B,d_out]
---@return table<string, Tensor> state after the last step
function Core:__call(x, done, state, probe)
  if not tensor.is(x) then errors.raise(self.name .. ": x is " .. tostring(x) .. ", expected a tensor [T,B,d_in]") end
  local shape = x:shape()
  if #shape ~= 3 or shape[3] ~= self.config.d_in then
    errors.raise(("%s: x is [%s], expected [T,B,%d]"):format(self.name, table.concat(shape, ","), self.config.d_in))
  end
  if state then
    for name in pairs(self.states) do
      if not state[name] then errors.raise(("%s: the state has no '%s'"):format(self.name, name)) end
    end
    for name in pairs(state) do
      if not self.states[name] then errors.raise(("%s: the state has an unexpected '%s'"):format(self.name, name)) end
    end
  end
  return self.forward(x, done, state or self:initial(shape[2]), probe)
end

---The shape of one state tensor for B copies.
function Core:state_shape(name, B)
  local shape = {}
  for letter in self.states[name]:gmatch "[%w]+" do
    shape[#shape + 1] = letter == "B" and B or self.sizes[letter] or tonumber(letter)
  end
  return shape
end

---The state before anything was seen, as new leaves.
---@param B integer copies
---@return table<string, Tensor>
function Core:initial(B)
  local state = {}
  for name in pairs(self.states) do
    state[name] = tensor.new { shape = self:state_shape(name, B) }
    local start = self.start[name:match "[^.]+$"]
    if start then state[name]:fill(start) end
  end
  return state
end

---State names in a fixed order.
function Core:state_names()
  local names = {}
  for name in pairs(self.states) do names[#names + 1] = name end
  table.sort(names)
  return names
end

function Core:parameters() return self.module:parameters() end
function Core:state_dict() return self.module:state_dict() end
function Core:load_state_dict(dict) return self.module:load_state_dict(dict) end

---@return table { name, parameters, state_floats (one copy), config, cost (operations of one step) }
function Core:describe()
  local floats = 0
  for name in pairs(self.states) do
    local n = 1
    for _, d in ipairs(self:state_shape(name, 1)) do n = n * d end
    floats = floats + n
  end
  return { name = self.name, parameters = self.module:count(), state_floats = floats, config = self.config,
           cost = self.cost and self.cost() or nil }
end

local definitions = {}

---The definition of a core by name: { doc, source, config, build }.
local function definition(name)
  if not definitions[name] then
    local path = find.file("cores", name, "core")
    local chunk, err = loadfile(path)
    if not chunk then errors.raise(err) end
    local d = chunk()
    if type(d) ~= "table" or not d.build then errors.raise(path .. ": a core file returns { config = ..., build = ... }") end
    definitions[name] = d
  end
  return definitions[name]
end

local function configure(name, defaults, given, ignore_unknown)
  local cfg = {}
  for key, value in pairs(defaults) do cfg[key] = value end
  for key, value in pairs(given) do
    if defaults[key] == nil then
      if not ignore_unknown then errors.unknown("key of core " .. name, key, find.keys(defaults)) end
    elseif type(value) ~= type(defaults[key]) then
      errors.raise(("core %s: %s = %s, expected a %s"):format(name, key, tostring(value), type(defaults[key])), { status = 2 })
    elseif type(value) == "number" and key:find "^[dn]_" and (value < 1 or value % 1 ~= 0) then
      errors.raise(("core %s: %s = %g, expected a whole number of at least 1"):format(name, key, value), { status = 2 })
    else
      cfg[key] = value
    end
  end
  return cfg
end

---Build a core: core("agalite", { d_in = 16, eta = 4 }), or core { "agalite", d_in = 16 }.
---@param name string|table
---@param config table?
---@param ignore_unknown boolean? for files that list every key of a family
---@return Core
local function new(name, config, ignore_unknown)
  if type(name) == "table" then
    config, name = {}, name
    for key, value in pairs(name) do if key ~= 1 then config[key] = value end end
    name = name[1]
  end
  if type(name) ~= "string" then errors.raise("core: expected a name, as in mn.core(\"gru\", { d_in = 16 })") end
  local d = definition(name)
  local cfg = configure(name, d.config, config or {}, ignore_unknown)
  local core = d.build(cfg, config or {})
  core.name, core.config, core.start = name, cfg, core.start or {}
  return setmetatable(core, Core)
end

return { new = new, definition = definition }
