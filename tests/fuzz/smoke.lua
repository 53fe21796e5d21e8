-- smoke.lua -- the fuzzer's targets without the fuzzer: each gets that many inputs, its seeds with bytes changed by chance.
--   luajit tests/fuzz/smoke.lua SEEDS INPUTS [TARGET]      last line: how many inputs were taken well
-- Before that, a line for each Lua file that has read an input: "read by FILE in TARGET".  Where stderr is a file, it begins with the input at
-- hand: its name and size, and its bytes on the lines that follow.
package.path = "./?.lua;./lua/?.lua;./lua/?/init.lua;" .. package.path
local ffi = require "ffi"
local folder, most, only = arg[1], tonumber(arg[2]), arg[3]
local forge = require "tests.fuzz.forge"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"

local seeds = {}
for _, name in ipairs(files.list(folder)) do
  seeds[name] = {}
  for _, file in ipairs(files.list(folder .. "/" .. name)) do
    table.insert(seeds[name], (files.read(("%s/%s/%s"):format(folder, name, file))))
  end
end
local targets = require "tests.fuzz.targets"       -- from here on every file is the input

local odd = { "null", "true", "-1", "0.5", "1e300", "4294967296", '"x"', "[]", "{}", "[1]", '{"a": 1}' }

-- Some bytes written over, a piece cut out or put in twice, a value of JSON replaced.
local function changed(text, random)
  for _ = 1, 1 + random(4) do
    local at, kind = 1 + random(#text), random(12)
    local piece = text:sub(at, at + random(16))
    if kind == 0 then text = text:sub(1, at - 1) .. text:sub(at + #piece)
    elseif kind == 1 then text = text:sub(1, at) .. piece .. text:sub(at + 1)
    elseif kind == 2 then text = text:sub(1, at - 1) .. (random(2) == 0 and "999999999" or "-1") .. text:sub(at + 1)
    elseif kind > 8 then
      local from, upto = text:match('[:,%[] *()"?[^,:%]}"]+"?()', at)
      if from then text = text:sub(1, from - 1) .. odd[1 + random(#odd)] .. text:sub(upto) end
    else text = text:sub(1, at - 1) .. string.char(random(256)) .. text:sub(at + 1) end
  end
  return text
end

local readers, current = {}, nil
local getinfo = debug.getinfo
for _, name in ipairs { "read", "block", "pieces", "sum" } do
  local read = files[name]
  files[name] = function(path, ...)
    local at = getinfo(2, "S").short_src:match "lua/mneme/.*"
    if at then readers[("read by %s in %s"):format(at, current)] = true end
    return read(path, ...)
  end
end

local n = 0
for _, name in ipairs(only and { only } or tables.keys(targets)) do
  local random = forge.random(#name + 1000 * (tonumber(arg[4]) or 0))
  current = name
  for k = 1, most do
    local of = seeds[name]
    local text = of[k % #of + 1]
    if k > #of then text = changed(text, random) end
    local bytes = ffi.new("uint8_t[?]", #text + 1)
    ffi.copy(bytes, text)
    io.stderr:seek "set"
    io.stderr:write(name, " ", k, ": ", #text, " bytes\n", text)         -- read only after a crash
    local fault = targets[name](bytes, #text)
    if fault then
      print(fault)
      os.exit(1, false)
    end
    n = n + 1
  end
end
for _, line in ipairs(tables.keys(readers)) do print(line) end
print(n .. " inputs")
os.exit(0, false)
