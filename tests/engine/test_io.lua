-- test_io.lua -- files: read whole, written whole or not at all; JSON, safetensors, event files; and what
-- happens to each when the disk is full, the folder read-only, the file damaged or the writer killed.
local ffi = require "ffi"
local bit = require "bit"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local t = require "tests.harness"

local C = engine.C
local dir = os.tmpname()
os.remove(dir)
files.make_folder(dir .. "/a/b/c")
local lua = arg[-1] or "luajit"

local function put(path, text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end

-- A film of noise, 4 kB or more a frame.
local function film(path, frames)
  local movie, pixels = files.check(C.mn_movie_new(engine.ctx, path, 64, 64, 20)), ffi.new("uint8_t[?]", 64 * 64 * 4)
  local ok, problem = pcall(function()
    for _ = 1, frames do
      for i = 0, 64 * 64 * 4 - 1 do pixels[i] = math.random(0, 255) end
      files.check(C.mn_movie_add(movie, pixels))
    end
    files.check(C.mn_movie_end(movie))
  end)
  C.mn_movie_free(movie)
  if not ok then error(problem, 0) end
end
local writers = { json = function(path, frames) files.write(path, { ("x"):rep(4096 * frames) }) end, gif = film, mp4 = shell.has "ffmpeg" and film or nil }

-- ---- files ----

t.test("a file is written from pieces, read, appended to, cut, renamed and removed", function()
  local path = dir .. "/f"
  files.write(path, { "abc", { ffi.new("uint8_t[2]", 100, 101), 2 }, "" })
  t.eq(files.read(path), "abcde")
  files.append(path, "fg\0h")
  t.eq(files.read(path), "abcdefg\0h")
  files.cut(path, 4)
  t.eq(files.read(path), "abcd")
  files.cut(path, 100)
  t.eq(files.read(path), "abcd", "a cut never makes a file longer")
  files.cut(dir .. "/missing", 1)
  files.rename(path, path .. "2")
  t.ok(not files.is_file(path) and files.is_file(path .. "2"))
  files.remove(path .. "2")
  t.ok(not files.is_file(path .. "2"))
end)

t.test("folders are made with those above, and say whether they were new", function()
  t.eq(files.make_folder(dir .. "/x/y"), true)
  t.eq(files.make_folder(dir .. "/x/y/"), false)
  put(dir .. "/x/file", "")
  t.raises(files.make_folder, "x/file: cannot be made: Not a directory", dir .. "/x/file")
  t.raises(files.make_folder, "x/file/z: cannot be made: Not a directory", dir .. "/x/file/z")
  t.eq(table.concat(files.list(dir .. "/x"), " "), "file y")
  t.eq(#files.list(dir .. "/nowhere"), 0)
end)

t.test("what is far too large for a text is refused before it is read", function()
  shell.run(dir, "truncate -s 2G large")
  t.raises(files.read, "/large: 2.0 GiB, expected at most 1 GiB of text", dir .. "/large")
  t.eq(files.text(dir .. "/large"), nil)
  files.remove(dir .. "/large")
end)

t.test("errors name the path and the reason", function()
  t.raises(files.read, "/nowhere/f: cannot be read: No such file or directory", dir .. "/nowhere/f")
  t.raises(files.read, "cannot be read: Is a directory", dir)
  t.raises(files.write, "/nowhere/f: cannot be written: No such file or directory", dir .. "/nowhere/f", { "x" })
  t.raises(files.append, "/dev/full: cannot be written: it is not a regular file", "/dev/full", "x")
  t.raises(files.rename, "cannot be renamed: No such file", dir .. "/missing", dir .. "/other")
  files.remove(dir .. "/missing")                        -- what is not there is removed
  t.raises(files.remove, "cannot be removed: Is a directory", dir)
  t.raises(files.make_folder, "/proc/mneme: cannot be made", "/proc/mneme")
end)

-- A file system of 64 kB, where the test may mount one.
t.test("a full disk leaves the old file as it was, and no rubbish", function()
  local small = dir .. "/small"
  files.make_folder(small)
  if os.execute("mount -t tmpfs -o size=64k tmpfs " .. small .. " 2>/dev/null") ~= 0 then t.skip "cannot mount here" end
  local ok, problem = pcall(function()
    files.write(small .. "/f", { "old" })
    t.raises(files.write, "small/f: cannot be written: No space left on device %(with room again", small .. "/f", { ("x"):rep(1e5) })
    t.eq(files.read(small .. "/f"), "old")
    t.eq(table.concat(files.list(small), " "), "f", "the draft is gone")
    for kind, write in pairs(writers) do
      files.write(small .. "/f." .. kind, { "old" })
      t.raises(write, kind == "mp4" and "ffmpeg" or "No space left on device", small .. "/f." .. kind, 40)
      t.eq(files.read(small .. "/f." .. kind), "old", kind)
      files.remove(small .. "/f." .. kind)
      t.eq(table.concat(files.list(small), " "), "f", kind)
    end
    files.append(small .. "/log", "one line\n")
    t.raises(files.append, "small/log: cannot be written: No space left", small .. "/log", ("y"):rep(1e5))
    t.eq(files.read(small .. "/log"), "one line\n", "half a line is taken back")
    os.execute("mount -o remount,ro " .. small)
    t.raises(files.write, "small/f: cannot be written: Read%-only file system", small .. "/f", { "new" })
    t.raises(files.append, "small/log: cannot be written: Read%-only file system", small .. "/log", "z")
  end)
  os.execute("umount " .. small)
  if not ok then error(problem, 0) end
end)

t.test("Ctrl-C, which a terminal sends to all programs of the line, leaves a film to the program that writes it", function()
  local folder = dir .. "/ctrl-c"
  files.make_folder(folder)
  put(folder .. "/film.lua", [[
local ffi, engine = require "ffi", require "mneme.base.engine"
ffi.cdef "int setsid(void); int kill(int, int); void (*signal(int, void (*)(int)))(int);"
ffi.C.setsid()
local C, pixels = engine.C, ffi.new "uint8_t[4096]"
local movie = C.mn_movie_new(engine.ctx, os.getenv "FILM", 32, 32, 10)
ffi.C.signal(2, ffi.cast("void (*)(int)", 1))
for i = 1, 20 do
  if i == 10 then ffi.C.kill(0, 2) end
  engine.check(C.mn_movie_add(movie, pixels))
end
engine.check(C.mn_movie_end(movie))
C.mn_movie_free(movie)
]])
  for kind in pairs(writers) do
    if kind ~= "json" then
      local said, status = shell.run(folder, ("FILM=f.%s '%s' run film.lua"):format(kind, shell.program))
      t.ok(status == 0 and files.is_file(folder .. "/f." .. kind), kind .. ": " .. said)
    end
  end
end)

t.test("who writes a file removes the drafts of it that killed processes left, and no other file", function()
  local others = { "g.%s.0123456789abcdef.tmp.txt", "g.%s.0123456789abcde.tmp", "g.%s.0123456789abcdeg.tmp", "gg.%s.0123456789abcdef.tmp",
    "g.%sx.0123456789abcdef.tmp" }
  for kind, write in pairs(writers) do
    local folder = dir .. "/drafts/" .. kind
    files.make_folder(folder)
    local held = files.check(C.mn_movie_new(engine.ctx, folder .. "/g.gif", 8, 8, 20))
    local kept = { files.list(folder)[1] }
    for _, name in ipairs(others) do kept[#kept + 1] = name:format(kind) end
    for _, name in ipairs(kept) do put(folder .. "/" .. name, "other") end
    for _, hex in ipairs { "0123456789abcdef", "fedcba9876543210" } do put(("%s/g.%s.%s.tmp"):format(folder, kind, hex), "half") end
    files.make_folder(("%s/g.%s.aaaaaaaaaaaaaaaa.tmp"):format(folder, kind))
    shell.run(folder, "touch -d '3 seconds ago' *")
    put(("%s/g.%s.0000000000000000.tmp"):format(folder, kind), "begun just now")
    shell.run(folder, "touch -d 'next hour' *.0000000000000000.tmp")                        -- however slow this machine is
    for _, name in ipairs { ("g.%s.aaaaaaaaaaaaaaaa.tmp"):format(kind), ("g.%s.0000000000000000.tmp"):format(kind), "g." .. kind } do kept[#kept + 1] = name end
    write(folder .. "/g." .. kind, 2)
    table.sort(kept)
    t.eq(table.concat(files.list(folder), " "), table.concat(kept, " "), kind)
    C.mn_movie_free(held)
  end
end)

t.test("sha256: as coreutils compute it, at the ends of blocks", function()
  for _, n in ipairs { 0, 3, 55, 56, 63, 64, 119, 120, 1000 } do
    local text, digits = ("Mneme "):rep(n):sub(1, n), ffi.new "char[65]"
    C.mn_sha256(text, n, digits)
    t.eq(ffi.string(digits), shell.run(".", ("printf %%s '%s' | sha256sum"):format(text)):match "^%x+", n)
  end
end)

t.test("crc32c: the check value of the standard, and in parts", function()
  local text = "123456789"
  t.eq(bit.tohex(C.mn_crc32c(0, text, 9)), "e3069283")
  t.eq(bit.tohex(C.mn_crc32c(C.mn_crc32c(0, text, 4), text:sub(5), 5)), "e3069283")
  t.eq(bit.tohex(C.mn_crc32c(0, ("\0"):rep(32), 32)), "8a9136aa", "32 zeros (RFC 3720 B.4)")
end)

t.test("the sum of a program: its code in the order of names, whatever else lies there; of a library the linker's own", function()
  local made, sum = dir .. "/program", ffi.new "uint32_t[1]"
  local function of(path, is_file)
    sum[0] = 0
    return C.mn_code_sum(path, is_file or false, sum) == 1 and bit.tohex(sum[0]) or nil
  end
  files.make_folder(made .. "/b/c")
  local long = ("x = 1\n"):rep(2 ^ 17)                      -- read in several pieces
  local here = { ["z.lua"] = "z", ["a.py"] = "a", ["b/c/d.lua"] = long, ["B.lua"] = "B", ["b.md"] = "m", ["b/.e.lua"] = "e" }
  for name, text in pairs(here) do put(made .. "/" .. name, text) end
  t.eq(of(made), files.crc("B" .. "a" .. long .. "z"))
  t.eq(of(made .. "/b/c/d.lua", true), files.crc(long))
  t.ok(of(made .. "/none") == nil and of(made .. "/none", true) == nil)
  local linked, copy = files.read(engine.library), made .. "/copy.so"
  local at = linked:find("\20\0\0\0\3\0\0\0GNU\0", 1, true)
  put(copy, linked)
  local before = of(copy, true)
  put(copy, linked:sub(1, at + 11) .. string.char((linked:byte(at + 12) + 1) % 256) .. linked:sub(at + 13))
  t.ok(before == of(engine.library, true) and before ~= of(copy, true))
  put(copy, "#" .. linked)
  t.eq(of(copy, true), files.crc("#" .. linked), "what is no library counts whole")
end)

-- ---- JSON ----

t.test("JSON: what is written reads back the same, with exact numbers", function()
  local numbers = { 0.1, 1 / 3, 1e-300, 5e-324, 2 ^ 53, -2 ^ 53, 1e22, 1.5, -0.25, math.pi, 1e300, 123456789012 }
  local back = assert(json.decode(json.encode(numbers)))
  for i, n in ipairs(numbers) do t.eq(back[i], n) end
  t.eq(json.encode(0.1), "0.1")
  t.eq(json.encode(5e6), "5000000")
  t.eq(1 / json.decode(json.encode(-1 / math.huge)), -math.huge, "minus zero")
  t.eq(json.encode { 0 / 0, 1 / 0, -1 / 0 }, '["NaN", "Infinity", "-Infinity"]')
  local text = 'quote " back \\ tab \t line \n \1 é'
  t.eq(json.decode(json.encode(text)), text)
  t.eq(json.encode { b = 1, a = { true, json.null, {} }, c = json.array {} }, '{"a": [true, null, {}], "b": 1, "c": []}')
  t.ok(json.is_array(json.decode "[]") and not json.is_array(json.decode "{}"), "arrays and objects stay apart")
end)

t.test("JSON: errors have line and column, and odd input is refused", function()
  local value, problem = json.decode('{"a": 1,\n "b": }', "x.json")
  t.eq(value, nil)
  t.ok(problem:find("x.json:2:7: not valid JSON", 1, true), problem)
  for _, bad in ipairs { "", "{", "[1,]", '{"a":1,"a":2}', "[01]", '"\xff"', "nul", "[1] 2", "[NaN]", ("["):rep(1e5) } do
    t.eq(json.decode(bad), nil, bad:sub(1, 10))
  end
  t.raises(json.encode, "a function cannot be written", { f = print })
end)

-- ---- safetensors ----

local function sample(path, metadata)
  local a = ffi.new("float[6]", 1, 2, 3, 4, 5, 6)
  local b = ffi.new("uint8_t[3]", 7, 8, 255)
  local c = ffi.new("int32_t[2]", -1, 2 ^ 30)
  local d = ffi.new("double[1]", math.pi)
  safetensors.write(path, { { name = "b", dtype = "U8", shape = { 3 }, data = b },
    { name = "a.weight", dtype = "F32", shape = { 2, 3 }, data = a }, { name = "c", dtype = "i32", shape = { 2 }, data = c },
    { name = "d", dtype = "F64", shape = {}, data = d }, { name = "none", dtype = "F32", shape = { 0, 4 }, data = a },
  }, metadata or { k = "v" })
  return path
end

t.test("safetensors: a file reads back, is aligned, and equal contents give equal bytes", function()
  local path = sample(dir .. "/s")
  local file = safetensors.read(path)
  t.eq(file.metadata.k, "v")
  t.eq(table.concat(file.names, " "), "d a.weight c none b")
  t.eq(file.tensors["a.weight"].data[5], 6)
  t.eq(table.concat(file.tensors["a.weight"].shape, ","), "2,3")
  t.eq(file.tensors.b.data[2], 255)
  t.eq(file.tensors.c.data[0], -1)
  t.eq(file.tensors.d.data[0], math.pi)
  t.eq(file.tensors.none.count, 0)
  local text = files.read(path)
  t.eq((text:byte(1) + 256 * text:byte(2)) % 8, 0, "the header is padded")
  t.eq(files.read(sample(dir .. "/s2")), text)
end)

t.test("safetensors: tensors of the engine go out and come in", function()
  local mn = require "mneme"
  local path = dir .. "/t"
  safetensors.write(path, { { "w", mn.tensor { { 1, 2 }, { 3, 4 } } }, { "u", mn.tensor { shape = { 2 }, dtype = "u8" } } })
  local file = safetensors.load(path)
  t.eq(table.concat(file.tensors.w:shape(), ","), "2,2")
  t.eq(file.tensors.w:data()[3], 4)
  t.eq(file.tensors.u:dtype(), "u8")
end)

t.test("safetensors: what cannot be written is refused", function()
  local data = ffi.new "float[1]"
  local function write(list, metadata) safetensors.write(dir .. "/w", list, metadata) end
  t.raises(write, "two tensors are named 'a'", { { name = "a", dtype = "F32", shape = { 1 }, data = data },
    { name = "a", dtype = "F32", shape = { 1 }, data = data } })
  t.raises(write, "a: dtype F16, expected F32", { { name = "a", dtype = "F16", shape = { 1 }, data = data } })
  t.raises(write, "a: axis 0 is %-1", { { name = "a", dtype = "F32", shape = { -1 }, data = data } })
  t.raises(write, "named __metadata__", { { name = "__metadata__", dtype = "F32", shape = { 1 }, data = data } })
  t.raises(write, "__metadata__.k is not a string", {}, { k = 3 })
  t.ok(not files.is_file(dir .. "/w"))
end)

local function with_header(header, data, length)
  local n, bytes = length or #header, {}
  for i = 1, 8 do bytes[i], n = string.char(n % 256), math.floor(n / 256) end
  local path = dir .. "/damaged"
  put(path, table.concat(bytes) .. header .. (data or ""))
  return path
end

t.test("safetensors: every kind of damage is named", function()
  local function refuses(pattern, ...) t.raises(safetensors.read, pattern, with_header(...)) end
  local four = ("\0"):rep(4)
  put(dir .. "/damaged", "abc")
  t.raises(safetensors.read, "damaged: not a safetensors file: it has 3 bytes", dir .. "/damaged")
  refuses("a header of 100 bytes in a file of 10", "{}", "", 100)
  refuses("a header of 9223372036854775808 bytes", "{}", "", 2 ^ 63)
  refuses("header:1:2: not valid JSON", "[}")
  refuses("header:1:%d+: not valid JSON", '{"\xff\xfe": 1}')
  refuses("header is not a JSON object", "[]")
  refuses("duplicate object key", '{"a":{},"a":{}}')
  refuses("__metadata__ is not an object", '{"__metadata__":[]}')
  refuses("__metadata__.a is not a string", '{"__metadata__":{"a":1}}')
  local function entry(e) return '{"w":' .. e .. "}" end
  local function tensor(dtype, shape, offsets)
    return entry(('{"dtype":%s,"shape":%s,"data_offsets":%s}'):format(dtype, shape, offsets))
  end
  refuses("tensor 'w': its entry is not an object", entry "3")
  refuses("tensor 'w': unknown key 'x'", entry '{"x":1}')
  refuses("tensor 'w': dtype null", entry "{}")
  refuses("tensor 'w': has 4 bytes, but F16 of shape %[1%] takes 2", tensor('"F16"', "[1]", "[0,4]"), four)
  refuses("tensor 'w': no shape", tensor('"F32"', '"x"', "[0,4]"), four)
  refuses("tensor 'w': axis 0 of its shape is %-1", tensor('"F32"', "[-1]", "[0,4]"), four)
  refuses("tensor 'w': axis 1 of its shape is 0.5", tensor('"F32"', "[2,0.5]", "[0,4]"), four)
  refuses("tensor 'w': has 4 bytes, but F32 of shape %[2%] takes 8", tensor('"F32"', "[2]", "[0,4]"), four)
  refuses("tensor 'w': has 4 bytes", tensor('"F32"', "[4294967296,4294967296,4294967296]", "[0,4]"), four)
  refuses("not a pair of whole numbers", tensor('"F32"', "[1]", "[0]"), four)
  refuses("not a pair of whole numbers", tensor('"F32"', "[1]", "[-4,0]"), four)
  refuses("lie outside of the file's 4 bytes", tensor('"F32"', "[1]", "[1,5]"), four)
  refuses("lie outside", tensor('"F32"', "[1]", "[4,0]"), four)
  refuses("lie outside", tensor('"F32"', "[1]", "[0,9007199254740991]"), four)
  refuses("begins at byte 4 of the data, expected 0 %(there is a gap%)", tensor('"F32"', "[1]", "[4,8]"), four .. four)
  refuses("8 bytes of data, but its tensors take 4", tensor('"F32"', "[1]", "[0,4]"), four .. four)
  refuses("it overlaps another",
    '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', four .. four)
end)

t.test("safetensors: a thousand mutated files are refused or read, and no flipped bit goes unseen", function()
  local good = files.read(sample(dir .. "/good"))
  local state, refused, path = 12345, 0, dir .. "/mutant"
  local function random(n)
    state = (state * 16807) % 2147483647
    return state % n
  end
  for round = 1, 1000 do
    local text = good
    if round % 3 == 0 then text = text:sub(1, random(#text))
    else
      for _ = 1, 1 + random(3) do
        local at, value = 1 + random(#text), random(256)
        text = text:sub(1, at - 1) .. string.char(value) .. text:sub(at + 1)
      end
    end
    put(path, text)
    local ok, file = pcall(safetensors.read, path)
    if not ok then
      refused = refused + 1
      t.ok(tostring(file):find("mutant", 1, true), tostring(file))
    else
      t.eq(table.concat(file.names, " "), "d a.weight c none b", "what is read is what was written")
      t.eq(file.tensors["a.weight"].data[5], 6)
    end
  end
  t.ok(refused > 950, refused .. " refused")
end)

t.test("safetensors: another program's file, without padding or checksum, is read and aligned", function()
  local header = '{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}} '
  local one = ffi.string(ffi.new("float[1]", 1.5), 4)
  local file = safetensors.read(with_header(header, "\7" .. one))
  t.eq(file.tensors.w.data[0], 1.5)
  t.eq(tonumber(ffi.cast("intptr_t", file.tensors.w.data)) % 4, 0)
end)

t.test("a writer killed with SIGKILL at any moment leaves a whole file", function()
  local path = dir .. "/killed"
  local child = ([[package.path = %q
    local st, ffi = require "mneme.tensor.safetensors", require "ffi"
    local data = ffi.new("int32_t[?]", 50000)
    for i = 1, 1e9 do
      for k = 0, 49999 do data[k] = i end
      st.write(%q, { { name = "w", dtype = "I32", shape = { 50000 }, data = data } })
    end]]):format(package.path, path)
  put(dir .. "/child.lua", child)
  for round = 1, 12 do
    shell.run(".", ("rm -f %s; %s %s/child.lua & pid=$!; while [ ! -e %s ] && kill -0 $pid; do sleep 0.01; done; "
      .. "sleep %.3f; kill -KILL $pid; wait $pid"):format(path, lua, dir, path, 0.007 * round))
    local w = safetensors.read(path).tensors.w
    t.eq(w.data[0], w.data[49999], "one writer's numbers")
  end
end)

-- ---- event files ----

local function u32(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return a + b * 2 ^ 8 + c * 2 ^ 16 + d * 2 ^ 24
end

-- Records of an event file, their checks verified.
local function records(path)
  local text, at, list = files.read(path), 1, {}
  local function masked(part)
    local crc = C.mn_crc32c(0, part, #part)
    local turned = bit.ror(bit.tobit(crc), 15)
    return (turned % 2 ^ 32 + 0xa282ead8) % 2 ^ 32
  end
  while at <= #text do
    local n = u32(text, at)
    t.eq(u32(text, at + 8), masked(text:sub(at, at + 7)), "check of the length")
    local data = text:sub(at + 12, at + 11 + n)
    t.eq(u32(text, at + 12 + n), masked(data), "check of the data")
    list[#list + 1] = data
    at = at + 16 + n
  end
  return list
end

t.test("TensorBoard events: framed, checked, cut back to whole records", function()
  local path = dir .. "/events"
  engine.check(C.mn_events_begin(engine.ctx, path, "hyperparameters", "|a|b|"))
  local tags, numbers = ffi.new("const char *[2]", "charts/a", "losses/b"), ffi.new("float[2]", 1.5, -2)
  for step = 1, 5 do engine.check(C.mn_events_add(engine.ctx, path, step * 1e6, 2, tags, numbers)) end
  local list = records(path)
  t.eq(#list, 7)
  t.ok(list[1]:find("brain.Event:2", 1, true))
  t.ok(list[2]:find("hyperparameters", 1, true) and list[2]:find("|a|b|", 1, true))
  t.ok(list[3]:find("charts/a\21\0\0\192\63", 1, true), "a float under its tag")
  t.eq(list[3]:sub(10, 13), "\16\192\132\61", "step 1e6 as a varint")
  put(path, files.read(path):sub(1, -4))                        -- the last record was not finished
  engine.check(C.mn_events_cut(engine.ctx, path, 7))
  t.eq(#records(path), 6)
  engine.check(C.mn_events_cut(engine.ctx, path, 3))
  t.eq(#records(path), 3)
  engine.check(C.mn_events_cut(engine.ctx, path, 0))
  t.eq(#records(path), 0)
end)

os.execute("rm -rf " .. dir)
