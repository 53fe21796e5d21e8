-- show.lua -- values as text: a tensor as print shows it (tensor_text.lua), a table as a table, with the shapes of the tensors in it.
local tensor = require "mneme.tensor.tensor"

local show = {}
local DEPTH, KEYS = 3, 24       -- what is shown of a table

local function in_table(v)
  local ok, shape = pcall(v.shape, v)
  return ok and ("tensor [%s] %s"):format(table.concat(shape, ","), v:dtype()) or "a tensor whose memory was freed"
end

local function text(v, depth, seen)
  if tensor.is(v) then return depth and in_table(v) or tostring(v) end
  if type(v) == "string" then return depth and ("%q"):format(v) or v end
  if type(v) ~= "table" then return tostring(v) end
  if seen[v] then return "(shown above)" end
  seen[v] = true
  local meta = getmetatable(v)
  if meta and meta.__tostring then return tostring(v) end
  if (depth or 0) >= DEPTH then return "{ ... }" end
  local parts, n = {}, 0
  for _, item in ipairs(v) do
    n = n + 1
    if n <= KEYS then parts[n] = text(item, (depth or 0) + 1, seen) end
  end
  local names, left = {}, 0
  for key in pairs(v) do
    if not (type(key) == "number" and key >= 1 and key <= n) then names[#names + 1] = key end
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(names) do
    if #parts < KEYS then parts[#parts + 1] = tostring(key) .. " = " .. text(rawget(v, key), (depth or 0) + 1, seen) else left = left + 1 end
  end
  if n > KEYS or left > 0 then parts[#parts + 1] = ("... (%d more)"):format(math.max(n - KEYS, 0) + left) end
  if #parts == 0 then return "{}" end
  local line = "{ " .. table.concat(parts, ", ") .. " }"
  if #line <= 100 and not line:find "\n" then return line end
  local pad = ("  "):rep((depth or 0) + 1)
  return "{\n" .. pad .. table.concat(parts, ",\n" .. pad) .. "\n" .. ("  "):rep(depth or 0) .. "}"
end

---Lua's print, with tables as tables: { 1, 2, name = "a", w = tensor [3,2] f32 }.  In scripts that `mneme run` runs,
---print is this function.
---@param ... any
function show.print(...)
  local parts = {}
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    parts[i] = type(v) == "table" and text(v, nil, {}) or tostring(v)
  end
  io.stdout:write(table.concat(parts, "\t"), "\n")
end

return show
