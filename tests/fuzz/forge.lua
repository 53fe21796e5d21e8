-- forge.lua -- saved copies of environments with other bytes and the right checksum, and a life after them.  For
-- tests/engine/test_forged_states.lua, by chance, and for the fuzzer (targets.lua), by what it has learned.
local bit = require "bit"
local ffi = require "ffi"
local mn = require "mneme"

-- engine/sim/vec_state.c: the check closes the stamp, and stands for all else.
local STAMP = ffi.typeof [[struct { char kind[8], name[32]; int32_t version, stride, n_params, last, length, changed;
  uint32_t stream[6]; double sum, param[24]; uint64_t text, check; }]]
local BYTES, CHECK = ffi.sizeof(STAMP), ffi.offsetof(STAMP, "check")

local forge = { first = BYTES }

local function digest(h, data, n)
  for i = 0, n - 1 do h = bit.bxor(h, data[i]) * 1099511628211ULL end
  return h
end

ffi.cdef "int memfd_create(const char *name, unsigned flags); int ftruncate(int fd, long bytes); long pwrite(int fd, const void *p, size_t n, long at);"
local memory

---A file with these bytes, for readers in C; the next call's takes its place.
---@return string path
function forge.file(data, bytes)
  memory = memory or ffi.C.memfd_create("fuzz", 0)
  ffi.C.ftruncate(memory, 0)
  ffi.C.pwrite(memory, data, bytes, 0)
  return "/proc/self/fd/" .. memory
end

---Whole numbers of 0 .. n-1, by turns as a seed has them.
function forge.random(seed)
  local state = seed
  return function(n)
    state = (state * 48271) % 2147483647
    return n > 0 and state % n or 0
  end
end

---The bytes after `change(self, stamp, n)` has had them, with the check made right.
---@param bytes string from env:save
---@param change fun(self: ffi.cdata*, stamp: ffi.cdata*, n: integer) n: how many bytes self has
---@return string
function forge.signed(bytes, change)
  local copy = ffi.new("uint8_t[?]", #bytes)
  ffi.copy(copy, bytes, #bytes)
  local stamp = ffi.cast(ffi.typeof("$ *", STAMP), copy)
  change(copy + BYTES, stamp, #bytes - BYTES)
  stamp.check = digest(digest(0xcbf29ce484222325ULL, copy, CHECK), copy + BYTES, #bytes - BYTES)
  return ffi.string(copy, #bytes)
end

local odd = { 0, 1, 2, 127, 128, 254, 255 }

---One to four changes by chance, of single bytes or of numbers of four, and now and then of the stamp.
function forge.changed(bytes, random)
  return forge.signed(bytes, function(self, stamp, n)
    for _ = 1, 1 + random(4) do
      local at = random(n)
      if random(12) == 0 then stamp.length = random(2) * 2147483647 elseif random(12) == 0 then stamp.sum = 0 / 0 end
      if random(2) == 0 then self[at] = odd[1 + random(#odd)]
      elseif random(2) == 0 then self[at] = bit.bxor(self[at], bit.lshift(1, random(8)))
      else for i = at, math.min(at + 3, n - 1) do self[i] = random(256) end end
    end
  end)
end

---A learner of the smallest size, after a few updates: the same each time.
function forge.learner()
  mn.manual_seed(1)
  local env = mn.env("tmaze", { corridor = 3, num_envs = 2, seed = 1 })
  local learner = mn.a2c({ steps = 64, num_steps = 8, seed = 1 }, env, mn.agent { env = env, core = { "gru", d_model = 4 }, hidden = 4 })
  learner:begin()
  for _ = 1, 4 do learner:advance() end
  return learner
end

---The smallest map of what an agent loses, not measured yet: the same agent and episodes each time.
---@return CausalMap
function forge.causal_map()
  mn.manual_seed(1)
  local agent
  local function p()
    local env = mn.env("tmaze", { corridor = 3, num_envs = 3, seed = 1 })
    agent = agent or mn.agent { env = env, core = { "gru", d_model = 4 }, hidden = 4 }
    return mn.stepper.new(env, agent, { seed = 1 })
  end
  return mn.causal_map(p(), p(), { seed = 1 })
end

local HEAD = 72                    -- bytes of a live file's head: engine/io/live_channel.c

---A file RUN/live with this schema and one snapshot.
---@param schema string
---@param snapshot string
---@return string
function forge.live_file(schema, snapshot)
  local head, slot = ffi.new("uint8_t[?]", HEAD), math.max(#snapshot, 1)
  ffi.copy(head, "MNLIVE\r\n")
  ffi.cast("uint32_t *", head + 8)[0], ffi.cast("uint32_t *", head + 12)[0] = 1, HEAD
  local function up(n) return math.ceil(n / 64) * 64 end
  local at = up(HEAD + #schema + 1)
  local sizes = ffi.cast("uint64_t *", head + 16)
  sizes[0], sizes[1], sizes[2], sizes[4], sizes[5] = #schema, slot, at + 2 * up(slot), 1, 1
  return ffi.string(head, HEAD) .. schema .. ("\0"):rep(at - HEAD - #schema + up(slot)) .. snapshot .. ("\0"):rep(up(slot) - #snapshot)
end

---The schema and the newest snapshot's room of such a file.
---@return string schema
---@return string snapshot
function forge.live_parts(bytes)
  local sizes = ffi.cast("const uint64_t *", ffi.cast("const char *", bytes) + 16)
  local schema, slot = tonumber(sizes[0]), tonumber(sizes[1])
  local at = math.ceil((HEAD + schema + 1) / 64) * 64
  return bytes:sub(HEAD + 1, HEAD + schema), bytes:sub(at + 1, at + slot)
end

---An environment with the buffers of its steps.
function forge.rig(env)
  local space, count = env.observation_space, 1
  for _, n in ipairs(space.shape) do count = count * n end
  return { env = env, count = count, action = env.action_space:room(1), reward = ffi.new "float[1]",
    terminated = ffi.new "uint8_t[1]", truncated = ffi.new "uint8_t[1]",
    obs = ffi.new(space.dtype == "f32" and "float[?]" or "uint8_t[?]", count) }
end

-- Codes are looked up in tables, and a number that is none spreads: neither may come out.
local function check(rig)
  local space = rig.env.observation_space
  local codes = space.codes or math.huge
  for i = 0, space.dtype == "u8" and codes >= 256 and -1 or rig.count - 1 do          -- any byte is a pixel
    local x = rig.obs[i]
    if x ~= x or x >= codes then
      error(("%s: slot %d of the observation is %g"):format(rig.env.id, i, x))
    end
  end
  if rig.reward[0] ~= rig.reward[0] then error(rig.env.id .. ": the reward is NaN") end
end

function forge.step(rig, random)
  rig.env.action_space:any(rig.action, 0, function() return random(2 ^ 20) / 2 ^ 20 end)
  rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
end

function forge.restore(rig, bytes) rig.env:restore(0, bytes, rig.obs) end

---So many steps, with a look at all there is to see before and after.
function forge.live(rig, random, steps)
  check(rig)
  for _ = 1, 2 do
    rig.env:draw(0)
    rig.env:truth(0)
    for _ = 1, steps / 2 do
      forge.step(rig, random)
      check(rig)
    end
  end
end

return forge
