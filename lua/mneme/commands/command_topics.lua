-- command_topics.lua -- help about an option of commands (`mneme help jobs`), and about the words that commands and messages use
-- (`mneme help journal`).
local commands = require "mneme.commands.command_table"
local layout = require "mneme.base.layout"
local options = require "mneme.commands.options"

local command_topics = {}

local words = {
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

-- Commands and benchmarks.
local function all()
  local list = commands.all()
  for _, part in ipairs(commands.find("bench").parts()) do list[#list + 1] = part end
  return list
end

---What an option is in each command that has it; nil: none has.
---@param key string
---@return string?
function command_topics.of_option(key)
  local rows, seen = {}, {}
  for _, command in ipairs(all()) do
    local option = options.by_name(command)[key]
    if option and seen[option] then seen[option][1] = seen[option][1] .. ", " .. command.name
    elseif option then
      rows[#rows + 1] = { "mneme " .. command.name, table.concat(options.rows { option }[1], ": ") }
      seen[option] = rows[#rows]
    end
  end
  return rows[1] and ("%s=: a setting of commands\n"):format(key) .. layout.columns(rows, 24)
end

---Adds commands, their options and the words of messages to the topics of help.
---@param add fun(name: string, text: fun(): string)
function command_topics.add(add)
  local keys = {}
  for _, command in ipairs(all()) do
    add(command.name, function() return layout.prose("usage: " .. options.usage(command)) .. "  " .. command.doc .. "\n" end)
    for _, option in ipairs(options.of(command)) do keys[option[1]] = true end
  end
  for key in pairs(keys) do add(key, function() return command_topics.of_option(key) end) end
  for word, text in pairs(words) do add(word, function() return layout.prose(("%s: %s"):format(word:gsub("_", "-"), text)) end) end
  for word, of in pairs(also) do add(word, function() return layout.prose(("%s: %s"):format(of:gsub("_", "-"), words[of])) end) end
end

return command_topics
