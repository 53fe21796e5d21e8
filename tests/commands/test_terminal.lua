-- test_terminal.lua -- what a person sees: every command and topic fits the terminal, the progress bar never wraps, each command names
-- the next one, and what takes long says so.
local t = require "tests.harness"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local help = require "mneme.commands.help"
local layout = require "mneme.base.layout"
local nn = require "mneme.tensor.nn"
local outcome = require("mneme.runs.run_folder").outcome
local progress = require "mneme.base.progress"
local pty = require "tests.support.pty"
local registry = require "mneme.base.registry"
local run_list = require "mneme.commands.run_list"
local shell = require "tests.support.shell"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local WIDTHS = { 40, 60, 80, 120 }
local dir = shell.folder()
shell.fine(dir, "run demo core=gru core.d_model=8 hidden=8 steps=4096 num_envs=4 num_steps=32 threads=1 where=0 run=runs/a")
shell.mneme(dir, "run demo core=gru core.d_model=8 hidden=8 steps=4096 num_envs=4 num_steps=32 threads=1 where=0 seed=2 run=runs/b")

-- A line may only be too wide where it is one word, or an indent and a word: a path, say, but no drawing.
local function check_widths(text, width, what)
  for _, line in ipairs(pty.rows(text)) do
    local drawing = line:find "\226[\150\160-\163]"                     -- blocks and Braille
    local fits = terminal.letters(line) <= width or not drawing and not line:find "%S%s+%S"
    t.ok(fits, ("%s at %d columns: %d: %s"):format(what, width, terminal.letters(line), line))
  end
end

-- Run f with terminals of a width, as far as this process is concerned.
local function with_width(width, f, ...)
  local columns, of_layout, old = terminal.columns, layout.width, terminal.width
  terminal.columns = function() return width end
  terminal.width, layout.width = terminal.columns, terminal.columns
  local list = { pcall(f, ...) }
  terminal.columns, terminal.width, layout.width = columns, old, of_layout
  if not list[1] then error(list[2], 0) end
  return unpack(list, 2)
end

