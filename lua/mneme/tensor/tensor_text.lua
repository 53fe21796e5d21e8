-- tensor_text.lua -- a tensor as print shows it: its shape and type, then its values in rows, abbreviated as in torch where there are
-- more than a thousand.

local MOST, EDGE, COLUMNS = 1000, 3, 100            -- values shown in full; of each axis else, at each end; of a line

-- Which places of an axis are shown; 0 stands for those left out.
local function places(n, whole)
  local list = {}
  for i = 1, n do
    if whole or n <= 2 * EDGE or i <= EDGE or i > n - EDGE then list[#list + 1] = i
    elseif i == EDGE + 1 then list[#list + 1] = 0 end
  end
  return list
end

-- f(offset) for each value that is shown.
local function each_shown(shape, whole, f)
  local function walk(axis, offset)
    if axis > #shape then return f(offset) end
    for _, i in ipairs(places(shape[axis], whole)) do if i > 0 then walk(axis + 1, offset * shape[axis] + i - 1) end end
  end
  walk(1, 0)
end

-- How numbers like these are written, all alike: whole, with four decimals, or with an exponent.
local function style(p, shape, whole)
  local all_whole, most, least = true, 0, math.huge
  each_shown(shape, whole, function(i)
    local v = math.abs(tonumber(p[i]))
    if v < math.huge then
      all_whole = all_whole and v % 1 == 0
      most = math.max(most, v)
      if v > 0 then least = math.min(least, v) end
    end
  end)
  if all_whole and most < 1e8 then return "%.0f" end
  return (most >= 1e5 or least < 1e-4 and most / least > 1000 or most < 1e-4) and "%.4e" or "%.4f"
end

local function number(v, how)
  if v ~= v then return "nan" end
  if math.abs(v) == math.huge then return v > 0 and "inf" or "-inf" end
  return how:format(v)
end

return function(t)
  local fine, shape = pcall(t.shape, t)
  if not fine then return "tensor (gone)" end
  local p, whole, width = t:data(), t:size() <= MOST, 1
  local how = style(p, shape, whole)
  each_shown(shape, whole, function(i) width = math.max(width, #number(tonumber(p[i]), how)) end)
  local function padded(i) return ("%" .. width .. "s"):format(number(tonumber(p[i]), how)) end

  -- The values from `offset` on along an axis, in brackets; lines but the first begin after `indent`.
  local function text(axis, offset, indent)
    if axis > #shape then return number(tonumber(p[offset]), how) end
    local parts, list = {}, places(shape[axis], whole)
    if axis < #shape then
      for k, i in ipairs(list) do parts[k] = i == 0 and "..." or text(axis + 1, offset * shape[axis] + i - 1, indent .. " ") end
      return "[" .. table.concat(parts, ",\n" .. ("\n"):rep(#shape - axis - 1) .. indent .. " ") .. "]"
    end
    local line, lines, fit = {}, {}, math.max(1, math.floor((COLUMNS - #indent) / (width + 2)))
    for k, i in ipairs(list) do
      line[#line + 1] = i == 0 and "..." or padded(offset * shape[axis] + i - 1)
      if #line == fit or k == #list then lines[#lines + 1], line = table.concat(line, ", "), {} end
    end
    return "[" .. table.concat(lines, ",\n" .. indent .. " ") .. "]"
  end

  local body = text(1, 0, "")
  return ("tensor [%s] %s%s%s"):format(table.concat(shape, ","), t:dtype(), body:find "\n" and "\n" or " ", body)
end
