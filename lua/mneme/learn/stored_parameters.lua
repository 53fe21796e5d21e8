-- stored_parameters.lua -- the parameters of a run's checkpoint by their names, with the statistics that normalise: mn.run.state_dict.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local run_folder = require "mneme.runs.run_folder"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local stored = {}

-- Mean, variance and count as normaliser.lua keeps them, doubles in bytes, as tensors [shape], [shape] and [1].
local function statistics(dict, name, bytes, shape)
  local p, n = ffi.cast("double *", bytes:data()), (bytes:shape()[1] - 1) / 2
  for i, part in ipairs { "mean", "var", "count" } do
    local t = tensor.new { shape = i < 3 and shape or { 1 } }
    for k = 0, t:size() - 1 do t:data()[k] = p[(i - 1) * n + k] end
    dict[("normalise.%s.%s"):format(name, part)] = t
  end
end

---The parameters of a checkpoint, by the names of the agent's or model's state_dict, and the statistics of norm_obs and norm_reward as
---normalise.observation.{mean,var,count} and normalise.return.{mean,var,count}.
---@param checkpoint table of runs/run_folder.lua
---@param part string? "extra": of the modules that a learner trains besides the agent, instead
---@return table<string, Tensor>
function stored.of(checkpoint, part)
  local dict, all = {}, checkpoint.tensors
  for name, t in pairs(all) do
    local of, own = name:match "^(%l+)%.(.+)$"
    if of and (of == part or not part and (of == "agent" or of == "model")) then dict[own] = t end
  end
  for name, shape in pairs(part and {} or { observation = all.observation and { unpack(all.observation:shape(), 2) }, ["return"] = { 1 } }) do
    local bytes, n = all["normalise." .. name], tables.product(shape)
    if bytes then
      if bytes:dtype() ~= "u8" or bytes:size() ~= 8 * (2 * n + 1) then errors.fail(("%s: damaged: its statistics of each %s"):format(checkpoint.path, name)) end
      statistics(dict, name, bytes, shape)
    end
  end
  return dict
end

---Puts a checkpoint's parameters into the agent or model that the run's code makes now; an error that names the run where they do not fit.
---@param checkpoint table of runs/run_folder.lua
---@param made Agent|Module
function stored.into(folder, checkpoint, made)
  local ok, problem = xpcall(function()
    made:load_state_dict(stored.of(checkpoint))
    if not made.beside then return end
    made.beside:load_state_dict(stored.of(checkpoint, "extra"), { strict = false })
    made.beside:eval()
  end, errors.handler)
  if ok then return end
  errors.fail(("%s: its checkpoint of step %.0f does not fit what its code makes now: %s"):format(folder, checkpoint.step,
    problem.message:gsub("^load_state_dict: ", "")), not errors.beside and "mneme check " .. folder .. " examines it" or nil)
end

---A checkpoint of a run that is there; an error where there is none.
---@param options { step: number?, best: boolean? }? default: the newest that is whole
function stored.checkpoint(folder, options)
  local run = run_folder.load(folder)
  local checkpoint = options and options.step and run:of_step(options.step) or options and options.best and run:best() or run:latest()
  return checkpoint or errors.fail(folder .. ": there is no checkpoint yet")
end

---The parameters of another run, to begin from: agent:load_state_dict(mn.run.state_dict "runs/demo").  Names are those of the agent's (or
---model's) state_dict: torso.*, core.*, actor.*, critic.*; with norm_obs=1 or norm_reward=1 also normalise.observation.{mean,var,count} and
---normalise.return.{mean,var,count}.  The tensors are yours.
---@param folder string of the run
---@param options { step: number?, best: boolean? }? a checkpoint's step, or best = true: that of the best score; default: the newest
---@return table<string, Tensor>
function stored.state_dict(folder, options)
  if type(folder) ~= "string" then errors.raise(("run.state_dict: the folder is a %s, expected a text"):format(type(folder))) end
  errors.members("run.state_dict", options or {}, "step best")
  return stored.of(stored.checkpoint(folder, options))
end

return stored
