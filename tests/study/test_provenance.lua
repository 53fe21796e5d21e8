-- test_provenance.lua -- what a report and a comparison say of code and values: where a value comes from, whether runs were made by one code,
-- what a log lacks; and a study's folder that is handed over alone.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local dir = shell.folder()
local function sh(line) return shell.run(dir, line) end
local function mneme(words, where) return shell.mneme(where or dir, words) end
local function write(name, text) files.write(dir .. "/" .. name, { text }) end
local function read(name) return (files.read(dir .. "/" .. name)) end
local function works(words, where)
  local said, status = mneme(words, where)
  t.eq(status, 0, words .. ": " .. said)
  return said
end
-- The row of a setting in a page.
local function row(page, key) return ("\n" .. read(page)):match("\n| " .. key:gsub("%p", "%%%0") .. " |([^\n]*)") or "no row" end

local function study(text)
  return ([[
local mn = require "mneme"
return mn.study { title = "small", question = "Does it?", of = "tmaze", axes = { core = { "gru", "feedforward" } }, seeds = 2,
  settings = { corridor = 4, steps = 1024, hidden = 8, num_envs = 2, num_steps = 32 },
  metrics = { score = { "success", range = { 0, math.huge } } }, figures = { { "bars", y = "score", x = "core", title = "At the end" } },
  claims = { { id = "A", text = "TEXT", source = "ours", test = { "better", metric = "score", a = { core = "gru" }, b = { core = "feedforward" } } } },
  report = { scope = "A small scope." } }
]]):gsub("TEXT", text)
end

write("small.lua", study "A memory is better.")
write("small.md", "## What was hard\n\nNothing.\n")

t.test("a report says of each setting by what it was chosen", function()
  works "sweep small.lua core.n_layers=1 core.d_model=8 estimate=0 jobs=2"
  works "report runs/small out=here.md"
  t.ok(row("here.md", "core.n_layers"):find "| given |" and row("here.md", "core.d_model"):find "| given |", row("here.md", "core.n_layers"))
  t.ok(row("here.md", "hidden"):find "| study |", row("here.md", "hidden"))
  write("plain.lua", (read "small.lua":gsub("return.*", "") .. [[
local cfg = mn.config({ core = { "gru", d_model = 8 }, lr = 1e-3, steps = 512, num_envs = 2, num_steps = 32, hidden = 8, corridor = 4 },
  { published = { lstm = { lr = 0.02 } } })
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]]))
  works "run plain.lua core=lstm threads=1 run=p1"
  works "report p1 out=plain.md"
  t.ok(row("plain.md", "lr"):find "| published |", row("plain.md", "lr"))
  t.ok(row("plain.md", "core.d_model"):find "| size |", row("plain.md", "core.d_model"))
  t.ok(row("plain.md", "hidden"):find "| script |", row("plain.md", "hidden"))
end)

t.test("a report has every setting of the learner with its source, of the library's and of own ones", function()
  local learners = require "mneme.learn.learners"
  write("own.lua", (read "plain.lua":gsub("local cfg = ", [[
mn.learners.mine = mn.on_policy { base = mn.learners.ppo, config = { temperature = 2, kind = "soft", minibatches = 2 },
  about = { temperature = { "of the policy", range = { 0, 10 } }, kind = { "which", choices = { "soft", "hard" } } } }
%0]]):gsub("lr = 1e%-3", '%0, learner = "a2c"'):gsub("mn%.a2c", "mn.learner")))
  for name, own in pairs { a2c = {}, ppo = {}, mine = { temperature = 2, kind = "soft", clip = 0.1, minibatches = 2 } } do
    works(("run own.lua learner=%s %s threads=1 num_steps=8 run=of_%s"):format(name, name == "a2c" and "" or "minibatches=2", name))
    works(("report of_%s out=%s.md"):format(name, name))
    local expected = {}
    for key, value in pairs(learners.defaults()[name == "mine" and "ppo" or name]) do expected[key] = value end
    for key, value in pairs(own) do expected[key] = value end
    for key in pairs(expected) do
      local said = row(name .. ".md", key)
      if said == "no row" then said = row(name .. ".md", "**" .. key .. "**") end
      local aux, by_script, typed = key == "aux_coef", key == "lr" or key == "num_steps", key == "num_steps" or key == "minibatches" and name ~= "a2c"
      t.eq(said ~= "no row", not aux, name .. " " .. key)
      if not aux and not by_script and not typed then t.ok(said:find("| learner |", 1, true), said) end
      if typed then t.ok(said:find "| given |", said) end
    end
  end
  t.ok(row("mine.md", "temperature"):find "^ 2 |" and row("mine.md", "kind"):find "^ soft |", row("mine.md", "kind"))
end)

