-- module.lua -- the class of neural-network modules, as torch.nn.Module: parameters and their names, state dicts, training and
-- evaluation, and the tree that print(net) shows.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local format = require("mneme.base.lazy") "mneme.base.format"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

---@class Module
local Module = {}
Module.__index = Module

local M = { Module = Module }

---Is it a module?
function M.is(x) return type(x) == "table" and getmetatable(x) == Module end

-- ---- what a module holds ----

local RESERVED = { leaves = true, named = true, children = true, call = true }

-- What is in no list would not be trained, without a word.
local function check_list(what, list, thing)
  for key, entry in pairs(list) do
    local fine = type(key) == "number" and type(entry) == "table" and type(entry[1]) == "string"
      and (type(entry[2]) == "table" or type(entry[2]) == "cdata")
    if not fine then
      errors.raise(("nn.module: %s[%s] is %s, expected { name, %s }"):format(what, tostring(key), tostring(entry), thing))
    end
  end
end

---A module.  With `forward`, a field, it is a class as in torch: its other fields are found by their names, modules, cores, and tables of
---them ("layers.0", "blocks.a"), leaves with a gradient (parameters) and without (buffers: saved, not trained), and m(...) calls forward(m, ...).
---Else `named` lists { name, tensor } (leaves or windows; with buffer = true: saved but not trained), `leaves` own the values that are trained
---(absent: they are the named ones), `children` lists { name, module }, and `call` is what m(...) does.
---@param m table fields; kind and about are what print shows of it: "linear", "4 -> 2"
---@param call (fun(self: Module, ...): any)?
---@return Module m
function M.new(m, call)
  errors.need("nn.module", m, nil, "{ forward = ..., modules and parameters by name } or { leaves = ..., named = ..., children = ... }")
  if call ~= nil and type(call) ~= "function" then errors.raise(("nn.module: call is a %s, expected a function"):format(type(call))) end
  m.training = true
  if call == nil and m.forward ~= nil then
    if type(m.forward) ~= "function" then errors.raise(("nn.module: forward is a %s, expected a function"):format(type(m.forward))) end
    for key in pairs(m) do
      if Module[key] or RESERVED[key] then errors.raise(("nn.module: '%s' is a name of modules' own, choose another"):format(tostring(key))) end
    end
    m.call = m.forward
    return setmetatable(m, Module)
  end
  m.named, m.children, m.call = m.named or {}, m.children or {}, call
  check_list("named", m.named, "a tensor")
  check_list("children", m.children, "a module")
  if not m.leaves then
    m.leaves = {}
    for _, entry in ipairs(m.named) do if not entry.buffer then m.leaves[#m.leaves + 1] = entry[2] end end
  end
  return setmetatable(m, Module)
end

---The module that a value is, or has, as a core and an agent do; nil: none.
---@return Module?
function M.of(value)
  if M.is(value) then return value end
  local part = type(value) == "table" and getmetatable(value) ~= nil and rawget(value, "module")
  return M.is(part) and part or nil
end
local module_of = M.of

---Refuse what is no module and has none; else its module.
---@param what string "agent: policy"
---@return Module
function M.need(what, value, f)
  return module_of(value) or errors.raise(("%s is %s, expected a module such as mn.nn.linear(...)"):format(what, tables.in_words(value)),
    { where = f and errors.position_of(f) })
end

-- Adds the modules of a plain table, by index from 0 or by key, and those of tables in it.
local function add_modules(name, t, found, seen)
  if seen[t] then return end
  seen[t] = true
  local function add(key, item)
    local module = module_of(item)
    if module then found.children[#found.children + 1] = { name .. "." .. key, module }
    elseif type(item) == "table" and getmetatable(item) == nil then add_modules(name .. "." .. key, item, found, seen) end
  end
  for i, item in ipairs(t) do add(i - 1, item) end
  for _, key in ipairs(tables.keys(t)) do if type(key) == "string" then add(key, t[key]) end end
end

-- Put the modules and tensors of a field, or modules of a table in it, where they belong.
local function sort_field(name, value, found)
  if tensor.is(value) then
    local trained = value:wants_grad()
    if trained then found.leaves[#found.leaves + 1] = value end
    found.named[#found.named + 1] = { name, value, buffer = not trained or nil }
  elseif module_of(value) then found.children[#found.children + 1] = { name, module_of(value) }
  elseif type(value) == "table" and getmetatable(value) == nil then add_modules(name, value, found, {}) end
end

---Leaves, named and children of a module; of a class, as its fields are now, in the order of their names.
function M.members(m)
  if not m.forward or m.children then return m.leaves, m.named, m.children end
  local found = { leaves = {}, named = {}, children = {} }
  for _, key in ipairs(tables.keys(m)) do sort_field(key, m[key], found) end
  return found.leaves, found.named, found.children
end
local members = M.members

---@return table torch_layout.lua
function M.torch_layout() return require("mneme.tensor.torch_layout")(members) end

---What its forward computes.
---@param ... any tensors, for most
---@return any ...
function Module:__call(...) return self.call(self, ...) end

---Visit every named parameter and buffer in a fixed order: f(name, tensor, buffer).
---@param f fun(name: string, t: Tensor, buffer: boolean?)
---@param prefix string? put before each name
function Module:each(f, prefix)
  prefix = prefix or ""
  local _, named, children = members(self)
  for _, p in ipairs(named) do f(prefix .. p[1], p[2], p.buffer) end
  for _, child in ipairs(children) do child[2]:each(f, prefix .. child[1] .. ".") end
end

-- f(leaf, path of its module), each leaf that trains once, also where several modules share it.
local function each_leaf(m, f, path, seen)
  local leaves, _, children = members(m)
  for _, leaf in ipairs(leaves) do
    if not seen[leaf.slot] and leaf:wants_grad() then f(leaf, path) end
    seen[leaf.slot] = true
  end
  for _, child in ipairs(children) do each_leaf(child[2], f, path == "" and child[1] or path .. "." .. child[1], seen) end
end

---The leaves that an optimiser moves, packed and shared ones once.
---@param into Tensor[]? a list to add to
---@return Tensor[]
function Module:parameters(into)
  into = into or {}
  each_leaf(self, function(leaf) into[#into + 1] = leaf end, "", {})
  return into
end

---Of each leaf, in the same order, the part of the model that it belongs to: a layer, or the rest.
---@param into string[]? a list to add to
---@param path string? where this module stands in the model
---@return string[] "core.layers.0", "core.embed", "actor" ...
function Module:parts(into, path)
  into = into or {}
  each_leaf(self, function(_, at) into[#into + 1] = at:match "^.-layers%.%d+" or at:gsub("%.%d.*$", "") end, path or "", {})
  return into
end

---Forget the gradients of all parameters.
function Module:zero_grad() for _, leaf in ipairs(self:parameters()) do leaf:zero_grad() end end

-- ---- training and evaluation ----

---Switch between training and evaluation, as in torch: dropout drops only while training.  Plans follow at their next replay.
---@param on boolean? default true
---@param changed Module[]? a list: the modules that were in the other mode are added to it
---@return Module itself
function Module:train(on, changed)
  if on ~= nil and type(on) ~= "boolean" then errors.raise(("train: %s, expected true or false"):format(tostring(on))) end
  if changed ~= nil then errors.need("train: changed", changed, nil, "a list, which gets the modules that were in the other mode") end
  on = on ~= false
  if changed and self.training ~= on then changed[#changed + 1] = self end
  self.training = on
  if self.switched then self.switched(on) end
  local _, _, children = members(self)
  for _, child in ipairs(children) do if child[2].train then child[2]:train(on, changed) end end
  return self
end

---The same as train(false).
---@return Module itself
function Module:eval() return self:train(false) end

-- ---- state dicts ----

local function listed(names) return #names > 0 and table.concat(names, ", ") or "nothing" end

-- What is given must have the shape and the type of what it replaces.
local function check_entry(what, name, mine, from)
  if not tensor.is(from) then errors.raise(("%s: %s is a %s, expected a tensor"):format(what, name, type(from))) end
  local a, b = table.concat(mine:shape(), ","), table.concat(from:shape(), ",")
  if a ~= b then errors.raise(("%s: %s is [%s], expected [%s]"):format(what, name, b, a)) end
  if mine:dtype() ~= from:dtype() then errors.raise(("%s: %s is %s, expected %s"):format(what, name, from:dtype(), mine:dtype())) end
end

---Copy values by name; missing and unexpected names, or other shapes, are errors before anything changes.
---@param what string "load_state_dict"
---@param mine table<string, Tensor> leaves
---@param dict table<string, Tensor>
---@param strict boolean false: load the names that both have
---@return string[] missing, string[] unexpected
function M.load(what, mine, dict, strict)
  errors.need(what, dict, nil, "tensors by name")
  local missing, unexpected = {}, {}
  for _, name in ipairs(tables.keys(mine)) do
    if dict[name] == nil then missing[#missing + 1] = name else check_entry(what, name, mine[name], dict[name]) end
  end
  for name in pairs(dict) do if not mine[name] then unexpected[#unexpected + 1] = tostring(name) end end
  table.sort(unexpected)
  if strict and #missing + #unexpected > 0 then
    errors.raise(("%s: missing %s; unexpected %s"):format(what, listed(missing), listed(unexpected)))
  end
  for name, t in pairs(mine) do
    if dict[name] then ffi.copy(tensor.writable(t, what), dict[name]:data(), t:size() * (t:dtype() == "u8" and 1 or 4)) end
  end
  return missing, unexpected
end

---Names and tensors as in torch's state_dict; the tensors are the parameters themselves.
---@return table<string, Tensor>
function Module:state_dict()
  local dict = {}
  self:each(function(name, t) dict[name] = t end)
  return dict
end

---The part of the state_dict that is trained: without buffers.
---@return table<string, Tensor>
function Module:named_parameters()
  local dict = {}
  self:each(function(name, t, buffer) if not buffer then dict[name] = t end end)
  return dict
end

---How many values are trained.
---@return integer
function Module:count()
  local n, seen = 0, {}
  self:each(function(_, t, buffer)
    if not buffer and not seen[t.slot] then n = n + t:size() end
    seen[t.slot] = true
  end)
  return n
end

---Load values by name; missing and unexpected names, or other shapes, are errors before anything changes.  Torch's names are known, too: an
---nn.Sequential with activations, torch.nn.GRU and LSTM (their two biases are added where here is one).
---@param dict table<string, Tensor> such as mn.load(path)
---@param options { strict: boolean }? strict = false loads the names that both have
---@return string[] missing, string[] unexpected
function Module:load_state_dict(dict, options)
  errors.need("load_state_dict: options", options or {}, nil, "{ strict = false }")
  for key, value in pairs(options or {}) do
    if key ~= "strict" then errors.unknown("argument of load_state_dict:", key, { "strict" }) end
    if type(value) ~= "boolean" then errors.raise(("load_state_dict: strict is %s, expected true or false"):format(tostring(value))) end
  end
  errors.need("load_state_dict", dict, nil, "tensors by name")
  return M.load("load_state_dict", self:state_dict(), M.torch_layout().from_torch(self, dict), not options or options.strict ~= false)
end

-- ---- as text ----

-- The lines of a module below `name`, each after `indent`.
local function describe(m, name, indent, lines)
  local kind, _, named, children = m.kind or "module", members(m)
  local head = indent .. (name and "(" .. name .. "): " or "") .. kind .. "("
  if m.about or #named + #children == 0 then
    lines[#lines + 1] = head .. (m.about or "") .. ")"
    return
  end
  lines[#lines + 1] = head
  for _, p in ipairs(named) do
    lines[#lines + 1] = ("%s  (%s): %s [%s]"):format(indent, p[1], p.buffer and "buffer" or "parameter", table.concat(p[2]:shape(), ","))
  end
  for _, child in ipairs(children) do
    if M.is(child[2]) then describe(child[2], child[1], indent .. "  ", lines)
    else lines[#lines + 1] = ("%s  (%s): %s"):format(indent, child[1], tostring(child[2])) end
  end
  lines[#lines + 1] = indent .. ")"
end

---The tree of its modules with their sizes, and the number of parameters.
function Module:__tostring()
  local lines, n = {}, self:count()
  describe(self, nil, "", lines)
  lines[#lines + 1] = n == 1 and "1 parameter" or format.grouped(n) .. " parameters"
  return table.concat(lines, "\n")
end

return M
