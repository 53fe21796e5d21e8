-- targets.lua -- what the fuzzer (fuzz.c) hands bytes to: every reader of files and words, one function each.  A target
-- is given where the bytes lie and how many there are; it gives nothing where the reader took them or refused them in
-- words, or else what went wrong.
local ffi = require "ffi"
local mn = require "mneme"
local config = require "mneme.runs.config"
local corpus = require "mneme.envs.corpus"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local forge = require "tests.fuzz.forge"
local json = require "mneme.base.json"
local tensor = require "mneme.tensor.tensor"
local terminal = require "mneme.base.terminal"

local C = engine.C
local targets = {}
engine.open("cpu", 1)

-- Every file that is read is the bytes at hand; files are not changed.
local block = { absent = "earlier%-log" }                -- absent: a pattern of the files that are not there
files.block = function() return block.data, block.bytes, block end
files.read = function() return ffi.string(block.data, block.bytes) end
files.pieces = function(_, from, upto, at_once)
  upto = math.min(upto or block.bytes, block.bytes)
  return function()
    local n = math.min(at_once or 2 ^ 16, upto - from)
    if n <= 0 then return nil end
    from = from + n
    return ffi.string(block.data + from - n, n)
  end
end
local function there(path) return not path:find(block.absent) and not path:find "^%./%l+/[%w_]+%.lua$" end          -- nor a core of ./cores
files.is_folder, files.is_file = there, there

-- Most inputs are refused.  Where in Lua that was takes longer to find out than the reading, and nobody looks.
local traceback, getinfo = debug.traceback, debug.getinfo
debug.traceback = function() return "" end
debug.getinfo = function(level, what) if what ~= "Sl" then return getinfo(level, what) end end

local function fault_of(e) return errors.is(e) and e or traceback(tostring(e), 2) end

-- A target of that name: f(data, bytes).
local function target(name, f)
  targets[name] = function(at, bytes)
    block.data, block.bytes = ffi.cast("uint8_t *", at), bytes
    local ok, e = xpcall(f, fault_of, block.data, bytes)
    mn.clear_tape()
    if not ok and not errors.is(e) then return name .. ": " .. e end
  end
end

terminal.note = function() end     -- of what is left out
target("safetensors", function() mn.load "fuzz.safetensors" end)

target("json", function(data, bytes)
  local value, problem = json.decode(ffi.string(data, bytes))
  if problem then return end
  local again, trouble = json.decode(json.encode(value))
  if trouble or json.encode(again) ~= json.encode(value) then error("what was written does not read the same: " .. tostring(trouble)) end
end)

-- ---- saved copies of environments ----

local random = forge.random(1)

