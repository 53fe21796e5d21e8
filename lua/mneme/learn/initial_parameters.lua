-- initial_parameters.lua -- what a training begins with, of another run or a file (init=RUN|FILE.safetensors; init.map=THEIRS:OURS where names
-- differ), and which parts of it do not train (freeze=core,torso).
local config = require "mneme.runs.config"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local lazy = require "mneme.base.lazy"
local contract_rig = lazy "mneme.models.contract_rig"
local modules = lazy "mneme.tensor.module"
local saved = lazy "mneme.tensor.saved"
local stored_parameters = lazy "mneme.learn.stored_parameters"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local initial = {}

-- Tensors by name, those of what was trained besides the agent, and what they are of.
local function source(from)
  local checkpoint = files.is_folder(from) and stored_parameters.checkpoint(from)
  if checkpoint then return stored_parameters.of(checkpoint), stored_parameters.of(checkpoint, "extra"), ("%s, step %.0f"):format(from, checkpoint.step) end
  if not files.is_file(from) then errors.usage(("init=%s: there is no such run or file"):format(from), "init=RUN or init=FILE.safetensors") end
  return saved.load(from), {}, from
end

local prefixes = { ["agent."] = "", ["model."] = "" }         -- that a checkpoint puts before a parameter's name

local function shape(t) return "[" .. table.concat(t:shape(), ",") .. "]" end

-- Some names, and how many more.
local function some(names)
  table.sort(names)
  local more = #names - 6
  return table.concat(names, " ", 1, math.min(#names, 6)) .. (more > 0 and (" and %d more"):format(more) or "")
end

-- Parameters by name, where init.map= calls those that begin with one name, up to a dot, by another; of two that fit the longer counts.
local function renamed(known, map)
  local words, found, all, from = {}, {}, {}, {}
  for word in map:gmatch "[^,%s]+" do
    local theirs, ours = word:match "^([^:]+):([^:]+)$"
    if not theirs or words[theirs] then
      errors.usage(("init.map: '%s', expected THEIRS:OURS, each of theirs once"):format(word), "init.map=lstm:core,policy.4:actor.2")
    end
    words[theirs] = ours
  end
  for _, name in ipairs(tables.keys(known)) do
    local to, longest = name, 0
    for theirs, ours in pairs(words) do
      local rest = (name .. "."):sub(1, #theirs + 1) == theirs .. "." and name:sub(#theirs + 1)
      found[theirs] = found[theirs] or rest
      if rest and #theirs > longest then to, longest = ours .. rest, #theirs end
    end
    if all[to] then errors.usage(("init.map: %s would be both %s"):format(to, some { name, from[to] }:gsub(" ", " and "))) end
    all[to], from[to] = known[name], name
  end
  for theirs in pairs(words) do
    local _ = found[theirs] or errors.usage(("init.map: no parameter begins with %s: %s"):format(theirs, some(tables.keys(known))))
  end
  return all
end

-- Load what has the name and the shape of a parameter of `made`; a text that says what was taken and what was left.
local function take(from, made, map, beside)
  local given, more, said = source(from)
  local fits, left, new, n = {}, {}, {}, 0
  local mine, known = made:state_dict(), {}
  for name, t in pairs(given) do
    if not name:find "^normalise%." then known[(name:gsub("^%l+%.", prefixes))] = tensor.is(t) and t or nil
    elseif made.observation_space then fits[name] = t end                     -- of an agent: where its normaliser begins
  end
  known = modules.torch_layout().from_torch(made.module, renamed(known, map))
  for name, t in pairs(more) do known["extra." .. name] = t end
  for name, t in pairs(beside and beside:state_dict() or {}) do mine["extra." .. name] = t end
  for name, t in pairs(mine) do
    local other = known[name]
    if other and shape(other) == shape(t) then fits[name], n = other, n + 1
    else new[#new + 1] = other and ("%s (%s, not %s)"):format(name, shape(t), shape(other)) or name end
  end
  for name in pairs(known) do if not mine[name] then left[#left + 1] = name end end
  if n == 0 then errors.usage(("init=%s: none of its parameters has a name and shape of this training: %s"):format(said, some(tables.keys(known)))) end
  for name, t in pairs(fits) do
    if not contract_rig.finite(t) then errors.usage(("init=%s: %s holds nan or inf, expected finite numbers"):format(said, name)) end
  end
  local into = made.load_state_dict and made or made.module                   -- an agent takes statistics, too
  into:load_state_dict(fits, { strict = false })
  local besides = {}
  for name, t in pairs(fits) do besides[name:match "^extra%.(.+)$" or ""] = t end
  if beside then beside:load_state_dict(besides, { strict = false }) end
  return ("begins with %d parameters of %s%s%s"):format(n, said, new[1] and "; new: " .. some(new) or "", left[1] and "; left out: " .. some(left) or "")
end

-- No gradient for the parts that freeze= names, each by the beginning of a parameter's name up to a dot.
local function freeze(words, module)
  local frozen, seen, known, left = {}, {}, {}, 0
  for word in words:gmatch "[^,%s]+" do frozen[word] = true end
  local leaves = module:parameters()
  for i, part in ipairs(module:parts()) do
    local path, fixed = "", false
    for piece in part:gmatch "[^.]+" do
      path = path == "" and piece or path .. "." .. piece
      known[path] = true
      if frozen[path] then fixed, seen[path] = true, true end
    end
    if fixed then engine.check(engine.C.mn_leaf_freeze(engine.ctx, leaves[i])) else left = left + 1 end
  end
  for word in pairs(frozen) do if not seen[word] then errors.unknown("part in freeze:", word, tables.keys(known)) end end
  if not next(frozen) then errors.usage(("freeze=%s: names no part"):format(words), "freeze=core,actor") end
  if left == 0 then errors.usage(("freeze=%s: nothing is left that trains"):format(words)) end
end

---Before the optimiser and the plans are made: what the settings init and freeze say.
---@param learner table with cfg, and an agent or a model; gets `begins`, a text
function initial.settle(learner)
  local cfg, made = learner.cfg, learner.agent or learner.model
  local resumed = config.meta(cfg) and config.meta(cfg).resumed
  if (cfg.init or "") ~= "" and not resumed then learner.begins = take(cfg.init, made, cfg.init_map or "", learner.extra and learner.extra.module)
  elseif (cfg.init_map or "") ~= "" and not resumed then errors.usage "init.map without init: there are no names to map" end
  if (cfg.freeze or "") ~= "" then
    if learner.credit == "exact" and cfg.freeze:find "%f[%w]core" then
      errors.usage(("credit=exact: its sensitivities are of the whole core, of which freeze=%s keeps a part"):format(cfg.freeze), "credit=window")
    end
    freeze(cfg.freeze, made.module)
    learner.begins = (learner.begins and learner.begins .. "; " or "") .. "frozen: " .. cfg.freeze:gsub("[,%s]+", ", ")
  end
end

return initial
