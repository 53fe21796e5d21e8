-- test_look_at_runs.lua -- a run can be looked at, whoever wrote its parts: a part of the matrix of tests/support/look_matrix.lua, in which
-- any two of learner, environment, agent and num_envs meet; each case has a fifth of the commands.  tests/endurance/look_matrix.lua has all.
local t = require "tests.harness"
local files = require "mneme.base.files"
local look_matrix = require "tests.support.look_matrix"
local shell = require "tests.support.shell"

local folder = shell.folder()
look_matrix.prepare(folder)

t.test("a picture of an episode that goes on for ever says so, and what ends it", function()
  files.write(folder .. "/ever.lua", { [[
return { name = "ever", observation = { 1 }, actions = 2, time_limit = 2010, reset = function() return { 0 } end, step = function() return { 0 }, 0 end }]] })
  shell.fine(folder, "run train env=ever.lua core=gru core.d_model=4 hidden=4 num_envs=2 num_steps=16 steps=32 where=0 run=ever")
  local said = shell.fine(folder, "view ever out=ever.png wait=0")
  t.ok(said:find("ever.png: step 2000, and the episode goes on: at=2000 ends at this step", 1, true), said)
end)

-- Cases, each the one that has most pairs that no other had.
local function covering()
  local seen, list, all = {}, {}, look_matrix.all()
  local axes = { "learner", "env", "agent", "num_envs" }
  local function pairs_of(case)
    local found = {}
    for i = 1, 3 do for j = i + 1, 4 do found[#found + 1] = ("%s=%s %s=%s"):format(axes[i], case[axes[i]], axes[j], case[axes[j]]) end end
    return found
  end
  while true do
    local best, most = nil, 0
    for _, case in ipairs(all) do
      local new = 0
      for _, pair in ipairs(pairs_of(case)) do new = new + (seen[pair] and 0 or 1) end
      if new > most then best, most = case, new end
    end
    if not best then return list end
    for _, pair in ipairs(pairs_of(best)) do seen[pair] = true end
    list[#list + 1] = best
  end
end

local count = 0
for k, case in ipairs(covering()) do
  local name = look_matrix.name(case)
  t.test(name .. " trains", function() t.eq(look_matrix.train(folder, name, case), nil) end)
  for i, tool in ipairs(look_matrix.tools) do
    if (i + k) % 5 == 0 then
      count = count + 1
      t.test(("%s: %s"):format(name, tool[1]), function() t.eq(look_matrix.look(folder, name, tool), nil) end)
    end
  end
end
t.test("the part is no small one", function() t.ok(count >= 60, count) end)

t.test("a report of a study with a gate of the script's own, by PPO, has each claim", function()
  files.write(folder .. "/gates.lua", { [[
local mn = require "mneme"
mn.gates.keys = { doc = "keys alone", gamma = function(_, K) return K end }
local function memory(gate) return { "galite", gate = gate, label = gate, n_layers = 1, d_model = 8, n_heads = 2, d_head = 4, d_ffn = 8 } end
return mn.study { title = "Gates", question = "Which?", of = "overwrite", axes = { core = { memory "none", memory "keys" } },
  settings = { learner = "ppo", pairs = 2, symbols = 2, num_envs = 4, num_steps = 16, hidden = 8, steps = 512 }, seeds = { 1 },
  metrics = { score = { "right answers", range = { 0, 1 } } },
  claims = { { id = "gate", text = "Gates help.", source = "mine", test = { "better", metric = "score", a = { core = "keys" }, b = { core = "none" } } } } }
]] })
  shell.fine(folder, "sweep gates.lua jobs=1")
  local said, status = shell.mneme(folder, "report runs/gates")
  t.ok(status == 0 and not said:find "warning", said)
  t.ok(files.read(folder .. "/runs/gates/report.html"):find("Gates help.", 1, true), "no claim")
end)

t.test("an environment of a file, by mneme run train: other settings of the tools' own", function()
  files.write(folder .. "/sign.lua", { [[
return function() return { name = "sign", observation = { 2 }, actions = 2, reset = function(self) self.t = 0 return { 1, 0 } end,
  step = function(self, action) self.t = self.t + 1 return { 0, 1 }, action, self.t == 4, action end } end]] })
  local said, status = shell.mneme(folder, "run train env=sign.lua learner=grouped parts=2 num_envs=4 minibatches=2 core=leaky num_steps=8 hidden=8 "
    .. "steps=64 threads=1 run=of_file")
  t.eq(status, 0, said)
  for _, words in ipairs { "eval of_file episodes=5 threads=1", "view of_file out=f.png wait=0", "where of_file episodes=3", "credit of_file" } do
    shell.fine(folder, words)
  end
end)

t.test("threads= is every command's; what neither the command nor the environment has is unknown, by the name that is meant", function()
  local name
  for _, case in ipairs(covering()) do
    if case.env == "lua" then name = look_matrix.name(case) end
  end
  for _, words in ipairs { "eval R episodes=2", "intervene R erase=all at=1 episodes=2", "where R episodes=2", "credit R", "probe R episodes=48 every=2" } do
    shell.fine(folder, words:gsub("R", name) .. " threads=1")
  end
  local said, status = shell.mneme(folder, ("eval %s epsodes=2"):format(name))
  t.ok(status == 2 and said:find "unknown setting of eval" and said:find "'episodes'", said)
  said, status = shell.mneme(folder, ("eval %s hidden=2"):format(name))
  t.ok(status == 2 and said:find "hidden cannot change", said)
end)

t.test("a library's environment keeps its settings next to a script's own heads", function()
  local case = { learner = "ppo", env = "library", agent = "heads", num_envs = 2 }
  t.eq(look_matrix.train(folder, "heads", case), nil)
  local said, status = shell.mneme(folder, "eval heads episodes=5 corridor=5 greedy=1")
  t.ok(status == 0 and said:find "corridor=5", said)
  said, status = shell.mneme(folder, "eval heads coridor=5")
  t.ok(status == 2 and said:find "'corridor'", said)
end)

t.test("a run on sequences with a decay of the script's own is evaluated, also in other batches", function()
  files.write(folder .. "/recite.lua", { [[
local mn = require "mneme"
mn.decays.mine = { doc = "1-b^2, 1-g^2", keep = function(b, g) return 1 - b * b, 1 - g * g end }
local cfg = mn.config { core = { "galite", decay = "mine", d_in = 8, d_model = 8, n_layers = 1, n_heads = 2, d_head = 4, d_ffn = 8 }, steps = 2048,
  eval_batches = 3, batch = 4, threads = 1 }
local data = mn.dataset("induction", { batch = cfg.batch, seed = cfg.seed })
return mn.supervised(cfg, data, mn.sequence_model { dataset = data, core = mn.core(cfg.core) }):train()
]] })
  local said, status = shell.mneme(folder, "run recite.lua run=recite")
  t.eq(status, 0, said)
  local loss = said:match "validation part accuracy .- loss (%S+)\n"
  said = shell.fine(folder, "eval recite split=valid batches=3")
  t.eq(said:match "\nloss     (%S+)", loss)
  said, status = shell.mneme(folder, "eval recite batches=3 batch=5 threads=1")
  t.ok(status == 0 and said:find "15 sequences", said)
end)

t.test("a script that runs its learner by hand can be played; a learner's own checks are training's", function()
  local text = look_matrix.script { learner = "own", env = "lua", agent = "library", num_envs = 2 }
  files.write(folder .. "/hand.lua", { (text:gsub("return mn", "local learner = mn"):gsub(":train%(%)", "\nlearner:begin()\nlearner:advance()")) })
  local said, status = shell.mneme(folder, "play hand.lua keys=4*0")
  t.ok(status == 0 and said:find "episode 0", said)
  shell.fine(folder, "run hand.lua parts=2")
  said, status = shell.mneme(folder, "run hand.lua parts=3")
  t.ok(status ~= 0 and said:find "parts do not divide", said)
end)

os.execute("rm -r '" .. folder .. "'")
