-- jit_report.lua -- reports what LuaJIT could not compile (profile=jit): such a loop is interpreted, which
-- is slow if it runs every step.
local traces = {}
local aborts = {}                    -- "file:line: reason" -> how often
local compiled = 0

local function place(func, pc)
  local ok, util = pcall(require, "jit.util")
  local info = ok and util.funcinfo(func, pc) or {}
  return info.loc or "?"
end

-- The reason in words; its number where LuaJIT's tables are not installed.
local function reason(code, about)
  local ok, vmdef = pcall(require, "jit.vmdef")
  if type(code) ~= "number" then return tostring(code) end
  local text = ok and vmdef.traceerr[code] or "reason " .. code
  return (text:gsub("%%[%a%d]*", function() return tostring(about) end))
end

local function note(what, _, func, pc, code, about)
  if what == "stop" then compiled = compiled + 1
  elseif what == "abort" then
    local line = place(func, pc) .. ": " .. reason(code, about)
    aborts[line] = (aborts[line] or 0) + 1
  end
end

---Note from now on what the compiler does.
function traces.watch() jit.attach(note, "trace") end

---@param most integer lines
function traces.report(most)
  local list, out = {}, {}
  for line, n in pairs(aborts) do list[#list + 1] = { line, n } end
  table.sort(list, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
  out[1] = ("%d traces compiled; given up at %d places:"):format(compiled, #list)
  for i = 1, math.min(#list, most) do out[#out + 1] = ("%5d x  %s"):format(list[i][2], list[i][1]) end
  return out
end

return traces
