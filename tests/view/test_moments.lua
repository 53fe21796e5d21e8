-- test_moments.lua -- addresses of moments, which open the same page in another viewer; the search for episodes; pins, which stay with the run.
local t = require "tests.harness"
local action_keys = require "mneme.insight.view.action_keys"
local moment_links = require "mneme.insight.view.moment_links"
local search_conditions = require "mneme.insight.view.search_conditions"
local files = require "mneme.base.files"
local scene = require "mneme.insight.view.scene"
local score_effects = require "mneme.insight.view.score_effects"
local shell = require "tests.support.shell"
local view = require "mneme.commands.view"

local folder = shell.folder()
local run = folder .. "/agent"
local said, code = shell.mneme(folder, "run demo corridor=6 core=gru core.d_model=12 steps=4000 num_steps=64 threads=1 where=0 run=agent")
t.eq(code, 0, said)

-- A viewer of things, as the command opens it, drawn once.
local painter = scene.painter()
local function open(o, ...)
  o.things = { ... }
  local v = view.open(view.prepare(setmetatable(o, { __index = { episodes = 1, web = 1 } })))
  v.canvas = painter.view
  v:tick(0)
  v.playing = false
  local r = { v = v }
  function r.paint() painter:draw((v:page()), select(2, v:page()), 640, 480) end
  function r.type(text) for c in text:gmatch "." do v:key(c:byte(), 0, r.paint) end end
  function r.enter() v:key(action_keys.ENTER, 0, r.paint) end
  function r.link() return moment_links.write(v:address()) end
  function r.go(link) v:go(moment_links.read(link), 0) end
  return r
end

-- What is shown: the observation, the action and the memory of each track.
local function shown(v)
  local list = {}
  for k in ipairs(v.tracks) do
    local frame = v:frame(k)
    list[k] = ("%d %d %s %s %s"):format(frame.episode, frame.step, tostring(frame.action), tostring(frame.value), tostring(frame.ret))
  end
  return table.concat(list, " | ")
end

t.test("an address is read as it was written, whatever is in it, and nothing else is taken from it", function()
  local odd = "a b&c=d#e/ü%<script>,+"
  t.eq(moment_links.read(moment_links.write { { "run", odd }, { "no", nil }, { "off", false }, { "step", 18 } }).run, odd)
  t.eq(moment_links.write { { "run", odd }, { "step", 18 } }:find "[^%w%%&=/,+._~:-]", nil, "a browser changes none of it")
  for _, bad in ipairs { "", "&&&", "=", "step", "step=", "step=x", "step=-1", "step=1e5", "step=0x10", "step=99999999999999999999", "%%%", "step=%zz",
    "=5" } do
    t.eq(moment_links.whole(moment_links.read(bad).step), nil, bad)
  end
  t.eq(moment_links.whole "18", 18)
  local a = open({}, run)
  a.go "episode=1&step=2"
  local link = a.link()
  a.go "episode=9007199254740000&step=3"
  t.eq(a.v.note, "there is no episode 9007199254740000") t.eq(a.link(), link)
  a.go "episode=1&seed=9007199254740000&step=2"
  t.eq(a.link():match "seed=(%d+)", "9007199254740000")
end)

