-- registry.lua -- finds cores, attentions, data sets, learners, scenes and experiments by folder: Mneme's, then the user's.
local lfs = require "lfs"
local errors = require "mneme.base.errors"
local renamed = require "mneme.base.renamed"
local source_files = require "mneme.base.source_files"

local here = debug.getinfo(1, "S").source:match "^@(.*)base/registry%.lua$" or "./lua/mneme/"
local registry = { root = here .. "../../", library = here }           -- library: lua/mneme/ itself

-- Kinds whose folder is in lua/mneme.
local inside = { cores = true, attentions = true, datasets = true, learners = true }

---The folders searched for one kind: the checkout's or the installation's, then the user's.
local function folders(kind)
  local ours = inside[kind] and here .. kind or here .. "../../" .. kind
  if kind == "datasets" and lfs.attributes("./tasks", "mode") == "directory" then      -- as the folder was called before
    renamed.note("the folder ./tasks", "./datasets")
    return { ours, "./" .. kind, "./tasks" }
  end
  return { ours, "./" .. kind }
end

---Names of every file NAME.lua of a kind ("cores", "attentions", "datasets", "learners", "scenes", "experiments"), sorted.
---@param kind string
---@param usable boolean? without those that may not run
---@return string[]
function registry.names(kind, usable)
  local seen, names = {}, {}
  for _, folder in ipairs(folders(kind)) do
    if lfs.attributes(folder, "mode") == "directory" then
      for file in lfs.dir(folder) do
        local name = file:match "^([^.].*)%.lua$" or file:match "^([^.])%.lua$"
        if name and not seen[name] and (not usable or source_files.may_load(folder .. "/" .. file)) then seen[name] = true names[#names + 1] = name end
      end
    end
  end
  table.sort(names)
  return names
end

---The benchmarks of `mneme bench`: one for each file of commands/bench.
---@return string[] names, sorted
function registry.benchmarks()
  local names = {}
  for file in lfs.dir(here .. "commands/bench") do
    local name = file:match "^(%w+)%.lua$"
    if name and name ~= "init" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

---The path of one, or an error that lists what there is.
function registry.file(kind, name, word)
  if type(name) ~= "string" or name:find "[^%w_.-]" then errors.usage(("%s '%s' is not a name"):format(word, tostring(name))) end
  local found = {}
  for _, folder in ipairs(folders(kind)) do
    local path = folder .. "/" .. name .. ".lua"
    local about = lfs.attributes(path)
    if about and about.mode == "file" and not (found[1] and about.ino == found[1].ino and about.dev == found[1].dev) then
      found[#found + 1] = { path = path, ino = about.ino, dev = about.dev }
    elseif not about and source_files.exists(path) then found[#found + 1] = { path = path } end
  end
  if found[2] then
    errors.usage(("%s '%s' is there twice: %s and %s"):format(word, name, found[1].path, found[2].path), "give yours a name of its own, or its path")
  end
  if found[1] then return found[1].path end
  errors.unknown(word, name, registry.names(kind))
end

return registry
