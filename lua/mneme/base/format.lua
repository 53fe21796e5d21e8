-- format.lua -- formats numbers for people: 5M, 0.95, 20 ms, 3 h.
local tables = require "mneme.base.tables"
local numbers = {}

local large = { { 1e15, "P" }, { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } }
local spans = { { 3600, "h" }, { 60, "min" }, { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "µs" }, { 1e-9, "ns" } }
local larger = { B = "KiB", KiB = "MiB", MiB = "GiB", GiB = "TiB" }

-- n significant digits, without zeros at the end; with an exponent where integers would be long.
local function plain(v, digits)
  local s = ("%." .. digits .. "g"):format(v)
  if s:find "e%+" and math.abs(v) < 1e5 then s = ("%.0f"):format(v) end
  if s:find "e" then s = s:gsub("e%+?(-?)0*(%d+)", "e%1%2") end
  return s
end

---The factor and the letter for numbers as large as `most`: 1e6, "M"; 1, "".  Seconds become hours.
---@param unit string? of the axis: "s" is turned into ns .. h
---@return number factor
---@return string letter
function numbers.prefix(most, unit)
  if unit == "s" then
    for _, span in ipairs(spans) do
      if most >= (span[1] > 1 and 2 or 1) * span[1] * (1 - 1e-9) then return span[1], span[2] end
    end
    return 1, "s"
  end
  for _, p in ipairs(large) do
    if most >= p[1] * (1 - 1e-9) and most >= 1e4 and most < 1e18 then return p[1], p[2] end
  end
  return 1, ""
end

-- "20 ms", "50 %", "5M".
local function joined(digits, letter, unit)
  if unit == "s" then return digits == "0" and digits or digits .. " " .. letter end
  if not unit or unit == "" then return digits .. letter end
  return digits .. " " .. letter .. unit
end

---One number, with three significant digits (four below 10,000).  1024 KiB become MiB.
---@param unit string?
function numbers.short(v, unit)
  while larger[unit] and math.abs(v) >= 1e4 do v, unit = v / 1024, larger[unit] end
  local size = math.abs(v)
  if size == 0 then return joined("0", "", unit) end
  if size >= 1e18 and unit ~= "s" then return joined(plain(v, 3), "", unit) end
  local factor, letter = numbers.prefix(size, unit)
  local shown = plain(v / factor, size / factor >= 1000 and 4 or 3)
  if factor >= 1e3 and factor < 1e15 and unit ~= "s" and tonumber(shown) and math.abs(tonumber(shown)) >= 1000 then
    factor, letter = numbers.prefix(1000 * factor, unit)
    shown = plain(v / factor, 3)
  end
  return joined(shown, letter, unit)
end

---Numbers at equal distances, all with as many digits after the point as the distance needs.
---@param list number[] ascending
---@param unit string?
---@param most number? the largest of them
function numbers.row(list, step, unit, most)
  most = most or math.max(math.abs(list[1] or 0), math.abs(list[#list] or 0))
  local factor, letter = numbers.prefix(most, unit)
  local places = math.ceil(-math.log10(step / factor) - 1e-6)
  while places < 12 and math.abs(step / factor * 10 ^ places - math.floor(step / factor * 10 ^ places + 0.5)) > 1e-6 do places = places + 1 end
  local digits, counting = math.max(0, places), math.max(3, math.floor(math.log10(most / factor) + 1e-9) + 1 + places)
  return tables.map(list, function(v)
    local shown = (digits > 5 or most >= 1e6 * factor) and plain(v / factor, counting) or (("%%.%df"):format(digits)):format(v / factor)
    return (v == 0 or shown == "0") and joined("0", "", unit) or joined(shown, letter, unit)
  end)
end

---Numbers that stand below each other: with as many digits after the point, unless they are too unlike for that.
---@param unit string?
function numbers.alike(list, unit)
  local least, most = math.huge, 0
  for _, v in ipairs(list) do
    most = math.max(most, math.abs(v))
    if v ~= 0 then least = math.min(least, math.abs(v)) end
  end
  if most == 0 or most >= 1e4 or least < most / 1e4 and most > 1 then return tables.map(list, function(v) return numbers.short(v, unit) end) end
  return numbers.row(list, 10 ^ (math.ceil(math.log10(most) - 1e-9) - (most <= 1 and unit ~= "s" and 2 or 3)), unit, most)
end

---string.format, but where %.2f would make a number 0, or write a million or more, it has three digits that count: 3.88, 1e-9, 350M.
function numbers.said(pattern, ...)
  local list, i = { ... }, 0
  pattern = pattern:gsub("%%([+-]?)%.?(%d*)(%a)", function(sign, places, kind)
    i = i + 1
    local v = list[i]
    if kind ~= "f" then return nil end
    if math.abs(v) <= 1e-12 then list[i] = 0                           -- no more than rounding leaves
    elseif math.abs(v) >= 1e6 or math.abs(v) < 0.5 * 10 ^ -(tonumber(places) or 6) then
      list[i] = (v > 0 and sign or "") .. numbers.short(v)
      return "%s"
    end
  end)
  return pattern:format(unpack(list, 1, select("#", ...)))
end

---A number to be read by programs: whole ones as they are, others with seven digits, of which zeros at the end go.
function numbers.exact(v) return v % 1 == 0 and math.abs(v) < 1e15 and ("%.0f"):format(v) or plain(v, 7) end

local names = { { 1e12, "trillion" }, { 1e9, "billion" }, { 1e6, "million" } }

---How many times as large something is: 1.25, 178 billion, 1.8e20.
function numbers.times(v)
  if math.abs(v) >= 1e15 then return plain(v, 2) end
  for _, name in ipairs(names) do
    if math.abs(v) >= name[1] then return plain(v / name[1], 3) .. " " .. name[2] end
  end
  return numbers.short(v)
end

---A number with its noun: 1 step, 20 steps.
function numbers.counted(n, noun) return ("%.0f %s%s"):format(n, noun, n == 1 and "" or "s") end

---1234567 as 1,234,567.
function numbers.grouped(n) return (("%.0f"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")) end

---What a run has used, from runs/resources.lua: 3.2 min, 1.5 GiB, 40 J.
---@param key string "wall_s", "cpu_s", "peak_mib" or "energy_j"
function numbers.resource(key, v)
  if key == "peak_mib" then return v >= 1024 and plain(v / 1024, 3) .. " GiB" or plain(v, 3) .. " MiB" end
  return numbers.short(v, key == "energy_j" and "J" or "s")
end

local MOST_TRIED = 1e5

---The whole numbers that divide n, for messages: "1, 2, 3 or 6"; of many the first ones and the last.
---@param n integer at least 1
function numbers.divisors(n)
  local list, upper = {}, {}
  for k = 1, math.min(math.sqrt(n), MOST_TRIED) do
    if n % k == 0 then
      list[#list + 1] = ("%.0f"):format(k)
      if k * k ~= n then upper[#upper + 1] = ("%.0f"):format(n / k) end
    end
  end
  for i = #upper, 1, -1 do list[#list + 1] = upper[i] end
  if #list > 9 then list[8], list[9] = "...", list[#list] end
  list = { unpack(list, 1, 9) }
  return table.concat(list, ", ", 1, #list - 1) .. (#list > 1 and " or " or "") .. list[#list]
end

return numbers
