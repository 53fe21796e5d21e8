-- mneme.lua -- serves a core of Mneme over standard input and output, for mneme.py: `mneme run mneme.lua core=NAME`.
-- A request is a line of words and the raw numbers it names; so is a reply: "ok ..." or "error TEXT".
--   initial B                    -> ok ID
--   step|sequence T B ID, x, done -> ok ID D, y                       a step is what agents act by
--   gradient T B ID, x, done, w   -> ok N, then N times a line NAME SIZE and the numbers
--   free ID ...                  (no reply)
local ffi = require "ffi"
local mn = require "mneme"

local cfg = mn.config { core = { "gru", d_in = 5 }, small = 0, threads = 1 }   -- small=1: sizes with which a check takes seconds
local settings = cfg.core
if cfg.small == 1 then
  local has = mn.core(cfg.core).config
  for key, size in pairs { d_model = 16, n_layers = 2, n_heads = 2, d_head = 8, d_ffn = 16 } do
    if has[key] ~= nil then settings[key] = size end
  end
end
mn.manual_seed(1)
local core = mn.core(settings)
core.module:eval()
local states, count = {}, 0

local function numbers(shape, options)
  local t = mn.tensor { shape = shape, dtype = options.dtype, grad = options.grad }
  local bytes = t:size() * (options.dtype == "u8" and 1 or 4)
  ffi.copy(t:data(), assert(io.read(bytes), "the input ended"), bytes)
  return t
end
local function send(p, n) io.write(ffi.string(p, 4 * n)) end
local function keep(state)
  count = count + 1
  states[count] = state
  return count
end

local answer = {}
function answer.initial(B) io.write(("ok %d\n"):format(keep(core:initial(B)))) end

local function run(act)
  return function(T, B, id)
    local x, done = numbers({ T, B, core.config.d_in }, {}), numbers({ T, B }, { dtype = "u8" })
    local y, after
    mn.no_grad(function()
      local a, b
      if act then a, b = core:act(x, done, states[id]) else a, b = core(x, done, states[id]) end
      y, after = mn.keep(a), mn.keep(b)
    end)
    io.write(("ok %d %d\n"):format(keep(after), core.d_out))
    send(y:data(), y:size())
  end
end
answer.step, answer.sequence = run(true), run(false)

function answer.gradient(T, B, id)
  local x, done = numbers({ T, B, core.config.d_in }, { grad = true }), numbers({ T, B }, { dtype = "u8" })
  local w = numbers({ T, B, core.d_out }, {})
  for _, p in ipairs(core:parameters()) do p:zero_grad() end
  ;(core(x, done, states[id]) * w):sum():backward()
  mn.clear_tape()
  local list = { { "x", x } }
  for name, p in pairs(core:named_parameters()) do list[#list + 1] = { name, p } end
  io.write(("ok %d\n"):format(#list))
  for _, named in ipairs(list) do
    io.write(("%s %d\n"):format(named[1], named[2]:size()))
    send(named[2]:grad_data(), named[2]:size())
  end
end

function answer.free(...) for _, id in ipairs { ... } do states[id] = nil end end

io.write(("ok %d %s\n"):format(core.config.d_in, core.name))
io.flush()
for line in io.lines() do
  local words = {}
  for word in line:gmatch "%S+" do words[#words + 1] = tonumber(word) or word end
  local ok, problem = pcall(answer[words[1]], unpack(words, 2))
  if not ok then io.write(("error %s\n"):format(tostring(problem):gsub("\n", " "))) end
  io.flush()
end
