-- test_fresh_episodes.lua -- a training that stops because it solved its task plays fresh episodes, keeps them as its result, and says so; a
-- signal skips them, a resume plays what is missing.
local t = require "tests.harness"
local checkpoint_files = require "mneme.runs.checkpoint_files"
local files = require "mneme.base.files"
local fresh_episodes = require "mneme.insight.episodes.fresh_episodes"
local outcome = require("mneme.runs.run_folder").outcome
local shell = require "tests.support.shell"

local dir = shell.folder()

-- A goal that 3 of 10 episodes reach after 5 steps, whatever is done; the others go on to the limit.  SIGNAL: it comes once outcome.json is there.
files.write(dir .. "/goal.lua", { [[
local ffi, mn = require "ffi", require "mneme"
local cfg = mn.config { steps = 3e5, num_envs = 256, num_steps = 16, core = { "gru", d_model = 8 }, hidden = 8, threads = 1, learner = "a2c",
  lr = 1e-6, limit = 40, norm_obs = 0, own = 0 }
ffi.cdef "int getpid(void); int kill(int pid, int signal);"
local signal, sent = tonumber(os.getenv "SIGNAL"), false
local function step(self)
  if signal and not sent then
    local f = io.open((cfg.run ~= "" and cfg.run or cfg.resume) .. "/outcome.json")
    if f then f:close() sent = true ffi.C.kill(ffi.C.getpid(), signal) end
  end
  self.t = self.t + 1
  local there = self.lucky and self.t == 5
  return { 1 }, there and 1 or 0, there, there and 1 or 0
end
local env = mn.env { name = "goal", observation = { 1 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = cfg.limit, chance = 0.3,
  reset = function(self, random) self.t, self.lucky = 0, random() < 0.3 return { 1 } end, step = step }
return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]] })

local function run(words, signal)
  return shell.run(dir, ("SIGNAL=%s '%s' %s 2>&1"):format(signal or "", shell.program, words))
end

local function came_to(name) return outcome.read(dir .. "/" .. name) end

t.test("what it came to by luck, and what fresh episodes give", function()
  local said, status = run "run goal.lua run=a stop_score=0.2"
  t.eq(status, 0, said)
  local ended = came_to "a"
  local fresh = ended.fresh
  t.eq(ended.ended, "stop_score") t.eq(fresh.episodes, 500) t.eq(fresh.num_envs, 64) t.ok(fresh.seed ~= 1)
  t.ok(fresh.low < 0.3 and fresh.high > 0.3, "3 of 10 reach it: " .. fresh.score)
  t.ok(ended.results.score >= 0.2)
  local step = ("%d"):format(ended.step):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
  local last = ("first reached 0.2 at step %s; fresh episodes: %.2f sampled, %.2f greedy; random actions give 0.3"):format(step, fresh.score, fresh.greedy)
  t.ok(said:gsub("%s+", " "):find(last, 1, true), last .. "\n" .. said)
  said, status = run(("eval a episodes=500 seed=%d"):format(fresh.seed))
  t.eq(status, 0) t.ok(said:find(("success %.3f"):format(fresh.score), 1, true), "eval plays the same:\n" .. said)
  t.ok(run(("eval a episodes=500 greedy=1 seed=%d"):format(fresh.seed)):find(("success %.3f"):format(fresh.greedy), 1, true))
  t.ok(run "check a":find "ok +a ")
end)

t.test("a run that ends otherwise has none", function()
  t.eq(select(2, run "run goal.lua run=b steps=8192 stop_score=0.9"), 0)
  t.eq(came_to("b").ended, "steps") t.eq(came_to("b").fresh, nil)
end)

t.test("reached in the last update it counts as reached", function()
  local steps = came_to("a").step
  t.eq(select(2, run(("run goal.lua run=last stop_score=0.2 steps=%d"):format(steps))), 0)
  t.eq(came_to("last").ended, "stop_score") t.eq(came_to("last").fresh.score, came_to("a").fresh.score)
end)

for name, more in pairs { early = "", last_update = " steps=" } do
  t.test("a signal skips them, and a resume plays them: " .. name, function()
    more = more ~= "" and more .. ("%d"):format(came_to("a").step) or ""
    local said, status = run(("run goal.lua run=%s stop_score=0.2%s"):format(name, more), 2)
    t.eq(status, 130, said) t.ok(said:find "first reached 0.2 at step" and not said:find "fresh episodes", said)
    t.eq(came_to(name).ended, "stop_score") t.eq(came_to(name).fresh, nil)
    said, status = run("run goal.lua resume=" .. name)
    t.eq(status, 0, said)
    for key, value in pairs(came_to("a").fresh) do t.eq(came_to(name).fresh[key], value, key) end
    t.eq(came_to(name).step, came_to("a").step)
    local before = files.read(dir .. "/" .. name .. "/outcome.json")
    said, status = run("run goal.lua resume=" .. name)
    t.eq(status, 0, said) t.eq(files.read(dir .. "/" .. name .. "/outcome.json"), before, "once played they stay")
  end)
end

t.test("the best checkpoint is not chosen by short episodes: its score is that of all, for any number of environments", function()
  for _, num_envs in ipairs { 1, 16, 100, 256 } do
    local name = "best" .. num_envs
    local said, status = run(("run goal.lua run=%s num_envs=%d steps=%d checkpoint_every=1 keep_checkpoints=1000"):format(name, num_envs,
      math.max(20 * 16 * num_envs, 6000)))
    t.eq(status, 0, said)
    local sum, n, most = 0, 0, 0
    for _, at in ipairs(checkpoint_files.list(dir .. "/" .. name)) do
      local score = checkpoint_files.read(at.path).score
      if score then sum, n, most = sum + score, n + 1, math.max(most, score) end
    end
    t.ok(n > 5 and math.abs(sum / n - 0.3) < 0.12 and most < 0.55, ("%d environments: mean %.2f, largest %.2f of %d"):format(num_envs, sum / n, most, n))
  end
end)

t.test("every learner, statistics of observations, an environment in C", function()
  for i, words in ipairs { "run goal.lua learner=ppo minibatches=4 num_envs=8 stop_score=0.1", "run goal.lua norm_obs=1 num_envs=2 stop_score=0.1",
    "run train env=repeat_previous num_envs=4 num_steps=32 hidden=8 core.d_model=8 stop_score=0 steps=1e5 threads=1",
    "run train env=tmaze learner=ppo num_envs=8 num_steps=32 hidden=8 core.d_model=8 stop_score=0 steps=1e5 threads=1 env.corridor=3" } do
    local said, status = run(words .. " run=each" .. i)
    t.eq(status, 0, words .. "\n" .. said)
    local fresh = came_to("each" .. i).fresh
    t.ok(fresh and fresh.greedy and fresh.low <= fresh.score and fresh.score <= fresh.high, words)
    local words_of_eval = ("eval each%d episodes=500 seed=%d"):format(i, fresh.seed)
    t.ok(run(words_of_eval):find((" %.3f"):format(fresh.score), 1, true), words_of_eval)
  end
end)

t.test("list, compare, eval and report say which number they show, beside what guessing gives", function()
  local fresh, first = came_to("a").fresh.score, came_to("a").results.score
  local function says(words, ...)
    local said = run(words)
    for _, what in ipairs { ... } do t.ok(said:find(what, 1, true), words .. ": " .. what .. "\n" .. said) end
    return said
  end
  says("list runs . sort=score", ("%.3f fresh"):format(fresh), "0.3")
  says("compare a", "score, fresh episodes", ", first reached", "fresh episodes give as much in 1 of 1")
  t.ok(not run "compare b":find "first reached", "it went on to its steps")
  says("eval a episodes=20", "20 fresh episodes", ("training first reached %.3f at step"):format(first))
  t.ok(not run "eval b episodes=20":find "first reached")
  says("report a b out=page.md")
  local page = files.read(dir .. "/page.md")
  for _, what in ipairs { "success of fresh episodes", "random actions give 0.3", "first reached by" } do t.ok(page:find(what, 1, true), page) end
  local ended = (files.read(dir .. "/early/outcome.json")):gsub('"fresh": %b{},', "")
  files.write(dir .. "/early/outcome.json", { ended })
  says("list runs .", " first reached")
end)

t.test("greedy episodes that never end are given up, and absent", function()
  local absent = 0
  for action = 0, 1 do                             -- the most probable action is the same at every step: it ends each episode, or none
    local script = files.read(dir .. "/goal.lua"):gsub("time_limit = cfg.limit", "time_limit = 0"):gsub("function step%(self%)", "function step(self, a)")
      :gsub("self.lucky and self.t == 5", "a == " .. action)
    files.write(("%s/open%d.lua"):format(dir, action), { script })
    local said, status = run(("run open%d.lua run=open%d stop_score=0.2 num_envs=8"):format(action, action))
    t.eq(status, 0, said)
    local fresh = came_to("open" .. action).fresh
    t.eq(fresh.score, 1)
    if not fresh.greedy then absent = absent + 1 else t.eq(fresh.greedy, 1) end
    t.eq(said:find " greedy" ~= nil, fresh.greedy ~= nil, said)
  end
  t.eq(absent, 1)
end)

t.test("with scores by degrees the interval is of t; with 0 and 1 Wilson's", function()
  local mean, low, high, by_degrees = fresh_episodes.interval { 0, 1, 1, 1 }
  t.eq(by_degrees, false) t.near(mean, 0.75, 1e-12) t.ok(low > 0 and high < 1)
  mean, low, high, by_degrees = fresh_episodes.interval { 0.2, 0.4, 0.6 }
  t.eq(by_degrees, true) t.near(mean, 0.4, 1e-12) t.near(low + high, 0.8, 1e-12)
end)

os.execute(("rm -r '%s'"):format(dir))
