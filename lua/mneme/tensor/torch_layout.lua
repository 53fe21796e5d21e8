-- torch_layout.lua -- the names and values of a module's state dict as torch has them, and back.  Two things differ: an activation is part
-- of the layer before it, and takes a number of its own in torch's nn.Sequential; and modules with a field `packed` have
-- tensors that torch packs into others, as torch.nn.GRU does: packed.to(dict) and packed.from(dict) give the others and the names that they used.
local tables = require "mneme.base.tables"
local members                -- of module.lua, which hands it over

local layout = {}

-- The activation that is part of a layer, or nil.
local function fused(m) return type(m.act) == "string" and m.act ~= "none" and m.act or nil end

-- The children of a module as { name, module, name in torch }.
local function children_of(m)
  local list, _, _, children = {}, members(m)
  local more = 0
  for i, child in ipairs(children) do
    local numbered = m.kind == "sequential"
    list[i] = { child[1], child[2], numbered and tostring(i - 1 + more) or child[1] }
    if numbered and fused(child[2]) then more = more + 1 end
  end
  return list, more
end

-- Visits what is named otherwise in torch: renamed(pairs of names, of one sequential) and packed(module's functions, prefix, torch's prefix).
local function walk(m, prefix, theirs, renames, found)
  if m.packed then found.packed[#found.packed + 1] = { m.packed, prefix, theirs } return end
  local children, more = children_of(m)
  if more > 0 and not renames then
    renames = {}
    found.renamed[#found.renamed + 1] = renames
  end
  local _, named = members(m)
  for _, p in ipairs(renames and named or {}) do renames[#renames + 1] = { prefix .. p[1], theirs .. p[1] } end
  for _, child in ipairs(children) do
    if child[2].each then walk(child[2], prefix .. child[1] .. ".", theirs .. child[3] .. ".", renames, found) end
  end
end

local function differences(m)
  local found = { packed = {}, renamed = {} }
  walk(m, "", "", nil, found)
  return found
end

-- The part of a dict below a prefix.
local function below(dict, prefix)
  local part = {}
  for name, t in pairs(dict) do
    if type(name) == "string" and name:sub(1, #prefix) == prefix then part[name:sub(#prefix + 1)] = t end
  end
  return part
end

-- Replaces what a packed module's function takes of a dict by what it makes of it.
local function exchange(out, dict, convert, from, to)
  local made, used = convert(below(dict, from))
  for name in pairs(used) do out[from .. name] = nil end
  for name, t in pairs(made) do out[to .. name] = t end
end

---A state dict with torch's names.
---@param dict table<string, Tensor> by the module's names; others stay as they are
---@return table<string, Tensor>
function layout.to_torch(m, dict)
  local found, out = differences(m), tables.merged(dict)
  for _, renames in ipairs(found.renamed) do
    for _, pair in ipairs(renames) do if dict[pair[1]] then out[pair[1]] = nil end end
    for _, pair in ipairs(renames) do if dict[pair[1]] then out[pair[2]] = dict[pair[1]] end end
  end
  for _, p in ipairs(found.packed) do exchange(out, dict, p[1].to, p[2], p[3]) end
  return out
end

---A state dict with the module's names, of one that has torch's where they differ.  A sequential is read by torch's numbers if all of
---its names are there and one of the module's is not.
---@param dict table<string, Tensor>
---@return table<string, Tensor>
function layout.from_torch(m, dict)
  local found, out = differences(m), tables.merged(dict)
  for _, renames in ipairs(found.renamed) do
    local mine, all = true, true
    for _, pair in ipairs(renames) do mine, all = mine and dict[pair[1]] ~= nil, all and dict[pair[2]] ~= nil end
    if all and not mine then
      for _, pair in ipairs(renames) do out[pair[2]] = nil end
      for _, pair in ipairs(renames) do out[pair[1]] = dict[pair[2]] end
    end
  end
  for _, p in ipairs(found.packed) do exchange(out, dict, p[1].from, p[3], p[2]) end
  return out
end

return function(of) members = of return layout end
