-- test_saved.lua -- mn.save and mn.load give back every value they accept, byte for byte, or refuse it; safetensors of every type that other
-- programs write are read where that is exact, and left out by name where it is not.
local ffi = require "ffi"
local files = require "mneme.base.files"
local mn = require "mneme"
local shell = require "tests.support.shell"
local t = require "tests.harness"

local folder = shell.folder()
local path = folder .. "/x.safetensors"

local function bytes(x) return ffi.string(x:data(), x:size() * (x:dtype() == "u8" and 1 or 4)) end

-- The first place at which b is not a, as a text; nil: none.
local function difference(a, b, at)
  if mn.is_tensor(a) then
    local same = mn.is_tensor(b) and a:dtype() == b:dtype() and table.concat(a:shape(), ",") == table.concat(b:shape(), ",") and bytes(a) == bytes(b)
    return not same and at or nil
  elseif type(a) ~= type(b) then return at
  elseif type(a) == "table" then
    for key, value in pairs(a) do
      local found = difference(value, b[key], at .. "." .. tostring(key))
      if found then return found end
    end
    for key in pairs(b) do if a[key] == nil then return at .. "." .. tostring(key) .. " is new" end end
  elseif type(a) == "number" then return not (a == b and 1 / a == 1 / b or a ~= a and b ~= b) and at or nil
  elseif a ~= b then return at end
end

local state = 7
local function random(n)
  state = (state * 16807) % 2147483647
  return state % n
end
local MINUS_0 = -1 / math.huge          -- the literal -0.0 is 0 to LuaJIT on arm64
local numbers = { 0, MINUS_0, 1, -1, 0.1, 1 / 3, 1e308, -1e308, 2.2250738585072014e-308, 5e-324, -5e-324, 1 / 0, -1 / 0, 0 / 0, 2 ^ 53, -2 ^ 53,
  2 ^ 53 - 1, 2 ^ 63,
  2 ^ 64, 123456789012345678, 1e15, 1e16, 1e17, 1e21, 4294967296, math.pi }
local texts = { "", "a", "\0", "a\0b", "\255", "\128", "ä", ("ä"):sub(1, 1), "😀", "\237\160\128", "\192\128", "\244\144\128\128", "\226\128\168",
  "\1\2\31\127", '"\\/',
  "\n\r\t", "\\u0000", "null", "NaN", "inf", "1", "01", "a.b", "a", "bytes:0", "tensor", "__metadata__", "é\0", ("x"):rep(70000), ("\0"):rep(300) }
