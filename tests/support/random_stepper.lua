-- random_stepper.lua -- a source of frames without a trained agent: random actions in the real
-- T-Maze, and arrays of random numbers in the shapes of each kind of core.  For tests of scenes.
local ffi = require "ffi"
local mn = require "mneme"

local fake = {}

local function shapes_of(core, layers, H, V, K)
  local memory, probes = { tick = { shape = {}, dims = "" } }, {}
  for layer = 0, layers - 1 do
    local at = "layers." .. layer .. "."
    if core == "gru" then memory[at .. "h"] = { shape = { 680 }, dims = "D" }
    else
      if core == "galite" then memory[at .. "C"] = { shape = { H, V, K }, dims = "HVK" }
      else
        memory[at .. "v"] = { shape = { 2, H, V }, dims = "MHV" }
        memory[at .. "k"] = { shape = { 2, H, K }, dims = "MHK" }
      end
      memory[at .. "s"] = { shape = { H, K }, dims = "HK" }
      probes[at .. "beta"], probes[at .. "gamma"] = { shape = { H, V } }, { shape = { H, K } }
      probes[at .. "q"] = { shape = { H, K } }
    end
  end
  return memory, probes
end

local Stepper = {}
Stepper.__index = Stepper

---@param options table? core = "agalite"|"galite"|"gru"|"none", corridor, seed, layers
function fake.new(options)
  options = options or {}
  local core = options.core or "agalite"
  local self = setmetatable({ core = core, num_envs = 2, env_index = 0, draws = 0 }, Stepper)
  self.seed = options.seed or 1
  self.env = mn.env("tmaze", { corridor = options.corridor or 8, num_envs = 2, seed = self.seed })
  self.memory, self.probes = {}, {}
  if core ~= "none" then
    self.memory, self.probes = shapes_of(core, options.layers or (core == "gru" and 1 or 4), 4, 64, 256)
  end
  for _, arrays in ipairs { self.memory, self.probes } do
    for _, array in pairs(arrays) do
      local n = 1
      for _, length in ipairs(array.shape) do n = n * length end
      array.n, array.values = n, ffi.new("float[?]", n)
    end
  end
  self.step, self.episode, self.ret, self.reward = 0, 0, 0, 0
  self.obs = self.env:reset(self.seed):data()
  return self
end

-- Values that linger: 0.9 of the old one and a new draw.
function Stepper:stir()
  for _, group in ipairs { "memory", "probes" } do
    for name, array in pairs(self[group]) do
      local fresh, hash = ffi.new("float[?]", array.n), 0
      for i = 1, #name do hash = hash * 31 + name:byte(i) end
      require("mneme.base.engine").C.mn_random_uniform(self.seed, self.draws, hash % 65536, fresh, array.n)
      for i = 0, array.n - 1 do
        array.values[i] = group == "probes" and fresh[i] ^ 4 or 0.9 * array.values[i] + fresh[i] - 0.5
      end
    end
  end
  self.draws = self.draws + 1
end

function Stepper:next()
  local ended
  if self.action then
    local actions = { 3, 3 }
    actions[self.env_index + 1] = self.action
    local obs, reward, terminated, truncated, info = self.env:step(actions)
    self.obs, self.reward = obs:data(), reward:data()[self.env_index]
    self.step, self.ret = self.step + 1, self.ret + self.reward
    if terminated:data()[self.env_index] + truncated:data()[self.env_index] > 0 then
      local i = self.env_index
      ended = { score = info.score:data()[i], ret = info.ret:data()[i], length = info.length:data()[i] }
      self.step, self.ret, self.episode = 0, 0, self.episode + 1
    end
  end
  self:stir()
  local truth = self.env:truth(self.env_index)
  local junction = truth.position == truth.corridor - 1
  self.action = junction and (self.draws % 5 == 0 and 2 or self.draws % 2) or self.draws % 6 == 0 and 2 or 3
  local policy = junction and { 0.55, 0.35, 0.04, 0.06 } or { 0.02, 0.03, 0.15, 0.8 }
  return {
    title = self.core .. " on " .. self.env.id .. ", corridor " .. truth.corridor, source = "random numbers",
    canvas = self.env:draw(self.env_index), truth = truth, actions = self.env.action_space.names,
    observation = { shape = { 16 }, values = self.obs + 16 * self.env_index },
    action = self.action, policy = policy, value = 2 + math.sin(self.draws / 5), reward = self.reward, memory = self.memory, probes = self.probes,
    step = self.step, episode = self.episode, ret = self.ret, ended = ended,
  }
end

function Stepper:next_env() self.env_index = (self.env_index + 1) % self.num_envs end

return fake
