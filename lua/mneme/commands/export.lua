-- export.lua -- `mneme export`: a run's parameters (.safetensors), or its agent's step of acting (.py, .onnx, .h, .json), for other programs.
local lazy = require "mneme.base.lazy"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local run_folder = lazy "mneme.runs.folder"
local normaliser = lazy "mneme.learn.normaliser"
local registry = require "mneme.base.registry"
local run_sources = lazy "mneme.runs.run_sources"
local cores = lazy "mneme.models.core"
local modules = lazy "mneme.tensor.module"
local layout = setmetatable({}, { __index = function(_, name) return modules.torch_layout()[name] end })
local portable = require "mneme.portable.step_files"
local safetensors = lazy "mneme.tensor.safetensors"
local stepper = lazy "mneme.insight.episodes.stepper"
local stored_parameters = lazy "mneme.learn.stored_parameters"
local tables = require "mneme.base.tables"

local export = { name = "export", doc = "export an agent for PyTorch, ONNX or C, or its parameters", loads = true, about = [[
agent.py, agent.onnx and agent.h act as the agent does, one step a call, without Mneme: observation, done and the memory's states in, the
parameters of the policy's distribution, the value and the next states out.  agent.py is a PyTorch module that imports torch alone, agent.h C99
with the weights inside, agent.json what mneme.load of Python reads.  An op that these forms do not know is an error that names it.

agent.safetensors: names and layout are torch's: an activation has its number in a sequential (actor.0, actor.2), and the parameters of gru and lstm are
packed as torch.nn.GRU and LSTM have them (weight_ih_l0 ..., gates r, z, n and i, f, g, o; missing biases are zeros).  The
metadata describe what is done with them, all that the agent needs to act.]],
  arguments = { { "from", "RUN", "a run's folder", noun = "run" } },
  options = {
    { "to", "the file", type = "file", endings = { "safetensors", unpack(portable.endings) }, required = true,
      hint = "of a run .py (PyTorch), .onnx, .h (C) or .safetensors (its parameters); curves as numbers: mneme compare RUN out=FILE.csv" },
    { "step", "the checkpoint at this step instead of the newest", type = "whole", example = "4096" },
    { "best", "the best checkpoint instead of the newest", type = "switch", default = false },
  } }

-- ---- parameters ----

---What a core is, besides its parameters: equations and states, the axes of which `sizes` explains; `start`: initial values other than 0.
function export.about_core(core)
  if not core.states then return { name = core.name, config = core.config, d_out = core.d_out, module = layout.describe(core.module) } end      -- an encoder
  local d, states = cores.definition(core.file or core.name), {}
  for _, name in ipairs(core:state_names()) do
    states[name] = { axes = core.states[name], shape = json.array(core:state_shape(name, 1)) }
    local start = core.start[name] or core.start[name:match "[^.]+$"]
    if start ~= nil then states[name].start = type(start) == "number" and start or "computed: see its source" end
  end
  local equations = d.equations
  if type(equations) == "function" then equations = equations(core.config) end
  if not equations and not core.file then            -- the comment that its file begins with
    local text = files.read(registry.file("cores", core.name, "core"))
    equations = (text:match "^(%-%-.-)\n[^-]" or ""):gsub("\n%-%- ?", "\n"):gsub("^%-%- ", "")
  end
  return { name = core.name, doc = d.doc, source = d.source, config = core.config, equations = equations, d_out = core.d_out, states = states,
    sizes = core.sizes, acts = core.acts, module = layout.describe(core.module) }
end

