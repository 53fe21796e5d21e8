-- grid.lua -- the runs of a study from its axes: the name of each run, and the command-line arguments that run
-- it.  The same study, settings and arguments give the same runs in the same order, on every machine.
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"

local grid = {}
local sizes = { quick = true, full = true }
grid.no_axis = { seed = "seeds = { ... } says how many", run = "each run has a folder", resume = "each run goes on by itself",
  quick = "it is a size", full = "it is a size" }

local function words_of(set)
  local words = {}
  for _, key in ipairs(tables.keys(set)) do
    for _, word in ipairs(setting_types.words(key, set[key])) do words[#words + 1] = word end
  end
  return words
end

-- A short word for a thing with options: "galite gate=scalar".
local function label_of(v) return type(v) == "table" and setting_types.show(v):gsub(" ", "_") or setting_types.show(v) end

---A value of an axis.
---@param v any as the study gives it
---@return table { label, words, plain = the value of the setting `name`, set = nil | settings }
function grid.value(name, v)
  if type(v) ~= "table" then return { label = label_of(v), words = setting_types.words(name, v), plain = v } end
  if v.set then
    errors.need(("study: axis %s: set"):format(name), v.set, nil, "{ setting = value, ... }")
    if type(v.label) ~= "string" then errors.raise(("study: a value of axis %s has set = {...} and no label"):format(name)) end
    return { label = v.label, words = words_of(v.set), set = v.set }
  end
  local plain = {}
  for key, x in pairs(v) do if key ~= "label" then plain[key] = x end end
  return { label = v.label or label_of(plain), words = setting_types.words(name, plain), plain = plain }
end

---A value that a list of them has twice, by label or by what it sets.
---@param list table[] of grid.value
---@return string? again its label; nil: all differ
---@return string? first the label of the value that it equals
function grid.twice(list, schema)
  local seen, labels = {}, {}
  for _, value in ipairs(list) do
    local key = setting_types.same_words(value.words, schema)
    local first = labels[value.label] or seen[key]
    if first then return value.label, first.label end
    labels[value.label], seen[key] = value, value
  end
end

---Arguments, or a run's name, as a text that equal ones have, in whatever way their values are written.
---@param text string such as "lr=1e-3 steps=5e6", or with parts = "[^,]+" the name "core=gru,lr=1e-3,seed=1"
---@param parts string? what a part of the text is
function grid.same_text(text, schema, parts)
  return setting_types.same_words(tables.found(text, parts or "%S+"), schema)
end

---The same of a run's name.
function grid.same_name(name, schema) return grid.same_text(name, schema, "[^,]+") end

local NAMED = 'name it, after mn.features.mine = ...: { label = "mine", set = { core = { "agalite", feature = "mine" } } }'

-- The type of what a value holds that is no text, number or boolean; nil: nothing.
local function unwritten(v)
  local kind = type(v)
  if kind ~= "table" then return kind ~= "string" and kind ~= "number" and kind ~= "boolean" and kind or nil end
  for _, x in pairs(v) do if unwritten(x) then return unwritten(x) end end
end

---Refuse axes that are none.
function grid.check(axes)
  for name, axis in pairs(axes) do
    local function refuse(what, hint) errors.raise(("study: axis %s %s"):format(tostring(name), what), { hint = hint, status = 2 }) end
    if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then refuse("needs a name of letters, digits and _", NAMED) end
    if grid.no_axis[name] then refuse("cannot be one: " .. grid.no_axis[name]) end
    if type(axis) ~= "table" or #axis == 0 then refuse "is no list of values" end
    for key in pairs(axis) do
      if type(key) ~= "number" and not sizes[key] then errors.unknown(("key of axis %s:"):format(name), tostring(key), { "full", "quick" }) end
    end
    for size in pairs(sizes) do
      if axis[size] ~= nil and type(axis[size]) ~= "table" then refuse(("has %s that is no list of values"):format(size)) end
    end
    for _, list in ipairs { axis, axis.quick or axis, axis.full or axis } do
      local values_of = tables.map(list, function(v)
        if unwritten(v) then refuse(("has a %s, which no command line can write"):format(unwritten(v)), NAMED) end
        return grid.value(name, v)
      end)
      local again, first = grid.twice(values_of, { [name] = { default = values_of[1].plain } })
      if again then refuse(("has %s twice%s"):format(first, again ~= first and ", once as " .. again or "")) end
    end
  end
end

---Labels of axes as a text: "core=gru, corridor=20".
---@param labels table<string, any>?
---@param between string? ", "
function grid.text(labels, between)
  local function part(axis) return axis .. "=" .. setting_types.show(labels[axis]) end
  return table.concat(tables.map(tables.keys(labels or {}), part), between or ", ")
end

---Is a label that of this value, or the value written another way?
---@param value table of grid.value
function grid.is(value, label)
  return value.label == setting_types.show(label) or value.plain ~= nil and type(value.plain) ~= "table" and setting_types.same(label, value.plain)
end

---The values of an axis.
---@return table[] see grid.value
function grid.list(name, axis, size)
  return tables.map(size and axis[size] or axis, function(v) return grid.value(name, v) end)
end

---The labels of an axis in all its sizes.
function grid.labels(name, axis)
  local labels, seen = {}, {}
  for _, size in ipairs { "", "quick", "full" } do
    for _, value in ipairs(grid.list(name, axis, size)) do
      if not seen[value.label] then labels[#labels + 1], seen[value.label] = value.label, true end
    end
  end
  return labels
end

---The value of an axis that a command-line argument names: a label, or a new value of the setting, not yet declared.
---@param size string? whose values come first: "quick" or "full"
function grid.find(name, axis, text, size)
  for _, is in ipairs { function(value) return value.label == text end, function(value) return grid.is(value, text) end } do
    for _, of in ipairs { size or "", "", "quick", "full" } do
      for _, value in ipairs(grid.list(name, axis, of)) do if is(value) then return value end end
    end
  end
  if type(axis[1]) == "table" and axis[1].set then errors.unknown("value of axis " .. name .. ":", text, grid.labels(name, axis)) end
  return { label = text, words = { name .. "=" .. text }, plain = text, unknown = true }
end

local LONGEST = 150              -- bytes of a label in a folder's name

-- A label as a part of a folder's name.  Letters of other alphabets and very long labels get a checksum: else two could be one.
local function clean(label)
  local plain = label:gsub("[^%w_.+-]", "_")
  if #label <= LONGEST and not label:find "[\128-\255]" then return plain end
  return ("%s-%08x"):format(plain:sub(1, LONGEST), C.mn_crc32c(0, label, #label))
end

grid.clean = clean

-- The values in a comma-separated text: labels, which may contain commas, or their form in a run's name.
local function items_of(name, axis, text)
  local known, list, at = {}, {}, 1
  for _, label in ipairs(grid.labels(name, axis)) do
    known[#known + 1] = { label, label }
    if clean(label) ~= label then known[#known + 1] = { clean(label), label } end
  end
  table.sort(known, function(a, b) return #a[1] > #b[1] end)
  while at <= #text + 1 do
    at = text:match("^%s*()", at)
    local item = text:match("^[^,]*", at)
    local label = item
    for k = #known, 1, -1 do                     -- the longest wins
      local there = known[k][1]
      local after = text:sub(at + #there, at + #there)
      if text:sub(at, at + #there - 1) == there and (after == "" or after == ",") then item, label = there, known[k][2] end
    end
    list[#list + 1], at = label:match "^%s*(.-)%s*$", at + #item + 1
  end
  return list
end

---Words that name values of axes, apart from the others.
---@return table<string, table[]> narrowed of each axis that is named: its values
---@return string[] rest
function grid.narrow(axes, words, size)
  local narrowed, rest = {}, {}
  for _, word in ipairs(words) do
    local key, text = setting_types.pair(word)
    if key and axes[key] then narrowed[key] = tables.map(items_of(key, axes[key], text), function(item) return grid.find(key, axes[key], item, size) end)
    else rest[#rest + 1] = word end
  end
  return narrowed, rest
end

---What a run's name says besides its seed: "core=gru,corridor=20".
function grid.kind(c) return (c.name:gsub(",?seed=%-?%d+$", "")) end

---Runs that have something in common.
---@return table[] groups { name, runs }, in the order in which they come
function grid.groups(runs, name_of) return tables.groups(runs, name_of, "runs") end

---The runs of a grid: seed by seed, so that all of it is there once before any of it is there twice.
---@param axes table[] { name, values = list of grid.value }
---@return table[] runs { name, labels = { axis = label }, seed, words }
function grid.runs(axes, seeds)
  local runs = {}
  local function walk(i, names, labels, words, seed)
    if i > #axes then
      local all, mine = { unpack(names) }, { unpack(words) }
      all[#all + 1], mine[#mine + 1] = "seed=" .. seed, "seed=" .. seed
      runs[#runs + 1] = { name = table.concat(all, ","), labels = tables.merged(labels), seed = seed, words = mine }
      return
    end
    for _, value in ipairs(axes[i].values) do
      local deeper = { unpack(words) }
      for _, word in ipairs(value.words) do deeper[#deeper + 1] = word end
      labels[axes[i].name], names[i] = value.label, axes[i].name .. "=" .. clean(value.label)
      walk(i + 1, names, labels, deeper, seed)
    end
  end
  for _, seed in ipairs(seeds) do walk(1, {}, {}, {}, seed) end
  return runs
end

return grid
