-- list.lua -- `mneme list`: your runs, or what is installed.
local catalogue = require "mneme.base.catalogue"
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local meanings = require "mneme.base.meanings"
local next_step = require("mneme.base.terminal").next_step
local terminal = require "mneme.base.terminal"
local costs = lazy "mneme.models.costs"
local files = lazy "mneme.base.files"
local help = lazy "mneme.commands.help"
local run_list = lazy "mneme.commands.run_list"

local list = { name = "list", doc = "list your runs, or what is installed; parameters and costs of cores", others = "core",
  names_code = function() return {} end,
  arguments = { { "kind", "KIND", "runs, cores, costs, envs, ... (without: all that is installed)", noun = "kind of thing", optional = true },
    { "folder", "FOLDER", "of list runs: where they are", noun = "folder", optional = true } },
  options = {
    { "sort", "of list runs: what they are sorted by", type = "choice", choices = { "core", "name", "normalised", "score", "script", "state", "steps", "time" },
      unless = "time" },
    { "state", "of list runs: only those", type = "text", example = "running" },
    { "env", "of list runs: only those of this environment; SETTING=VALUE: only those with this setting", type = "text", example = "tmaze" },
    { "core", "of list runs: only those with this core", type = "text", example = "gru" },
    { "script", "of list runs: only those of this script", type = "text", example = "tmaze" },
    { "N", "of list cores and list costs: the length of a sequence, or the steps before one of acting", type = "whole", range = { 1 }, default = 256 },
  } }

-- What is no kind of thing: what was meant.
local function unknown(kind)
  if files.is_folder(kind) then errors.usage(("list: '%s' is a folder"):format(kind), "mneme list runs " .. kind) end
  local means = meanings.of_field("kind of thing", kind)
  if means then errors.usage(("unknown kind of thing '%s'"):format(kind), means:find " " and means or "mneme list " .. means) end
  if not errors.nearest(kind, catalogue.kinds) and help.is_topic(kind) then errors.usage(("unknown kind of thing '%s'"):format(kind), "mneme help " .. kind) end
  errors.unknown("kind of thing", kind, { "costs", "runs", unpack(catalogue.kinds) })
end

function list.run(o)
  local kind, known = o.kind, false
  for _, name in ipairs(catalogue.kinds) do known = known or name == kind end
  for _, key in ipairs { "core", "env", "script", "sort", "state" } do
    if o[key] and kind ~= "runs" then errors.usage(("list: %s= is for mneme list runs"):format(key)) end
  end
  if kind == "runs" then
    o.where = {}
    for _, item in ipairs(o.all) do
      if item[1] and item[1] ~= "sort" then o.where[item[1]] = item[1] == "env" and item[2]:gsub("%-v%d+$", "") or item[2] end
    end
    local text, newest = run_list.text(o)
    io.stdout:write(text)
    if newest then next_step.say({ newest.study and "report" or "view", newest.path }) else next_step.say "run demo" end
  elseif kind == "costs" or kind == "cores" then
    if o.folder then errors.usage(("list %s: '%s' is not a setting"):format(kind, o.folder), "mneme help core " .. o.folder) end
    if kind == "cores" then io.stdout:write(costs.list(o.core_settings, o.N))
    elseif terminal.columns(1) then io.stdout:write(require("mneme.base.layout").table(costs.table(o.core_settings, o.N, true)))
    else io.stdout:write(costs.table(o.core_settings, o.N)) end          -- Markdown
    next_step.say "help core NAME"
  elseif kind and not known then unknown(kind)
  else
    for i, name in ipairs(kind and { kind } or catalogue.kinds) do
      io.stdout:write(kind and "" or i > 1 and "\n" .. name .. "\n" or name .. "\n", help.kind(name))
    end
    next_step.say(kind == "experiments" and "run NAME --help" or "help NAME")
  end
end

---The words that KIND stands for, for completion.
function list.kinds() return { "costs", "runs", unpack(catalogue.kinds) } end

return list
