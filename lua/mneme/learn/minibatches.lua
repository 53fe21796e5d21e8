-- minibatches.lua -- the pieces of a rollout as sequences for updates: piece k of environment b is sequence k B + b, with the
-- state in which it began.  A minibatch consists of whole sequences, copied into leaves that an update reads.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local format = require("mneme.base.lazy") "mneme.base.format"
local ranks = require "mneme.tensor.ranks"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local C = engine.C

---@class Sequences
---@field count integer
---@field order ffi.cdata* int[count], as last shuffled
local Sequences = {}
Sequences.__index = Sequences

local bytes_of = { f32 = 4, i32 = 4, u8 = 1 }

---@param learner OnPolicy all of its pieces are equally long
---@param pieces table[]? { first, rows, state }, in place of the learner's
local function new(learner, pieces)
  pieces = pieces or learner.pieces
  local count = #pieces * learner.B
  return setmetatable({ learner = learner, pieces = pieces, count = count, rows = pieces[1].rows, moves = {}, order = ffi.new("int[?]", count),
    dice = ffi.new("float[?]", count) }, Sequences)
end

---How many sequences each of `parts` minibatches has; an error where they cannot be equally many.
function Sequences:share(parts)
  if self.count % parts == 0 then return self.count / parts end
  local learner, pieces = self.learner, #self.pieces
  errors.usage(("%s: minibatches=%d does not divide the %d sequences of a rollout: num_envs=%d%s%s"):format(learner.what, parts, self.count,
    learner.num_envs, ranks.size > 1 and (" in %d ranks"):format(ranks.size) or "",
    pieces > 1 and (" times num_steps/horizon=%d"):format(pieces) or ""), "minibatches=" .. format.divisors(self.count))
end

-- From the blocks of every piece (pointers to [rows, B, item]) to a leaf [rows, n, item], or to its rows from `at` on.
local function add(self, blocks, rows, item_bytes, leaf, n, at)
  local to = ffi.cast("char *", leaf:data()) + (at or 0) * n * item_bytes
  self.moves[#self.moves + 1] = { blocks = blocks, rows = rows, bytes = item_bytes, leaf = leaf, to = to, n = n }
  return leaf
end

---A leaf [rows, n, ...] that `take` fills from a [T or T+1, B, ...] buffer of the learner.
---@param n integer sequences of a minibatch
---@param front Tensor? [W,B,...] rows that stand before: the leaf has W + rows
---@param rows integer? of the buffer; default: those of a piece
---@return Tensor
function Sequences:leaf_of(buffer, n, front, rows)
  local shape, dtype, blocks = buffer:shape(), buffer:dtype(), {}
  local row = buffer:size() / shape[1]
  for k, piece in ipairs(self.pieces) do blocks[k] = buffer:data() + piece.first * row end
  local W = front and front:shape()[1] or 0
  rows = rows or self.rows
  shape[1], shape[2] = W + rows, n
  local item, leaf = row / self.learner.B * bytes_of[dtype], tensor.new { shape = shape, dtype = dtype }
  if W > 0 then add(self, { front:data() }, W, item, leaf, n) end
  return add(self, blocks, rows, item, leaf, n, W)
end

---Leaves that `take` fills with the states which the sequences began in.
---@return table<string, Tensor>
function Sequences:state_leaves(n)
  local learner = self.learner
  local core = learner.agent.core
  local state = core:initial(n)
  for name, leaf in pairs(state) do
    local blocks, shape, axis = {}, leaf:shape(), core:batch_axis(name)
    for k, piece in ipairs(self.pieces) do blocks[k] = piece.state[name]:data() end
    add(self, blocks, tables.product(shape, 1, axis - 1), 4 * tables.product(shape, axis + 1), leaf, n)
  end
  return state
end

---Leaves that `take` fills with the sensitivities with which the sequences began (credit=exact, whose rollout is one piece), by kind.
---@return table<table, Tensor[]>
function Sequences:sensitivity_leaves(n)
  local leaves = {}
  for _, kind in ipairs(self.learner.past.kinds) do
    leaves[kind] = {}
    for part, S in ipairs(kind.S) do
      local _, N, R = unpack(S:shape())
      leaves[kind][part] = add(self, { S:data() }, 1, 4 * N * R, tensor.new { shape = { n, N, R } }, n)
    end
  end
  return leaves
end

---Put the sequences in a new order, a function of (seed, number).
function Sequences:shuffle(seed, number)
  local order, dice, n = self.order, self.dice, self.count
  C.mn_random_uniform(seed, number % 2 ^ 32, 3 + 2 ^ 16 * math.floor(number / 2 ^ 32), dice, n)          -- a stream has 32 bits
  for i = 0, n - 1 do order[i] = i end
  for i = n - 1, 1, -1 do
    local k = math.min(i, math.floor(dice[i] * (i + 1)))
    order[i], order[k] = order[k], order[i]
  end
end

---Fill the leaves with the sequences that stand at first .. first + n - 1 of the order.
function Sequences:take(first)
  local B, order = self.learner.B, self.order
  engine.wait()
  for _, move in ipairs(self.moves) do
    engine.check(C.mn_tensor_changes(engine.ctx, move.leaf, "minibatches"))
    for i = 0, move.n - 1 do
      local s = order[first + i]
      local b = s % B
      C.mn_copy_column(move.to, move.n, i, move.blocks[(s - b) / B + 1], B, b, move.rows, move.bytes)
    end
  end
end

return new
