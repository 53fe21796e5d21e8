-- test_episode_page.lua -- an episode as an HTML file: for every scene, core and environment painter.js paints what the scene draws, and says
-- under the pointer what a window says; the file loads nothing and stays small.  In a browser: test_episode_browser.lua.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"
local mn = require "mneme"
local envs = require "mneme.envs"
local registry = require "mneme.base.registry"
local contract_rig = require "mneme.models.contract_rig"
local engine = require "mneme.base.engine"
local episode_data = require "mneme.insight.view.episode_data"
local episode_page = require "mneme.insight.view.episode_page"
local files = require "mneme.base.files"
local intervention_options = require "mneme.insight.episodes.intervention_options"
local json = require "mneme.base.json"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local stepper = require "mneme.insight.episodes.stepper"
local parsed = require "tests.support.parsed"
local view = require "mneme.commands.view"
local viewer = require "mneme.insight.view.viewer"

ffi.cdef "typedef struct mn_image { int rows, cols; const uint8_t *rgb; } mn_image; mn_image mn_canvas_image_at(const mn_canvas *c, int text);"
local C = engine.C
local folder = shell.folder()

-- An untrained agent's episode in a scene, as it was or with all of its memory erased at step `at`.
local function shown_of(env, core, at, name)
  local function open()
    if type(core) == "table" then
      mn.manual_seed(5)
      return stepper.fresh { env = env, core = core, seed = 3, seeded = true }
    end
    local made, about = mn.env(env[1], { corridor = env.corridor, num_envs = 1 }), { seed = 3, seeded = true }
    return stepper.new(made, mn.agent { env = made, core = contract_rig.fresh({ core }, 3, { d_in = 16 }), hidden = 8 }, about)
  end
  local shown = viewer.new({ { source = open(), open = open, scene = scene.load(name or scene.for_env(env[1])) } }, { controls = false })
  shown.measure = function() return false end               -- its other episodes are not needed
  if at then
    shown:go_to(at)
    local option = intervention_options.of { { kind = "erase", what = "all" } }
    t.ok(shown:change(intervention_options.change(option, shown.tracks[1].timeline, shown.slots[shown.at][1]), 0), "erased")
  end
  return shown
end

-- ---- what painter.js paints, and what it should ----

-- A colour as a canvas of a browser takes it, with its opacity rounded as it is kept.
local function css(c)
  local alpha, rgb = c % 256, ("%d,%d,%d"):format(bit.band(bit.rshift(c, 24), 255), bit.band(bit.rshift(c, 16), 255), bit.band(bit.rshift(c, 8), 255))
  return alpha == 255 and ("rgb(%s)"):format(rgb) or ("rgba(%s,%s)"):format(rgb, tostring(tonumber(("%.4f"):format(alpha / 255))))
end

local function round(x) return math.floor(x + 0.5) end

