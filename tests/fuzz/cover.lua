-- cover.lua -- Lua that counts where it has been, for the fuzzer: what is required after this has a counter at the
-- begin of each block and function and behind each block, as C has from its compiler.  Every line stays where it was.
--   require("tests.fuzz.cover")(counters, n)      uint8_t counters[n]
local ffi = require "ffi"
local blocks = { ["if"] = true, ["for"] = true, ["while"] = true, ["repeat"] = true, ["function"] = true, ["do"] = true }
local begins = { ["then"] = true, ["else"] = true, ["do"] = true, ["repeat"] = true }

-- Where what begins at `at` ends: a word, a text, a comment, or one character.
local function last_of(text, at)
  local long = text:match("^%-%-%[(=*)%[", at) or text:match("^%[(=*)%[", at)
  if long then return select(2, text:find("]" .. long .. "]", at, true)) end
  if text:find("^%-%-", at) then return text:find("\n", at, true) - 1 end
  local quote = text:match("^[\"']", at)
  if not quote then return select(2, text:find("^[%w_]+", at)) or at end
  local e = at + 1
  while text:sub(e, e) ~= quote do e = e + (text:sub(e, e) == "\\" and 2 or 1) end
  return e
end

-- Lua's source with what counter() gives, a statement, where something is to be counted.
local function counted(text, counter)
  local out, open, at = {}, {}, 1
  while at <= #text do
    local e = last_of(text, at)
    local word = text:sub(at, e)
    local behind = begins[word]
    if word == "function" then
      e = text:find(")", e, true)
      behind = true
    end
    local loop = open[#open] == "for" or open[#open] == "while"
    if word == "do" and loop then open[#open] = "loop"
    elseif blocks[word] then open[#open + 1] = word
    elseif word == "end" then behind = table.remove(open) ~= "function"
    elseif word == "until" then table.remove(open) end
    out[#out + 1] = text:sub(at, e) .. (behind and " " .. counter() or "")
    at = e + 1
  end
  return table.concat(out)
end

return function(counters, n)
  local used = 0
  rawset(_G, "fuzz_counters", ffi.cast("uint8_t *", counters))
  local function counter()
    used = used + 1
    local at = used % n
    return ("fuzz_counters[%d]=fuzz_counters[%d]+1;"):format(at, at)
  end
  table.insert(package.loaders, 2, function(name)
    local path = package.searchpath(name, package.path)
    local file = path and io.open(path)
    if not file then return "\n\tno file for " .. name end
    local text = file:read "*a" .. "\n"
    file:close()
    return assert(loadstring(counted(text, counter), "@" .. path))
  end)
end
