-- exact_credit.lua -- exact credit: gradients that reach back beyond the window in which a loss was computed, to the episode's first step.
-- Where the Jacobian of a state is diagonal (or of blocks of two), with gates that are functions of the input alone, each element depends,
-- through all steps before, on few parameters: the rows that feed it.  How it does are its sensitivities, S (Williams and Zipser 1989).
-- Within a window gradients flow as ever; what they ask of the state in which it began goes on through S (op with_past).  Over a
-- window S is carried by one matrix product a kind of row (op carry_sensitivity).  Its factors are gradients of the last state, summed
-- over elements: as no row's copy moves two of them, the sum keeps them apart.
-- Exact for a layer's own rows.  Left out is what parts below it (embedding, torso, lower layers) did to its state before the window.
--
-- A core declares `sensitivities`, a list of layers, each a list of groups of elements of one state, or a function that gives it:
--   state    its full name
--   from     its first element, counted within an environment; 0 if absent
--   count    N, how many
--   parts    2 where N elements and the N after them turn into each other (blocks of two); 1 if absent
--   kinds    of rows that feed an element, each { weight = [O,D]?, bias = [O]? (alone, of any shape), row = function(i) or the row of element 0, and so on,
--            input = which of the layer's inputs they read; 1 if absent; before = [D,E]?: the rows read it times the input, [E], by a product
--            that has no memory, so that S is of the rows of weight before }
--   last     function(u, done, h, state) -> its elements after the window, [B,N], a result for each part.  u: of each kind [T,B,N], what the row of an
--            element gives at a step (weight x + bias; a bias alone); h [B,N], of each part its elements before: a list where there are
--            two.  Elementwise in all of these.
--   gated    for the engine, besides `last`, where the recursion is that of op carry_gated_sensitivity: { factors = names of the kinds in its
--            order, act = of keys, wave = function(T, state) -> [T,B,1]? }
-- Its forward takes a seventh argument, sense(n, x, i, given), and calls it with the input of each such layer; i: which, of several; given: with
-- `gated`, what the layer made of it, by factor.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"
local gradients = require "mneme.tensor.gradients"
local plan = require "mneme.tensor.plan"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- kinds: of every group { S = of each part [B,N,D], next = likewise where parts turn into each other, rows, weight, bias, group }; D counts a bias.
-- state: leaves, the state in which a window begins, as `look` reads it.  said: what the layers read where something acts (heard).
local Sensitivities = {}
Sensitivities.__index = Sensitivities

local function width(kind) return (kind.weight and (kind.before or kind.weight):shape()[2] or 0) + (kind.bias and 1 or 0) end

-- Kinds with the same key give the same numbers.  S: part of a group's, where the engine carries all of its kinds at once.
local function new_kind(group, kind, B, S)
  local N, R = group.count, width(kind)
  local rows, first = tensor.new { shape = { N }, dtype = "i32" }, kind.row or 0
  for i = 0, N - 1 do rows:data()[i] = type(first) == "number" and first + i or first(i) end
  local list = tables.filled(N, function(i) return rows:data()[i - 1] end)
  local made = { key = table.concat(list, ","), rows = rows, input = kind.input or 1, first = type(first) == "number" and first,
    weight = kind.weight, bias = kind.bias, before = kind.before, group = group, S = { S }, next = {} }
  for part = 1, group.parts or 1 do
    made.S[part] = made.S[part] or tensor.new { shape = { B, N, R } }
    made.next[part] = group.parts and tensor.new { shape = { B, N, R } } or nil
  end
  return made
end

-- What op carry_gated_sensitivity reads of a group besides its input.
local function of_gated(group, B)
  local F, N, R = #group.kinds, group.count, width(group.kinds[1])
  local made = { S = tensor.new { shape = { F, B, N, R } }, rows = tensor.new { shape = { F, N }, dtype = "i32" }, views = {} }
  for f = 1, F do made.views[f] = tensor.view(made.S, (f - 1) * B * N * R, { B, N, R }) end
  return made
end

-- The rows as they read the layer's input.
local function rows_of(kind) return kind.before and ops.matmul(kind.weight, kind.before) or kind.weight end

