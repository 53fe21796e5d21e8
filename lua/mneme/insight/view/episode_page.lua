-- episode_page.lua -- an episode as one HTML file: its shapes, and painter.js, which paints and plays them.  Nothing is
-- loaded from the network; without scripts there are a picture and every step in words.
local files = require "mneme.base.files"
local text = require "mneme.insight.figures.text"

local page = {}
local escape = text.escape
local here = debug.getinfo(1, "S").source:match "^@(.*)episode_page%.lua$" or "./lua/mneme/insight/view/"

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
    files.read(here .. "episode.css"))
end

local function script() return "<script>(() => {" .. files.read(here .. "painter.js") .. "})();</script>\n" end

-- The run's first episodes as marks, and what the marks are: strip = { { mark, good, text }, ... }, { words ... }.
local function strip(data)
  if not data.strip then return "" end
  local marks = {}
  for i, e in ipairs(data.strip) do
    marks[i] = ('<span class="mn-mark%s" title="%s">%s</span>'):format(e.good and " mn-good" or e.lost and " mn-lost" or "", escape(e.text), e.mark)
  end
  return ('<p class="mn-dim mn-strip">%s %s</p>\n'):format(table.concat(marks), escape(data.legend))
end

-- The element that the script fills.
local function body(data, theme)
  local notes, steps, ends = { data.source }, {}, {}
  if data.left_out then notes[#notes + 1] = ("the first %d steps only"):format(data.most_steps) end
  for i, s in ipairs(data.steps) do steps[i] = "<li>" .. escape(s) .. "</li>" end
  for _, s in pairs(data.outcomes) do ends[#ends + 1] = s end
  return table.concat { ('<section class="mn-episode mn-alone" id="episode" tabindex="-1"%s>\n<h2>%s</h2>\n<p class="mn-dim">%s</p>\n'):format(
    theme and (' data-theme="%s"'):format(theme) or "", escape(data.title), escape(table.concat(notes, "; "))),
    data.story and ('<p class="mn-story">%s</p>\n'):format(escape(data.story)) or "", strip(data),
    ('<div class="mn-body"><img class="mn-still" alt="step %d" src="data:image/png;base64,%s"></div>\n'):format(data.open, data.picture),
    ('<details class="mn-dim"><summary>every step in words%s</summary><ol start="0">%s</ol></details>\n'):format(
      #ends > 0 and ": " .. escape(table.concat(ends, "; ")) or "", table.concat(steps)),
    '<script type="text/plain" class="mn-data">', data.packed, "</script>\n</section>\n" }
end

---An episode as a page of its own, which browsers keep from loading anything.
---@param data table of episode_data.of
---@param options table? theme = "dark"|"light"; nil: as the reader prefers
function page.whole(data, options)
  local theme = options and options.theme
  return table.concat { '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n',
    [[<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">]],
    "\n<title>", escape(data.title), "</title>\n", head(), '</head>\n<body class="mn-page"', theme and (' data-theme="%s"'):format(theme) or "", ">\n<main>\n",
    body(data, theme), "</main>\n", script(),
    "<script>addEventListener('DOMContentLoaded',()=>document.getElementById('episode').focus())</script>\n</body>\n</html>\n" }
end

return page
