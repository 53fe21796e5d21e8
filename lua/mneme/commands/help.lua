-- help.lua -- `mneme help TOPIC` and mn.help("topic"): an op's signature, an environment's parameters, a
-- core's keys, a script's settings.  All of it is read from where it is declared.
local ffi = require "ffi"
local attention = require "mneme.models.encoder_attention"
local catalogue = require "mneme.base.catalogue"
local core = require "mneme.models.core"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local find = require "mneme.base.registry"
local tasks = require "mneme.envs.sequence_task"
local values = require "mneme.base.setting_types"

local C = engine.C
local help = {}

local function letters(text) return select(2, text:gsub("[^\128-\191]", "")) end

-- Rows of words as columns, by letters, not bytes.
local function columns(rows)
  local width, lines = {}, {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do width[i] = math.max(width[i] or 0, letters(cell)) end
  end
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do cells[i] = i < #row and cell .. (" "):rep(width[i] - letters(cell)) or cell end
    lines[#lines + 1] = ("  " .. table.concat(cells, "  ")):gsub("%s+$", "")
  end
  return table.concat(lines, "\n") .. "\n"
end
help.columns = columns

local function setting_row(key, entry)
  local about = entry.about
  local doc = about[1] or ""
  if about.choices then doc = doc .. " (" .. table.concat(about.choices, " ") .. ")"
  elseif about.range and about.range[2] < 2 ^ 31 - 1 then
    doc = ("%s (%s..%s)"):format(doc, values.show(about.range[1]), values.show(about.range[2]))
  end
  return { key, values.show(entry.default), doc }
end

---What --help of a script prints.
---@param script string? its path
---@param schema table key -> { default, about }
---@param own string[] its own keys
---@param common string[] keys that every script has
function help.settings(script, schema, own, common)
  local rows, rest = {}, {}
  for i, key in ipairs(own) do rows[i] = setting_row(key, schema[key]) end
  for i, key in ipairs(common) do rest[i] = setting_row(key, schema[key]) end
  local doc = script and catalogue.first_comment(script) or ""
  return doc .. (doc ~= "" and "\n" or "") .. "usage: mneme run " .. (script or "SCRIPT")
    .. " [key=value ...]\n\nsettings\n" .. columns(rows) .. "\nof every script\n" .. columns(rest)
end

-- ---- topics ----

local function op_text(i)
  local sig = ffi.string(C.mn_op_sig(i))
  local inputs, outputs, options = sig:match "^(.-)%s*%->%s*([^|]*)|?%s*(.*)$"
  return ("mn.%s -- %s\n\n%s"):format(ffi.string(C.mn_op_name(i)), ffi.string(C.mn_op_doc(i)),
    columns { { "inputs", inputs }, { "outputs", (outputs:gsub("%s+$", "")) },
              { "options", options ~= "" and options or "none" },
              { "gradient", C.mn_op_differentiable(i) and "yes" or "no" } })
end

local function env_text(i)
  local rows = {}
  for name, rule in ffi.string(C.mn_env_params(i)):gmatch "([%w_]+)=(%S+)" do
    local default, range = rule:match "^([^%[]*)%[(.*)%]$"
    rows[#rows + 1] = { name, default or rule:match "^[^|]*", range or rule:gsub("|", " ") }
  end
  rows[#rows + 1] = { "num_envs, seed, time_limit", "", "as for every environment" }
  local about, actions, settable = C.mn_env_about(i), ffi.string(C.mn_env_actions(i)), C.mn_env_settable(i)
  local facts = settable ~= nil and ("to intervene in: %s\n"):format((ffi.string(settable):gsub("=[%d.]+%[", "["))) or ""
  return ("mn.env(\"%s\") -- %s\nactions: %s\n%s\nsettings\n%s%s"):format(ffi.string(C.mn_env_name(i)),
    ffi.string(C.mn_env_doc(i)), actions ~= "" and actions or "numbers from 0", facts, columns(rows), about ~= nil and "\n" .. ffi.string(about) .. "\n" or "")
end

local function core_text(name)
  local d, keys, rows = core.definition(name), require "mneme.models.core_settings", {}
  for _, key in ipairs(find.keys(d.config)) do
    local known = core.known_words(d, key)
    rows[#rows + 1] = { key, values.show(d.config[key]), (keys[key] or "") .. (known and " (" .. table.concat(find.keys(known), " ") .. ")" or "") }
  end
  local about = require("mneme.tensor.nn").dry(core.new, name):describe()
  local base = d.preset and ("a setting of %s: %s\n"):format(d.preset[1], values.show(d.preset[2])) or ""
  local equations = type(d.equations) == "function" and d.equations(d.config) or d.equations
  return table.concat { ("mn.core(\"%s\") -- %s\n%s\n%s\n"):format(name, d.doc or "", d.source or "", base),
    catalogue.comment(find.file("cores", name, "core")), equations and "\n" .. equations .. "\n" or "",
    "\nsettings\n", columns(rows), ("\nas they are: %d parameters, a state of %d floats = %s\n"):format(about.parameters,
      about.state_floats, about.state_formula) }
end

local function attention_text(name)
  local d, keys, rows = attention.definition(name), require "mneme.models.core_settings", {}
  for _, key in ipairs(find.keys(d.config)) do rows[#rows + 1] = { key, values.show(d.config[key]), keys[key] or "" } end
  return ("mn.encoder { attention = \"%s\" } -- %s\n%s\n\n%s\nsettings, beside those of mn.encoder\n%s%s"):format(name, d.doc or "", d.source or "",
    catalogue.comment(find.file("attentions", name, "attention")), columns(rows),
    d.causal and "\nno causal form: " .. d.causal .. "\n" or "")
end

local function task_text(name)
  local d, rows = tasks.definition(name), {}
  for _, list in ipairs { { d.config, d.about or {} }, { tasks.common, tasks.common_about } } do
    for _, key in ipairs(find.keys(list[1])) do
      rows[#rows + 1] = setting_row(key, { default = list[1][key], about = list[2][key] or {} })
    end
  end
  return ("mn.task(\"%s\") -- %s\n%s\n\n%s\nsettings\n%s"):format(name, d.doc or "", d.source or "",
    catalogue.comment(find.file("tasks", name, "task")), columns(rows))
end

-- An op or environment by its name, with or without its version.
local function listed(kind, text)
  return function(name)
    local known = {}
    for i, thing in ipairs(catalogue.list(kind)) do
      if thing.name == name or thing.name:gsub("%-v%d+$", "") == name then return text(thing.index) end
      known[i] = thing.name:gsub("%-v%d+$", "")
    end
    errors.unknown(kind:sub(1, -2), name, known)
  end
end

-- What may be asked for with its kind: `mneme help env selective_copy`, which is a task, too.
local named_texts = { core = core_text, attention = attention_text, task = task_text, op = listed("ops", op_text), env = listed("envs", env_text) }
help.named = named_texts

local function kind_text(kind)
  local rows = {}
  for i, thing in ipairs(catalogue.list(kind)) do rows[i] = { thing.name, thing.doc } end
  return columns(rows)
end
help.kind = kind_text

local config_text = [[
key=value (or --key=value) overrides a setting of a script; --help of the script lists them.

  corridor=20 lr=5e-5 view=1     numbers, true/false or 1/0, words
  core=gru                       another thing, with its own options
  core.eta=8  optim.beta=0.9     an option; a part of a group
  sizes=64,64                    a setting that is a list

Later ones win: the script's defaults, published values of the chosen core, quick=1, the command line.
  run=FOLDER       where the run is kept (default runs/SCRIPT-N)
  seeds=4          one run for each of several seeds (4: from 1 to 4; 3..7; 1,5,9) in one process; run=F: F-seed1 ...
  resume=FOLDER    go on with a run; only steps, view, threads, device, precision, debug and profile may change
]]

local learners = { a2c = "advantage actor-critic: mn.a2c(cfg, task, agent):train()", ppo = "proximal policy optimisation: mn.ppo(cfg, task, agent):train()",
  supervised = "sequences with answers: mn.supervised(cfg, task, model):train()" }

local function learner_text(name)
  return ("%s -- %s\n\nsettings, as keys of cfg (docs/%s.md says what they mean)\n%s"):format(name, learners[name],
    name == "supervised" and "tasks" or "learners", columns(require("mneme.learn.learner_settings").rows(require("mneme.learn." .. name).defaults)))
end

local function torso_text()
  return "mn.agent { torso = NAME or { NAME, option = value } } -- what stands between a task's observations and the memory\n\n"
    .. columns(require("mneme.models.torso").rows())
end

-- Every topic: name -> function that gives its text.
local function topics()
  local all = { config = function() return config_text end }
  for name in pairs(learners) do all[name] = function() return learner_text(name) end end
  all.torso = torso_text
  for _, kind in ipairs(catalogue.kinds) do all[kind] = function() return kind_text(kind) end end
  for _, thing in ipairs(catalogue.list "ops") do
    all[thing.name] = function() return op_text(thing.index) end
  end
  for _, thing in ipairs(catalogue.list "envs") do
    local text = function() return env_text(thing.index) end
    all[thing.name], all[thing.name:gsub("%-v%d+$", "")] = text, text
  end
  for _, thing in ipairs(catalogue.list "cores") do
    local op = all[thing.name]                 -- gru is a core and an op
    all[thing.name] = function() return core_text(thing.name) .. (op and "\n" .. op() or "") end
  end
  for _, thing in ipairs(catalogue.list "tasks") do
    local other = all[thing.name]              -- selective_copy is a task and an environment
    all[thing.name] = function() return task_text(thing.name) .. (other and "\n" .. other() or "") end
  end
  for _, thing in ipairs(catalogue.list "attentions") do
    local other = all[thing.name]              -- longformer is a core and an attention
    all[thing.name] = function() return attention_text(thing.name) .. (other and "\n" .. other() or "") end
  end
  return all
end

---The text about an op, environment, core or kind of thing.
---@param topic string
---@param kind string? "core", "attention", "task", "op" or "env": the one of that name, where something else has it too
---@return string
function help.text(topic, kind)
  if named_texts[kind] then
    if kind ~= "op" and kind ~= "env" then find.file(kind .. "s", topic, kind) end          -- or an error that lists what there is
    return named_texts[kind](topic)
  end
  local all = topics()
  if not all[topic] then
    local near = errors.nearest(topic, find.keys(all))
    errors.usage(("help: nothing is known about '%s'"):format(topic), near and "did you mean '" .. near .. "'?"
      or "topics: config, a2c, ppo, supervised, torso, " .. table.concat(catalogue.kinds, ", ") .. ", or a name of theirs")
  end
  return all[topic]()
end

---Print the text about a topic.
---@param topic string? nil: about settings
---@param kind string? as in text
function help.show(topic, kind) io.stdout:write(help.text(topic or "config", kind)) end

return help
