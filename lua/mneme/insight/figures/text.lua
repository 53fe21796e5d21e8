-- text.lua -- measures and breaks text.  A browser cannot be asked in advance, so widths are
-- those of DejaVu Sans, the widest font that a page is likely to be shown in: a text may get too much room, never too little.
local format = require "mneme.base.format"

local text = {}

---A number with its interval, where it has one: "0.95 (0.91 … 0.98)".
function text.interval(value, low, high, unit)
  local shown = format.short(value, unit)
  return low and low < high and ("%s (%s … %s)"):format(shown, format.short(low, unit), format.short(high, unit)) or shown
end

-- Thousandths of the size of the letters.
local widths = {}
for width, letters in pairs { [280] = "ijlI'", [320] = ".,: ", [340] = "/\\;|", [355] = "f-", [395] = "()[]tJ!", [415] = "r", [465] = "\"",
  [505] = "_`*", [525] = "sz", [560] = "cLF?", [595] = "kvxy", [615] = "aoTYPe", [640] = "bdghnpqu0123456789SE$", [690] = "ABRXVZ{}K",
  [705] = "C", [790] = "DGHNOQUw&", [820] = "w", [840] = "+=<>~#^", [865] = "M", [955] = "%", [980] = "mW@" } do
  for i = 1, #letters do widths[letters:sub(i, i)] = width end
end

-- Names of settings and of logged values that do not read as words.
local read_as = { episodic_return = "return of an episode", episodic_length = "length of an episode", SPS = "steps a second", env = "environment",
  num_envs = "environments", mean_return = "return", approx_kl = "KL divergence", clipfrac = "share of clipped steps",
  ["grad/norm"] = "gradient norm", d_model = "width", n_layers = "layers", n_heads = "heads" }

---A name of a setting, of a fact or of a logged value in words: "charts/episodic_return" is the return of an episode, "cue_frames" "cue frames".
---@param name string?
---@param value string? one value of it: "cue frames 5"
---@return string
function text.words(name, value)
  if not name then return value or "" end
  local words = read_as[name] or read_as[name:match "[^/]*$"] or name:match "[^/]*$":gsub("_", " ")
  if not value then return words end
  return words .. " " .. (name == "env" and value:gsub("_", " ") or value)
end

---The width of a text in the unit of `size`.
function text.width(s, size)
  local sum = 0
  for letter in s:gmatch "[%z\1-\127\194-\244][\128-\191]*" do
    sum = sum + (widths[letter] or #letter > 2 and letter:byte() > 226 and 1000 or 790)
  end
  return sum * size / 1000
end

---Markup's own signs as text, and no control characters, which XML forbids.
function text.escape(s)
  return (tostring(s):gsub("[%z\1-\8\11\12\14-\31\127]", "?"):gsub("[&<>\"]",
    { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

-- The longest beginning of a word that fits, up to a sign that joins its parts where one is in it, at least one letter; and what is left.
local function cut(word, room, size)
  local used, at = 0, 1
  for letter in word:gmatch "[%z\1-\127\194-\244][\128-\191]*" do
    used = used + text.width(letter, size)
    if at > 1 and used > room then break end
    at = at + #letter
  end
  at = word:sub(1, at - 1):match "^.+[_/=,:-]()" or at
  return word:sub(1, at - 1), word:sub(at)
end

---The size, 8 to `size`, at which no part of the names, between blanks and signs that join, is wider than `room`; and the widest part at `size`.
function text.size_for(names, room, size)
  local widest = 1
  for part in table.concat(names, " "):gsub("[_/=,:-]", "%0 "):gmatch "%S+" do widest = math.max(widest, text.width(part, size)) end
  return math.max(8, math.min(size, math.floor(2 * size * room / widest) / 2)), widest
end

---A text as lines none of which is wider than `room`: broken at blanks, and within a word where that is too long.
function text.wrap(s, room, size)
  local lines, line = {}, ""
  for word in s:gmatch "%S+" do
    local joined = line == "" and word or line .. " " .. word
    if text.width(joined, size) <= room then line = joined
    else
      if line ~= "" then lines[#lines + 1] = line end
      local wide = text.width(word, size)
      while wide > room and #word > 1 do
        local first, rest = cut(word, room, size)
        if rest == "" then break end
        lines[#lines + 1], word, wide = first, rest, wide - text.width(first, size)
      end
      line = word
    end
  end
  if line ~= "" or #lines == 0 then lines[#lines + 1] = line end
  return lines
end

return text
