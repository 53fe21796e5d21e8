-- rollout_on_device.lua -- a program of tests/gpu/test_gpu_envs.lua: a learner's rollouts on the emulated device, whose
-- environments then are stepped by the CPU with the same actions.  Prints what it found, a line each.
package.path = "lua/?.lua;lua/?/init.lua;?.lua;" .. package.path
local ffi = require "ffi"
local engine = require "mneme.base.engine"
engine.open("emu", 1)
local mn = require "mneme"
local learner_rig = require "tests.support.learner_rig"

local C = engine.C
ffi.cdef "int mn_emu_waits(void);"
local plugin = ffi.load(engine.build .. "/libmneme_emu.so")
local T, B, LIMIT = 16, 3, 11
local l = learner_rig.learner(mn.a2c, "gru", { num_steps = T, num_envs = B, corridor = 4, time_limit = LIMIT, previous = "action,reward" })

-- The same world on the CPU.
local ctx = C.mn_ctx_new("cpu", 1)
local id = C.mn_env_find "tmaze"
local vec = C.mn_vec_new(ctx, id, B, 1, ffi.new("double[2]", 4, 6), nil, LIMIT)
local obs, reward = ffi.new("float[?]", B * 16), ffi.new("float[?]", B)
local terminated, truncated = ffi.new("uint8_t[?]", B), ffi.new("uint8_t[?]", B)
assert(C.mn_vec_reset(vec, 1, obs) == 0)

local wrong, cuts, ends, most = 0, 0, 0, 0
for _ = 1, 4 do
  local before = plugin.mn_emu_waits()
  l:rollout()
  most = math.max(most, plugin.mn_emu_waits() - before)
  local x, played, rewards, done = l.x:data(), l.played:data(), l.rewards:data(), l.done:data()
  for t = 0, T - 1 do
    if ffi.string(x + t * B * 16, B * 64) ~= ffi.string(obs, B * 64) then wrong = wrong + 1 end
    assert(C.mn_vec_step(vec, played + t * B, obs, reward, terminated, truncated) == 0)
    for b = 0, B - 1 do
      local over = terminated[b] + truncated[b]
      cuts, ends = cuts + truncated[b], ends + over
      if done[(t + 1) * B + b] ~= over then wrong = wrong + 1 end
      if (rewards[t * B + b] ~= reward[b]) ~= (truncated[b] ~= 0) then wrong = wrong + 1 end
    end
  end
  if ffi.string(x + T * B * 16, B * 64) ~= ffi.string(obs, B * 64) then wrong = wrong + 1 end
end
print(("wrong %d, counted %d of %d, cut %d, waits %d"):format(wrong, l.finished.total, ends, cuts, most))
