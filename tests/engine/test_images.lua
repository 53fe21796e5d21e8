-- test_images.lua -- convolutions, pooling and the two torsos for pictures against PyTorch in float64
-- (tests/reference/images.py), and pictures in bytes against pictures in floats.
local ffi = require "ffi"
local t = require "tests.harness"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local json = require "mneme.base.json"
local mn = require "mneme"
local safetensors = require "mneme.tensor.safetensors"
local observation_torsos = require "mneme.models.observation_torsos"
local ops = mn.ops

local root = registry.root .. "tests/fixtures/images/"

-- The largest difference of n numbers, `every` apart in got, in parts of the largest.
local function same(name, got, want, n, every, tolerance)
  local worst, top = 0, 1e-3
  for i = 0, n - 1 do
    worst, top = t.larger(worst, math.abs(got[i * (every or 1)] - want[i])), math.max(top, math.abs(want[i]))
  end
  t.ok(worst <= (tolerance or 2e-6) * top, ("%s: differs by %.3g of %.3g"):format(name, worst, top))
end

local function leaf(from, grad, dtype)
  local x = mn.tensor { shape = from:shape(), grad = grad, dtype = dtype }
  for i = 0, x:size() - 1 do x:data()[i] = from:data()[i] end
  return x
end

local file = safetensors.load(root .. "ops.safetensors")
local cases, kinds = json.decode(file.metadata.cases), {}

-- What is loaded below a name: inputs, and what came out.
local function below(name)
  return setmetatable({}, { __index = function(_, key) return file.tensors[name .. "." .. key] end })
end

local function compare(name, given, y, leaves)
  t.eq(table.concat(y:shape(), ","), table.concat(given.y:shape(), ","), name)
  same(name .. ".y", y:data(), given.y:data(), y:size())
  ops.sum(y * given.cotangent):backward()
  for key, x in pairs(leaves) do same(name .. ".grad." .. key, x:grad_data(), given["grad." .. key]:data(), x:size(), 1, 4e-6) end
  mn.clear_tape()
end

function kinds.conv2d(name, o)
  local given, leaves, args = below(name), {}, { stride = o.stride, padding = o.padding, act = o.act, divide = o.divide }
  for _, key in ipairs { "x", "w", "b" } do
    if given[key] and not (key == "x" and o.image) then leaves[key] = leaf(given[key], true) args[key] = leaves[key] end
  end
  if o.image then args.image = leaf(given.x, false, "u8") end
  compare(name, given, (ops.conv2d(args)), leaves)
end

function kinds.max_pool2d(name, o)
  local given, x = below(name), leaf(file.tensors[name .. ".x"], true)
  local args = { x = x }
  for key, value in pairs(o) do args[key] = value end
  compare(name, given, (ops.max_pool2d(args)), { x = x })
end

for _, name in ipairs(tables.keys(cases)) do
  t.test(name .. " is torch's", function() kinds[name:match "^[^.]*"](name, cases[name]) end)
end

t.test("max_pool2d: a NaN is the largest, minus infinity may be", function()
  local x = mn.tensor { shape = { 1, 1, 2, 4, 1 }, data = { { { { { 1 }, { 5 }, { -1 / 0 }, { -1 / 0 } }, { { 0 / 0 }, { 7 }, { -1 / 0 }, { -1 / 0 } } } } } }
  local y, at = ops.max_pool2d { x = x }
  t.ok(y:data()[0] ~= y:data()[0]) t.eq(at:data()[0], 2)
  t.eq(y:data()[1], -1 / 0) t.eq(at:data()[1], 0)
  mn.clear_tape()
end)

-- ---- torsos ----

local stored = safetensors.load(root .. "torsos.safetensors")
local about = json.decode(stored.metadata.torsos)

-- The formula of images.py.
local function fill(p, number, scale)
  for i = 0, p:size() - 1 do p:data()[i] = ((i * 7919 + number * 104729 + 13) % 2003 - 1001) / 1001 * scale end
end

local function picture(space, T, B, dtype)
  local x = mn.tensor { shape = { T, B, unpack(space) }, dtype = dtype }
  for i = 0, x:size() - 1 do
    local byte = (i * 7919 + 13) % 251
    x:data()[i] = dtype == "u8" and byte or byte / 255
  end
  return x
end

