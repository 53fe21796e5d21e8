-- did_you_mean.lua -- what a name means: another program's word (names_elsewhere.lua), or one that was nearly typed.

local did_you_mean = {}
local rows
local function plain(word) return (word:lower():gsub("^gym:", ""):gsub("[-. ]", "_"):gsub("^_+", "")) end

-- What a class's name, such as HGRN2Attention, has in a table by names, whatever stands between their words: by all of it, else without what says
-- that it is a layer.
local function of_class(word, by_name)
  local whole = plain(word):gsub("_", "")
  local short = whole:gsub("cell$", ""):gsub("semigroup$", ""):gsub("setaction$", ""):gsub("magma$", ""):gsub("(.)attention$", "%1")
  local together = {}
  for name, answer in pairs(word:find "%u" and by_name or {}) do together[name:gsub("_", "")] = answer end
  return together[whole] or together[short]
end

---What another program's word means here: "steps=N: environment steps ...", or "not here ...".
---@param kind string "setting", "argument", "core", "environment", "learner", "command", "kind of thing", "curve for by =", "topic",
---  "value of precision"
---@return string? nil: the word is not known
function did_you_mean.of_field(kind, word)
  if not rows then
    rows = {}
    for _, row in ipairs(require "mneme.base.names_elsewhere") do
      rows[row[1]] = rows[row[1]] or {}
      for each in row[2]:gmatch "%S+" do rows[row[1]][each] = row[3] end
    end
  end
  local name = kind == "environment" and plain(word):gsub("_v%d+$", "") or plain(word)      -- "MiniGrid-MemoryS7-v0"
  return rows[kind] and rows[kind][name] or kind == "core" and of_class(word, rows.core) or nil
end

---The core of a class's name among `names`: "S5Cell" -> "s5".
function did_you_mean.core_of_class(word, names)
  local by_name = {}
  for _, name in ipairs(names or {}) do by_name[name] = name end
  return of_class(word, by_name)
end

-- The kind of thing of an error's words: "setting of eval and tmaze-v0" -> "argument".
local function kind_of(what)
  if what:find "^setting of %l+" then return "argument" end
  if what:find "^setting" then return "setting" end
  local key = what:match "%f[%w_]([%w_]+) =$"
  if key and not what:find "^curve" then return "value of " .. key end
  return what == "env" and "environment" or what
end

---What to write for a word of another program, as the hint of an error.
---@param what string as for errors.unknown
---@param known string[]? names of the kind
---@return string?
function did_you_mean.hint(what, word, known)
  local of_core = what:find "^key of core "
  local own = of_core and did_you_mean.of_field("core setting", word)
  if own then return own:find "^not " and own or "write core." .. own end
  local answer = did_you_mean.of_field(of_core and "setting" or kind_of(what), word) or what == "core" and did_you_mean.core_of_class(word, known)
  if not answer or of_core and not (answer:find "^core%." or answer:find "^not here") then return nil end
  answer = of_core and answer:gsub("^(core%.%l[%w_]*=%a+: [^;]*);.*", "%1") or answer
  return answer:find "^not " and answer or "write " .. answer
end

---" (steps of a rollout)": what a name means that is suggested; "" where it is not known.
---@param what string as for errors.unknown
---@param about function? errors.about
function did_you_mean.shown(what, name, about)
  local text = about and about(what:find "^key of core " and "core setting" or kind_of(what), name)
  return text and text ~= "" and (" (%s)"):format(text) or ""
end

return did_you_mean
