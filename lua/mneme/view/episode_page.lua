-- episode_page.lua -- an episode as one HTML file, or as a part of a page: its data, and a script that draws them.  Nothing is loaded from
-- the network.
local canvas = require "mneme.base.canvas"
local engine = require "mneme.base.engine"
local json = require "mneme.base.json"
local panels = require "mneme.view.episode_panels"
local player = require "mneme.view.episode_player"
local text = require "mneme.figures.text"

local page = {}
local escape = text.escape

local style = [[
.mn-episode{color:var(--mn-text);background:var(--mn-page);font:14px/1.45 system-ui,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;padding:12px;
border-radius:6px;outline:0}
.mn-episode *{box-sizing:border-box}
.mn-episode h2{font-size:18px;line-height:1.3;margin:0;border:0;padding:0}
.mn-episode .mn-dim,.mn-episode .mn-note{color:var(--mn-dim);font-size:12px}
.mn-episode p{margin:4px 0}
.mn-episode .mn-story{border-left:3px solid var(--mn-warm);padding-left:10px;margin:8px 0}
.mn-episode .mn-mark{display:inline-block;width:14px;height:14px;line-height:14px;margin-right:3px;text-align:center;font-weight:700;cursor:help;
background:var(--mn-bad);color:var(--mn-card)}
.mn-episode .mn-good{background:var(--mn-good)}
.mn-episode .mn-lost{background:none;color:var(--mn-bad);box-shadow:inset 0 0 0 2px var(--mn-bad)}
.mn-episode .mn-controls{display:flex;gap:6px;align-items:center;margin:8px 0;position:sticky;top:0;background:var(--mn-page);padding:4px 0;z-index:1}
.mn-episode input[type=range]{flex:1;min-width:60px;accent-color:var(--mn-warm)}
.mn-episode button,.mn-episode select{font:inherit;color:inherit;background:var(--mn-card);border:1px solid var(--mn-line);border-radius:4px;
padding:3px 8px;min-width:36px;min-height:30px;cursor:pointer}
.mn-episode :focus-visible{outline:2px solid var(--mn-warm);outline-offset:1px}
.mn-episode fieldset{border:0;margin:0;padding:0;display:flex;gap:4px 14px;flex-wrap:wrap;align-items:center}
.mn-episode legend{float:left;padding:0;color:var(--mn-dim)}
.mn-episode kbd{font:11px ui-monospace,monospace;border:1px solid var(--mn-line);border-radius:3px;padding:0 4px;color:var(--mn-dim)}
.mn-episode .mn-say{font-variant-numeric:tabular-nums;min-height:1.5em}
.mn-episode .mn-panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(300px,100%),1fr));gap:10px;margin-top:8px}
.mn-episode .mn-panel{margin:0;background:var(--mn-card);border-radius:6px;padding:8px 10px;min-width:0}
.mn-episode .mn-wide{grid-column:1/-1}
.mn-episode figcaption{margin:0 0 6px;font-size:13px;cursor:help}
.mn-episode canvas{display:block;width:100%;touch-action:pan-y}
.mn-episode .mn-help{margin-top:10px;line-height:1.9}
.mn-episode .mn-tip{position:fixed;z-index:9;max-width:min(340px,92vw);background:var(--mn-text);color:var(--mn-card);padding:6px 9px;border-radius:4px;
font-size:12px;pointer-events:none}
.mn-episode .mn-tip[hidden]{display:none}
.mn-episode .mn-tip span{display:block;opacity:.8}
body.mn-page{margin:0}
body.mn-page main{max-width:1280px;margin:0 auto}
@media print{.mn-episode .mn-controls,.mn-episode .mn-help{display:none}}
]]

-- The colours of a theme as variables.
local function variables(name)
  local list = {}
  for _, key in ipairs { "page", "card", "line", "grid", "ground", "text", "dim", "accent", "warm", "good", "bad", "violet" } do
    list[#list + 1] = ("--mn-%s:#%06x"):format(key, math.floor(canvas.themes[name][key] / 256))
  end
  return table.concat(list, ";")
end

-- What a page needs once: colours as the reader prefers them, or as a theme that was chosen.
local function head()
  local light, dark = variables "light", variables "dark"
  return ("<style>.mn-episode,.mn-page{%s}\n@media screen and (prefers-color-scheme:dark){.mn-episode,.mn-page{%s}}\n"
    .. "[data-theme=light]{%s}\n[data-theme=dark]{%s}\nbody.mn-page{background:var(--mn-page)}\n%s</style>\n"):format(light, dark, light, dark, style)
end

-- The window's colour maps, for a dark and for a light page: [map][light], a colour for each eighth.
local function ramps()
  local maps = {}
  for map = canvas.SEQUENTIAL, canvas.DIVERGING do
    maps[map + 1] = { {}, {} }
    for light = 0, 1 do
      for i = 0, 8 do maps[map + 1][light + 1][i + 1] = ("#%06x"):format(math.floor(engine.C.mn_map_color(map, light == 1, i / 8) / 256)) end
    end
  end
  return json.encode(maps)
end

local function script() return ("<script>\n(() => {const ramps = %s;%s%s})();\n</script>\n"):format(ramps(), panels, player) end

-- The outcome of a variant in words, for readers without scripts.
local function outcome(v)
  local o = v.outcome
  if type(o) ~= "table" or not o.ret then return "" end
  return ("%s%s steps, return %s"):format(v.name ~= "" and v.name .. ": " or "", o.length, tostring(o.ret))
end

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
local function body(data, id, more)
  local ends = {}
  for _, v in ipairs(data.variants) do ends[#ends + 1] = outcome(v) end
  local notes = { data.source ~= json.null and data.source or nil }
  if data.left_out then notes[#notes + 1] = ("the first %d steps only"):format(data.most_steps) end
  return table.concat { ('<section class="mn-episode%s" id="%s" tabindex="-1"%s>\n<h2>%s</h2>\n<p class="mn-dim">%s</p>\n%s'):format(more.class or "", id,
    more.theme and (' data-theme="%s"'):format(more.theme) or "", escape(data.title), escape(table.concat(notes, "; ")),
      data.story and ('<p class="mn-story">%s</p>\n'):format(escape(data.story)) or "") .. strip(data),
    ('<div class="mn-body"><p>%s</p><noscript><p>A script in this page draws the episode; it is switched off.</p></noscript></div>\n'):format(
      escape(table.concat(ends, "; "))),
    '<script type="application/json">', (json.encode(data):gsub("<", "\\u003c")), "</script>\n</section>\n" }
end

---An episode as a part of a page.
---@param data table of episode_data.of
---@param id string of letters, digits and -; nothing else on the page has it
---@param again boolean? the page has another one before, with the script for both
---@return string html
function page.section(data, id, again)
  local html = body(data, id, {})
  return again and html or head() .. html .. script()
end

---An episode as a page of its own, which browsers keep from loading anything.
---@param data table of episode_data.of
---@param options table? theme = "dark"|"light"; nil: as the reader prefers
---@return string html
function page.whole(data, options)
  local theme = options and options.theme
  return table.concat { '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n',
    [[<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">]],
    "\n<title>", escape(data.title), "</title>\n", head(), '</head>\n<body class="mn-page"', theme and (' data-theme="%s"'):format(theme) or "", ">\n<main>\n",
    body(data, "episode", { class = " mn-alone", theme = theme }), "</main>\n", script(),
    "<script>addEventListener('DOMContentLoaded',()=>document.getElementById('episode').focus())</script>\n</body>\n</html>\n" }
end

return page
