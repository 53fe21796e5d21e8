-- power_loss.lua -- a model of a power cut: from a journal of what a program did to files (tests/faults/record.c) it makes the folders that
-- a disk may hold afterwards.  What was synced is there.  Of anything else each piece may be there or not, in any order: a write whole, some
-- sectors of it, as zeros, or not at all; a name that was made, changed or removed, or not.  A sync of a file keeps its bytes, not its name;
-- a sync of a folder keeps the names in it.
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"

local power_loss = {}
local SECTOR = 512

-- ---- the journal ----

---@class Change one line of a journal, its data with it
---@field kind string see record.c
---@field at integer
---@field path string
---@field to string
---@field data string

---Reads a journal; writes to one file that follow each other are one.
---@param path string
---@return Change[]
function power_loss.read(path)
  local text, at, list = files.read(path), 1, {}
  while at <= #text do
    local kind, from, bytes, name, to, stop = text:match("^(%u) (%d+) (%d+) ([^\t]*)\t([^\n]*)\n()", at)
    local change = { kind = kind, at = tonumber(from), path = name, to = to, data = text:sub(stop, stop + bytes - 1) }
    local last = list[#list]
    if kind == "W" and last and last.kind == "W" and last.path == name and last.at + #last.data == change.at then
      last.data = last.data .. change.data
    else list[#list + 1] = change end
    at = stop + bytes
  end
  return list
end

-- ---- the disk: nodes, whose `kept` is on the disk, and whose `changes` since the last sync may be ----

local function folder_node() return { names = {}, kept = {}, changes = {} } end
local function file_node(bytes) return { now = bytes, kept = bytes, changes = {} } end
local function copy(t)
  local c = {}
  for key, value in pairs(t) do c[key] = value end
  return c
end

-- A folder as it lies on this machine, all of it kept.
local function from_disk(path)
  local node = folder_node()
  for _, name in ipairs(files.list(path)) do
    local inside = path .. "/" .. name
    node.names[name] = files.is_folder(inside) and from_disk(inside) or file_node((files.read(inside)))
  end
  node.kept = copy(node.names)
  return node
end

-- The folder of a path, and the path's last name.
local function place(root, path)
  local node = root
  for part in (path:match "^(.*)/" or ""):gmatch "[^/]+" do node = node.names[part] end
  return node, path:match "[^/]*$"
end

local function find(root, path)
  if path == "" then return root end
  local folder, name = place(root, path)
  return folder and folder.names[name]
end

-- Bytes with others written over them.
local function written(bytes, at, data)
  if at > #bytes then bytes = bytes .. ("\0"):rep(at - #bytes) end
  return bytes:sub(1, at) .. data .. bytes:sub(at + #data + 1)
end

local function cut(bytes, size) return #bytes > size and bytes:sub(1, size) or bytes .. ("\0"):rep(size - #bytes) end

-- Several names that change at once.
local function rename(folder, changes)
  for name, node in pairs(changes) do folder.names[name] = node or nil end
  folder.changes[#folder.changes + 1] = changes
end

local doing = {}
function doing.C(root, c)
  local folder, name = place(root, c.path)
  rename(folder, { [name] = file_node "" })
end
function doing.M(root, c)
  local folder, name = place(root, c.path)
  rename(folder, { [name] = folder_node() })
end
function doing.U(root, c)
  local folder, name = place(root, c.path)
  rename(folder, { [name] = false })
end
function doing.R(root, c)
  local folder, name = place(root, c.path)
  local other, to = place(root, c.to)
  assert(folder == other, "the model knows no rename into another folder")
  rename(folder, { [to] = folder.names[name], [name] = false })
end
function doing.W(root, c)
  local node = find(root, c.path)
  node.now = written(node.now, c.at, c.data)
  node.changes[#node.changes + 1] = c
end
function doing.T(root, c)
  local node = find(root, c.path)
  node.now = cut(node.now, c.at)
  node.changes[#node.changes + 1] = c
end
function doing.S(root, c)
  local node = find(root, c.path)
  node.kept, node.changes = node.names and copy(node.names) or node.now, {}
end

-- ---- after the cut ----

local fates = { name = { "lost", "whole" }, cut = { "lost", "whole" }, sector = { "lost", "whole" }, write = { "lost", "whole", "part", "zeros" } }

---Ways in which a cut may go: each returns the fate of a change, whose kind is a key of `fates`; `chance(n)` is 1 .. n.
power_loss.ways = {
  lost = function() return "lost" end,
  kept = function() return "whole" end,                                              -- as after a kill
  names = function(kind) return kind == "name" and "whole" or "lost" end,            -- files that are there, and empty
  bytes = function(kind) return kind == "name" and "lost" or "whole" end,
  chance = function(kind, chance) return fates[kind][chance(#fates[kind])] end,
}

local function file_after(node, fate)
  local bytes = node.kept
  for _, c in ipairs(node.changes) do
    local what = fate(c.kind == "W" and "write" or "cut")
    if c.kind == "T" then bytes = what == "whole" and cut(bytes, c.at) or bytes
    elseif what == "whole" then bytes = written(bytes, c.at, c.data)
    elseif what == "zeros" then bytes = written(bytes, c.at, ("\0"):rep(#c.data))
    elseif what == "part" then
      for sector = c.at - c.at % SECTOR, c.at + #c.data - 1, SECTOR do
        local first = math.max(sector, c.at)
        if fate "sector" == "whole" then bytes = written(bytes, first, c.data:sub(first - c.at + 1, sector + SECTOR - c.at)) end
      end
    end
  end
  return bytes
end

local function put(node, path, fate)
  files.make_folder(path)
  local names = copy(node.kept)
  for _, changes in ipairs(node.changes) do
    if fate "name" == "whole" then for name, to in pairs(changes) do names[name] = to or nil end end
  end
  for _, name in ipairs(tables.keys(names)) do
    local inside = names[name]
    if inside.names then put(inside, path .. "/" .. name, fate) else
      local f = assert(io.open(path .. "/" .. name, "wb"))
      f:write(file_after(inside, fate))
      f:close()
    end
  end
end

---Makes the folder that a disk may hold after the first n changes of a journal.
---@param before string a folder as it was before the program ran
---@param journal Change[]
---@param n integer
---@param way string of power_loss.ways
---@param seed integer of what is by chance
---@param to string the folder
function power_loss.after(before, journal, n, way, seed, to)
  local root, state = from_disk(before), 48271 * (seed + 1)
  for i = 1, n do doing[journal[i].kind](root, journal[i]) end
  local function chance(most)
    state = (state * 48271) % 2147483647
    return 1 + math.floor(state / 2147483647 * most)
  end
  put(root, to, function(kind) return power_loss.ways[way](kind, chance) end)
end

return power_loss
