-- test_gpu_loop.lua -- a loop by hand on the GPU: dropout, samples, losses, a custom gradient, a retained gradient and
-- optimisers, eagerly and in plans, come to what they come to on the CPU.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local device = require "tests.gpu.device"
local mn = require "mneme"

local dir = shell.folder()
files.write(dir .. "/loop.lua", { ([[
package.path = "%slua/?.lua;%slua/?/init.lua;" .. package.path
local device, path, planned = ...
require("mneme.base.engine").open(device, 1)
local mn = require "mneme"
local nn = mn.nn
mn.manual_seed(11)
local net = nn.sequential(nn.linear(6, 8), nn.group_norm(2, 8), nn.tanh(), nn.dropout(0.25), nn.linear(8, 3))
local clipped = mn.custom_gradient { forward = function(x) return x * 1 end, backward = function(dy) return dy:clamp(-0.1, 0.1) end }
local x, target = mn.tensor { shape = { 5, 6 } }, mn.tensor { shape = { 5, 3 } }
for i = 0, 29 do x:data()[i] = math.sin(i) end
for i = 0, 14 do target:data()[i] = math.cos(i) end
local losses, drawn, hidden = {}, {}, nil
for _, name in ipairs { "sgd", "rmsprop" } do
  local opt = mn[name](net:parameters(), { lr = 0.05, momentum = 0.5, max_norm = 1 })
  local function update()
    local y = clipped(net(x))
    hidden = y:retain_grad()
    local d = mn.categorical(y)
    local action = d:sample()
    local noise = mn.normal(target, 0.1):sample()
    local loss = mn.huber_loss(y, noise) - d:log_prob(action):mean() * 0.1
    opt:zero_grad()
    loss:backward()
    opt:apply()
    return loss, action
  end
  local run = planned == "plan" and mn.plan(update) or update
  for _ = 1, 4 do
    opt:tick()
    local loss, action = run()
    losses[#losses + 1] = loss:item()
    for _, a in ipairs(action:to_table()) do drawn[#drawn + 1] = a end
  end
end
mn.save(path, { net = net:state_dict(), losses = mn.tensor(losses), drawn = mn.tensor(drawn), hidden = hidden:grad() })
]]):format(shell.root, shell.root) })

local function looped(where, planned)
  local said, status = shell.run(dir, ("MNEME_BUILD='%s' luajit loop.lua %s out.safetensors %s 2>&1"):format(shell.build, where, planned))
  t.eq(status, 0, said)
  return mn.load(dir .. "/out.safetensors")
end

local function compare(name, got, want)
  if type(want) == "table" then
    for key, value in pairs(want) do compare(name .. "." .. key, got[key], value) end
    return
  end
  local scale = 1e-2
  for k = 0, want:size() - 1 do scale = math.max(scale, math.abs(want:data()[k])) end
  for k = 0, want:size() - 1 do t.near(got:data()[k], want:data()[k], 5e-5 * scale, ("%s[%d]"):format(name, k)) end
end

t.test("gpu: a loop by hand is the CPU's, eagerly and in a plan", function()
  local want = looped("cpu", "eager")
  t.ok(want.drawn:size() == 40 and want.drawn:max():item() > -(-want.drawn):max():item(), "samples differ")
  for _, how in ipairs { { "cpu", "plan" }, { device.name, "eager" }, { device.name, "plan" } } do
    compare(table.concat(how, ", "), looped(how[1], how[2]), want)
  end
end)

os.execute("rm -r '" .. dir .. "'")
