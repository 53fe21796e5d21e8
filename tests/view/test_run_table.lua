-- test_run_table.lua -- the runs of a folder as a page: rows, filter, order, studies, what differs; a run opens in its place and closes again.
local t = require "tests.harness"
local action_keys = require "mneme.insight.view.action_keys"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local run_list = require "mneme.commands.run_list"
local run_table = require "mneme.insight.view.run_table"
local scene = require "mneme.insight.view.scene"
local scene_rig = require "tests.support.scene_rig"
local shell = require "tests.support.shell"

local painter, folder = scene.painter(), shell.folder()

-- A run's folder as far as the list reads it.
local function write(name, config, score)
  files.make_folder(folder .. "/" .. name)
  files.write(folder .. "/" .. name .. "/config.json", { require("mneme.base.json").encode { config = config, env = "tmaze-v0", script = "x.lua" } })
  files.write(folder .. "/" .. name .. "/metrics.jsonl", { ('{"step": 100, "charts/score": %g}\n'):format(score) })
end
for i = 1, 200 do
  write(("run-%03d"):format(i), { core = { name = i % 2 == 0 and "gru" or "agalite", d_model = 16 * (1 + i % 3) }, lr = 0.001, steps = 200, seed = i }, i / 200)
end

-- The table, drawn: what it says, and a click where it says something.
local function shown()
  local opened = {}
  local v = run_table.new(folder, setmetatable({ open = function(paths)
    local path = table.concat(paths, ",")
    if path:find "run%-013" then errors.raise "this one does not open" end
    local inner = { path = path, dirty = true, title = path, playing = true }
    function inner.key(_, key) return key == ("q"):byte() end
    function inner.pointer() end
    function inner.page() return { draw = function(view) view:text("the viewer of " .. path, 10, 40, 14) end }, {} end
    function inner.closed() return "saved something" end
    opened[#opened + 1] = inner
    return inner
  end }, { __index = run_list.source }))
  v.canvas = painter.view
  local r = { v = v, opened = opened }
  function r.paint()
    local what, frame = v:page()
    painter:draw(what, frame, 1280, 800)
  end
  function r.says(text)
    r.paint()
    return scene_rig.place_of(painter.view, text)
  end
  function r.type(text) for c in text:gmatch "." do v:key(c:byte(), 0, r.paint) end end
  function r.click(text)
    local x, y = r.says(text)
    t.ok(x, "the page says " .. text)
    v:pointer("press", x, y, 1, 0, r.paint)
    v:pointer("release", x, y, 1, 0, r.paint)
  end
  return r
end

t.test("200 runs in less than a second of the processor, and only what has room is drawn", function()
  local begun = os.clock()
  local r = shown()
  r.paint()
  t.ok(os.clock() - begun < 1, os.clock() - begun)
  t.eq(#r.v.rows, 200)
  t.eq(r.v.of, 200)
  t.ok(painter.view.n_spots < 60, painter.view.n_spots)
  t.eq(r.v.playing, false, "it rests")
  t.ok(r.v.rows[1].differs:find "core=%a+  core.d_model=%d+  seed=%d+", r.v.rows[1].differs)
  t.ok(not r.v.rows[1].differs:find "lr=", "what all have is not said")
end)

t.test("letters filter, by a part of the name and by any setting; titles sort; arrows move and scroll", function()
  local r = shown()
  r.type "core=gru run-19"
  t.eq(#r.v.rows, 5)
  for _, row in ipairs(r.v.rows) do t.eq(row.core, "gru") end
  r.v:key(action_keys.BACKSPACE, 0, r.paint)
  t.eq(#r.v.rows, 50, "100 to 199, the even ones")
  r.type "zz"
  t.eq(#r.v.rows, 0)
  r.paint()
  r.v:key(action_keys.ESCAPE, 0, r.paint)
  r.type "core.d_model=32"
  for _, row in ipairs(r.v.rows) do t.eq(row.config.core.d_model, 32) end
  r.v:key(action_keys.ESCAPE, 0, r.paint)
  r.click "score"
  t.eq(r.v.rows[1].name, "run-200")
  r.v:key(action_keys.END, 0, r.paint)
  t.ok(r.says "run-001", "scrolled")
  t.ok(not r.says "run-200")
  r.v:pointer("wheel", 100, 100, 1, 0, r.paint)
  t.eq(r.v.at, 199)
end)

t.test("a run opens by click and by Enter, and closes again; one that does not says why", function()
  local r = shown()
  r.type "run-01"
  r.click "run-014"
  t.eq(r.opened[1].path, folder .. "/run-014")
  t.ok(r.says("the viewer of " .. folder .. "/run-014"))
  t.eq(r.v.title, folder) t.eq(r.v.playing, true)
  t.eq(r.v:key(("q"):byte(), 0, r.paint), false, "back, not out")
  t.ok(r.says "saved something")
  r.click "run-013"
  t.ok(r.says "this one does not open")
  r.v:key(action_keys.HOME, 0, r.paint)
  r.v:key(action_keys.ENTER, 0, r.paint)
  t.eq(#r.opened, 2)
  r.v:key(("q"):byte(), 0, r.paint)
  t.eq(r.v:key(action_keys.ESCAPE, 0, r.paint), false, "first the filter goes")
  t.eq(#r.v.rows, 200)
  t.eq(r.v:key(action_keys.ESCAPE, 0, r.paint), true)
end)

t.test("chosen runs have curves, and Enter opens up to four side by side", function()
  local r = shown()
  r.paint()
  t.eq(#r.v.rows, 200)
  t.ok(r.says "right click or Tab chooses runs")
  local x, y = r.says(r.v.rows[3].name)
  r.v:pointer("press", x, y, 3, 0, r.paint)
  r.v:key(action_keys.HOME, 0, r.paint)
  r.v:key(action_keys.TAB, 0, r.paint)
  t.ok(r.says "of 2 chosen")
  t.eq(#r.opened, 0)
  local first, third = r.v.rows[1], r.v.rows[3]
  r.v:key(action_keys.ENTER, 0, r.paint)
  t.eq(r.opened[1].path, first.path .. "," .. third.path)
  r.v:key(("q"):byte(), 0, r.paint)
  for _ = 1, 5 do
    r.v:key(action_keys.DOWN, 0, r.paint)
    r.v:key(action_keys.TAB, 0, r.paint)
  end
  t.ok(next(r.v.chosen))
  r.v:key(action_keys.ENTER, 0, r.paint)
  t.eq(#r.opened, 1, "five and more are too many")
  t.ok(r.v.note)
end)

t.test("curves on one axis are of one number, and how many others there are is said", function()
  local r = shown()
  local curve = r.v.source.curve
  r.v.source = setmetatable({ curve = function(path)
    if path:find "run%-0*[1-3]$" then return { n = 1, x = { 100 }, y = { 1e9 }, of = "charts/episodic_return" } end
    return curve(path)
  end }, { __index = r.v.source })
  for i = 1, 4 do for _, row in ipairs(r.v.rows) do if row.name == ("run-%03d"):format(i) then r.v.chosen[row.path] = true end end end
  r.paint()
  t.ok(r.says "1 of 4 log another number" or r.says "3 of 4 log another number")
  t.eq(r.says "1.0G" and r.says "score while learning", nil)
end)

t.test("the setting that goes with the score is named first, of the runs that are listed", function()
  local r = shown()
  r.paint()
  for _, e in ipairs(r.v.effects) do t.ok(e.share >= 0 and e.share <= 1, e.name) end
  t.eq(r.v.effects[1].name, "seed", "which the score was made of")
  t.eq(r.v.scored, 200)
  r.type "core=gru score<0.5"
  t.eq(r.v.scored, #r.v.rows)
  t.eq(#r.v.rows, 49)
  for _, row in ipairs(r.v.rows) do t.ok(row.core == "gru" and row.score < 0.5) end
  for _, e in ipairs(r.v.effects) do t.ok(e.name ~= "core", "all have one") end
end)

t.test("an address opens a run of the table, or its filter and order, and nothing else", function()
  local r = shown()
  r.type "core=gru"
  r.v:go({ filter = "run-19", sort = "score" }, 0)
  t.eq(#r.v.rows, 10) t.eq(r.v.rows[1].name, "run-199")
  local said = require("mneme.insight.view.moment_links").write(r.v:address())
  t.eq(said, "filter=run-19&sort=score")
  r.v:go({ run = "run-014", episode = "3" }, 0)
  t.eq(r.opened[1].path, folder .. "/run-014")
  t.eq(require("mneme.insight.view.moment_links").write(r.v:address()), "run=run-014")
  r.v:go({ run = "run-015,run-016" }, 0)
  t.eq(r.opened[2].path, folder .. "/run-015," .. folder .. "/run-016")
  for _, bad in ipairs { "../run-014", "/etc", "run-014/", "run-999", "run-1,run-2,run-3", "." } do
    r.v:go({ run = bad, folder = bad, sort = bad }, 0)
    t.eq(r.v.inner, nil, bad) t.eq(r.v.folder, folder, bad)
  end
  t.eq(#r.opened, 2)
end)

t.test("a study's claims and what its runs say of them, also where nothing can be said", function()
  local r = shown()
  files.make_folder(folder .. "/study")
  files.write(folder .. "/study/study.json", { '{"runs": [], "script": "s.lua"}' })
  local asked = 0
  r.v.source.claims = function(path)
    asked = asked + 1
    t.eq(path, folder .. "/study")
    return { { text = "memory helps", verdict = "holds" }, { text = "more of it helps more", verdict = "undecided" } }
  end
  r.type "study"
  t.eq(#r.v.rows, 1)
  r.paint()
  r.v.dirty = false
  r.v:tick(0, 0)
  t.ok(r.says "memory helps" and r.says "holds" and r.says "undecided")
  r.v.dirty = false
  r.v:tick(0, 0)
  t.eq(asked, 1, "once")
  t.ok(run_list.source.claims(folder .. "/study").problem, "it keeps no declaration")
  os.execute("rm -r '" .. folder .. "/study'")
end)

t.test("damaged folders, an empty folder and hostile names are rows like others", function()
  files.make_folder(folder .. "/broken")
  files.write(folder .. "/broken/config.json", { "{" })
  write("<b>", { core = "gru", steps = 1, seed = "x\1\255" }, 0)
  local r = shown()
  r.paint()
  t.eq(#r.v.rows, 202)
  r.type "state=damaged"
  t.eq(#r.v.rows, 1)
  local none = shell.folder()
  r.v:show(none)
  r.paint()
  t.eq(#r.v.rows, 0)
  r.v:key(action_keys.ENTER, 0, r.paint)
  r.v:key(action_keys.END, 0, r.paint)
  os.execute("rm -r '" .. none .. "' '" .. folder .. "/broken' '" .. folder .. "/<b>'")
end)

os.execute("rm -r '" .. folder .. "'")