t.test("a study's folder alone has its claims, figures and texts, and no code is run for them", function()
  sh "mkdir other; cp -r runs/small other/; echo 'error(1)' > other/tmaze_small.lua"
  local other = dir .. "/other"
  works("report small out=there.md", other)
  local here, there = read "here.md", read "other/there.md"
  t.eq((there:gsub("there%-figures", "here-figures")), here)
  t.ok(there:find "\n| small.lua | code | %x+ | 4 |\n" and there:find "\n| tmaze.lua | code | %x+ | 4 |\n", "the files that the runs were made by")
  t.ok(there:find "A memory is better" and there:find "A small scope" and there:find "Nothing%." and there:find "Figure 1%. At the end")
  t.ok(works("check small", other):find "ok +small +a study of 4 runs, 4 done")
  works("eval small/runs/core=gru,seed=1 episodes=4", other)               -- nothing of the script is run for that
  sh "rm other/small/declaration.json"
  local said, status = shell.stranger(other, "report small out=bare.md")
  t.ok(status == 0 and said:find "script=FILE names it; trust=1 runs the copy that the run keeps", said)
  t.ok(not read "other/bare.md":find("#verdict-1", 1, true) and read "other/there.md":find("#verdict-1", 1, true))
  works("report small trust=1 out=trusted.md", other)
  t.ok(read "other/trusted.md":find "A memory is better")
  write("other/small/declaration.json", '{"spec": {"title": 3}}')
  said, status = mneme("report small", other)
  t.ok(status == 1 and said:find "small/declaration.json: damaged: spec.title is 3, expected a text", said)
end)

t.test("claims and code that changed after the study had begun are told in the page", function()
  write("small.lua", study "Another sentence.")
  local said = works "report runs/small out=other.md"
  t.ok(said:find "small.lua is not known as yours, and was not run: .-script=small.lua" and not read "other.md":find "Another sentence", said)
  said = works "report runs/small out=now.md script=small.lua"
  t.ok(said:find "warning: runs/small: small.lua has changed since the run began %(line 5%)", said)
  local page = read "now.md"
  t.ok(page:find "claim A was changed after the study had begun" and page:find "small.lua has changed since the run began", page:sub(1, 900))
  t.ok(page:find "TEXT" == nil and page:find "A memory is better", "the script that the runs keep is shown")
  works "report runs/small use=stored out=then.md"
  t.ok(not read "then.md":find "Another sentence")
  write("small.lua", study "A memory is better.")
end)

t.test("runs of different code are not pooled silently", function()
  works "run plain.lua threads=1 run=p2 seed=2"
  sh "sed -i 's/lr = 1e-3/lr = 0.001/' plain.lua"
  works "run plain.lua threads=1 run=p3 seed=3"
  works "report p2 p3 out=mixed.md"
  t.ok(read "mixed.md":find "not all made by the same code%. plain.lua has 2 versions: %x+ %(run=[^)]*%), %x+ %(", read "mixed.md":sub(1, 500))
  t.ok(works "compare p2 p3":find "not made by one code\n +plain.lua has 2 versions: %x+ %(p%d%), %x+ %(p%d%)")
  works "report p2 out=one.md"
  t.ok(not read "one.md":find "same code" and read "one.md":find "local cfg" and read "one.md":find "lr = 1e%-3")
  sh "mv plain.lua gone.lua"
  works "report p2 out=moved.md"
  t.ok(not read "moved.md":find "no longer there" and read "moved.md":find "lr = 1e%-3")
  sh "mv gone.lua plain.lua; cp -r p2 p4"
  works "run resume=p4 steps=1024 use=now"
  works "report p4 out=resumed.md"
  t.ok(read "resumed.md":find "plain.lua has 2 versions", read "resumed.md":sub(1, 500))
end)

t.test("a report and a comparison of a folder that is not as it was written say so, and seeds that trained longer than others", function()
  sh "cp -r runs/small odd; cp -r runs/small cut; rm -r cut/runs/core=gru,seed=2"
  sh [[sed -i 's/"score": [0-9.]*/"score": 0.999/' odd/runs/core=gru,seed=1/result.json]]
  works("run resume=odd/runs/core=gru,seed=2 steps=2048")
  works "report odd out=odd.md"
  t.ok(read "odd.md":find "not as it was written, .- core=gru,seed=1: result.json: was altered after it was written", read "odd.md":sub(1, 600))
  t.ok(read "odd.md":find "core=gru,seed=2: a resume changed steps=1024, 2048 from step 1024")
  t.ok(not read "here.md":find "altered" and not read "here.md":find "a resume changed")
  local said, status = mneme "check odd"
  t.ok(status == 1 and said:find "odd: 1 of 4 runs are damaged\n", said)
  sh [[sed -i 's/"step": *512/"step":513/; $s/[1-9]/7/2g' cut/runs/core=gru,seed=1/metrics.jsonl]]
  said = mneme "eval cut"
  t.ok(said:find "cut: is a study, expected one run %(its runs: cut/runs/core=", said)
  said = mneme "report cut out=cut.md"
  for _, text in ipairs { said, read "cut.md", (mneme "compare cut") } do
    t.ok(text:find "core=gru,seed=1: metrics.jsonl: " and text:find "the study: runs/core=gru,seed=2: was done, and has no result now", text:sub(1, 900))
  end
  t.ok(not read "here.md":find "as it was written" and not (mneme "compare runs/small"):find "as it was written")
end)

t.test("results that are imported from other code are told, in the page too, and the sweep goes on", function()
  works "report runs/small export=small.jsonl"
  write("small.lua", "-- a line more\n" .. study "A memory is better.")
  local said = works "sweep small.lua core.n_layers=1 core.d_model=8 run=taken import=small.jsonl jobs=0"
  t.ok(said:find "warning: small.jsonl: 4 of its runs were made by other code than is here %(small.lua%); the report says so", said)
  works "sweep small.lua core.n_layers=1 core.d_model=8 run=taken seeds=3 estimate=0 jobs=2"
  works "report taken out=taken.md"
  t.ok(read "taken.md":find "not all made by the same code%. small.lua has 2 versions: %x+ %(core=[^)]* and 1 more%), %x+ %(", read "taken.md":sub(1, 600))
end)

files.remove_folder(dir)
