-- episode_page.lua -- an episode as one HTML file, episode.html: its shapes, and painter.js, which paints and plays them.  Nothing is
-- loaded from the network; without scripts there are a picture and every step in words.
local registry = require "mneme.base.registry"
local escape = require("mneme.insight.figures.text").escape

local page = {}

-- What a page needs once: colours as the reader prefers them, or as a theme that was chosen.
local function head()
  local themes = require("mneme.insight.view.episode_data").colours()
  local function variables(name)
    local list = {}
    for key, color in pairs(themes[name]) do list[#list + 1] = ("--mn-%s:%s"):format(key, color) end
    table.sort(list)
    return table.concat(list, ";")
  end
  local light, dark = variables "light", variables "dark"
  return ("<style>.mn-episode,.mn-page{%s}\n@media screen and (prefers-color-scheme:dark){.mn-episode,.mn-page{%s}}\n"
    .. "[data-theme=light]{%s}\n[data-theme=dark]{%s}\nbody.mn-page{background:var(--mn-page)}\n%s</style>\n"):format(light, dark, light, dark,
    registry.text "insight/view/episode.css")
end

local function script() return "<script>(() => {" .. registry.text "insight/view/painter.js" .. "})();</script>\n" end

-- The run's first episodes as marks, and what the marks are: strip = { { mark, good, text }, ... }, { words ... }.
local function strip(data)
  if not data.strip then return "" end
  local marks = {}
  for i, e in ipairs(data.strip) do
    marks[i] = ('<span class="mn-mark%s" title="%s">%s</span>'):format(e.good and " mn-good" or e.lost and " mn-lost" or "", escape(e.text), e.mark)
  end
  return ('<p class="mn-dim mn-strip">%s %s</p>\n'):format(table.concat(marks), escape(data.legend))
end

---An episode as a page of its own, which browsers keep from loading anything.
---@param data table of episode_data.of
---@param options table? theme = "dark"|"light"; nil: as the reader prefers
function page.whole(data, options)
  local theme, notes, steps, ends = options and options.theme, { data.source }, {}, {}
  if data.left_out then notes[#notes + 1] = ("the first %d steps only"):format(data.most_steps) end
  for i, s in ipairs(data.steps) do steps[i] = "<li>" .. escape(s) .. "</li>" end
  for _, s in pairs(data.outcomes) do ends[#ends + 1] = s end
  local parts = { title = escape(data.title), head = head(), script = script(), theme = theme and (' data-theme="%s"'):format(theme) or "",
    notes = escape(table.concat(notes, "; ")), story = data.story and ('<p class="mn-story">%s</p>\n'):format(escape(data.story)) or "",
    strip = strip(data), open = ("%d"):format(data.open), picture = data.picture, steps = table.concat(steps), packed = data.packed,
    ends = #ends > 0 and ": " .. escape(table.concat(ends, "; ")) or "" }
  return (registry.text "insight/view/episode.html":gsub("{{(%l+)}}", parts))
end

return page
