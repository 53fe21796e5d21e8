-- agent.lua -- a core between a task and a policy: observations in, logits and values out.
local errors = require "mneme.errors"
local nn = require "mneme.nn"

---@class Agent
local Agent = {}
Agent.__index = Agent

---@param options table { task (for its observation and action space), core, hidden = 128 }
---@return Agent
local function agent(options)
  for key in pairs(options) do
    if key ~= "task" and key ~= "core" and key ~= "hidden" then
      errors.raise("agent: unknown key '" .. tostring(key) .. "', expected task, core or hidden")
    end
  end
  local task, core = options.task, options.core
  if not task or not core then errors.raise "agent: expected { task = mn.env(...), core = mn.core(...) }" end
  local d_in = 1
  for _, n in ipairs(task.observation_space.shape) do d_in = d_in * n end
  if core.config.d_in ~= d_in then
    errors.raise(("agent: the core takes d_in=%d, but the task's observations have %d numbers"):format(core.config.d_in, d_in))
  end
  local heads = nn.heads(core.d_out, options.hidden or 128, task.action_space.n)
  local module = nn.container { { "core", core.module }, { "actor", heads.children[1][2] }, { "critic", heads.children[2][2] } }
  return setmetatable({ core = core, heads = heads, module = module, hidden = options.hidden or 128 }, Agent)
end

---@return Tensor logits [T,B,actions]
---@return Tensor values [T,B]
---@return table state after the last step
function Agent:__call(x, done, state, probe)
  local y, new = self.core(x, done, state, probe)
  local logits, values = self.heads(y)
  return logits, values, new
end

---What a picture of it is called: "agalite on tmaze-v0, corridor 20, distractors 6".
function Agent:title(task)
  local parts, keys = {}, {}
  for key in pairs(task.settings) do
    local text = type(task.settings[key]) == "string" and task.settings[key] or "-"
    if key ~= "num_envs" and key ~= "seed" and key ~= "time_limit" and text ~= "" and not text:find "\n" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  for _, key in ipairs(keys) do parts[#parts + 1] = (", %s %s"):format(key, tostring(task.settings[key])) end
  return ("%s on %s%s"):format(self.core.name, task.id, table.concat(parts))
end

---Probabilities of n actions from a pointer to their logits, into another.
function Agent.policy(logits, n, into)
  local top, sum = -math.huge, 0
  for a = 0, n - 1 do top = math.max(top, logits[a]) end
  for a = 0, n - 1 do into[a] = math.exp(logits[a] - top) sum = sum + into[a] end
  for a = 0, n - 1 do into[a] = into[a] / sum end
  return into
end

function Agent:parameters() return self.module:parameters() end
function Agent:state_dict() return self.module:state_dict() end

return { new = agent }