local function text()
  if random(3) > 0 then return texts[1 + random(#texts)] end
  local s = {}
  for i = 1, random(9) do s[i] = string.char(random(256)) end
  return table.concat(s)
end
local x = mn.tensor { { 1, -2, 3 }, { 4, 0 / 0, 1 / 0 } }
local odd = mn.tensor { shape = { 5 } }
for i, bits in ipairs { 0x7fc00000, 0x7fc12345, -0x400000, 1, -0x80000000 } do ffi.cast("int32_t *", odd:data())[i - 1] = bits end
local tensors = { x, x[1], x:transpose(0, 1), x[2][3], x:reshape(3, 2), x:sum(), odd, mn.tensor { shape = {} }:fill(3), mn.tensor { data = { 1, -2 ^ 31 },
  dtype = "i32" },
  mn.tensor { data = { 0, 255 }, dtype = "u8" }, mn.tensor { shape = { 1, 1, 1, 1, 1, 2 } }, mn.tensor { data = { 2 }, grad = true } }
local function value(depth)
  local kind = random(depth > 4 and 4 or 7)
  if kind == 0 then return numbers[1 + random(#numbers)] end
  if kind == 1 then return text() end
  if kind == 2 then return random(2) == 0 end
  if kind == 3 then return tensors[1 + random(#tensors)] end
  local made = {}
  for i = 1, random(5) do
    local key = ({ i, text(), random(2 ^ 20) - 2 ^ 19, (2 ^ 53 - 1) * (random(2) * 2 - 1) })[1 + random(4)]
    made[key] = value(depth + 1)
  end
  return made
end

t.test("random values come back as they were, or are refused with nothing written", function()
  local kept = 0
  for round = 1, 200 do
    local v = value(0)
    files.remove(path)
    local ok, e = pcall(mn.save, path, v)
    if ok then
      kept = kept + 1
      local found = difference(v, (mn.load(path)), "it")
      if found then t.ok(false, ("round %d: %s"):format(round, found)) end
    else
      t.ok(tostring(e):find("two tensors are named", 1, true) or tostring(e):find("is named __metadata__", 1, true), tostring(e))
      t.ok(not files.is_file(path))
    end
  end
  t.ok(kept > 150, kept .. " were kept")
  for _, list in ipairs { numbers, texts, tensors } do
    for i, v in ipairs(list) do
      for _, whole in ipairs { v, { v }, { a = { v } }, type(v) == "string" and { [v] = { [v] = 1 } } or v } do
        mn.save(path, whole)
        t.eq(difference(whole, (mn.load(path)), "it"), nil, i)
      end
    end
  end
end)

t.test("what cannot be kept is refused, with where it is", function()
  local ring = { a = {} }
  ring.a.b = ring
  for expected, v in pairs { ["a.b.1 is a function"] = { a = { b = { print } } }, ["a.n is a cdata"] = { a = { n = 3LL } }, ["a.b holds itself"] = ring,
    ["a has the key true"] = { a = { [true] = 1 } }, ["it has the key 0.5"] = { [0.5] = 1 }, ["it is a nil"] = {},
      ["a.co is a thread"] = { a = { co = coroutine.create(print) } },
    ["a.f is a userdata"] = { a = { f = io.stdout } } } do
    t.raises(function() mn.save(path, next(v) ~= nil and v or nil) end, "save: " .. expected:gsub("%.", "%%."))
  end
end)

-- ---- other programs' files ----

local function file(header, data)
  local n, head = #header, {}
  for i = 1, 8 do head[i], n = string.char(n % 256), math.floor(n / 256) end
  files.write(path, { table.concat(head), header, data })
end
-- One tensor w of n values between two others that are read, whatever w is.
local function between(dtype, n, data, shape)
  file(('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"%s","shape":%s,"data_offsets":[4,%d]},'
    .. '"z":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}}')
    :format(dtype, shape or "[" .. n .. "]", 4 + #data, 4 + #data, 5 + #data), ffi.string(ffi.new("float[1]", 1.5), 4) .. data .. "\7")
  local got, skipped = mn.load(path)
  t.eq(got.a:data()[0], 1.5, dtype)
  t.eq(got.z:data()[0], 7, dtype)
  t.ok((got.w == nil) == (skipped.w ~= nil), dtype)
  return got.w, skipped.w
end
local function of(ctype, list) return ffi.string(ffi.new(ctype .. "[?]", #list, list), #list * ffi.sizeof(ctype)) end

t.test("safetensors: what is exact is converted, what is not is left out by name and costs no other tensor", function()
  for _, case in ipairs {
    { "BF16", "uint16_t", { 0x3f80, 0xc049, 0, 0x8000, 0x7f80, 1 }, "f32", { 1, -3.140625, 0, MINUS_0, 1 / 0, 9.183549615799121e-41 } },
    { "F16", "uint16_t", { 0x3c00, 0xc248, 0x0001, 0x8000, 0x7bff, 0xfc00, 0x0400, 0x03ff }, "f32",
      { 1, -3.140625, 2 ^ -24, MINUS_0, 65504, -1 / 0, 2 ^ -14, 1023 * 2 ^ -24 } },
    { "F64", "double", { 1, -0.5, 1 / 0, 0, 2 ^ -149 }, "f32", { 1, -0.5, 1 / 0, 0, 2 ^ -149 } }, { "F64", "double", { 1, 0.1 } }, { "F64", "double",
      { 1e300 } },
    { "F64", "double", { 2 ^ -150 } }, { "BOOL", "uint8_t", { 1, 0, 1 }, "u8", { 1, 0, 1 } }, { "I8", "int8_t", { -128, 127 }, "i32", { -128, 127 } },
    { "I16", "int16_t", { -32768, 5 }, "i32", { -32768, 5 } }, { "U16", "uint16_t", { 65535 }, "i32", { 65535 } },
    { "U32", "uint32_t", { 2 ^ 31 - 1 }, "i32", { 2 ^ 31 - 1 } }, { "U32", "uint32_t", { 2 ^ 31 } },
    { "I64", "int64_t", { 7, -1, -2 ^ 31, 2 ^ 31 - 1 }, "i32", { 7, -1, -2 ^ 31, 2 ^ 31 - 1 } }, { "I64", "int64_t", { 2 ^ 31 } }, { "I64", "int64_t",
      { -2 ^ 31 - 1 } },
    { "I64", "int64_t", { 2 ^ 40 } }, { "U64", "uint64_t", { 9 }, "i32", { 9 } }, { "U64", "uint64_t", { 2 ^ 31 } }, { "U64", "uint64_t", { 2 ^ 63 } },
    { "F8_E4M3", "uint8_t", { 0x38, 0x40 } }, { "C64", "float", { 1, 2 } }, { "TYPE_OF_LATER", "float", { 1 } } } do
    local dtype, ctype, list, becomes, values = unpack(case)
    local w, why = between(dtype, #list, of(ctype, list))
    if becomes then
      t.eq(w:dtype(), becomes, dtype)
      for i, v in ipairs(values) do t.ok(w:data()[i - 1] == v and 1 / w:data()[i - 1] == 1 / v, ("%s %d: %s"):format(dtype, i, w:data()[i - 1])) end
    else t.ok(why:find(dtype, 1, true) == 1, why) end
  end
  for dtype, nan in pairs { BF16 = of("uint16_t", { 0xffff, 0x7f81 }), F16 = of("uint16_t", { 0xffff, 0x7c01 }),
    F64 = ("\255"):rep(8) .. "\1\0\0\0\0\0\240\127" } do
    local w = between(dtype, 2, nan)                         -- a NaN that is no value of LuaJIT's
    for i = 0, 1 do t.ok(type(w:data()[i]) == "number" and w:data()[i] ~= w:data()[i], dtype) end
  end
  t.eq(#between("F32", 0, of("float", { 3 }), "[]"):shape(), 0)
  t.ok(select(2, between("F32", 0, "", "[2,0]")):find "empty")
  t.ok(select(2, between("F32", 0, of("float", { 3 }), "[1,1,1,1,1,1,1,1,1]")):find "9 axes")
end)

t.test("every half-precision float is read as its value", function()
  local all = ffi.new "uint16_t[65536]"
  for i = 0, 65535 do all[i] = i end
  local w = between("F16", 65536, ffi.string(all, 131072))
  for i = 0, 65535 do
    local e, m = math.floor(i / 1024) % 32, i % 1024
    local v = (e == 31 and (m == 0 and 1 / 0 or 0 / 0) or e == 0 and m * 2 ^ -24 or (1 + m / 1024) * 2 ^ (e - 15)) * (i < 32768 and 1 or -1)
    local got = w:data()[i]
    if not (got == v or v ~= v and got ~= got) then t.eq(got, v, i) end
  end
end)

t.test("a header that no reader would take is not written", function()
  local many = {}
  for i = 1, 1700 do many[i] = ("x"):rep(65000) end
  files.remove(path)
  t.fails(function() mn.save(path, many) end)
  t.ok(not files.is_file(path))
end)

files.remove_folder(folder)