-- What is done with the parameters, in the order of a step: observation, normalise, torso, previous, core, actor and critic.
local function about_agent(agent, env, info)
  local n, normalise = agent.normaliser, nil
  if n then
    normalise = { epsilon = normaliser.EPSILON, clip_observation = n.norm_obs and n.clip_obs or nil, clip_reward = n.clip_reward,
      observation = n.norm_obs and "(x - normalise.observation.mean) / sqrt(normalise.observation.var + epsilon), "
        .. "within +- clip_observation (0: no clipping)" or nil,
      reward = n.norm_reward and "r / sqrt(normalise.return.var + epsilon), within +- clip_reward (0: no clipping)" or nil }
  end
  local space, groups, previous = env.observation_space, {}, json.array {}
  for i, group in ipairs(space.groups or {}) do groups[i] = { name = group.name, from = group.from, n = group.n, kind = group.kind, codes = group.codes,
      shape = group.shape and json.array { unpack(group.shape) } } end
  if agent.previous.action then previous[1] = env.action_space.kind == "box" and "action: as it was drawn, zeros where an episode begins"
    or "action: one-hot, zeros where an episode begins" end
  if agent.previous.reward then previous[#previous + 1] = "reward: normalised, 0 where an episode begins" end
  local torso = layout.describe(agent.torso)
  torso.name = agent.torso.name
  return { observation_space = { shape = json.array { unpack(space.shape) }, dtype = space.dtype or "f32", codes = space.codes,
    groups = groups[1] and json.array(groups) },
    action_space = env.action_space.kind ~= "discrete" and env.action_space:describe() or { n = agent.actions,
      names = json.array { unpack(env.action_space.names) } }, distribution = info.distribution, normalise = normalise, torso = torso,
      torso_options = info.torso,
    previous = previous, core = export.about_core(agent.core), actor = layout.describe(agent.module.children[3][2]),
      critic = agent.module.children[4] and layout.describe(agent.module.children[4][2]),
    memory = info.memory }
end

-- Whether functions of the script compute a part that no name describes.
local function of_code(about, info)
  local own = layout.has_code(about.actor) or (about.critic and layout.has_code(about.critic)) or not about.torso.name and layout.has_code(about.torso)
  return own or info.own_words ~= nil or not files.is_file(registry.library .. "cores/" .. about.core.name .. ".lua")
end

-- One step of acting, for a program without Mneme.
local function export_step(o)
  local checkpoint, info = stored_parameters.checkpoint(o.from, o), run_folder.load(o.from).info
  local made = stepper.from_run(o.from, { checkpoint = checkpoint.step })
  local from = ("mneme export: the agent of %s at step %.0f"):format(o.from, checkpoint.step)
  print(("%s: %s"):format(o.to, portable.write(o.to, made.agent, made.env, from, info.memory)))
end

local function export_run(o)
  local run = run_folder.load(o.from)
  local checkpoint = stored_parameters.checkpoint(o.from, o)
  local dict, info = stored_parameters.of(checkpoint), run.info
  local module, about
  if info.sequence_task then
    local _, model = require("mneme.commands.eval").load(o.from, {}, false)
    module, about = model.module, { embed = layout.describe(model.embed), core = export.about_core(model.core), head = layout.describe(model.head) }
  else
    local made = stepper.from_run(o.from, { checkpoint = checkpoint.step })
    module, about = made.agent.module, about_agent(made.agent, made.env, info)
  end
  local list, torch = {}, modules.torch_layout().to_torch(module, dict)
  for i, name in ipairs(tables.keys(torch)) do list[i] = { name, torch[name] } end
  local core = info.core or {}
  local metadata = { format = "pt", core = tostring(core.name), config = json.encode(core.config or {}), step = ("%.0f"):format(checkpoint.step),
    agent = not info.sequence_task and json.encode(about) or nil, model = info.sequence_task and json.encode(about) or nil }
  if not info.sequence_task and of_code(about, info) then
    local texts = run_sources.texts(o.from, info)
    if not next(texts) then
      errors.fail(("%s: functions of %s compute a part of this agent, and the run keeps no copy of them: the file would be less than the agent"):format(o.from,
        tostring(info.script)))
    end
    metadata.source = json.encode(texts)
  end
  safetensors.write(o.to, list, metadata)
  print(("%s: %d tensors of %s at step %.0f"):format(o.to, #list, o.from, checkpoint.step)
    .. (metadata.source and ("; what functions of %s compute is there as their source"):format(tostring(info.script)) or ""))
end

-- ---- the command ----

local uses = { safetensors = "in Python: safetensors.torch.load_file(%q)", json = "in Python: mneme.load(%q)",
  onnx = "in Python: onnxruntime.InferenceSession(%q)" }

function export.run(o)
  local ending = o.to:match "%.(%w+)$"
  o.from = o.from:gsub("(.)/+$", "%1")
  if ending == "safetensors" then export_run(o) else export_step(o) end
  if uses[ending] then print(uses[ending]:format(o.to)) end
  return 0
end

return export
