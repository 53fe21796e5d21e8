-- list.lua -- `mneme list`: your runs, or what is installed.
local catalogue = require "mneme.base.catalogue"
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local next_step = require("mneme.base.terminal").next_step
local costs = lazy "mneme.models.costs"
local files = lazy "mneme.base.files"
local help = lazy "mneme.commands.help"
local run_list = lazy "mneme.commands.run_list"
local tables = require "mneme.base.tables"

local list = { name = "list", doc = "list your runs, or what is installed; parameters and costs of cores", others = "core",
  names_code = function() return {} end,
  arguments = { { "kind", "KIND", "runs, cores, envs, ... (without: all that is installed)", noun = "kind of thing", optional = true },
    { "folder", "FOLDER", "of list runs: where they are", noun = "folder", optional = true } },
  options = {
    { "sort", "of list runs: what they are sorted by", type = "choice", choices = { "core", "name", "normalised", "score", "script", "state", "steps", "time" },
      unless = "time" },
    { "N", "of list cores: the length of a sequence, or the steps before one of acting", type = "whole", range = { 1 }, default = 256 },
  } }

-- What is no kind of thing: what was meant.
local function unknown(kind)
  if files.is_folder(kind) then errors.usage(("list: '%s' is a folder"):format(kind), "mneme list runs " .. kind) end
  if not errors.nearest(kind, catalogue.kinds) and help.is_topic(kind) then errors.usage(("unknown kind of thing '%s'"):format(kind), "mneme help " .. kind) end
  errors.unknown("kind of thing", kind, { "runs", unpack(catalogue.kinds) })
end

function list.run(o)
  local kind, known = o.kind, tables.has(catalogue.kinds, o.kind)
  if o.sort and kind ~= "runs" then errors.usage "list: sort= is for mneme list runs" end
  if kind == "runs" then
    local other = next(o.core_settings)
    if other then errors.usage(("list runs: %s= is not a setting"):format(other), "sort=KEY; mneme view FOLDER web=1 filters") end
    local text, newest = run_list.text(o)
    io.stdout:write(text)
    if newest then next_step.say({ newest.study and "report" or "view", newest.path }) else next_step.say "run demo" end
  elseif kind == "cores" then
    if o.folder then errors.usage(("list cores: '%s' is not a setting"):format(o.folder), "mneme help core " .. o.folder) end
    io.stdout:write(costs.list(o.core_settings, o.N))
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
function list.kinds() return { "runs", unpack(catalogue.kinds) } end

return list