local worlds, saved = {}, {}
for _, e in ipairs(envs.list()) do worlds[#worlds + 1] = { e.name } end
for _, settings in ipairs { { observation = "pixels" }, { observation = "vector" }, { mode = "continuous" }, { levels = 3 } } do
  settings[1] = "memory_maze"
  worlds[#worlds + 1] = settings
end

-- The first byte chooses the environment; then come places of two bytes, and what is written there.
target("restore", function(data, bytes)
  if bytes < 4 then return end
  local k = data[0] % #worlds + 1
  if type(worlds[k][1]) == "string" then
    worlds[k].num_envs = 1
    worlds[k] = forge.rig(mn.env(worlds[k]))
    worlds[k].env:reset_raw(worlds[k].obs, 5)
    for _ = 1, 9 do forge.step(worlds[k], random) end
    saved[k] = worlds[k].env:save(0)
  end
  forge.restore(worlds[k], forge.signed(saved[k], function(self, _, n)
    for i = 1, bytes - 3, 3 do self[(data[i] + 256 * data[i + 1]) % n] = data[i + 2] end
  end))
  forge.live(worlds[k], random, worlds[k].count > 1000 and 10 or 50)   -- pictures take their time
end)

-- ---- settings ----

local declared = { corridor = 5, lr = 1e-3, name = "x", on = false, core = { "gru", d_model = 8 }, hidden = { 64, 64 },
  env = { "tmaze", corridor = 5 }, group = { a = 1, deep = { b = "c" } } }

local function configured(arguments)
  config.arguments, config.script = arguments, nil
  config.new(declared, { lr = { "a rate", range = { 0, 1 } }, name = { "a word", choices = { "x", "y" } } })
end

target("config", function() configured { "resume=fuzz" } end)

target("overrides", function(data, bytes)
  local words = {}
  for word in ffi.string(data, bytes):gmatch "[^\n]+" do
    if not word:find "^%-*resume" and not word:find "help" and word ~= "-h" then words[#words + 1] = word end
  end
  configured(words)
end)

-- ---- drawings and texts ----

target("map", function(data, bytes)
  local rig = forge.rig(mn.env("gridworld", { map = ffi.string(data, bytes), num_envs = 1 }))
  rig.env:reset_raw(rig.obs, 1)
  forge.live(rig, random, 20)
  rig.env:close()
end)

target("text", function(_, bytes)
  local text = corpus.read "fuzz.txt"
  if #text ~= bytes then error "a text comes back as another" end
  corpus.words(text, function(word) if word == "" then error "an empty word" end end)
end)

-- ---- ops: their signatures, and those against whatever shapes come ----

ffi.cdef "const char *mn_read_signature(const char *s, void *signature);"
local read_into = ffi.new "uint8_t[8192]"                 -- mn_signature has some 3,000
target("signatures", function(data)
  ffi.fill(read_into, 8192)
  C.mn_read_signature(ffi.cast("const char *", data), read_into)
end)

local dtypes = { "f32", "i32", "u8" }
local function dtype_of(domain)
  return (domain == "bit" or domain == "u8") and "u8" or (domain == "i32" or domain:find "^<") and "i32" or "f32"
end
local ops = {}
for name in pairs(tensor.signatures) do ops[#ops + 1] = name end
table.sort(ops)

-- Bytes in turn: which op; for each input its type, axes, and a number that its numbers are made from; then options.
target("ops", function(data, bytes)
  local at = -1
  local function next_byte()
    at = at + 1
    return at < bytes and data[at] or 0
  end
  local name = ops[next_byte() % #ops + 1]
  local signature, given, options = tensor.signatures[name], {}, {}
  local axes = { next_byte() % 5 + 1, next_byte() % 5 + 1, next_byte() % 5 + 1 }   -- so that some agree
  for i, input in ipairs(signature.inputs) do
    local kind, shape = next_byte(), {}
    for axis = 1, kind % 8 do
      local size = next_byte()
      shape[axis] = size < 240 and axes[size % 3 + 1] or size - 239
    end
    if kind < 250 or not input.optional then
      local dtype = (kind < 32 or input.domain == "any" and kind < 96) and dtypes[kind % 3 + 1] or dtype_of(input.domain)
      local size = 1
      for _, n in ipairs(shape) do size = size * n end
      if size > 65536 then return end
      given[i] = tensor.new { shape = shape, dtype = dtype }
      local fill, p = next_byte(), given[i]:data()
      for k = 0, size - 1 do p[k] = (fill + k * (fill % 5)) % 7 - (dtype == "f32" and 3.5 or 0) end
    end
  end
  for _, option in ipairs(signature.options) do
    local value = next_byte()
    if value < 128 then options[option.name] = option.words and option.words[value % #option.words + 1] or value % 16 - 4 + (value > 100 and 0.5 or 0) end
  end
  given[#signature.inputs + 1] = options
  local y = tensor.ops[name](unpack(given, 1, #signature.inputs + 1))
  if tensor.is(y) and y:dtype() == "f32" then y:mean():backward() end
end)

-- ---- pictures ----

local width, height = ffi.new "int[1]", ffi.new "int[1]"
local rgba, most = ffi.new "uint8_t[4000000]", 1e6

target("image", function(data, bytes)
  local path = forge.file(data, bytes)
  engine.check(C.mn_image_read(engine.ctx, path, nil, width, height))
  if width[0] * height[0] <= most then engine.check(C.mn_image_read(engine.ctx, path, rgba, width, height)) end
end)

require "tests.fuzz.run_targets"(target, block)

return targets
