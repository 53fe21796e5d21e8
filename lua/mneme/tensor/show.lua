-- show.lua -- values as text: the elements of a tensor, a table as a table, with the shapes of the tensors in it.
local tensor = require "mneme.tensor.tensor"

local show = {}
local ROWS, COLUMNS, DEPTH, KEYS = 8, 8, 3, 24       -- what is shown of a tensor, a table

local function number(v)
  return v == math.floor(v) and math.abs(v) < 1e15 and ("%d"):format(v) or ("%.5g"):format(v)
end

-- A matrix's corner, columns aligned.
local function rows_of(p, rows, cols, offset)
  local cells, widths = {}, {}
  for r = 1, math.min(rows, ROWS) do
    cells[r] = {}
    for c = 1, math.min(cols, COLUMNS) do
      cells[r][c] = number(tonumber(p[offset + (r - 1) * cols + c - 1]))
      widths[c] = math.max(widths[c] or 0, #cells[r][c])
    end
  end
  local lines = {}
  for r, row in ipairs(cells) do
    for c, text in ipairs(row) do row[c] = (" "):rep(widths[c] - #text) .. text end
    lines[r] = "  " .. table.concat(row, "  ") .. (cols > COLUMNS and "  ..." or "")
  end
  if rows > ROWS then lines[#lines + 1] = "  ..." end
  return table.concat(lines, "\n")
end

local function show_tensor(t)
  local ok, shape = pcall(t.shape, t)
  if not ok then return "a tensor whose memory was freed" end
  local p, n = t:data(), t:size()
  local lo, hi, sum, odd = math.huge, -math.huge, 0, 0
  for i = 0, n - 1 do
    local v = tonumber(p[i])
    if v - v == 0 then lo, hi, sum = math.min(lo, v), math.max(hi, v), sum + v else odd = odd + 1 end
  end
  local head = ("tensor [%s] %s"):format(table.concat(shape, ","), t:dtype())
  if n > 1 and odd < n then head = head .. (", %s to %s, mean %s"):format(number(lo), number(hi), number(sum / (n - odd))) end
  if odd > 0 then head = head .. (", %d not finite"):format(odd) end
  local cols = shape[#shape] or 1
  local rows = #shape >= 2 and shape[#shape - 1] or 1
  local rest = #shape > 2 and n > rows * cols and "\n  ... (the first of " .. n / (rows * cols) .. ")" or ""
  return head .. "\n" .. rows_of(p, rows, cols, 0) .. rest
end

local function in_table(v)
  local ok, shape = pcall(v.shape, v)
  return ok and ("tensor [%s] %s"):format(table.concat(shape, ","), v:dtype()) or "a tensor whose memory was freed"
end

local function text(v, depth, seen)
  if tensor.is(v) then return depth and in_table(v) or show_tensor(v) end
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

---A value as the repl prints it: elements of a tensor, keys of a table.
---@param v any
---@return string
function show.text(v) return text(v, nil, {}) end

---Lua's print, with tables as tables: { 1, 2, name = "a", w = tensor [3,2] f32 }.  In scripts that `mneme run` runs, and in the repl,
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
