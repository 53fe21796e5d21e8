-- test_gpu_infinities.lua -- where arithmetic leaves the finite numbers, or barely stays among them, and where floats no longer count,
-- the GPU's results are the CPU's.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local device = require "tests.gpu.device"

local dir = shell.folder()
files.write(dir .. "/ops.lua", { ("package.path = '%slua/?.lua;%slua/?/init.lua;' .. package.path\n"):format(shell.root, shell.root), [[
_G.pairs = require("mneme.base.luajit").pairs
require("mneme.base.engine").open(arg[1], 1)
local mn = require "mneme"
local inf = math.huge
local function say(name, x)
  local list = {}
  for i, v in ipairs(x:reshape(-1):to_table()) do list[i] = v ~= v and "nan" or ("%.5g"):format(v) end
  print(name .. ": " .. table.concat(list, " "))
end

local x = mn.tensor { data = { { -inf, -inf, -inf }, { inf, 2, -inf }, { 0, -inf, 0 }, { inf, 0 / 0, 1 } }, grad = true }
local y = x:logsumexp()
y:sum():backward()
say("logsumexp", y)
say("its gradient", x:grad())

local w = mn.tensor { data = { 1, 1 }, grad = true }
local opt = mn.rmsprop({ w }, { lr = 0.1, alpha = 0.5, eps = 1e-8, centered = true })
for _ = 1, 300 do
  opt:zero_grad()
  ;(w * 0.3333333):sum():backward()
  opt:step()
end
for _, T in ipairs { 1, 8 } do                      -- acting has a kernel of its own
  local function part(n, by)
    local p = mn.sequence { shape = { T, 1, 1, n } }
    for i = 0, p:size() - 1 do p:data()[i] = 0.5 + by * i end
    return p
  end
  local state = { tick = mn.tensor { 2 ^ 24 - 12 } }
  for i = 1, 16 do
    local y, vs, ks, s, tick = mn.ops.agalite { form = "code", r = 4, q = part(3, 0.01), k = part(3, 0.02), v = part(4, 0.03), beta = part(4, 0.001),
      gamma = part(3, 0.002), tick = state.tick, vs = state.vs, ks = state.ks, s = state.s }
    state = { tick = tick, vs = vs, ks = ks, s = s }
    if i % 4 == 0 then
      say("agalite", mn.no_grad(function() return (y * 100):round() end))
      say("its clock", tick)
    end
  end
end
for _, v in ipairs(w:to_table()) do print("rmsprop: " .. (v == v and math.abs(v) < inf and "finite" or "not finite")) end
]] })

local function said(where) return shell.run(dir, ("MNEME_BUILD='%s' luajit ops.lua %s 2>&1"):format(shell.build, where)) end

t.test("gpu: infinities are the CPU's, and clocks past 2^24", function()
  local here = said "cpu"
  t.ok(here:find "logsumexp: %-inf inf 0.69315 nan", here)
  t.ok(here:find "its clock: 4\n", here)
  t.eq(said(device.name), here)
end)

files.remove_folder(dir)
