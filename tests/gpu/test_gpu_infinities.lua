-- test_gpu_infinities.lua -- where arithmetic leaves the finite numbers, or barely stays among them, the GPU's results are the CPU's.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local device = require "tests.gpu.device"

local dir = shell.folder()
files.write(dir .. "/ops.lua", { ("package.path = '%slua/?.lua;%slua/?/init.lua;' .. package.path\n"):format(shell.root, shell.root), [[
require("mneme.base.luajit_pairs").install()
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
for _, v in ipairs(w:to_table()) do print("rmsprop: " .. (v == v and math.abs(v) < inf and "finite" or "not finite")) end
]] })

local function said(where) return shell.run(dir, ("MNEME_BUILD='%s' luajit ops.lua %s 2>&1"):format(shell.build, where)) end

t.test("gpu: infinities are the CPU's", function()
  local here = said "cpu"
  t.ok(here:find "logsumexp: %-inf inf 0.69315 nan", here)
  t.eq(said(device.name), here)
end)

files.remove_folder(dir)
