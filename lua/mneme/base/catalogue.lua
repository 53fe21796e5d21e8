-- catalogue.lua -- lists every op, environment, core, attention, data set, learner, scene and experiment with its one-line doc.
-- The lists are not kept by hand: ops and environments come from the engine's registry, the rest from
-- their folders.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"

local catalogue = { kinds = { "cores", "attentions", "envs", "datasets", "learners", "ops", "scenes", "experiments" } }

-- The lines of the comment at the top of a file, without their dashes.
local function comment_lines(path)
  local lines = {}
  for line in (errors.text_of("@" .. path) .. "\n"):gmatch "(.-)\n" do
    if not line:find "^%-%-" then break end
    lines[#lines + 1] = line:match "^%-%- ?(.*)"
  end
  return lines
end

---The comment at the top of a file, its lines as they are.
function catalogue.comment(path)
  local lines = comment_lines(path)
  return table.concat(lines, "\n") .. (#lines > 0 and "\n" or "")
end

---The comment at the top of a file as a text to read: without "name.lua --".
function catalogue.prose(path) return (catalogue.comment(path):gsub("^[%w_]+%.lua %-%- ", "")) end

-- The first sentence of the comment at the top of a file, without "name.lua --"; "" without one.  Dots in a row end none.
local function first_comment(path)
  local text = ""
  for _, line in ipairs(comment_lines(path)) do text = text .. (text == "" and "" or " ") .. line:gsub("^%s+", "") end
  text = text:gsub("^[%w_]+%.lua %-%- ", ""):gsub("%s%s+.*", "")
  return text:match "^(.-[^%.])%.%s" or text:match "^(.-)%.$" or text
end
catalogue.first_comment = first_comment

local function entries(count, name, doc)
  return tables.filled(count(), function(i) return { name = name(i - 1), doc = ffi.string(doc(i - 1)), index = i - 1 } end)
end

-- A line about a file: the comment at its top, or what it returns as doc, or where it lies; it is not run.
local function line_of(path)
  local text = first_comment(path)
  local _, doc = errors.text_of("@" .. path):match "%f[%w]doc%s*=%s*([\"'])(.-)%1"
  return text ~= "" and text or doc or path .. " (no comment at its top, and no doc)"
end

local words = { datasets = "data set" }           -- of the others it is their kind without its s

local function folder(kind)
  return tables.map(registry.names(kind), function(name)
    return { name = name, doc = line_of(registry.file(kind, name, words[kind] or kind:sub(1, -2))) }
  end)
end

local from = {
  ops = function()
    return entries(C.mn_op_count, function(i) return ffi.string(C.mn_op_name(i)) end, C.mn_op_doc)
  end,
  envs = function()
    return entries(C.mn_env_count, function(i)
      return ("%s-v%d"):format(ffi.string(C.mn_env_name(i)), C.mn_env_version(i))
    end, C.mn_env_doc)
  end,
}

---All things of a kind: "cores", "attentions", "envs", "datasets", "learners", "ops", "scenes" or "experiments".
---@return { name: string, doc: string, index: integer? }[]
function catalogue.list(kind)
  if not tables.has(catalogue.kinds, kind) then errors.unknown("kind of thing", tostring(kind), catalogue.kinds) end
  return (from[kind] or folder)(kind)
end

---The names of a kind.
function catalogue.names(kind) return tables.map(catalogue.list(kind), function(thing) return thing.name end) end

return catalogue
