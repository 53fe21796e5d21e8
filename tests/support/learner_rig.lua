-- learner_rig.lua -- small learners on a short T-Maze, and what the tests of learners look at.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local cores = require "mneme.models.cores"
local learners = require "mneme.learn.learners"
local registry = require "mneme.base.registry"

local rig = setmetatable({}, { __index = require "tests.support.core_rig" })

-- A memory shorter than an episode, so that what acts within a window of it shows.
local small = { d_in = 16, d_model = 16, n_layers = 2, n_heads = 2, d_head = 8, d_ffn = 16, eta = 2, memory = 3 }

---A core by name, or a case of core_rig's, small.
function rig.small_core(case, sizes)
  local settings = type(case) == "table" and case or { case }
  local config, defaults = {}, cores.definition(settings[1]).config
  for _, set in ipairs { small, settings, sizes or {} } do
    for key, value in pairs(set) do if key ~= 1 and defaults[key] ~= nil then config[key] = value end end
  end
  return cores.new(settings[1], config, true)
end

---A learner, begun.
---@param make function mn.a2c or mn.ppo
---@param case string|table a core
---@param cfg table? its settings, and corridor, time_limit, num_envs, hidden, previous
---@param sizes table? more keys of the core
function rig.learner(make, case, cfg, sizes)
  local settings = { num_steps = 16, num_envs = 3, seed = 1, corridor = 4, time_limit = 11, hidden = 16, lr = 1e-3 }
  for key, value in pairs(cfg or {}) do settings[key] = value end
  local env = settings.env or mn.env("tmaze", { corridor = settings.corridor, num_envs = settings.num_envs, seed = settings.seed,
    time_limit = settings.time_limit })
  mn.manual_seed(settings.seed)
  local more = { d_in = settings.previous and 16 + env.action_space.n + 1 or nil }
  for key, value in pairs(sizes or {}) do more[key] = value end
  local c = settings.env and case or rig.small_core(case, more)
  local agent = mn.agent { env = env, core = c, hidden = settings.hidden, previous = settings.previous }
  local l = make(settings, env, agent)
  l:begin()
  return l
end

---Every learner of the library that has all of these settings: name -> class.
function rig.learners(...)
  local found = {}
  for _, name in ipairs(registry.names "learners") do
    local class = learners.find(name)
    found[name] = class
    for _, key in ipairs { ... } do if class.defaults[key] == nil then found[name] = nil end end
  end
  return found
end

-- ---- numbers of all parameters, and their gradients ----

function rig.parameters(l)
  local list = {}
  for i, p in ipairs(l.agent:parameters()) do list[i] = ffi.string(p:data(), p:size() * 4) end
  return list
end

function rig.put(l, list)
  for i, p in ipairs(l.agent:parameters()) do ffi.copy(p:data(), list[i], p:size() * 4) end
end

function rig.gradients(l)
  local list = {}
  for i, p in ipairs(l.agent:parameters()) do list[i] = p:grad() end
  return list
end

---The largest difference between two lists of gradients, as a fraction of the largest number of the second; and that.
function rig.gradients_apart(got, want)
  local scale, apart = 0, 0
  for i, g in ipairs(want) do
    for k = 0, g:size() - 1 do
      scale, apart = math.max(scale, math.abs(g:data()[k])), math.max(apart, math.abs(g:data()[k] - got[i]:data()[k]))
    end
  end
  return apart / scale, scale
end

---A rollout, and the logits by which it acted [T,B,actions].
function rig.acted(l)
  local n, all = l.B * l.agent.actions, mn.tensor { shape = { l.T, l.B, l.agent.actions } }
  function l.watch(step, piece) ffi.copy(all:data() + step * n, piece.logits:data() + (step - piece.first) * n, 4 * n) end
  l:rollout()
  l.watch = nil
  return all
end

local function deep(n) return n > 0 and 1 + deep(n - 1) or 0 end

-- What the process and the engine hold now.
local function in_use()
  local held = { heap = rig.heap() }
  for _, what in ipairs { "leaf", "arena", "arena_peak", "plan" } do held[what] = tonumber(engine.C.mn_bytes(engine.ctx, what)) end
  return held
end

---Fails where `n` updates, after some that warm it up, leave Lua garbage or take memory.
function rig.leaves_nothing(l, n)
  for _ = 1, 20 do l:rollout() l:update() end
  local compiled = jit.status()
  jit.off()                              -- or what the JIT compiles would be counted
  jit.flush()
  local before, after, garbage
  local ok, problem = pcall(function()
    collectgarbage()
    collectgarbage "stop"
    deep(100)                            -- collecting shrank Lua's stack, and its growth is no garbage
    l:rollout() l:update()
    for _ = 1, 3 do                      -- a library may once need more, where a thread comes late; what leaks does so each time
      before = in_use()
      local start = collectgarbage "count"
      for _ = 1, n do l:rollout() l:update() end
      garbage = collectgarbage "count" - start
      after = in_use()
      if after.heap == before.heap then break end
    end
  end)
  collectgarbage "restart"
  if compiled then jit.on() end
  t.ok(ok, problem)
  t.eq(garbage, 0, "garbage in kB")
  for what, bytes in pairs(after) do t.eq(bytes, before[what], what) end
end

---Everything that a checkpoint of it would hold, as one string.
function rig.all_bytes(l)
  local bytes = rig.parameters(l)
  for _, item in ipairs(l:contents()) do bytes[#bytes + 1] = rig.bytes(item[2]) end
  return table.concat(bytes)
end

---All of that after some updates, none of which may fail.
function rig.trained(l, updates)
  for _ = 1, updates do
    l:rollout()
    assert(l:update(), "an update failed")
  end
  return rig.all_bytes(l)
end

return rig