-- The calls that a shape is, in the order of a browser's canvas: { name, numbers and texts ... }.
local function calls_of(painter, shapes, s, out)
  local color = css(s.color)
  local function call(...) out[#out + 1] = { ... } end
  local function cells(rows, cols, rgb)
    local x, y = round(s.x), round(s.y)
    call("drawImage", cols, rows, x, y, round(s.x + s.w) - x, round(s.y + s.h) - y, rgb)
  end
  if s.kind == 0 then call("fillRect", s.x, s.y, s.w, s.h, color)
  elseif s.kind == 1 then
    local thick = math.min(s.data > 0 and s.data or 1, math.min(s.w, s.h) / 2)
    call("strokeRect", s.x + thick / 2, s.y + thick / 2, s.w - thick, s.h - thick, color, thick, "butt")
  elseif s.kind == 2 then call "beginPath" call("arc", s.x, s.y, s.w, 0, 2 * math.pi) call("fill", color)
  elseif s.kind == 3 then
    call "beginPath" call("moveTo", s.x, s.y) call("lineTo", s.w, s.h)
    call("stroke", color, s.data > 0 and s.data or 1, "round")
  elseif s.kind == 4 then
    call "save" call("translate", s.x + s.w / 2, s.y + s.h / 2) call("rotate", s.data)
    call "beginPath" call("moveTo", -s.w / 2, -s.h / 2) call("lineTo", s.w / 2, 0) call("lineTo", -s.w / 2, s.h / 2) call("fill", color) call "restore"
  elseif s.kind == 5 then
    local text = ffi.string(C.mn_canvas_string(shapes, s.text))
    call("fillText", text, s.x, round(s.y), painter:text_width(text, s.h) + 1, color, math.floor(4 * s.h + 0.5) / 4)
  elseif s.kind == 6 then
    local h, rgb = C.mn_canvas_heat_at(shapes, s.text), {}
    for i = 0, h.rows * h.cols - 1 do
      local share = h.hi ~= h.lo and (h.values[i] - h.lo) / (h.hi - h.lo) or 0.5
      local shade = C.mn_map_color(h.map, not painter.view.theme.dark, h.values[i] ~= h.values[i] and h.values[i] or share)
      for part = 24, 8, -8 do rgb[#rgb + 1] = bit.band(bit.rshift(shade, part), 255) end
    end
    cells(h.rows, h.cols, rgb)
  else
    local image, rgb = C.mn_canvas_image_at(shapes, s.text), {}
    for i = 0, 3 * image.rows * image.cols - 1 do rgb[i + 1] = image.rgb[i] end
    cells(image.rows, image.cols, rgb)
  end
end

local function same(got, wanted, what)
  t.eq(got[1], wanted[1], what)
  what = what .. " " .. wanted[1]
  if wanted[1] == "drawImage" then
    local rgb, want = got[8], wanted[8]
    for i = 4, 7 do t.ok(math.abs(got[i] - wanted[i]) <= 1, what) end          -- a hundredth may round another way
    if #rgb ~= #want then return t.ok(got[2] * got[3] < wanted[2] * wanted[3], what .. ": fewer cells") end
    for i, x in ipairs(want) do t.ok(math.abs(rgb[i] - x) <= 4, ("%s: colour %d for %d"):format(what, rgb[i], x)) end
    return
  end
  for i = 2, #wanted do
    local a, b = got[i], wanted[i]
    if wanted[1] == "fillText" and i == #wanted then a = tonumber(a:match "^([%d.]+)px") end
    local most = wanted[1] == "fillText" and i == 4 and 1 or 0.016          -- a hundredth may round another way
    if type(b) == "number" then t.ok(math.abs(a - b) <= most, ("%s, number %d: %s for %s"):format(what, i, a, b))
    else t.eq(a, b, what) end
  end
end

local node = shell.has "nodejs" and "nodejs" or shell.has "node" and "node"

-- Compares every page of an episode with what its scene draws, and some places of the pointer.
local function check(shown, options, name)
  if not node then t.skip "no node is installed (apt-get install nodejs)" end
  options.seconds = 1e6
  local data, path = episode_data.of(shown, options), folder .. "/page.html"
  files.write(path, { episode_page.whole(data) })
  local painter, from, asked, told = scene.painter(nil, { theme = name.theme }), shown:episode(), {}, {}
  local width, height = options.width or 1280, options.height or 800
  local function draw(slot)
    shown:seek(slot)
    local what, frame = shown:page()
    painter:draw(what, frame, width, height)
  end
  local pages = {}
  for step = 0, #data.steps - 1 do
    draw(from + step)
    local out, shapes = { { "fillRect", 0, 0, width, height, css(painter.view.theme.page):gsub("rgb%(.*", "") .. ("#%06x"):format(
      math.floor(painter.view.theme.page / 256)) } }, painter.view.shapes
    for i = 0, C.mn_canvas_count(shapes) - 1 do calls_of(painter, shapes, C.mn_canvas_shapes(shapes)[i], out) end
    pages[step + 1] = out
    for k = 0, 23 do
      local x, y = (k % 6 + 0.53) / 6 * width, (math.floor(k / 6) + 0.47) / 4 * height
      asked[#asked + 1] = ("%d %.3f %.3f"):format(step, x, y)
      told[#told + 1] = painter.view:tip_at(x, y) or false
    end
  end
  files.write(folder .. "/asked", { table.concat(asked, "\n") })
  local said = shell.run(folder, ("%s %s/tests/support/record_painter.js %s/lua/mneme/insight/view/painter.js page.html %s < asked"):format(node, shell.root,
    shell.root, name.theme or "dark"))
  local lines = {}
  for line in said:gmatch "[^\n]+" do lines[#lines + 1] = json.decode(line) or error(line) end
  for step, out in ipairs(pages) do
    t.eq(#lines[step], #out, ("%s, step %d: calls"):format(name[1], step - 1))
    for i, wanted in ipairs(out) do same(lines[step][i], wanted, ("%s, step %d, call %d"):format(name[1], step - 1, i)) end
  end
  local words = 0
  for i, text in ipairs(told) do
    local got = lines[#pages + i].words
    t.eq(got and got:gsub("[^ ]*$", ""), text and text:gsub("[^ ]*$", "") or nil, ("%s, under %s"):format(name[1], asked[i]))
    words = words + (text and 1 or 0)
  end
  return data, words
end

for _, name in ipairs(registry.names "scenes") do
  t.test("painter.js paints scene " .. name, function()
    local what = scene.load(name)
    local core = { what.core[1], d_model = 16, n_layers = 2 }
    local _, words = check(shown_of(what.env, core, nil, name), { most = 3 }, { name })
    t.ok(words > 3, "and says what is under the pointer")
  end)
end

t.test("painter.js paints the light page", function()
  check(shown_of({ "tmaze", corridor = 8 }, { "gru", d_model = 16 }, nil, "mind"), { most = 3 }, { "light", theme = "light" })
end)

t.test("painter.js paints two courses of an episode, and every core's", function()
  for _, core in ipairs(registry.names "cores") do
    local has_state = next(contract_rig.fresh({ core }, 3, { d_in = 16 }).states) ~= nil
    local data = check(shown_of({ "tmaze", corridor = 8 }, core, has_state and 2 or nil, "memory"), { most = 3, width = 800, height = 500 }, { core })
    t.eq(data.steps[1]:find(" | ", 1, true) ~= nil, has_state, core)
  end
end)

for _, e in ipairs(envs.list()) do
  t.test("painter.js paints what an environment draws: " .. e.name, function()
    check(shown_of({ e.name }, { "gru", d_model = 8 }, nil, "world"), { most = 2, width = 640, height = 400 }, { e.name })
  end)
end

t.test("a page is one file: nothing to load, text cannot leave its place, and it can be read without scripts", function()
  local data = episode_data.of(shown_of({ "tmaze", corridor = 6 }, { "gru", d_model = 8 }), { most = 5 })
  data.title = '</script><img src="http://example.org/x.png">&'
  local html = episode_page.whole(data, { theme = "dark" })
  t.ok(not html:find("<img src=\"http", 1, true), "no markup from a title")
  for _, bad in ipairs { "%ssrc%s*=%s*[\"']https?:", "<link", "@import", "url%(", "fetch%(", "XMLHttp", "import%(" } do
    t.ok(not html:find(bad), "the page loads: " .. bad)
  end
  t.ok(html:find("default-src 'none'", 1, true), "and browsers are told so")
  t.ok(html:find('data-theme="dark"', 1, true), "theme=")
  t.eq(data.left_out, true, "five steps of an untrained agent's episode")
  t.ok(html:find("the first 5 steps only", 1, true), "said on the page")
  t.ok(html:find('<img class="mn-still" alt="step 0" src="data:image/png;base64,iVBOR', 1, true), "a picture")
  t.eq(select(2, html:gsub("<li>[^<]+with %d+ %%, value", "")), 5, "every step in words")
end)

t.test("200 steps of the published agalite, twice, are less than 1 MiB", function()
  local shown = shown_of({ "tmaze", corridor = 200 }, { "agalite" }, 20)
  local data = episode_data.of(shown, { most = 200 })
  local html = episode_page.whole(data)
  t.eq(#data.steps, 200)
  t.ok(#html < 2 ^ 20, ("%d bytes"):format(#html))
end)

t.test("mneme view out=FILE.html", function()
  local path = folder .. "/e.html"
  for _, bad in ipairs { { "tmaze", "out=" .. path, "erase=all" }, { "tmaze", "out=" .. path, "erase=all", "at=2", "episodes=2" } } do
    local ok, e = pcall(function() return view.prepare(parsed(view, bad)) end)
    t.ok(not ok and e.status == 2, table.concat(bad, " "))
  end
  shell.fine(folder, "run demo corridor=6 core=gru core.d_model=8 hidden=8 num_envs=4 steps=512 where=0 run=small")
  local said, status = shell.mneme(folder, "view small seed=4 erase=all at=2 theme=light wait=0 out=e.html")
  t.eq(status, 0, said)
  local html = files.read(path)
  t.ok(html:find("erase all at step 2: ", 1, true) and html:find('alt="step 2"', 1, true), "both courses, opened at the intervention")
  said, status = shell.mneme(folder, "view small seed=4 episodes=3 wait=0 out=third.html")
  t.eq(status, 0, said)
  t.ok(not files.read(folder .. "/third.html"):find("erase all", 1, true))
end)

t.test("keys go to steps, play, pause and turn the theme", function()
  if not node then t.skip "no node is installed (apt-get install nodejs)" end
  local data = episode_data.of(shown_of({ "tmaze", corridor = 6 }, { "gru", d_model = 8 }, nil, "world"), { most = 20, open = 3, width = 640, height = 400 })
  files.write(folder .. "/played.html", { episode_page.whole(data) })
  local said = shell.run(folder, ("%s %s/tests/support/play_page.js played.html Escape Home ArrowRight PageDown ArrowLeft t Home ' ' tick ' ' End"):format(node,
    shell.root))
  local lines = {}
  for line in said:gmatch "[^\n]+" do lines[#lines + 1] = json.decode(line) or error(said) end
  for i, step in ipairs { 3, 0, 1, 11, 10, 10, 0, 0 } do t.eq(lines[i].step, step) end
  t.ok(lines[5].theme == "dark" and lines[6].theme == "light" and lines[8].playing, "t, and space")
  t.ok(lines[9].step > 0 and lines[9].playing and not lines[10].playing, "it plays, and pauses")
  t.eq(lines[11].step, #data.steps - 1)
  t.eq(lines[11].said, ("step %d of %d – %s"):format(#data.steps - 1, #data.steps - 1, data.steps[#data.steps]))
end)

t.test("a stored map serves any episode", function()
  local said, status = shell.mneme(folder, "run demo corridor=6 core=gru core.d_model=8 hidden=8 steps=4096 where=0 run=r1")
  t.eq(status, 0, said)
  said, status = shell.mneme(folder, "where r1")
  t.eq(status, 0, said)
  said, status = shell.mneme(folder, "view r1 seed=9 wait=1 out=seeded.html")
  t.eq(status, 0, said)
  t.ok(files.read(folder .. "/seeded.html"):find("64 episodes: ", 1, true))
end)

os.execute("rm -r '" .. folder .. "'")
