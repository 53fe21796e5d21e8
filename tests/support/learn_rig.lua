-- learn_rig.lua -- trains agents with the program and looks at what they have learnt; for tests/learn.
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local outcome = require("mneme.runs.run_folder").outcome
local registry = require "mneme.base.registry"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"

local rig = {}
local program = engine.build .. "/mneme"

-- Where the runs of this process go, made on first use.
local function folder()
  rig.folder = rig.folder or shell.folder()
  return rig.folder
end

---What the program says.
---@param line string its arguments
function rig.mneme(line)
  local pipe = io.popen(("'%s' %s 2>&1"):format(program, line))
  local said = pipe:read "*a"
  pipe:close()
  return said
end

---Train.
---@param experiment string "demo"
---@param settings string "core=gru seed=1"
---@param name string of the run
---@return string run its folder
---@return string said
function rig.train(experiment, settings, name)
  local run = folder() .. "/" .. name
  return run, rig.mneme(("run '%sexperiments/%s.lua' %s run=%s"):format(registry.root, experiment, settings, run))
end

---Why a run ended, at which step, and what it came to.
function rig.outcome(run) return outcome.read(run) or { results = {} } end

---The settings that a run was made with.
function rig.settings(run) return json.decode((files.read(run .. "/config.json"))).config end

---What fresh episodes come to: the mean of "success" or "return".
---@return number? mean nil: the program said something else
function rig.evaluate(run, episodes, of)
  return tonumber(rig.mneme(("eval %s episodes=%d"):format(run, episodes)):match(of .. "%s+(-?[%d.]+)"))
end

function rig.clean() os.execute("rm -rf " .. folder()) end

return rig
