-- test_einsum.lua -- mn.einsum against loops over all letters, and what it refuses.
local t = require "tests.harness"
local mn = require "mneme"

t.test("einsum: against loops over all letters, with gradients", function()
  local size = { a = 2, b = 3, c = 4, d = 5, e = 2 }
  for _, equation in ipairs { "abc->a", "abc->ca", "abc->", "abc->abc", "ab->ba", "bac,bcd->bad", "ab,bc->ac", "ab,bc->ca", "abc,cd->abd",
    "ab,ab->", "ab,ab->ab", "ab,ab->ba", "a,b->ab", "a,b->ba", "a,a->", "abc,bd->acd", "abcd,bde->ace", "ab,cd->", "abc,ad->bd",
    "abcd,dcba->", "ab,bc", "cb,ba", "abc", "a,ab->b", " abcde, edcba -> abcde", "ab,->ab" } do
    local left, to = equation:gsub(" ", ""):match "^(.-)%->(.*)$"
    left = left or equation
    local A, B = left:match "^(%a*),?(%a*)$"
    local two = left:find(",", 1, true)
    if not to then
      local once = {}
      for letter in left:gmatch "%a" do if select(2, left:gsub(letter, "")) == 1 then once[#once + 1] = letter end end
      table.sort(once)
      to = table.concat(once)
    end
    local function operand(letters, by)
      local shape = {}
      for letter in letters:gmatch "." do shape[#shape + 1] = size[letter] end
      local x = mn.tensor { shape = #shape > 0 and shape or {}, grad = true }
      for k = 0, x:size() - 1 do x:data()[k] = (k * by + 3) % 7 - 3 end
      return x
    end
    local x, y, place = operand(A, 5), two and operand(B, 3), {}
    local function offset(letters)
      local k = 0
      for letter in letters:gmatch "." do k = k * size[letter] + place[letter] end
      return k
    end
    local want, dx, dy, all = {}, {}, {}, ""
    for letter in left:gmatch "%a" do if not all:find(letter) then all = all .. letter end end
    local function walk(i)
      if i <= #all then
        for v = 0, size[all:sub(i, i)] - 1 do
          place[all:sub(i, i)] = v
          walk(i + 1)
        end
        return
      end
      local p, q, o = offset(A), offset(B), offset(to)
      local f, g, w = x:data()[p], two and y:data()[q] or 1, o % 3 + 1
      want[o], dx[p], dy[q] = (want[o] or 0) + f * g, (dx[p] or 0) + w * g, (dy[q] or 0) + w * f
    end
    walk(1)
    local z = mn.einsum(equation, x, two and y or nil)
    local w = mn.tensor { shape = z:shape() }
    for k = 0, z:size() - 1 do
      t.eq(z:data()[k], want[k], equation)
      w:data()[k] = k % 3 + 1
    end
    (z * w):sum():backward()
    for k = 0, x:size() - 1 do t.eq(x:grad_data()[k], dx[k], equation .. ": gradient of a") end
    for k = 0, two and y:size() - 1 or -1 do t.eq(y:grad_data()[k], dy[k], equation .. ": gradient of b") end
    mn.clear_tape()
  end
  local x, y = mn.tensor { shape = { 2, 3 } }, mn.tensor { shape = { 3, 4 } }
  for equation, words in pairs { ["aa,bc->a"] = "'a' names two axes of operand 1, which is not supported", ["...a,bc->a"] = "'...' is not supported",
    ["ab,bc->x"] = "'x' of the result is in no operand", ["ab,bc,cd->ad"] = "has 3 operands, expected 1 or 2", ["a1,bc->a"] = "'1' in 'a1', expected letters",
    ["abc,bc->a"] = "operand 1 has 2 axes, 'abc' names 3",
    ["ab,ac->bc"] = "'a' is 3 in operand 2, expected 2 as before", ["ab->a"] = "has one operand, and two are given",
    ["ab,bc->aa"] = "'a' names two axes of the result" } do
    t.raises(function() mn.einsum(equation, x, y) end, "einsum: .*" .. words:gsub("%p", "%%%0"))
  end
  t.fails(function() mn.einsum("ab,bc->ac", x) end)
  t.fails(function() mn.einsum(x, y) end)
end)
