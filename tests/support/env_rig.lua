-- env_rig.lua -- steps an environment as a learner does, into plain memory, and writes down what it shows; used
-- by the tests of environments.
local ffi = require "ffi"

-- A deterministic action for a copy and step: fixed, so that two runs do the same.
local function act(copy, step, n)
  return (copy * 7919 + step * 104729 + math.floor(step / 3) * 31) % 1009 % n
end

-- The action of a copy at a step, of any space, into a buffer of actions.
local function choose(space, into, i, copy, time)
  if space.kind == "discrete" then into[i] = act(copy, time, space.n) return end
  local k = 0
  space:any(into, i, function()
    k = k + 1
    return act(copy + 13 * k, time, 1009) / 1009
  end)
end

local function rig(env)
  local n, size = env.num_envs, 1
  for _, k in ipairs(env.observation_space.shape) do size = size * k end
  local u8 = env.observation_space.dtype == "u8"
  return { env = env, n = n, size = size, bytes = size * (u8 and 1 or 4), time = 0,
    obs = ffi.new(u8 and "uint8_t[?]" or "float[?]", n * size), action = env.action_space:room(n),
    reward = ffi.new("float[?]", n), terminated = ffi.new("uint8_t[?]", n), truncated = ffi.new("uint8_t[?]", n) }
end

local function seen(r, i) return ffi.string(ffi.cast("char *", r.obs) + i * r.bytes, r.bytes) end

local function final(r, i)
  return ffi.string(ffi.cast("const char *", r.env.ended.final_obs) + i * r.bytes, r.bytes)
end

-- What only the environment knows of an environment, as a string.
local function hidden(env, i)
  local facts = {}
  for name, value in pairs(env:truth(i)) do
    facts[#facts + 1] = name .. "=" .. (type(value) == "table" and table.concat(value, " ") or value)
  end
  table.sort(facts)
  return table.concat(facts, "|")
end

-- One step; copy i acts as copy `as[i]` would at step r.time (default: i).
local function step(r, as)
  for i = 0, r.n - 1 do choose(r.env.action_space, r.action, i, as and as[i] or i, r.time) end
  r.env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
  r.time = r.time + 1
end

-- What one copy shows after a step, as a string.
local function glance(r, i)
  return seen(r, i) .. ("|%.9g|%d|%d"):format(r.reward[i], r.terminated[i], r.truncated[i])
end

-- Reset and step; for each environment everything it showed.
local function roll(env, seed, steps)
  local r, log = rig(env), {}
  env:reset_raw(r.obs, seed)
  for i = 0, r.n - 1 do log[i] = { seen(r, i) } end
  for _ = 1, steps do
    step(r)
    for i = 0, r.n - 1 do log[i][#log[i] + 1] = glance(r, i) end
  end
  for i = 0, r.n - 1 do log[i] = table.concat(log[i], "\n") end
  return log, r
end

-- Follow some environments for a while: what they show, and to what seeds of `act` they listen.
local function follow(r, copies, steps, as)
  local log = {}
  for _ = 1, steps do
    step(r, as)
    for k, i in ipairs(copies) do log[k] = (log[k] or "") .. glance(r, i) .. "\n" end
  end
  return log
end

return { act = act, choose = choose, rig = rig, seen = seen, final = final, hidden = hidden, step = step, roll = roll, follow = follow }
