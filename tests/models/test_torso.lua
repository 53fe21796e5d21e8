-- test_torso.lua -- what stands before a memory: every kind of observation becomes features.
local t = require "tests.harness"
local mn = require "mneme"
local observation_torsos = require "mneme.models.observation_torsos"

-- Leaves of observations with numbers 0 .. below-1 that are not regular.
local function observations(shape, dtype, below)
  local x = mn.tensor { shape = shape, dtype = dtype }
  local p = x:data()
  for i = 0, x:size() - 1 do p[i] = (i * 7919 + 13) % 101 % below end
  return x
end

local function shape_is(x, want) t.eq(table.concat(x:shape(), ","), want) end

t.test("flat: floats in a row", function()
  local m = observation_torsos.for_space { shape = { 2, 3 }, dtype = "f32" }
  t.eq(m.name, "flat") t.eq(m.d_out, 6)
  local x = observations({ 4, 5, 2, 3 }, "f32", 50)
  local y = m(x)
  shape_is(y, "4,5,6")
  for i = 0, x:size() - 1 do t.eq(y:data()[i], x:data()[i]) end
  shape_is(observation_torsos.for_space { shape = { 7 }, dtype = "f32" }(observations({ 2, 3, 7 }, "f32", 9)), "2,3,7")
  mn.clear_tape()
end)

t.test("codes: one-hots in a row", function()
  local m = observation_torsos.for_space { shape = { 3, 2 }, dtype = "u8", codes = 7 }
  t.eq(m.name, "codes") t.eq(m.d_out, 42)
  local x = observations({ 4, 5, 3, 2 }, "u8", 7)
  local y = m(x)
  shape_is(y, "4,5,42")
  for i = 0, x:size() - 1 do
    for code = 0, 6 do t.eq(y:data()[i * 7 + code], x:data()[i] == code and 1 or 0) end
  end
  x:data()[0] = 7
  local wrong = m(x):data()[0]
  t.ok(wrong ~= wrong, "a code that does not exist went unseen")
  mn.clear_tape()
end)

t.test("every picture of at least one pixel gets a torso that fits", function()
  for _, side in ipairs { 1, 3, 8, 15, 35, 36, 64 } do
    local space = { shape = { side, side + 1, 3 }, dtype = "u8" }
    local m = observation_torsos.for_space(space)
    t.eq(m.name, side < 36 and "impala" or "conv")
    shape_is(m(observations({ 2, 1, side, side + 1, 3 }, "u8", 255)), "2,1," .. m.d_out)
  end
  mn.clear_tape()
end)

t.test("a module of one's own stands in; mistakes say what was expected", function()
  local pixels, grid = { shape = { 8, 8, 3 }, dtype = "u8" }, { shape = { 5 }, dtype = "u8", codes = 4 }
  local own = mn.nn.linear(3, 4)
  t.fails(function() observation_torsos.for_space(grid, own) end)
  t.fails(function() observation_torsos.for_space({ shape = { 3 }, dtype = "u8" }, function() return own end) end)
  t.fails(function() observation_torsos.for_space({ shape = { 4, 3 }, dtype = "f32" }, own) end)
  t.eq(observation_torsos.for_space({ shape = { 3 }, dtype = "f32" }, own), own)
  t.eq(own.d_out, 4)
  own.d_out = 5
  t.fails(function() observation_torsos.for_space({ shape = { 3 }, dtype = "f32" }, own) end)
  t.fails(function() observation_torsos.for_space(pixels, "flat") end)
  t.fails(function() observation_torsos.for_space(grid, "code") end)
  t.fails(function() observation_torsos.for_space(grid, { "codes", wide = 3 }) end)
  t.fails(function() mn.torso("flat", {}) end)
end)
