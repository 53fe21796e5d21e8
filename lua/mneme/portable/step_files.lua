-- step_files.lua -- an agent's step of acting for other programs: a PyTorch module, an ONNX model, a C header, or a plan for Python's load.
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local format = require "mneme.base.format"
local lazy = require "mneme.base.lazy"
local primitives = require "mneme.portable.primitives"
local step_graph = lazy "mneme.portable.step_graph"

local portable = { endings = { "py", "onnx", "h", "json" } }

local function sizes(shape) return #shape > 0 and table.concat(shape, ",") or "1" end

-- What a file says of its agent, line by line.
local function described(agent, env, about)
  local lines = { require("mneme.base.terminal").plain(about, true), ("core %s on %s"):format(agent.core.name, env.id) }
  local space = env.observation_space
  lines[#lines + 1] = ("observation: %s [%s]"):format(space.dtype or "f32", sizes(space.shape))
  for _, part in ipairs(space.parts or {}) do
    lines[#lines + 1] = ("  numbers %d to %d: %s [%s] (%s)"):format(part.from, part.from + part.n - 1, part.name, sizes(part.shape), part.kind)
  end
  if agent.normaliser and agent.normaliser.norm_obs then lines[#lines + 1] = "observations are normalised inside, by the statistics of the training" end
  lines[#lines + 1] = ("distribution: %s over %s"):format(agent.kind_name or "the script's own", tostring(env.action_space))
  if env.action_space.names then lines[#lines + 1] = "actions: " .. table.concat(env.action_space.names, " ") end
  return lines
end

-- When the program clears a memory besides where episodes begin, or sees more than a call of one step does.
local function differs(agent, memory)
  memory = memory or {}
  local core, notes = agent.core, {}
  if core.acts ~= "steps" and core.claims.steps ~= "exact" then
    notes[#notes + 1] = ("core %s as it was trained acts on rows of a rollout, which see more than a call of one step (%s)"):format(core.name,
      core.claims.steps)
  end
  if memory.carry == false then notes[#notes + 1] = ("in training its memory was cleared every %s steps, too"):format(tostring(memory.num_steps)) end
  if memory.reset_on_done == false then notes[#notes + 1] = "in training its memory went on from one episode to the next: give done=0" end
  if (memory.context or 0) > 0 then notes[#notes + 1] = ("in training its memory was cleared every %d steps of an episode, too"):format(memory.context) end
  return notes
end

local function kind_of(agent) return agent.kind_name or "own" end

local writers = {
  py = function(graph, agent, _, lines) return require("mneme.portable.torch_writer").text(graph, table.concat(lines, "\n"), kind_of(agent)) end,
  onnx = function(graph, _, _, lines) return require("mneme.portable.onnx_writer").text(graph, table.concat(lines, "\n")) end,
  h = function(graph, _, _, lines, path)
    local name = path:match "([^/]+)%.h$":gsub("[^%w_]", "_"):gsub("^%d", "agent_%0")
    return require("mneme.portable.c_writer").text(graph, name, table.concat(lines, "\n"))
  end,
  json = function(graph, agent, env, lines)
    return require("mneme.portable.plan_writer").text(graph, { text = table.concat(lines, "\n"), core = agent.core.name, env = env.id,
      distribution = kind_of(agent), action_space = env.action_space:describe() })
  end,
}

---Write the agent's step of acting: see docs/python.md.
---@param path string FILE.py, FILE.onnx, FILE.h or FILE.json
---@param about string where it is from
---@param memory table? when the learner clears the memory: `memory` of a run's config.json
---@return string what was written, in words
function portable.write(path, agent, env, about, memory)
  local ending = path:match "%.(%w+)$"
  local writer = writers[ending or ""] or errors.usage(("export: to=%s, expected a .%s"):format(path, table.concat(portable.endings, ", .")))
  local graph, lines, learned, notes = step_graph.graph(agent, ending == "py"), described(agent, env, about), 0, differs(agent, memory)
  for _, note in ipairs(notes) do lines[#lines + 1] = note end
  for _, v in ipairs(graph.nodes) do if v.op == "parameter" then learned = learned + primitives.product(v.shape) end end
  files.write(path, { writer(graph, agent, env, lines, path) })
  local note = notes[1] and "; " .. table.concat(notes, "; ") or ""
  return ("one step in %d array operations, %s parameters%s"):format(#graph.nodes, format.grouped(learned), note)
end

return portable
