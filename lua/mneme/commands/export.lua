-- export.lua -- `mneme export`: a run's parameters (.safetensors), or its agent's step of acting (.py, .onnx, .h, .json), for other programs.
local lazy = require "mneme.base.lazy"
local json = require "mneme.base.json"
local run_folder = lazy "mneme.runs.run_folder"
local modules = lazy "mneme.tensor.module"
local step_files = require "mneme.portable.step_files"
local safetensors = lazy "mneme.tensor.safetensors"
local stepper = lazy "mneme.insight.episodes.stepper"
local stored_parameters = lazy "mneme.learn.stored_parameters"
local tables = require "mneme.base.tables"

local export = { name = "export", doc = "export an agent for PyTorch, ONNX or C, or its parameters", loads = true, about = [[
agent.py, agent.onnx and agent.h act as the agent does, one step a call, without Mneme: observation, done and the memory's states in, the
parameters of the policy's distribution, the value and the next states out.  agent.py is a PyTorch module that imports torch alone, agent.h C99
with the weights inside, agent.json what mneme.load of Python reads.  An op that these forms do not know is an error that names it.

agent.safetensors: the parameters alone, with torch's names and layout: an activation has its number in a sequential (actor.0, actor.2), and the
parameters of gru and lstm are packed as torch.nn.GRU and LSTM have them (weight_ih_l0 ..., gates r, z, n and i, f, g, o; missing biases are zeros).]],
  arguments = { { "from", "RUN", "a run's folder", noun = "run" } },
  options = {
    { "to", "the file", type = "file", endings = { "safetensors", unpack(step_files.endings) }, required = true,
      hint = "of a run .py (PyTorch), .onnx, .h (C) or .safetensors (its parameters); curves as numbers: mneme report RUN figures=FOLDER" },
    { "step", "the checkpoint at this step instead of the newest", type = "whole", example = "4096" },
    { "best", "the best checkpoint instead of the newest", type = "switch", default = false },
  } }

-- ---- parameters ----

-- One step of acting, for a program without Mneme.
local function export_step(o)
  local checkpoint, info = stored_parameters.checkpoint(o.from, o), run_folder.load(o.from).info
  local made = stepper.from_run(o.from, { checkpoint = checkpoint.step })
  local from = ("mneme export: the agent of %s at step %.0f"):format(o.from, checkpoint.step)
  print(("%s: %s"):format(o.to, step_files.write(o.to, made.agent, made.env, from, info.memory)))
end

local function export_run(o)
  local checkpoint, info = stored_parameters.checkpoint(o.from, o), run_folder.load(o.from).info
  local of_sequences = info.sequence_task and select(2, require("mneme.commands.eval").load(o.from, {}, false))
  local module = (of_sequences or stepper.from_run(o.from, { checkpoint = checkpoint.step }).agent).module
  local torch, core = modules.torch_layout().to_torch(module, stored_parameters.of(checkpoint)), info.core or {}
  local list = tables.map(tables.keys(torch), function(name) return { name, torch[name] } end)
  safetensors.write(o.to, list, { format = "pt", core = tostring(core.name), config = json.encode(core.config or {}), step = ("%.0f"):format(checkpoint.step) })
  print(("%s: %d tensors of %s at step %.0f"):format(o.to, #list, o.from, checkpoint.step))
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
