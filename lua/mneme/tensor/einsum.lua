-- einsum.lua -- mn.einsum: sums of products over named axes, as one matrix product.
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"
local describe = require("mneme.tensor.op_binding").describe
local ops = tensor.ops

-- Axes are letters, and their lists are strings: x with axes "bij" is three axes.

local function fail(text, ...) errors.raise("einsum: " .. text:format(...)) end

-- Letters of a that are, or are not, in b.
local function both(a, b) return (a:gsub(".", function(letter) return b:find(letter, 1, true) and letter or "" end)) end
local function without(a, b) return (a:gsub(".", function(letter) return b:find(letter, 1, true) and "" or letter end)) end

local function check_letters(letters, where)
  local odd = letters:match "[^%a]"
  if letters:find("...", 1, true) then fail "'...' is not supported: give every axis a letter" end
  if odd then fail("'%s' in '%s', expected letters", odd, letters) end
  for letter in letters:gmatch "." do
    if select(2, letters:gsub(letter, "")) > 1 then
      fail("'%s' names two axes of %s, which is not supported: no diagonals", letter, where)
    end
  end
end

-- What an equation says: the letters of each operand, and of the result.
local function parse(equation)
  if type(equation) ~= "string" then fail("%s, expected an equation such as \"bij,bjk->bik\"", describe(equation)) end
  local left, right = equation:gsub("%s", ""):match "^(.-)%->(.*)$"
  left = left or equation:gsub("%s", "")
  local operands = {}
  for letters in (left .. ","):gmatch "([^,]*)," do operands[#operands + 1] = letters end
  for i, letters in ipairs(operands) do check_letters(letters, "operand " .. i) end
  if not right then                       -- letters that occur once, sorted
    local once = {}
    for letter in table.concat(operands):gmatch "." do
      if select(2, left:gsub(letter, "")) == 1 then once[#once + 1] = letter end
    end
    table.sort(once)
    right = table.concat(once)
  end
  check_letters(right, "the result")
  local unknown = without(right, left):sub(1, 1)
  if unknown ~= "" then fail("'%s' of the result is in no operand", unknown) end
  return operands, right
end

local function product(letters, sizes)
  local n = 1
  for letter in letters:gmatch "." do n = n * sizes[letter] end
  return n
end

-- x[from] with its axes in the order of `to`.
local function ordered(x, from, to)
  if from == to then return x end
  local order = {}
  for letter in to:gmatch "." do order[#order + 1] = from:find(letter, 1, true) - 1 end
  return ops.permute(x, order)
end

local function shaped(x, shape)
  return table.concat(x:shape(), ",") == table.concat(shape, ",") and x or ops.reshape(x, shape)
end

-- x[letters] with an axis for each of the groups.
local function grouped(x, letters, groups, sizes)
  local shape = {}
  for i, group in ipairs(groups) do shape[i] = product(group, sizes) end
  return shaped(ordered(x, letters, table.concat(groups)), shape)
end

-- The axes of `lead` one by one if they are at most that many, else as one; then others.
local function groups(lead, most, ...)
  local list = {}
  if #lead > most then list[1] = lead else for letter in lead:gmatch "." do list[#list + 1] = letter end end
  for _, group in ipairs { ... } do list[#list + 1] = group end
  return list
end

-- x[from] summed over what is not in `to`; the result has the letters of from that are.
local function summed(x, from, to, sizes)
  local kept, gone = both(from, to), without(from, to)
  if gone == "" then return x, from end
  if kept == "" then return ops.sum(x), "" end
  return ops.sum(grouped(x, from, groups(kept, 5, gone), sizes), { axis = -1 }), kept
end

local function multiply(a, of_a, b, of_b, to, sizes)
  a, of_a = summed(a, of_a, to .. of_b, sizes)
  b, of_b = summed(b, of_b, to .. of_a, sizes)
  local common = both(of_a, of_b)
  local batch, inner = both(to, common), without(common, to)
  local left, right = both(to, without(of_a, common)), both(to, without(of_b, common))
  local times = inner == "" and ops.mul or ops.matmul                   -- the first axis stays where it can: it may be time
  if batch == "" and left ~= "" then
    a = grouped(a, of_a, groups(left, 5, inner), sizes)
    b = grouped(b, of_b, inner == "" and { right } or { inner, right }, sizes)
  else
    a = grouped(a, of_a, groups(batch, 4, left, inner), sizes)
    b = grouped(b, of_b, groups(batch, 4, inner, right), sizes)
  end
  local y, result, shape = times(a, b), batch .. left .. right, {}
  for letter in result:gmatch "." do shape[#shape + 1] = sizes[letter] end
  return ordered(shaped(y, #shape > 0 and shape or { 1 }), result, to)
end

---Sums of products over named axes: "bij,bjk->bik" is a product of matrices.  Letters that are not in the result are summed over;
---without -> the result has the letters that occur once, sorted.  One or two operands; no '...', no letter twice in one operand.
---@param equation string
---@param a Tensor
---@param b Tensor?
---@return Tensor [1] where the result has no letters
return function(equation, a, b, ...)
  local letters, to = parse(equation)
  local operands, sizes = { a, b }, {}
  if #letters > 2 or select("#", ...) > 0 then fail("'%s' has %d operands, expected 1 or 2: multiply two of them first", equation, #letters) end
  for i, names in ipairs(letters) do
    if not tensor.is(operands[i]) then fail("operand %d is %s, expected a tensor", i, describe(operands[i])) end
    local shape = operands[i]:shape()
    if #shape ~= #names then fail("operand %d has %d axes, '%s' names %d", i, #shape, names, #names) end
    for axis, size in ipairs(shape) do
      local letter = names:sub(axis, axis)
      sizes[letter] = sizes[letter] or size
      if sizes[letter] ~= size then fail("'%s' is %d in operand %d, expected %d as before", letter, size, i, sizes[letter]) end
    end
  end
  if #letters == 1 then
    if b ~= nil then fail("'%s' has one operand, and two are given", equation) end
    local y, kept = summed(a, letters[1], to, sizes)
    return ordered(y, kept, to)
  end
  return multiply(a, letters[1], b, letters[2], to, sizes)
end