t.test("the address of a moment opens it again: in a new viewer, of another scene and seed, and of two episodes", function()
  local a = open({}, run)
  for _ = 1, 3 do a.v:to_episode(1) end
  a.v:forward() a.v:forward()
  t.eq(a.link():match "episode=%d+&step=%d+", "episode=3&step=2")
  local b = open({}, run)
  b.go(a.link())
  t.eq(shown(b.v), shown(a.v))
  t.eq(b.link(), a.link())
  local c = open({ seed = 99, scene = "world" }, run)
  c.go(a.link())
  t.eq(shown(c.v), shown(a.v)) t.eq(c.link(), a.link()) t.eq(c.v.scene_name, a.v.scene_name)
  a.v:beside(a.v:episodes_of(1)[1].start, 0)
  a.v:forward()
  t.ok(a.link():find "beside=0")
  b.go(a.link())
  t.eq(#b.v.tracks, 2) t.eq(shown(b.v), shown(a.v)) t.eq(b.link(), a.link())
  b.go "episode=1&step=1"
  t.eq(#b.v.tracks, 1) t.eq(b.link():match "episode=%d+&step=%d+", "episode=1&step=1")
end)

t.test("a moment with a part of the memory erased, of several runs, and a far episode", function()
  local a = open({}, run)
  a.v:without("erase", "all", 2, 0)
  a.v:forward()
  t.ok(a.link():find "erase=all&at=2", a.link())
  local b = open({}, run)
  b.go(a.link())
  t.eq(#b.v.tracks, 2) t.eq(shown(b.v), shown(a.v))
  local pair = open({}, run, run)
  pair.go "episode=2&step=1"
  t.eq(pair.link():match "episode=%d+&step=%d+", "episode=2&step=1")
  b.go "episode=100000&step=1"
  t.eq(b.link():match "episode=%d+&step=%d+", "episode=100000&step=1")
end)

t.test("an address that means nothing here changes nothing that is not said", function()
  local a = open({}, run)
  for _, link in ipairs { "", "x", "scene=nowhere", "scene=../../etc/passwd", "run=/etc" } do
    local before = a.link()
    a.go(link)
    t.eq(a.link(), before, link)
  end
  a.go "checkpoint=12345&episode=1"
  t.ok(a.v.note, "there is no such checkpoint")
  a.go "episode=1&erase=nothing-of-this-name&at=2"
  a.go "episode=1&beside=77"
  a.go "episode=0&step=1000000"
  t.eq(a.v:ended(), true, "at its end")
  for _ = 1, 200 do
    local list = {}
    for _, key in ipairs { "checkpoint", "seed", "episode", "step", "beside", "at", "scene", "erase", "hold" } do
      if math.random() < 0.4 then list[#list + 1] = key .. "=" .. ({ "", "0", "3", "-1", "nan", "all", "layers.0", "%00", "1e9" })[math.random(9)] end
    end
    a.go(table.concat(list, "&"))
    t.ok(a.v:frame(1), table.concat(list, "&"))
  end
  a.paint()
end)

t.test("a search finds the episodes that meet all conditions, plays on until there is one, and says what it knows", function()
  local a = open({}, run)
  a.type "/return<0"
  a.paint()
  a.enter()
  local deadline = os.clock() + 20
  while a.v.hunting and os.clock() < deadline do a.v:look_for_failures(0, math.huge) end
  local function episode() return a.v:episodes_of(1)[a.v:tick_of(1).episode + 1] end
  t.ok(episode().outcome.ret < 0, tostring(episode().outcome.ret))
  local first = episode().episode
  a.type "f"
  while a.v.hunting and os.clock() < deadline do a.v:look_for_failures(0, math.huge) end
  t.ok(episode().episode > first and episode().outcome.ret < 0)
  a.type "F"
  t.eq(episode().episode, first)
  local length = episode().outcome.length
  a.type(("/length>%d"):format(length))
  a.enter()
  while a.v.hunting and os.clock() < deadline do a.v:look_for_failures(0, math.huge) end
  t.ok(episode().outcome.length > length or a.v.note)
  a.type "/seed=8"
  a.enter()
  t.eq(episode().episode + a.v:source().seed, 8)
  a.type "/episode=3"
  a.enter()
  t.eq(episode().episode, 3)
  for _, bad in ipairs { "nonsense", "weight<3", "seed=-4", "episode=1.5" } do
    a.v.note = nil
    a.type("/" .. bad)
    a.enter()
    t.ok(a.v.note, bad)
    t.eq(episode().episode, 3, bad)
  end
  a.type "/failed"
  a.v:key(action_keys.ESCAPE, 0, a.paint)
  t.eq(a.v.prompt, nil)
  a.type "/"
  a.enter()
  t.eq(a.v.sought, nil, "f goes to failures again")
end)

t.test("pins stay with the run, lead to their moment, and come off; a file that is no list of pins does no harm", function()
  local a = open({}, run)
  a.go "episode=2&step=3"
  a.type "p"
  local moment = shown(a.v)
  a.go "episode=4&step=0"
  a.type "p"
  t.eq(#a.v:episodes_of(1), 5)
  local pinned = {}
  for _, e in ipairs(a.v:episodes_of(1)) do if e.pinned then pinned[#pinned + 1] = e.episode end end
  t.eq(table.concat(pinned, " "), "2 4")
  local b = open({}, run)
  b.type "P"
  t.eq(shown(b.v), moment, "tomorrow, too")
  b.type "P"
  t.eq(b.link():match "episode=%d+&step=%d+", "episode=4&step=0")
  b.type "p"
  b.type "P"
  b.type "P"
  t.eq(shown(b.v), moment, "the other one came off")
  files.write(run .. "/pinned", { ("\1\255&episode=9e9&step=\n"):rep(50), ("x"):rep(1e6), "\n\n" })
  local c = open({}, run)
  for _ = 1, 60 do c.type "P" end
  t.ok(c.v:frame(1))
  files.remove(run .. "/pinned")
end)

t.test("conditions: words, equal values however they are written, and numbers", function()
  local values = { lr = 0.001, name = "gru", n = 5 }
  local function met(text)
    return search_conditions.met(search_conditions.read(text), function(key) return values[key] end, function(word) return word == "yes" end)
  end
  for text, wanted in pairs { [""] = true, yes = true, no = false, ["lr=1e-3"] = true, ["lr=0.0010"] = true, ["lr<0.002 yes"] = true, ["lr>0.002"] = false,
    ["name=gru"] = true, ["name=lstm"] = false, ["name<3"] = false, ["other=1"] = false, ["other<1"] = false, ["n>4 n<6"] = true, ["n>4 n<5"] = false,
    ["n<x"] = false } do t.eq(met(text), wanted, text) end
end)

t.test("which settings go with the score", function()
  local runs = {}
  for i = 1, 40 do
    local even = i % 2 == 0
    runs[i] = { score = even and 0.9 or 0.5, settings = { core = even and "gru" or "lstm", lr = tostring(i), seed = tostring(1 + math.floor(i / 2) % 2) } }
  end
  local effects = score_effects(runs, { "core", "lr", "seed" })
  t.eq(effects[1].name, "core")
  t.ok(math.abs(effects[1].share - 1) < 1e-9)
  t.eq(#effects[1].groups, 2)
  t.ok(math.abs(effects[1].groups[1].mean - 0.9) < 1e-9) t.eq(effects[1].groups[1].n, 20)
  for _, e in ipairs(effects) do
    t.ok(e.share >= 0 and e.share <= 1, e.name)
    local n = 0
    for _, g in ipairs(e.groups) do n = n + g.n end
    t.eq(n, 40, e.name)
    if e.name == "lr" then t.ok(#e.groups <= 6, "in ranges") t.ok(e.share < 0.1) end
  end
  t.eq(#score_effects({}, { "core" }), 0)
  t.eq(#score_effects({ runs[1], runs[3], runs[5], runs[7] }, { "lr" }), 0, "equal scores")
end)

os.execute("rm -r '" .. folder .. "'")
