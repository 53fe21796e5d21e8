-- test_no_score.lua -- an environment that declares no score: it is absent in what every command prints and writes, not 0 or nan.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"

local dir = shell.folder()
files.write(dir .. "/plain.lua", { [[
return function()
  return { name = "plain", observation = { 1 }, actions = 2,
    reset = function(self) self.t = 0 return { 1 } end,
    step = function(self, action) self.t = self.t + 1 return { 1 }, action, self.t == 5 end }
end]] })

local TRAIN = "run train env=plain.lua learner=a2c num_envs=8 num_steps=32 steps=4096 hidden=8 core.d_model=8 threads=1 run="

-- No line tells a score as a number, or a number that is none.
local function absent(text, what)
  t.ok(not text:find "score *[%d%-]" and not text:find "success *[%d%-]" and not text:find "%f[%a]nan%f[%A]", what .. ":\n" .. text)
end

local function fine(words)
  local said, status = shell.mneme(dir, words)
  t.eq(status, 0, words .. "\n" .. said)
  absent(said, words)
  return said
end

t.test("training: the outcome and the log have no score", function()
  fine(TRAIN .. "a")
  local results = json.decode(files.read(dir .. "/a/outcome.json")).results
  t.eq(results.score, nil)
  t.ok(results.mean_return > 0)
  t.ok(not files.read(dir .. "/a/metrics.jsonl"):find("charts/score", 1, true))
  t.ok(not files.read(dir .. "/a/events.out.tfevents.mneme"):find("charts/score", 1, true))
end)

t.test("every command that plays or reads the run", function()
  for _, words in ipairs { "eval a episodes=20", "eval a episodes=20 best=1", "list runs", "compare a", "report a",
    "intervene a erase=layers.0 at=2 episodes=20", "where a episodes=8", "credit a",
    "view a out=a.png", "view a out=a.html", "view a scene=mind out=mind.png" } do fine(words) end
end)

t.test("where measures what there is, and refuses what there is not", function()
  local said, status = shell.mneme(dir, "where a episodes=8 measure=success")
  t.eq(status, 2, said)
  t.ok(said:find("declares no score", 1, true), said)
end)

t.test("next to episodes with a score one that lacks it counts as 0: in eval, intervene and where", function()
  files.write(dir .. "/some.lua", { [[
return function() return { name = "some", observation = { 1 }, actions = 2, time_limit = 5,
  reset = function(self, random) self.t, self.short = 0, random(2) == 1 return { 1 } end,
  step = function(self, action)
    self.t = self.t + 1
    return { 1 }, action, self.short and self.t == 4, self.short and 1 or nil
  end } end]] })
  shell.fine(dir, (TRAIN:gsub("plain", "some"):gsub("4096", "256")) .. "s")
  for _, words in ipairs { "eval s episodes=40", "intervene s erase=all at=1 episodes=40", "where s episodes=40 every=3" } do
    local said = shell.mneme(dir, words)
    local share = tonumber(said:match "success +([%d.]+)")
    t.ok(share and share > 0.2 and share < 0.8, said)
  end
end)

t.test("what an episode came to, by the environment", function()
  local spec = dofile(dir .. "/plain.lua")()
  spec.num_envs = 2
  local env = require("mneme").env(spec)
  env:reset(1)
  for _ = 1, 5 do env:step { 1, 0 } end
  local one, other = env:outcome(0), env:outcome(1)
  t.eq(one.score, nil)
  t.eq(other.score, nil)
  t.eq(one.ret, 5)
  t.eq(other.ret, 0)
  t.eq(one.length, 5)
end)

t.test("stop_score is refused where 100 episodes had no score", function()
  local said, status = shell.mneme(dir, TRAIN .. "stopped stop_score=0.5")
  t.eq(status, 2, said)
  t.ok(said:find("declares no score", 1, true), said)
  t.ok(said:find("plain.lua:%d+: stop_score=0.5: "), said)
end)

t.test("a score that only some episodes have is one: stop_score goes by it", function()
  local text = files.read(dir .. "/plain.lua")
  local some, changed = text:gsub("(self%.t == 5)", "%1, self.t == 5 and action == 1 and 1 or nil", 1)
  t.eq(changed, 1, text)
  files.write(dir .. "/plain.lua", { some })
  local said = shell.fine(dir, TRAIN .. "some stop_score=0.5")
  t.ok(said:find("stop_score=0.5 is reached", 1, true) or said:find("first reached 0.5", 1, true), said)
end)

os.execute(("rm -r '%s'"):format(dir))