-- The words of a text, whatever lines they stand in.
local function words(text)
  local list = {}
  for word in text:gmatch "[^%s|,]+" do list[#list + 1] = word end
  table.sort(list)
  return table.concat(list, " ")
end

t.test("every topic of help fits 40 to 120 columns, and loses no word", function()
  local is_list = {}
  for _, kind in ipairs(require("mneme.base.catalogue").kinds) do
    for _, word in ipairs { kind, kind:sub(1, -2) } do is_list[word] = true end
  end
  for _, word in ipairs { "memory", "memories", "environment", "environments", "data set", "data sets", "encoder", "encoders" } do
    is_list[word] = true                           -- lists show as much of each line as fits
  end
  local all = help.topics()
  local names = tables.keys(all)
  t.ok(#names > 400)
  for i, name in ipairs(names) do
    nn.manual_seed(1)                                 -- half-lives at the start are drawn
    local wide = i % 4 == 0 and with_width(10000, help.text, name, nil, nil, all)
    local width = WIDTHS[i % #WIDTHS + 1]            -- each at one width; all widths many times
    nn.manual_seed(1)
    local text = with_width(width, help.text, name, nil, nil, all)
    check_widths(text, width, "help " .. name)
    if wide and not is_list[name] then t.eq(words(text), words(wide), "help " .. name) end
  end
end)

t.test("lists and tables fit, and tables keep every cell", function()
  local rows = { { "", "A", "B", "C" }, { "learning rate", "0.001", "0.0001", "3e-4" }, { "the name of it", "gated_deltanet", "agalite_released", "rwkv7" } }
  for _, width in ipairs { 20, 30, 40, 60, 80 } do
    local text = layout.table(rows, width)
    check_widths(text, math.max(width, 34), "table")
    for _, row in ipairs(rows) do for _, cell in ipairs(row) do t.ok(text:find(cell, 1, true), cell) end end
  end
  t.eq(layout.table(rows, 80), layout.table(rows, math.huge))
  for _, kind in ipairs(require("mneme.base.catalogue").kinds) do
    for _, width in ipairs(WIDTHS) do check_widths(with_width(width, help.kind, kind), width, "list " .. kind) end
  end
end)

-- What a bar writes to its terminal, as rows; and the bar.
local function drawn(columns, options)
  local out = { text = "" }
  function out:write(...) self.text = self.text .. table.concat { ... } end
  function out.flush() end
  options.tty, options.color, options.out, options.columns = true, true, out, columns
  return out, progress.new(options)
end

t.test("the progress bar fits any terminal, also once it was resized; score and time stay longest", function()
  local values = { ["return"] = -123.456, score = 0.5, loss = 12345.678 }
  for width = 20, 200 do
    local out, bar = drawn(function() return width end, { steps = 5e9 })
    for step = 1, 40 do
      bar.shown = -math.huge
      values.score = step / 40
      bar:update(step * 1e8, values)
    end
    for _, row in ipairs(pty.rows(out.text)) do t.ok(terminal.letters(row) < width, ("%d columns: %s"):format(width, row)) end
    if width >= 40 then t.ok(out.text:find "score", width) end
    if width >= 80 then t.ok(out.text:find "━" and out.text:find "ETA", width) end
  end
  local width = 120                              -- SIGWINCH: the next line is as wide as the terminal is then
  local out, bar = drawn(function() return width end, { steps = 100 })
  for _, now in ipairs { 120, 40, 60, 30, 120 } do
    width, out.text, bar.shown = now, "", -math.huge
    bar:update(50, values)
    for _, row in ipairs(pty.rows(out.text)) do t.ok(terminal.letters(row) < now, row) end
  end
end)

t.test("what takes more than ten seconds says how long after the first one; what is quick does not", function()
  local out = { text = "" }
  function out:write(...) self.text = self.text .. table.concat { ... } end
  function out.flush() end
  local function lines_of(steps, made, seconds)
    out.text = ""
    local bar = progress.new { steps = steps, tty = false, out = out }
    for k = 0, 4 do
      bar.second = bar.second and { step = bar.second.step, time = bar.second.time - seconds }          -- so much later
      bar:update(1 + k * made, {})
    end
    return out.text
  end
  local minutes = lines_of(1e6, 1000, 1):match "about (%d+):%d%d for 999k steps, at the speed of the first second\n"
  t.ok(tonumber(minutes) >= 16, out.text)                        -- 16:3N, and what a busy machine lets pass between two lines
  t.ok(not lines_of(6000, 1000, 1):find "about", out.text)
  t.ok(select(2, lines_of(1e6, 1000, 1):gsub("about", "")) == 1, "once")
end)

t.test("what is named next can be typed, for a run whose name begins with a dash, too", function()
  local here = dir .. "/dash"
  files.make_folder(here)
  local next_view = shell.fine(here, "run tmaze corridor=3 core=rnn core.d_model=4 hidden=4 num_envs=1 num_steps=16 steps=64 run=-y"):match "mneme (view %S+)"
  t.eq(next_view, "view ./-y")
  shell.fine(here, next_view .. " out=a.png")
end)

t.test("every command fits its terminal and names the next one", function()
  local missing = pty.missing()
  if missing then return t.skip(missing) end
  local lines = { help = "next: mneme run demo", ["help run"] = false, ["help nonsense_word"] = false, list = "next: mneme help NAME",
    ["list cores"] = "next: ", ["list runs"] = "next: mneme view runs/",
    ["run tmaze_length --help"] = "next: mneme run tmaze_length quick=1 or mneme sweep tmaze_length", ["run demo --help"] = "next: mneme run demo",
    ["run nothing.lua"] = false, ["run resume=runs/a"] = "next: mneme view runs/a",
    ["eval runs/a episodes=8"] = "next: mneme intervene runs/a",
    ["intervene runs/a erase=all at=1 episodes=8"] = "next: mneme view runs/a erase=all at=1",
    ["compare runs/a runs/b"] = "next: mneme view runs/a runs/b", ["diff runs/a runs/b"] = "next: mneme compare runs/a runs/b",
    ["check runs/a"] = "next: mneme eval runs/a", doctor = "next: mneme run demo", ["export runs/a to=a.safetensors"] = "in Python: ",
    ["run demo core=gru core.d_model=8 hidden=8 steps=2048 num_envs=4 num_steps=32 threads=1 where=0"] = "next: mneme view runs/demo%-%d+  or  mneme eval",
    ["run demo core=gru core.d_model=8 hidden=8 steps=1024 num_envs=4 num_steps=32 where=0 seeds=2 jobs=1 run=seeds"] = "next: mneme compare",
    ["credit runs/a"] = "next: mneme where runs/a",
    ["probe runs/a facts=cue episodes=48"] = "mneme where runs/a", ["where runs/a episodes=4 every=50"] = "mneme %l+ runs/a",
    ["view runs/a out=a.png size=400x300"] = "next: mneme intervene runs/a", ["report runs/a runs/b out=a.html"] = "next: mneme compare runs/a runs/b",
    ["report runs/a out=a.html"] = "next: mneme view runs/a",
    ["sweep demo core=gru,lstm lr=1e-4..1e-2:log budget=2x4096 core.d_model=8 hidden=8 steps=1024 num_envs=4 num_steps=32 jobs=1 run=tuned"] =
      "next: mneme report tuned",
    ["sweep demo core=gru core.d_model=8 hidden=8 steps=1024 num_envs=4 num_steps=32 lr=1e-3,1e-4 jobs=1 run=swept"] = "next: mneme report swept",
    ["play tmaze keys=up"] = "next: mneme run train env=tmaze", ["sweep demo list=1 lr=1e-3,1e-4"] = "next: mneme sweep demo lr=1e%-3,1e%-4$",
    ["frobnicate"] = false }
  local n = 0
  for words_of in pairs(lines) do n = n + (words_of and 1 or 0) end
  for k, words_of in ipairs(tables.keys(lines)) do
    local next_one = lines[words_of]
    for i, width in ipairs(WIDTHS) do
      if i == 1 or k % 12 == i or words_of:find "^compare" then               -- each command at 40 columns, some at another width
        os.execute(("cd '%s' && rm -rf a.* seeds-* tuned swept"):format(dir))
        local text = pty.run(dir, shell.program .. " " .. words_of, width)
        check_widths(text, width, "mneme " .. words_of)
        if next_one then t.ok(text:gsub("%s+", " "):gsub(" $", ""):find((next_one:gsub("  ", " "))), ("mneme %s: %s"):format(words_of, text)) end
        t.ok(text:find "%S", words_of)
      end
    end
  end
  t.ok(n > 25)
end)

t.test("what goes to a file is as wide as COLUMNS says; nothing of it is lost", function()
  for _, width in ipairs { 40, 100 } do
    for _, of in ipairs { "help", "help view", "help memory", "help agalite", "help corridor", "list", "list envs", "list runs", "list experiments" } do
      local text, rc = shell.run(dir, ("COLUMNS=%d %s %s 2>&1 | cat"):format(width, shell.program, of))
      t.eq(rc, 0)
      if of ~= "list runs" then check_widths(text, width, "mneme " .. of) end          -- a table in a file has all its columns side by side
      t.ok(not text:find "\27", of)
    end
  end
  t.ok(shell.run(dir, ("mkdir -p some/where && ln -sf '%s' some/where/mneme"):format(shell.program)))
  for _, of in ipairs { "help", "help seeds", "help hidden_state", "help where" } do           -- commands are printed as the program was called
    check_widths(shell.run(dir, "COLUMNS=60 some/where/mneme " .. of), 60, "some/where/mneme " .. of)
  end
  local narrow, wide = shell.run(dir, "COLUMNS=40 " .. shell.program .. " help"), shell.run(dir, "COLUMNS=400 " .. shell.program .. " help")
  t.eq(words(narrow), words(wide))
  local listed, named = shell.run(dir, "COLUMNS=80 " .. shell.program .. " list envs"), 0
  for _, e in ipairs(envs.list()) do                 -- whose a task is stands in its line
    local whose = e.doc:match "%([^()=]*%)$"
    local line = ("\n" .. listed):match("\n +" .. e.name .. "%-v[^\n]*")
    if whose then
      t.ok(line:find(whose, 1, true), line)
      named = named + 1
    end
  end
  t.ok(named > 20, named)
end)

t.test("colours: none with NO_COLOR, on a dumb terminal or in a file, where a bar is not rewritten either", function()
  local missing = pty.missing()
  if missing then return t.skip(missing) end
  local run = shell.program .. " run demo core=gru core.d_model=8 hidden=8 steps=4096 num_envs=4 num_steps=32 threads=1 where=0"
  local text = pty.run(dir, run, 60)
  t.ok(text:find "━" and not text:find "\27%[[%d;]*m", text)
  t.ok(pty.run(dir, "NO_COLOR= " .. run, 60):find "\27%[32m", "a bar in colour")
  for _, line in ipairs { "TERM=dumb " .. run, run .. " > log 2>&1; cat log" } do
    text = pty.run(dir, line, 60)
    t.ok(text:find "100%%" and not text:find "[\27\r]", line .. ": " .. text)
  end
end)

t.test("every line on stderr is folded: only what draws a line in place writes to it directly", function()
  local draws = { ["base/terminal.lua"] = true, ["base/progress.lua"] = true, ["lab/study/sweep_progress.lua"] = true, ["commands/run.lua"] = true,
    ["commands/bench/parts/published_agents.lua"] = true, ["commands/cli.lua"] = true }
  local root = registry.root .. "lua/mneme/"
  local seen = 0
  for path in shell.run(root, "find . -name '*.lua'"):gmatch "%./(%S+)" do
    for line in files.read(root .. path):gmatch "[^\n]+" do
      seen = seen + 1
      t.ok(draws[path] or not line:find "stderr:write", path .. ": " .. line)
    end
  end
  t.ok(seen > 20000)
end)

t.test("a log has the header first", function()
  local text = shell.mneme(dir, "run demo core=gru core.d_model=8 hidden=8 steps=2048 num_envs=4 num_steps=32 threads=1 where=0 run=runs/log")
  t.ok(text:find "^runs/log: gru on tmaze%-v0", text)
  t.ok(text:find "next: mneme view runs/log  or  mneme eval runs/log\n$", text)
end)

t.test("list runs: all there are, newest first, whatever lies in the folder; those of a study", function()
  local place = dir .. "/many"
  local function write(name, file, text) files.make_folder(place .. "/" .. name) files.write(("%s/%s/%s"):format(place, name, file), { text }) end
  for i = 1, 300 do
    local name = ("r%03d"):format(i)
    write(name, "config.json", ('{"script":"experiments/tmaze.lua","host":"h","config":{"steps":1000,"stop_score":-1,"core":{"name":"gru"}}}'))
    files.write(("%s/%s/metrics.jsonl"):format(place, name), {
      ('{"step":500,"charts/score":0.25}\n{"step":%d,"charts/score":0.5}\n{"step":9'):format(i % 2 == 0 and 1000 or 700) })
    os.execute(("touch -d '2020-01-01 00:00:00 UTC +%d minutes' '%s/%s/metrics.jsonl'"):format(i, place, name))
  end
  write("r297/checkpoints", "step-800.safetensors", "x")              -- the log is behind the checkpoint
  local solved = '{"script":"s.lua","host":"h","config":{"steps":1000,"learner":{"name":"a2c","stop_score":0.97},"core":{"name":"gru"}}}'
  for name, ended in pairs { solved = "stop_score", broken_off = "signal" } do      -- the log has the episodes since its line before, which are fewer
    write(name, "config.json", solved)
    files.write(("%s/%s/metrics.jsonl"):format(place, name), { '{"step":500,"charts/score":0.96}\n' })
    outcome.write(place .. "/" .. name, ended, 500, { score = 0.971 })
  end
  write("broken", "config.json", '{"config": ')
  write("odd", "config.json", '{"config": {"steps": {}, "core": 7, "stop_score": []}, "script": 5}')
  files.write(place .. "/odd/metrics.jsonl", { "not json\n[1,2\n" })
  write("no_study", "study.json", "[]")
  write("empty", "notes.txt", "")
  write("study/runs/x", "result.json", '{"status":"done"}')
  write("study", "study.json", '{"script":"s.lua","settings":"","runs":[{"name":"x","labels":{}},{"name":"y","labels":{}}]}')
  local rows = run_list.rows(place)
  local by = {}
  for i, r in ipairs(rows) do
    by[r.name] = r
    if i > 1 then t.ok(rows[i - 1].time >= r.time, "newest first") end
  end
  t.eq(#rows, 306)
  t.eq(by.solved.state, "finished") t.eq(by.solved.score, 0.971) t.eq(by.broken_off.state, "stopped")
  t.eq(by.r300.state, "finished") t.eq(by.r299.state, "stopped") t.eq(by.r299.step, 700) t.eq(by.r297.step, 800)
  t.eq(by.r299.score, 0.5) t.eq(by.r001.core, "gru")
  t.eq(by.broken.state, "damaged config.json") t.eq(by.no_study.state, "damaged study.json") t.eq(by.odd.state, "stopped")
  t.eq(by["study/"].state, "study: 1 of 2 done")
  local text = run_list.text { folder = place }
  t.ok(text:find "r300 +finished +1000 of 1000 +0.500 +gru +tmaze +2020", text)
  t.ok(shell.mneme(dir, "list runs"):find "\n  a +finished +4096 of 4096")
  local none, rc = shell.mneme(dir, "list runs nowhere")
  t.ok(rc == 2 and none:find "nowhere: there is no such folder", none)
  files.lock(place .. "/r299/lock")                          -- this process trains it
  for _, r in ipairs(run_list.rows(place)) do if r.name == "r299" then t.eq(r.state, "running") end end
end)

os.execute(("rm -rf '%s'"):format(dir))

t.test("a first rollout that takes long says how long, once", function()
  local lines, err = {}, io.stderr
  local note = progress.first_round "rollout"
  os.execute "sleep 2.1"
  io.stderr = { write = function(_, ...) lines[#lines + 1] = table.concat { ... } end }
  for done = 10, 256, 82 do note(done, 256) end
  local soon = progress.first_round "rollout"
  soon(1, 256)
  io.stderr = err
  t.eq(#lines, 1)
  t.ok(lines[1]:find "about 0:5%d for 256 steps of the first rollout", lines[1])
end)