local function build(name)
  local a = about[name]
  local m = observation_torsos.for_space({ shape = a.space, dtype = "u8" }, { name, hidden = a.hidden })
  local dict, n = m:state_dict(), 0
  for key, formula in pairs(a.parameters) do
    t.ok(dict[key], name .. " has no " .. key)
    fill(dict[key], formula[1], formula[2])
    n = n + 1
  end
  t.eq(#tables.keys(dict), n)
  return m, a
end

for _, name in ipairs { "conv", "impala" } do
  t.test("torso " .. name .. " is torch's, outputs and gradients, from bytes and from floats", function()
    local m, a = build(name)
    local want = stored.tensors[name .. ".y"]
    for _, dtype in ipairs { "u8", "f32" } do
      local y = m(picture(a.space, 2, 2, dtype))
      t.eq(table.concat(y:shape(), ","), "2,2," .. a.hidden)
      same(name .. ".y from " .. dtype, y:data(), want:data(), y:size(), 1, 1e-5)
      local cotangent = mn.tensor { shape = y:shape() }
      for i = 0, y:size() - 1 do cotangent:data()[i] = ((i * 37 + 11) % 19 - 9) / 9 end
      for _, p in ipairs(m:parameters()) do p:zero_grad() end
      ops.sum(y * cotangent):backward()
      for key, p in pairs(m:state_dict()) do
        local g = stored.tensors[name .. ".grad." .. key]
        same(name .. ".grad." .. key, p:grad_data(), g:data(), g:size(), a.every, 1e-5)
      end
      mn.clear_tape()
    end
  end)

  t.test("torso " .. name .. ": step by step as whole, and saved and loaded", function()
    local m, a = build(name)
    local x = mn.sequence { shape = { 5, 2, unpack(a.space) }, dtype = "u8" }
    ffi.copy(x:data(), picture(a.space, 5, 2, "u8"):data(), x:size())
    local plan = mn.plan(function(pictures) return m(pictures) end)
    local y = plan(x)
    local whole = ffi.new("float[?]", y:size())
    ffi.copy(whole, y:data(), y:size() * 4)
    ffi.fill(y:data(), y:size() * 4, 0xFF)
    for step = 0, 4 do plan:rows(step, step + 1) end
    same(name .. ".y by rows", y:data(), whole, y:size(), 1, 1e-6)      -- a BLAS sums a few rows in another order than many
    local path, list = os.tmpname(), {}
    m:each(function(key, p) list[#list + 1] = { key, p } end)
    safetensors.write(path, list)
    local other = observation_torsos.for_space({ shape = a.space, dtype = "u8" }, { name, hidden = a.hidden })
    other:load_state_dict(safetensors.load(path).tensors)
    os.remove(path)
    local again = other(x)
    t.ok(ffi.string(again:data(), y:size() * 4) == ffi.string(whole, y:size() * 4), "other bits after loading")
    mn.clear_tape()
  end)
end

t.test("torsos for pictures: their sizes, and pictures that do not fit", function()
  local space = { shape = { 84, 84, 3 }, dtype = "u8" }
  local m = observation_torsos.for_space(space)
  t.eq(m.name, "conv") t.eq(m.d_out, 512)
  t.eq(m:count(), 32 * 192 + 32 + 64 * 512 + 64 + 64 * 576 + 64 + 512 * 3136 + 512)
  t.eq(observation_torsos.for_space(space, "impala").d_out, 256)
  t.eq(observation_torsos.for_space({ shape = { 64, 64, 3 }, dtype = "f32" }, "conv").d_out, 512)
  t.eq(observation_torsos.for_space({ shape = { 35, 84, 3 }, dtype = "u8" }).name, "impala")
  t.fails(function() observation_torsos.for_space({ shape = { 35, 84, 3 }, dtype = "u8" }, "conv") end)
  t.fails(function() observation_torsos.for_space { shape = { 84, 84 }, dtype = "u8" } end)
end)

t.test("conv2d: a stride beyond the image leaves one patch, whatever its size", function()
  for _, padding in ipairs { 0, 1, 2 } do
    local function results(stride)
      local x, w = mn.tensor { shape = { 1, 2, 8, 8, 2 }, grad = true }, mn.tensor { shape = { 3, 2, 3, 3 }, grad = true }
      for i = 0, x:size() - 1 do x:data()[i] = math.sin(i) end
      for i = 0, w:size() - 1 do w:data()[i] = math.cos(i) end
      local y = ops.conv2d { x = x, w = w, stride = stride, padding = padding }
      y:sum():backward()
      local all = {}
      for i, part in ipairs { y:data(), x:grad_data(), w:grad_data() } do
        all[i] = ffi.string(part, 4 * ({ y:size(), x:size(), w:size() })[i])
      end
      mn.clear_tape()
      return table.concat(all)
    end
    local one = results(12)
    t.ok(one:find "[^%z]", "nothing was computed")
    for _, stride in ipairs { 40000, 46341, 65536, 2 ^ 20 } do
      t.ok(results(stride) == one, ("stride %d, padding %d: other bits"):format(stride, padding))
    end
  end
end)

t.test("conv2d: what is wrong is told", function()
  local x, image, w = mn.tensor { shape = { 1, 1, 5, 6, 2 } }, mn.tensor { shape = { 1, 1, 5, 6, 2 }, dtype = "u8" }, mn.tensor { shape = { 3, 2, 4, 4 } }
  for pattern, args in pairs {
    ["expected either x %(float32%) or image %(uint8%)"] = { x = x, image = image, w = w },
    ["expected either x"] = { w = w },
    ["axis 2 of w is 4, but axis 2 %(Y%) of the images has 3 pixels"] = { x = mn.tensor { shape = { 1, 1, 3, 6, 2 } }, w = w },
    ["stride is 0, expected a whole number from 1 to 1048576"] = { x = x, w = w, stride = 0 },
    ["padding is 0.5"] = { x = x, w = w, padding = 0.5 },
    ["divide is 0"] = { image = image, w = w, divide = 0 },
    ["axis 1 %(C%) of w is 2, expected 3"] = { x = mn.tensor { shape = { 1, 1, 5, 6, 3 } }, w = w },
  } do t.raises(function() ops.conv2d(args) end, "conv2d: " .. pattern) end
  t.fails(function() ops.max_pool2d { x = x, kernel = 6 } end)
  t.fails(function() ops.max_pool2d { x = x, kernel = 2, padding = 2 } end)
  t.fails(function() ops.max_pool2d { x = x, kernel = 99 } end)
end)