---What is said before training: the memory that so many of these take, and the multiply-adds of carrying S over a step beside the core's.
---@param copies integer
---@return string
function Sensitivities:cost(copies)
  local floats, adds, core = 0, 0, self.core:describe(1)
  for _, kind in ipairs(self.kinds) do
    floats, adds = floats + (#kind.S + #kind.next) * kind.S[1]:size(), adds + #kind.S * kind.S[1]:size() / self.B
  end
  return (", credit=exact by %.1f MiB of sensitivities: %s multiply-adds a step beside %s of the core"):format(4 * copies * floats / 2 ^ 20,
    format.short(adds), format.short(core.weights + core.step.macs))
end

---The state in which a window begins, through which gradients go on to what came before.
---@param state table<string, Tensor>
---@param leaves table<table, Tensor[]>? in place of S, by kind: those of a minibatch
---@return table<string, Tensor>
function Sensitivities:with_past(state, leaves)
  local whole = tables.merged(state)
  for _, kind in ipairs(self.kinds) do
    local group = kind.group
    for part, S in ipairs(leaves and leaves[kind] or kind.S) do
      local bias = kind.bias and kind.bias:reshape(kind.bias:size())
      whole[group.state] = ops.with_past { state = whole[group.state], S = S, w = rows_of(kind), bias = bias, rows = kind.rows,
        from = (group.from or 0) + (part - 1) * group.count }
    end
  end
  return whole
end

local FIELDS = "lua/mneme/learn/exact_credit.lua lists the fields"

-- The groups of layer n, as declared: what cannot be carried is an error before anything depends on it.
local function groups_of(core, n)
  local groups = core.sensitivities[n]
  if type(groups) == "function" then groups = groups() end
  local where = errors.position_of(core.forward)
  local function wrong(at, what, ...)
    errors.raise(("core %s: sensitivities[%d]%s: " .. what):format(core.name, n, at, ...), { hint = FIELDS, where = where })
  end
  if type(groups) ~= "table" or not groups[1] then wrong("", "expected a list of groups, { { state = , count = , kinds = , last = } }") end
  for g, group in ipairs(groups) do
    local at = ("[%d]"):format(g)
    local kinds, what = group.kinds, ("core %s: sensitivities[%d]%s: state ="):format(core.name, n, at)
    if not core.states[group.state] then errors.unknown(what, tostring(group.state), tables.keys(core.states), nil, where) end
    if type(group.last) ~= "function" then wrong(at, "last is %s, expected function(u, done, h, state)", tostring(group.last)) end
    local floats, to = 1, (group.from or 0) + (group.parts or 1) * (tonumber(group.count) or math.huge)
    for _, size in ipairs(core:state_shape(group.state, 1)) do floats = floats * size end
    if to > floats then wrong(at, "count = %s, and the state %s has %d elements", tostring(group.count), group.state, floats) end
    if type(kinds) ~= "table" or not kinds[1] then wrong(at, "kinds is %s, expected a list of { weight = , bias = }", tostring(kinds)) end
    for k, kind in ipairs(kinds) do
      local leaf, row = kind.weight or kind.bias, kind.row or 0
      if not tensor.is(leaf) then wrong(at, "kinds[%d] has no tensor as weight or bias", k) end
      for j = 1, k - 1 do
        if leaf == (kinds[j].weight or kinds[j].bias) and row == (kinds[j].row or 0) then wrong(at, "kinds[%d] has the rows of kinds[%d]", k, j) end
      end
    end
  end
  return groups
end

-- What a kind's rows give for every element, [T,B,N].  made: products that were computed before.
local function of_rows(kind, x, made)
  local shape, N = x:shape(), kind.group.count
  local leaf = kind.weight or kind.bias
  local has = made[leaf] or {}
  made[leaf] = has
  if not has.all and kind.weight then has.all = ops.linear(x, rows_of(kind), kind.bias)
  elseif not has.all then
    local O = leaf:size()
    has.all = ops.reshape(ops.expand_time { x = ops.reshape(leaf, { d0 = 1, d1 = O }), like = x }, { d0 = shape[1], d1 = shape[2], d2 = O })
  end
  if not has[kind.key] then
    has[kind.key] = kind.first and ops.slice { x = has.all, axis = -1, from = kind.first, to = kind.first + N }
      or ops.index_select { x = has.all, index = kind.rows, axis = -1 }
  end
  return has[kind.key]
end

-- A group's window: how its last elements depend on the first and on what each step gave.  inputs: of its layer.
-- Returns what carries its S.
local function look_at(layer, inputs, done, state, made)
  local group, u, before, carries = layer.group, {}, layer.before, {}
  for k, kind in ipairs(layer.kinds) do u[k] = of_rows(kind, inputs[kind.input], made) end
  local after = { group.last(u, done, group.parts and before or before[1], state) }
  for part = 1, math.max(#after, group.parts or 1) do
    local shape, want = tensor.is(after[part]) and after[part]:shape() or {}, before[part] and before[part]:shape()
    if not want or #shape ~= 2 or shape[1] ~= want[1] or shape[2] ~= want[2] then
      errors.raise(("sensitivities of %s: last gave %s as result %d, expected %s"):format(group.state,
        shape[1] and ("[%s]"):format(table.concat(shape, ",")) or tostring(after[part]), part, want and ("[%d,%d]"):format(want[1], want[2]) or "none"),
        { hint = FIELDS, where = errors.position_of(group.last) })
    end
  end
  for part, y in ipairs(after) do
    local wanted = { unpack(before) }
    for _, t in ipairs(u) do wanted[#wanted + 1] = t end
    local grads = gradients.grad(ops.sum(y), wanted, { retain = part < #after })
    local other = group.parts and 3 - part or nil
    for k, kind in ipairs(layer.kinds) do
      carries[#carries + 1] = function()
        ops.carry_sensitivity { S = kind.S[part], keep = grads[part], g = grads[#before + k], x = kind.weight and inputs[kind.input],
          into = kind.next[part] or kind.S[part], other = kind.S[other], across = grads[other] }
      end
    end
  end
  return carries
end

-- The same by the engine, from what the layer made of its inputs.
local function look_at_gated(layer, inputs, done, state, T)
  local group, of = layer.group, layer.gated
  local wave = group.gated.wave and group.gated.wave(T, state)
  return { function()
    local call = { state = state[group.state], S = of.S, rows = of.rows, x = inputs[layer.kinds[1].input], done = done, wave = wave, from = group.from or 0,
      act = group.gated.act, steps = T }
    for _, name in ipairs(group.gated.factors) do call[name] = inputs.given[name] end
    ops.carry_gated_sensitivity(call)
  end }
end

-- Run f, whose core tells what its layers read: { of layer n: tensors, given = by factor }.
local function listening(core, f, ...)
  local inputs = {}
  core.sense = function(n, x, i, given)
    inputs[n] = inputs[n] or {}
    inputs[n][i or 1] = x
    inputs[n].given = given or inputs[n].given
  end
  local function finish(ok, ...)
    core.sense = nil
    if not ok then error((...), 0) end
    return inputs, ...
  end
  return finish(pcall(f, ...))
end

-- What the layers read in rows 0 .. T-1, without a way back.  Where something acts there are more rows; the engine passes over them.
local function rows_read(inputs, T)
  local rows = setmetatable({}, { __index = function(t, key)
    local x = inputs[key]
    t[key] = tensor.off_tape(function() return x:shape()[1] == T and x:detach() or (ops.slice { x = x, axis = 0, from = 0, to = T }) end)
    return t[key]
  end })
  return rows
end

-- What each layer reads, then all groups: returns what carries S.
local function record(self, x, done, state, more)
  local inputs, T, carries = self.said, done:shape()[1], {}
  self.sees = not inputs                     -- is there something to compute before S is carried?
  if not inputs then
    tensor.off_tape(function()
      local read = self.features and self.features(x, more) or x
      inputs = listening(self.core, self.core.forward, read, done, state, nil, nil, nil, function(...) return self.core.sense(...) end)
    end)
  end
  if self.core.config.reset == false then done = nil end
  for n, layers in ipairs(self.layers) do
    for _, kind in ipairs(layers.kinds) do
      if not inputs[n] or not inputs[n][kind.input] then
        errors.raise(("core %s: its forward did not call sense(%d, x%s), which credit=exact needs"):format(self.core.name, n,
          kind.input > 1 and ", " .. kind.input or ""),
          { hint = "sense is its seventh argument, x what layer " .. n .. " reads", where = errors.position_of(self.core.forward) })
      end
    end
    local made, rows = {}, rows_read(inputs[n], T)
    for _, layer in ipairs(layers) do
      self.sees = self.sees or not layer.gated or layer.group.gated.wave
      for _, carry in ipairs(layer.gated and look_at_gated(layer, inputs[n], done, state, T) or look_at(layer, rows, done, state, made)) do
        carries[#carries + 1] = carry
      end
    end
  end
  return carries
end

-- S of after the window.
local function carry_on(self, carries)
  for _, carry in ipairs(carries) do carry() end
  for _, kind in ipairs(self.kinds) do
    for part, S in ipairs(kind.next) do kind.S[part]:copy(S) end
  end
end

-- Two plans: what is seen of a window, and what then carries S over it.
local function make_plans(self)
  self.seen = false
  self.carry = plan(function() carry_on(self, self.carries) end)
  self.plan = plan(function(...) self.carries, self.seen, self.carry.recorded = record(self, ...), true, false end)
end

-- Why a core of the library has none whose build does not say: by how it reads its memory (models/cores.lua).
local mixes, kept = "the state of %s mixes its elements", "%s keeps what it saw, and carries no state by a recursion"
local lacks = { vector = mixes, gated_delta = mixes, unlearned = mixes, softmax = kept, frames = kept, nothing = "%s has no memory" }

local function why_none(core)
  if core.no_sensitivities then return core.no_sensitivities end
  return not core.file and lacks[core.reads] and lacks[core.reads]:format(core.name) or "its file declares none (docs/write-a-core.md)"
end

---@param B integer environments
---@param features (fun(...): Tensor)? what the core reads [T,B,d_in], of the tensors that `look` is given; nil: they are that
---@return table sensitivities, all 0: nothing came before
local function new(core, B, features)
  if not core.sensitivities then
    errors.usage(("credit=exact: core %s has no sensitivities: %s"):format(core.name, why_none(core)),
      "credit=window with a longer num_steps, or learner=stream with credit=trace")
  end
  local self = setmetatable({ core = core, B = B, features = features, kinds = {}, layers = {}, state = {} }, Sensitivities)
  for n = 1, #core.sensitivities do
    self.layers[n] = { kinds = {} }
    for g, group in ipairs(groups_of(core, n)) do
      local kinds, gated = {}, group.gated and engine.device == "cpu" and of_gated(group, B) or nil
      for k, kind in ipairs(group.kinds) do
        kinds[k] = new_kind(group, kind, B, gated and gated.views[k])
        if gated then ffi.copy(gated.rows:data() + (k - 1) * group.count, kinds[k].rows:data(), 4 * group.count) end
        self.kinds[#self.kinds + 1], self.layers[n].kinds[#self.layers[n].kinds + 1] = kinds[k], kinds[k]
      end
      self.layers[n][g] = { group = group, kinds = kinds, before = {}, gated = gated }
      for part = 1, gated and 0 or group.parts or 1 do
        self.layers[n][g].before[part] = tensor.new { shape = { B, group.count }, grad = true }
      end
    end
  end
  make_plans(self)
  return self
end

---Run f(...), which acts by the core in a plan: windows that follow are made of what its layers read there, and `look` runs them no second time.
---@param f function
---@return any ... what f returns
function Sensitivities:heard(f, ...)
  local function keep(inputs, ...)
    self.said = inputs
    make_plans(self)
    return ...
  end
  return keep(listening(self.core, f, ...))
end

-- Row b of a [B,...] state from element `from` on, as a leaf of its own.
local function copy_before(self, states)
  engine.wait()
  for _, layers in ipairs(self.layers) do
    for _, layer in ipairs(layers) do
      local group = layer.group
      local state = states[group.state]
      local all, N = state:size() / self.B, group.count
      for part, leaf in ipairs(layer.before) do
        local from, to = state:data() + (group.from or 0) + (part - 1) * N, leaf:data()
        for b = 0, self.B - 1 do ffi.copy(to + b * N, from + b * all, 4 * N) end
      end
    end
  end
end

---Look at the window that began in `state`, before its parameters change: `move_on` then carries S over it.
---@param x Tensor [T,B,...] what `features` reads
---@param done Tensor [T,B]
---@param state table<string, Tensor> where something acts (heard), that in which it began, as it is until then
---@param more table<string, Tensor>? for `features`, too
function Sensitivities:look(x, done, state, more)
  if not self.said then
    for name, t in pairs(state) do self.state[name] = self.state[name] or tensor.like(t) end
    tensor.keep(state, self.state)
    state = self.state
  end
  copy_before(self, state)
  if not self.seen or self.sees then self.plan(x, done, state, more) end
end

---Record a step of one environment, within a plan: S is of after it, at once.
---@param x Tensor [1,1,...] what `features` reads
---@param done Tensor [1,1]
---@param state table<string, Tensor> leaves: before it
---@param more table<string, Tensor>? for `features`, too
function Sensitivities:step(x, done, state, more)
  for _, layers in ipairs(self.layers) do
    for _, layer in ipairs(layers) do
      local N = layer.group.count
      for part, leaf in ipairs(layer.before) do
        leaf:copy(tensor.view(state[layer.group.state], (layer.group.from or 0) + (part - 1) * N, leaf:shape()))
      end
    end
  end
  carry_on(self, record(self, x, done, state, more))
end

---All that a checkpoint holds of them: { name, tensor }, in order.
function Sensitivities:contents()
  local list = {}
  for k, kind in ipairs(self.kinds) do
    for part, S in ipairs(kind.S) do list[#list + 1] = { ("sensitivity.%d.%d"):format(k - 1, part - 1), S } end
  end
  return list
end

---The next window begins.
function Sensitivities:move_on()
  self.carry()
  engine.wait()
end

return new
