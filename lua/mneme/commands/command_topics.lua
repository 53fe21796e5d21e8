-- command_topics.lua -- help about a setting of a command (`mneme help jobs`), from the header of the command's file, and about the words that
-- commands and messages use (`mneme help journal`).
local catalogue = require "mneme.base.catalogue"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local layout = require "mneme.base.layout"

local command_topics = {}

local words = {
  use = "which code a stored run is evaluated or resumed with, where its files have changed since: use=stored takes the copies in RUN/source, use=now "
    .. "what is there now.",
  trust = "trust=1 runs code that the folder of a run or study brings (cores, environments, scripts). Without it only what lies in the installation or in "
    .. "the current folder, and a script that the command line names, is run: somebody else's folder is data.",
  history = "in RUN/config.json, an entry for each start or resume of the run: from which step, by which program and commit, on which machine, and with which "
    .. "steps, device, precision and threads.",
  source = "RUN/source holds a copy of the script and of every Lua file that it loaded; config.json has their checksums. mneme check RUN compares.",
  journal = "the folder STUDY/tune: what a tuning proposed, and a run for each trial. Killed, the same command goes on from it; several processes may work "
    .. "on one (docs/tuning.md).",
  trial = "one run of a tuning: a setting with one seed.",
  claim = "what a study is to show, as a test on its runs: better, at_least, ratio, equal, solves, sooner (docs/studies.md).",
  verdict = "what the runs say of a claim: holds, does not hold, or undecided, with p corrected for all claims.",
  point = "one combination of a study's axes; a run of a study is a point with one seed.",
  checkpoint = "parameters, optimiser, states and counters of a training in one file, RUN/checkpoints/step-N.safetensors; written once a minute and at the "
    .. "end. A run resumes from the newest.",
  score = "success, or what an environment calls success, from 0 to 1; the return is the sum of rewards.",
  metrics = "RUN/metrics.jsonl: a line of JSON for each logged step. The same values are in the events for TensorBoard.",
  live = "RUN/live: the file through which mneme view watches a training. It holds nothing that a run needs.",
  tape = "the ops that were recorded for backward(); backward() frees what it walked, mn.clear_tape() all.",
  state = "what a core keeps from step to step, for each environment.",
  rank = "one process of an MPI job that trains one agent (docs/ranks.md).",
  half_life = "the steps after which half of what a state held is left; core.remember=STEPS is where it begins.",
}
local also = { claims = "claim", verdicts = "verdict", trials = "trial", points = "point", ranks = "rank", states = "state", ["half-life"] = "half_life",
  sources = "source" }

-- The entries of a command's header: an indented line, and the lines further in that continue it.
local function entries_of(command)
  local list = {}
  local path = registry.root .. "lua/mneme/" .. command.comment .. ".lua"
  for line in (catalogue.comment(path) .. "\n"):gmatch "([^\n]*)\n" do
    local indent = #line:match "^ *"
    if indent > 3 and list[1] then list[#list] = list[#list] .. " " .. line:match "^ *(.*)"
    elseif indent > 1 then list[#list + 1] = line:match "^ *(.*)" end
  end
  return list
end

---Adds commands, their settings and the words of messages to the topics of help.
---@param add fun(name: string, text: fun(): string)
---@param commands table[] of command_table.lua: { name, usage, doc, comment }
function command_topics.add(add, commands)
  local of_key = {}
  for _, command in ipairs(commands) do
    add(command.name, function() return ("usage: mneme %s%s\n  %s\n"):format(command.name, command.usage, command.doc) end)
    local function note(text)
      for key in text:gmatch "%f[%w_]([%a_][%w_]*)=" do
        of_key[key] = of_key[key] or {}
        local list = of_key[key]
        if not list[text] then
          list[text], list[#list + 1] = true, { "mneme " .. command.name, (text:gsub("  +", ": ", 1):gsub("  +", " ")) }
        end
      end
    end
    for _, entry in ipairs(command.comment and entries_of(command) or {}) do note(entry) end
    for part in command.usage:gmatch "%[([^%[%]]*)%]" do
      local key = part:match "^([%a_][%w_]*)="
      if key and not of_key[key] then note(part) end
    end
  end
  for _, key in ipairs(tables.keys(of_key)) do
    add(key, function() return ("%s=: a setting of commands\n"):format(key) .. layout.columns(of_key[key]) end)
  end
  for word, text in pairs(words) do add(word, function() return layout.prose(("%s: %s"):format(word:gsub("_", "-"), text)) end) end
  for word, of in pairs(also) do add(word, function() return layout.prose(("%s: %s"):format(of:gsub("_", "-"), words[of])) end) end
end

return command_topics
