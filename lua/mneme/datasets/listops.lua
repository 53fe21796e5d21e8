-- listops.lua -- [MAX 4 [MIN 2 9 ] 7 ]: the value, a digit, of nested lists of operators over digits.
-- A list is drawn as in the Long Range Arena: down to `max_depth`, a node is a digit with probability 3/4,
-- otherwise an operator over 2 to `max_args` further nodes; a tree is kept if it has more than `min_length` and
-- fewer than `max_length` tokens.  Tokens: digits 0-9, MIN MAX MED SM (10-13), ] (14), and 15 after the end.  The answer is
-- asked at the last token, so a memory answers from its state after reading everything.
-- SM is the sum modulo 10; MED the median, rounded down.
local ffi = require "ffi"
local errors = require "mneme.base.errors"

local MIN, MAX, MED, CLOSE, PAD = 10, 11, 12, 14, 15
local LEAF = 0.25                  -- a node is a digit where the draw is above
local TRIES = 100000               -- trees drawn for one example before the range is given up

-- The value of an operator whose arguments are counted by digit.
local function value_of(op, digits, n)
  if op == MIN then
    for v = 0, 9 do if digits[v] > 0 then return v end end
  elseif op == MAX then
    for v = 9, 0, -1 do if digits[v] > 0 then return v end end
  elseif op == MED then
    local low, seen = nil, 0
    for v = 0, 9 do                                    -- the two in the middle, or twice the one
      seen = seen + digits[v]
      if not low and seen > math.floor((n - 1) / 2) then low = v end
      if seen > math.floor(n / 2) then return math.floor((low + v) / 2) end
    end
  end
  local sum = 0
  for v = 0, 9 do sum = sum + v * digits[v] end
  return sum % 10
end

-- Draw one tree into `token` (room for `most` numbers), from left to right; the open lists are a stack.
-- Returns its length and value, or nothing where it grew beyond.
local function draw_tree(random, token, most, cfg, open)
  local depth, n = 0, 0
  repeat
    if n == most then return nil end
    local value
    if depth >= cfg.max_depth - 1 or random:uniform() > LEAF then
      value = random:below(10)
      token[n], n = value, n + 1
    else
      local list = open[depth]
      list.op, list.args = MIN + random:below(4), 2 + random:below(cfg.max_args - 1)
      list.left = list.args
      ffi.fill(list.digits, 40)
      token[n], n, depth = list.op, n + 1, depth + 1
    end
    while value and depth > 0 do                       -- a value ends every list that it completes
      local list = open[depth - 1]
      list.digits[value], list.left = list.digits[value] + 1, list.left - 1
      if list.left > 0 then break end
      if n == most then return nil end
      token[n], n, depth = CLOSE, n + 1, depth - 1
      value = value_of(list.op, list.digits, list.args)
    end
    if depth == 0 then return n, value end
  until false
end

local function build(cfg)
  local most, open = cfg.max_length - 1, {}
  if cfg.max_length - cfg.min_length < 2 then
    errors.usage(("data set listops: no length is more than min_length=%d and less than max_length=%d"):format(
      cfg.min_length, cfg.max_length))
  end
  for depth = 0, cfg.max_depth - 1 do open[depth] = { digits = ffi.new "int32_t[10]" } end
  local function draw(random, token, answer)
    for _ = 1, TRIES do
      local n, value = draw_tree(random, token, most, cfg, open)
      if n and n > cfg.min_length then
        for i = n, most - 1 do token[i] = PAD end
        answer[n - 1] = value
        return
      end
    end
    errors.usage(("data set listops: none of %d trees had more than min_length=%d and fewer than max_length=%d tokens"):format(
      TRIES, cfg.min_length, cfg.max_length), "a larger max_depth, or another range")
  end
  return { tokens = 16, classes = 10, length = most, draw = draw }
end

return {
  doc = "the value of nested lists of operators over digits",
  source = "Nangia & Bowman 2018; Tay et al. 2021, Long Range Arena",
  config = { min_length = 500, max_length = 2000, max_depth = 10, max_args = 10 },
  about = {
    min_length = { "a list has more tokens than this", whole = true, range = { 0, 1e6 } },
    max_length = { "and fewer than this", whole = true, range = { 2, 1e6 } },
    max_depth = { "the deepest nodes are digits", whole = true, range = { 1, 100 } },
    max_args = { "arguments of an operator, at most", whole = true, range = { 2, 1000 } },
  },
  build = build,
}
