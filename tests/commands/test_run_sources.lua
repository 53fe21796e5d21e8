-- test_run_sources.lua -- a run knows its code: what it was made by is kept, compared, and used where it is asked for; code that a folder
-- brings is not run unasked; a sweep has one code.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell_quote = require("mneme.base.terminal").shell_quote
local sealed = require("mneme.base.json").sealed
local shell = require "tests.support.shell"

local dir = shell.folder()
local function sh(line) return shell.run(dir, line) end
local function mneme(words) return shell.mneme(dir, words) end
local function write(name, text) files.write(dir .. "/" .. name, { text }) end
local function info(run)                       -- with what it began with as source and data
  local about = json.decode((files.read(dir .. "/" .. run .. "/config.json")))
  about.source, about.data = about.history[1].source, about.history[1].data
  return about
end

write("rules.lua", "return { pay = function(a) return a end }\n")
write("mine.lua", [[
local mn = require "mneme"
local wants = require; local rules = wants "rules"
local cfg = mn.config { core = { "own" }, steps = 2048, num_envs = 4, num_steps = 32, hidden = 16, threads = 1 }
local env = mn.env { name = "pay", observation = { 2 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed,
  reset = function(self) self.t = 0 return { 1, 0 } end,
  step = function(self, a) self.t = self.t + 1 return { 0, 1 }, rules.pay(a), self.t > 5, a end }
mn.manual_seed(cfg.seed)
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 16 }):train()
]])
files.make_folder(dir .. "/cores")
write("cores/own.lua", (files.read(shell.root .. "lua/mneme/cores/gru.lua"):gsub("local", "-- mine\nlocal", 1)))
local core_text = files.read(dir .. "/cores/own.lua")

local function mean_return(said) return tonumber(said:match "return%s+([%d.]+)") end

t.test("a run keeps its script, what that required, and its own core, with checksums and who made it", function()
  shell.fine(dir, "run mine.lua core.d_model=8 run=r")
  for _, name in ipairs { "mine.lua", "rules.lua", "cores/own.lua" } do
    t.eq((files.read(dir .. "/r/source/" .. name)), (files.read(dir .. "/" .. name)))
  end
  local about = info "r"
  t.eq(#about.source, 3)
  t.eq(#about.history, 1)
  t.ok(about.history[1].from_step == 0 and about.history[1].program_checksum:find "^%x+$" and about.history[1].host)
  t.eq(select(2, mneme "run resume=r steps=4096"), 0)
  local second = info("r").history[2]
  t.ok(second.from_step == 2048 and second.source_folder == "source" and #second.source == 3)
end)

t.test("a resume that loads less than the start did runs the same code", function()
  write("table.txt", "3\n")                            -- only a start reads it
  write("less.lua", (files.read(dir .. "/mine.lua"):gsub("mn.manual_seed", 'if cfg.resume == "" then io.lines "table.txt"() end\n%0')))
  t.eq(select(2, mneme "run less.lua core=gru run=less"), 0)
  local made_by = info "less"
  t.ok(#made_by.source == 3 and #made_by.data == 1, "its size is that of the script's own core")
  for _, steps in ipairs { 4096, 6144 } do t.eq(select(2, mneme("run resume=less steps=" .. steps)), 0) end
  local now = info "less"
  t.eq(#now.history, 3)
  t.eq(json.encode(now.history[3].source), json.encode(made_by.source))
  t.eq(json.encode(now.history[3].data), json.encode(made_by.data))
  for i = 2, 3 do t.eq(now.history[i].source_folder, "source") end
  local run_sources = require "mneme.runs.run_sources"
  t.eq(#run_sources.versions(now), 1)
  t.eq(#require("mneme.lab.study.provenance").differences { { run = { name = "less" }, info = now }, { run = { name = "less" }, info = made_by } }, 0)
end)

local before

t.test("changed code is an error that names file and line; use=stored and use=now choose", function()
  before = mean_return(mneme "eval r episodes=20")
  t.ok(before and before < 10)
  write("rules.lua", "-- richer\nreturn { pay = function(a) return 100 * a end }\n")
  for _, command in ipairs { "eval r episodes=20", "run resume=r steps=8192", "intervene r erase=layers.0 at=2 episodes=4",
      "view r out=r.png wait=0" } do
    local said, status = mneme(command)
    t.eq(status, 2, command .. ": " .. said)
    t.ok(said:find "r: rules.lua has changed since the run began %(line 1%) %(use=stored runs r/source/rules.lua; use=now takes", said)
  end
  t.eq(mean_return(mneme "eval r episodes=20 use=stored"), before)
  t.eq(select(2, mneme "eval r episodes=20 use=now"), 2, "nobody has run this rules.lua")
  t.ok(mean_return(mneme "eval r episodes=20 use=now trust=1") >= 50 * before)
  sh "cp -r r s"
  t.eq(select(2, mneme "run resume=s steps=8192 use=now trust=1"), 0)
  t.eq(info("s").history[3].code, "now")
end)

t.test("every version of the code that ran is kept; stored means the latest, and check verifies all of them", function()
  t.eq((files.read(dir .. "/s/source/rules.lua")), "return { pay = function(a) return a end }\n")
  t.eq((files.read(dir .. "/s/source-from-4096/rules.lua")), (files.read(dir .. "/rules.lua")))
  t.eq(info("s").history[3].source_folder, "source-from-4096")
  local said, status = mneme "check s"
  t.ok(status == 0 and said:find "3 source files, 3 starts" and said:find "note: from step 4096 on it ran other code or data: source%-from%-4096", said)
  local rich = mean_return(mneme "eval s episodes=20")                   -- what ran last lies here: there is nothing to choose
  t.ok(rich >= 50 * before)
  write("rules.lua", "return { pay = function(a) return a end }\n")
  said, status = mneme "eval s episodes=20"
  t.ok(status == 2 and said:find "rules.lua has changed since the run was resumed at step 4096 %(line 1%)", said)
  t.eq(mean_return(mneme "eval s episodes=20 use=stored"), rich)
  t.eq(select(2, mneme "run resume=s steps=9216 use=stored"), 0)
  t.eq(info("s").history[4].source_folder, "source-from-4096")
  for _, folder in ipairs { "source", "source-from-4096" } do
    sh(("rm -rf hurt; cp -r s hurt; echo >> hurt/%s/rules.lua"):format(folder))
    said, status = mneme "check hurt"
    t.ok(status == 1 and said:find(folder .. "/rules.lua: ", 1, true), said)
  end
  said = mneme "view r s out=both.png wait=0"                                   -- two runs of two codes, each with its own
  t.ok(said:find "s: rules.lua has changed", said)
  t.eq(select(2, mneme "view r s out=both.png wait=0 use=stored"), 0)
end)

t.test("stored code runs unasked only where a run of the user's own was made by it, or it is Mneme's, wherever it lies", function()
  sh "mkdir elsewhere; cp -r s elsewhere/s"
  local other = dir .. "/elsewhere"
  t.eq(select(2, shell.mneme(other, "eval s episodes=20 use=stored")), 0)
  local said, status = shell.stranger(other, "eval s episodes=20 use=stored")
  t.ok(status == 2 and said:find "s brings its own code, s/source%-from%-4096/mine.lua, which was not run %(trust=1 runs it%)", said)
  sh "cp -r mine.lua cores elsewhere/; cp s/source-from-4096/rules.lua elsewhere/"
  said, status = shell.stranger(other, "eval s episodes=20")                  -- beside the run, as an archive brings it
  t.ok(status == 2 and said:find "s brings its own code, mine.lua, which was not run %(trust=1 runs it%)", said)
  t.eq(select(2, shell.stranger(other, "run mine.lua resume=s steps=10240")), 2, "the core is not named")
  t.eq(select(2, shell.stranger(other, "run mine.lua resume=s steps=10240 trust=1")), 0)
  t.eq(select(2, shell.stranger(other, "eval s episodes=20")), 0, "a run of theirs was made by it")
  sh "echo '-- mine' >> elsewhere/rules.lua; rm -r elsewhere/of-another-user"
  said, status = shell.stranger(other, "eval s episodes=20 use=stored")
  t.ok(status == 2 and said:find "s brings its own code, s/source%-from%-4096/mine.lua", said)
  sh "cd elsewhere; cp ../s/source-from-4096/rules.lua rules.lua; mv mine.lua renamed.lua"
  t.eq(select(2, shell.mneme(other, "eval s episodes=20")), 0, "a renamed script evaluates")
  t.eq(select(2, mneme "run tmaze quick=1 core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 threads=1 steps=4096 run=elsewhere/m"), 0)
  sh [[sed -i 's|"[^"]*experiments/tmaze.lua"|"/another/machine/experiments/tmaze.lua"|g' elsewhere/m/config.json
    mkdir -p elsewhere/m/source/another/machine/experiments; cp $(find elsewhere/m/source -name tmaze.lua) elsewhere/m/source/another/machine/experiments]]
  said, status = shell.stranger(other, "eval m episodes=4")
  t.eq(status, 0, said)                                                  -- the experiment is the installation's, wherever it lay
end)

t.test("code beside a run, in a parent or another run, or by its name in the current directory, is not the user's", function()
  sh "mkdir -p pack/runs/pack/b pack/cores; cp cores/own.lua pack/runs/pack/b/core.lua; cp cores/own.lua pack/cores/x.lua"
  local pack = dir .. "/pack"
  for _, name in ipairs { "runs/pack/b/core.lua", "x" } do
    sh "rm -rf pack/runs/pack/a"
    t.eq(select(2, shell.mneme(pack, "run tmaze quick=1 core=" .. name .. " core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 threads=1 "
      .. "steps=2048 run=runs/pack/a")), 0)
    for _, words in ipairs { "eval runs/pack/a episodes=2", "view runs/pack/a out=x.png wait=0", "run resume=runs/pack/a steps=4096",
      "intervene runs/pack/a erase=layers.0 at=1 episodes=2", "where runs/pack/a episodes=2", "credit runs/pack/a" } do
      local said, status = shell.stranger(pack, words)
      t.ok(status == 2 and said:find "runs/pack/a brings its own code, [%w./]+.lua, which was not run %(trust=1 runs it%)", words .. ": " .. said)
    end
    local said = shell.run(pack, "env -u HOME -u XDG_STATE_HOME '" .. shell.program .. "' eval runs/pack/a episodes=2")
    t.ok(said:find "trust=1 runs it; Mneme cannot note which code is yours: HOME is not set", said)
    t.eq(select(2, shell.run(pack, "HOME=/proc XDG_STATE_HOME= '" .. shell.program .. "' eval runs/pack/a episodes=2 trust=1")), 0)
    t.eq(select(2, shell.mneme(pack, "eval runs/pack/a episodes=2")), 0)
  end
end)

t.test("a file that the command line names runs, whatever is in its path", function()
  for i, path in ipairs { "my own/a core.lua", "it's/core.lua", "a,b/{c}.lua", "a $(b)/ä;c.lua" } do
    files.make_folder(dir .. "/" .. path:match "^(.*)/")
    sh(("sed 's/^--/-- %d/; 1s/^/-- %d\\n/' cores/own.lua > %s"):format(i, i, shell_quote(path)))
    local said, status = mneme("check core=" .. shell_quote(path))
    t.eq(status, 0, said)
    said, status = mneme("run " .. shell_quote(path))
    t.ok(status == 2 and said:find("is a core, expected a script (mneme run train core=" .. shell_quote(path) .. ")", 1, true), said)
  end
end)

t.test("nothing in the current directory is run that the command line does not name", function()
  sh "mkdir -p trap; cp -r r trap/run"
  local function trap(path)
    files.make_folder(dir .. "/trap/" .. (path:match "^(.*)/" or ""))
    write("trap/" .. path, "io.open('sprung', 'a'):write '" .. path .. " '\n return {}\n")
  end
  local modules = { lfs = true, ["luajit"] = true, ["jit.util"] = true, ["jit.opt"] = true, string = true, table = true, io = true, os = true, package = true }
  local program = shell.run(shell.root, "cat $(find lua experiments scenes -name '*.lua')")
  for name in program:gmatch "require[ (\"']+([%w_.]+)" do modules[name] = true end
  for name in program:gmatch 'module "([%w_.]+)"' do modules[name] = true end
  t.ok(modules.ffi and modules.bit and modules["mneme.runs.script"])
  for name in pairs(modules) do
    local path = name:gsub("%.", "/")
    trap(path .. ".lua")
    trap(path .. "/init.lua")
    trap(path .. ".so")
  end
  for _, kind in ipairs { "cores", "attentions", "datasets", "learners", "scenes", "experiments" } do trap(kind .. "/evil.lua") end
  local commands = { "list", "help", "doctor", "list runs .", "list cores", "list learners", "help cores", "help evil", "help gate", "help man",
    "help api", "run tmaze --help", "run nosuch", "check run", "compare run run", "report run", "export run to=x.safetensors", "eval run episodes=2",
    "view run out=x.png wait=0", "diff run run", "intervene run erase=layers.0 at=1 episodes=2", "probe run", "where run episodes=2", "credit run",
    "run resume=run steps=5000", "run tmaze quick=1 core=gru steps=64 num_envs=2 num_steps=32 threads=1 run=n",
    "bench nosuch", "play nosuch", "new core own", "new env own like=evil.lua",
    "sweep nosuch", "complete ''", "complete list ''", "complete run ''", "complete run evil ''", "complete run experiments/evil.lua ''",
    "complete help ''", "complete run tmaze core=", "complete sweep evil ''" }
  local known = {}
  for _, words in ipairs(commands) do known[words:match "^%S+"] = true end
  for _, name in ipairs(require("mneme.commands.options").commands.names) do t.ok(known[name], name) end
  for _, words in ipairs(commands) do
    for _, run in ipairs { shell.mneme, shell.stranger } do
      run(dir .. "/trap", words)
      t.ok(not files.is_file(dir .. "/trap/sprung"), words .. ": " .. shell.run(dir .. "/trap", "cat sprung"))
    end
  end
  shell.run(dir .. "/trap", "LUA_PATH='./?.lua;;' LUA_CPATH='./?.so;;' '" .. shell.program .. "' list runs .")
  t.ok(not files.is_file(dir .. "/trap/sprung"))
  mneme "help core evil"
  shell.mneme(dir .. "/trap", "run tmaze core=evil")
  t.ok(files.is_file(dir .. "/trap/sprung"), "what is named runs")
end)

t.test("a core that was edited is not evaluated in place of the trained one", function()
  write("cores/own.lua", core_text .. "\n-- changed\n")
  local said, status = mneme "eval r episodes=4"
  t.ok(status == 2 and said:find "cores/own.lua has changed since the run began %(line %d+%)", said)
  t.eq(mean_return(mneme "eval r episodes=20 use=stored"), before)
  write("cores/own.lua", core_text)
  t.eq(mean_return(mneme "eval r episodes=20"), before)
end)

t.test("an edited own core is resumed where the command line names the script beside it, or the core; no other code is", function()
  sh "rm -rf e e2 && cp -r r e && cp -r r e2 && mkdir -p away/cores"
  write("cores/own.lua", core_text .. "-- edited by hand\n")
  for _, words in ipairs { "run resume=e steps=6144 use=now", "eval e episodes=2 use=now" } do
    local said, status = mneme(words)
    t.ok(status == 2 and said:find "e brings its own code, ./cores/own.lua, which was not run %(trust=1 runs it", said)
  end
  shell.fine(dir, "run mine.lua resume=e steps=6144 use=now")
  write("cores/own.lua", core_text .. "-- and again\n")
  t.eq(select(2, mneme "run resume=e2 core=own steps=6144 use=now"), 0)
  t.eq(select(2, mneme "run mine.lua resume=e2 core=gru steps=6144 use=now"), 2, "'core' cannot change")
  -- what was not the user's before the edit is not trusted because a script is named
  write("cores/own.lua", core_text .. "-- a third time\n")
  sh "cp mine.lua rules.lua away/; cp cores/own.lua away/cores/; cp -r e away/e; echo '-- theirs' >> away/cores/own.lua"
  local said, status = shell.stranger(dir .. "/away", "run mine.lua resume=e steps=8000 use=now")
  t.ok(status == 2 and said:find "e brings its own code, ./cores/own.lua", said)
  sh "rm -r away"
  write("cores/own.lua", core_text)
end)

t.test("a moved folder evaluates from what it keeps, if it is trusted", function()
  sh "mkdir away; cp -r r away/r"
  local away = dir .. "/away"
  t.eq(mean_return((shell.mneme(away, "eval r episodes=20"))), before, "their own")
  local said, status = shell.stranger(away, "eval r episodes=20")
  t.ok(status == 2 and said:find "r brings its own code, r/source/mine.lua, which was not run %(trust=1 runs it%)", said)
  t.eq(mean_return((shell.stranger(away, "eval r episodes=20 trust=1"))), before)
  said, status = shell.stranger(away, "run resume=r steps=6144 trust=1")
  t.eq(status, 0, said)
  sh "sed -i 's/a end }/-a end }/' away/r/source/rules.lua"
  said = shell.mneme(away, "eval r episodes=20 trust=1")
  t.ok(said:find "r/source/rules.lua was changed after the run wrote it", said)
end)

t.eq(select(2, mneme "run mine.lua core.d_model=8 run=told"), 0)
t.test("a script that the command line names is the user's own, wherever it lies", function()
  sh "mkdir -p below"
  local below = dir .. "/below"
  write("plain.lua", (files.read(dir .. "/mine.lua"):gsub("\n[^\n]*wants[^\n]*", ""):gsub("rules.pay%(a%)", "a"):gsub('"own"', '"gru", d_model = 4')))
  local first, begun = shell.mneme(below, "run ../plain.lua run=q steps=2048")
  t.eq(begun, 0, first)
  local said, status = shell.stranger(below, "run resume=q steps=4096")
  t.ok(status ~= 0 and said:find("q brings its own code, ../plain.lua", 1, true), said)
  said, status = shell.stranger(below, "run ../plain.lua resume=q steps=4096")
  t.eq(status, 0, said)
  sh "rm -r below"
end)

t.test("code that a run's folder names is not run unasked", function()
  sh "cp -r r evil; rm evil/manifest.json"
  write("evil/core.lua", 'io.open("pwned", "w"):close()\n' .. core_text)
  local text = files.read(dir .. "/evil/config.json")
  for _, name in ipairs { "evil/core.lua", dir .. "/evil/core.lua" } do
    local about = json.decode((text))
    about.history[1].source, about.env_of_script, about.env, about.task = json.array {}, nil, "tmaze-v0", {}
    about.core.name = name
    write("evil/config.json", json.encode(about))
    for _, command in ipairs { "eval evil episodes=2", "view evil out=e.png wait=0", "intervene evil erase=layers.0 at=1 episodes=2" } do
      local said, status = mneme(command)
      t.ok(status ~= 0 and said:find "evil brings its own code, .-core.lua, which was not run %(trust=1 runs it%)", command .. ": " .. said)
      t.ok(not files.is_file(dir .. "/pwned"))
    end
  end
  local about = json.decode((text))
  about.script, about.history[1].source = "evil/mine.lua", json.array {}
  write("evil/mine.lua", 'io.open("pwned", "w"):close()\n' .. files.read(dir .. "/mine.lua"))
  write("evil/config.json", json.encode(about))
  for _, command in ipairs { "run resume=evil steps=9000", "eval evil episodes=2", "where evil episodes=2",
      "credit evil" } do
    local said, status = mneme(command)
    t.ok(status ~= 0 and said:find "brings its own code", command .. ": " .. said)
    t.ok(not files.is_file(dir .. "/pwned"))
  end
  mneme "eval evil episodes=2 trust=1"
  t.ok(files.is_file(dir .. "/pwned"))
end)

t.test("a file of tests that is run by hand has a list of trusted code of its own, and leaves none", function()
  files.write(dir .. "/asks.lua", { 'io.write("list ", os.getenv "XDG_STATE_HOME", "\\n")\n' })
  local said = shell.run(dir, ("XDG_STATE_HOME='%s/mine' luajit '%s/tests/run.lua' one asks.lua"):format(dir, shell.root))
  local state = said:match "list (/%S+)\n"
  t.ok(state, said)
  t.ok(state ~= dir .. "/mine" and not files.is_folder(state), said)
end)

t.test("a core that a run's folder brings is not run by a report or a comparison, unless it is trusted", function()
  local _, status = mneme "run demo core=gru core.d_model=8 hidden=8 steps=256 num_envs=2 num_steps=32 threads=1 where=0 run=honest"
  t.eq(status, 0)
  sh "cp -r honest forged"
  write("forged/bad.lua", "os.execute 'touch ran_by_report'\n" .. files.read(require("mneme.base.registry").library .. "cores/gru.lua"))
  write("forged/config.json", (files.read(dir .. "/forged/config.json"):gsub('"name": "gru"', '"name": "forged/bad.lua"')))
  for _, command in ipairs { "report forged out=f.html", "report honest forged out=f.md", "compare honest forged" } do
    mneme(command)
    t.ok(not files.is_file(dir .. "/ran_by_report"), command)
  end
  mneme "eval forged episodes=2 trust=1"
  t.ok(files.is_file(dir .. "/ran_by_report"))
end)

t.test("a report shows no file that a folder names and the user did not write as code", function()
  write("secret.txt", "the secret")
  write("secret.lua", "-- the secret")
  sh "mkdir names; cp -r honest names/r; rm -r names/r/source"
  for _, path in ipairs { "../secret.txt", dir .. "/secret.lua" } do
    local about = json.decode((files.read(dir .. "/honest/config.json")))
    about.script = path
    write("names/r/config.json", json.encode(about))
    t.eq(select(2, shell.mneme(dir .. "/names", "report r out=page.md")), 0)
    t.ok(not files.read(dir .. "/names/page.md"):find "the secret", path)
  end
end)

t.test("compiled Lua is refused", function()
  sh "luajit -b mine.lua code.lua"
  local said, status = mneme "run code.lua"
  t.ok(status == 1 and said:find "code.lua: is compiled Lua, expected text", said)
end)

t.test("a data file that was replaced is noticed", function()
  write("text.txt", ("the quick brown fox jumps over the lazy dog. "):rep(400))
  shell.fine(dir, "run char_lm quick=1 file=text.txt steps=4096 core=gru core.d_model=16 run=lm threads=1")
  t.ok(info("lm").data[1].path == "text.txt" and info("lm").data[1].bytes > 1000)
  write("text.txt", ("the quick brown dog jumps over the lazy fox. "):rep(400))
  local said, status = mneme "run resume=lm steps=8192"
  t.ok(status == 2 and said:find "lm: text.txt has changed since the run began", said)
  said, status = mneme "eval lm"
  t.ok(status == 2 and said:find "lm: text.txt has changed since the run began %(use=stored reads lm/source/data/%x+%-text.txt; use=now", said)
  said, status = mneme "eval lm batches=1 use=stored"
  local other = mneme "eval lm batches=1 use=now"
  t.ok(status == 0 and said ~= other:gsub("^[^\n]*warning[^\n]*\n", ""), said .. other)
  sh "cp text.txt another.txt; mv text.txt away.txt"
  t.eq(select(2, mneme "eval lm batches=1 file=another.txt"), 0)
  t.eq((mneme "eval lm batches=1"), said, "of a file that is gone the run's copy is read")
  sh "mv away.txt text.txt"
  said, status = mneme "run resume=lm steps=8192 use=now"
  t.ok(status == 0 and said:find "warning: lm: text.txt has changed since the run began", said)
end)

t.test("files that a script reads are its data", function()
  write("wage.txt", "3\n")
  write("reads.lua", (files.read(dir .. "/mine.lua"):gsub('local rules = wants "rules"', [[
    local rules = { pay = function(a) return a * tonumber(io.open("wage.txt"):read "*l") end }
    for _ in io.lines "wage.txt" do io.open("out.txt", "w"):close() io.open("out.txt"):close() end
    mn.save("w.safetensors", mn.ones { 2 }) mn.load "w.safetensors" mn.load "given.safetensors"]])))
  write("given.lua", 'require("mneme").save("given.safetensors", require("mneme").ones { 2 })')
  t.eq(select(2, mneme "run given.lua"), 0)
  t.eq(select(2, mneme "run reads.lua core.d_model=8 run=wage"), 0)
  local data = info("wage").data
  t.ok(#data == 2 and data[1].path == "given.safetensors" and data[2].path == "wage.txt" and data[2].bytes == 2, json.encode(data))
  t.eq(select(2, mneme "eval wage episodes=2"), 0)
  write("wage.txt", "300\n")
  for _, command in ipairs { "eval wage episodes=2", "view wage out=w.png wait=0", "intervene wage erase=layers.0 at=2 episodes=4", "where wage episodes=2" } do
    local said, status = mneme(command)
    t.ok(status == 2 and said:find "wage: wage.txt has changed since the run began %(4 bytes, then 2%) %(use=stored reads wage/source/data/", command .. said)
  end
  t.ok(mneme("check wage"):find "note: wage.txt has changed since the run began")
  sh "cp -r wage bare; rm bare/source/data/*wage.txt; mkdir -p elsewhere; cp -r wage elsewhere"
  local said, status = mneme "eval bare episodes=2 use=stored"
  t.ok(status == 1 and said:find "bare/source/data/%x+%-wage.txt is not there, and its run needs it", said)
  said, status = mneme "check bare"
  t.ok(status == 1 and said:find "source/data/%x+%-wage.txt: is not there", said)
  said, status = shell.mneme(dir .. "/elsewhere", "eval wage episodes=2 trust=1")
  t.eq(status, 0, said)
  said, status = shell.mneme(dir .. "/elsewhere", "run resume=wage steps=4096 trust=1")
  t.eq(status, 0, said)
  local config = json.decode(files.read(dir .. "/elsewhere/wage/config.json"))
  t.eq(json.encode(config.history[2].data), json.encode(config.history[1].data), "the resume read the same data")
end)

t.test("of a large data file a run keeps the checksum alone", function()
  write("wage.txt", "3\n" .. (" "):rep(2 ^ 20))
  t.eq(select(2, mneme "run reads.lua core.d_model=8 run=heavy"), 0)
  t.ok(not info("heavy").data[2].kept and info("heavy").data[1].kept)
  write("wage.txt", "300\n")
  local said, status = mneme "eval heavy episodes=2"
  t.ok(status == 2 and said:find "%(a run keeps the checksums of data files beyond 1 MiB and of private ones, not the data; use=now", said)
  said, status = mneme "eval heavy episodes=2 use=stored"
  t.ok(status == 0 and said:find "warning: heavy: wage.txt has changed .-: use=stored cannot bring them back", said)
end)

write("grid.lua", [[
local mn = require "mneme"
local rules = dofile "rules.lua"
return mn.study { title = "grid", axes = { a = { 1, 2 } }, settings = { steps = 10 }, seeds = 2,
  run = function(cfg) return { score = rules.pay(cfg.a) + cfg.seed } end, metrics = { score = { "score" } } }
]])

t.test("a sweep has one code", function()
  t.eq(select(2, mneme "sweep grid.lua run=g estimate=0 jobs=1"), 0)
  write("rules.lua", "return { pay = function(a) return 7 * a end }\n")
  local said, status = mneme "sweep grid.lua run=g estimate=0 jobs=1 seeds=3"
  t.ok(status == 2 and said:find "g: 4 of its runs were made by other code: g/runs/.-: rules.lua has changed since", said)
  said = mneme "report g"
  t.ok(said:find "warning: g: rules.lua has changed since the run began %(line 1%): claims, figures and texts are those of the files as they are now", said)
  t.eq(select(2, mneme "sweep grid.lua run=h estimate=0 jobs=1"), 0)
  said = mneme "compare g h"
  t.ok(said:find "code of rules.lua", said)
  write("rules.lua", "return { pay = function(a) return a end }\n")
  t.eq(select(2, mneme "sweep grid.lua run=g estimate=0 jobs=1 seeds=3"), 0)
  said, status = mneme "check g"
  t.ok(status == 0 and said:find "ok +g/runs/a=1,seed=1", said)
end)

t.test("a study's folder that brings its script is not a program", function()
  write("g/grid.lua", 'io.open("pwned2", "w"):close()\n' .. files.read(dir .. "/grid.lua"))
  sh [[sed -i 's|"script": "grid.lua"|"script": "g/grid.lua"|' g/study.json]]
  local said, status = mneme "report g"
  t.ok(status == 0 and files.read(dir .. "/g/report.html"):find "<h1>grid</h1>", said)          -- from what the folder holds as data
  sh "mv g/declaration.json away/"
  said, status = mneme "report g"
  t.ok(status ~= 0 and said:find "g brings its own code, g/grid.lua", said)
  t.ok(not files.is_file(dir .. "/pwned2"))
  t.eq(select(2, mneme "report g trust=1"), 0)
  sh "mkdir -p st/runs; cp -r honest st/runs/x; echo '{}' > st/study.json; cp forged/bad.lua st/bad.lua; rm -f ran_by_report"
  write("st/runs/x/config.json", (files.read(dir .. "/honest/config.json"):gsub('"name": "gru"', '"name": "st/bad.lua"')))
  said, status = mneme "eval st/runs/x episodes=2"                      -- a run's study brings it
  t.ok(status ~= 0 and said:find "st/runs/x brings its own code, st/bad.lua" and not files.is_file(dir .. "/ran_by_report"), said)
  sh [[sed -i 's|"script": "g/grid.lua"|"script": "grid.lua"|' g/study.json; mv away/declaration.json g/]]
end)

t.test("mneme check RUN examines a folder", function()
  t.eq(select(2, mneme "run tmaze quick=1 core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 threads=1 steps=60000 run=sound"), 0)
  local said, status = shell.mneme(dir, "check sound")
  t.eq(status, 0, said)
  t.ok(said:find "^ok +sound  %d checkpoints, 1 source files, 1 starts\n$", said)
  local function damaged(line, expected)
    sh("rm -rf hurt; cp -r sound hurt; " .. line)
    local found, code = mneme "check hurt"
    t.ok(code == 1 and found:find "^DAMAGED +hurt " and found:find(expected), line .. ": " .. found)
  end
  damaged("printf 'x' | dd of=$(ls hurt/checkpoints/*) bs=1 seek=3000 conv=notrunc", "step%-%d+.safetensors")
  damaged("sed -i '2d' hurt/metrics.jsonl", "metrics.jsonl: was altered")
  damaged("head -1 hurt/metrics.jsonl >> hurt/metrics.jsonl", "metrics.jsonl: was altered")
  damaged("printf '{\"step\": 7' >> hurt/metrics.jsonl", "metrics.jsonl: was altered")
  damaged("echo >> hurt/source/*/tmaze.lua || echo >> $(find hurt/source -name '*.lua')", "source/.-tmaze.lua: was altered")
  damaged("rm $(find hurt/source -name '*.lua')", "source/.-tmaze.lua: is not there")
  damaged("printf 'x' | dd of=hurt/events.out.tfevents.mneme bs=1 seek=600 conv=notrunc", "events.-: was altered")
  damaged("for i in 1 2 3 4; do head -c 42 sound/events.out.tfevents.mneme >> hurt/events.out.tfevents.mneme; done",
    "events.-: was altered")
  damaged([[sed -i 's/"hidden": 8/"hidden": 9/' hurt/config.json]], "config.json: was altered after it was written")
  damaged([[sed -i 's/"wall_s": /"wall_s": 1/' hurt/resources.json]], "resources.json: was altered after it was written")
  damaged([[sed -i '2s/: [0-9.]*}/: 0.125}/' hurt/metrics.jsonl]], "metrics.jsonl: was altered")
  damaged("echo >> hurt/manifest.json", "manifest.json: was altered")
end)

t.test("help tells use= and trust= of every command that takes them", function()
  for _, topic in ipairs { "check", "eval", "report", "use", "trust" } do
    local text = mneme("help " .. topic)
    t.ok(topic == "trust" or text:find "use=stored" and text:find "now:%s", topic .. ": " .. text)
    t.ok(topic == "use" or text:find "trust=1", topic .. ": " .. text)
  end
end)

t.test("mneme check names code, data and program that have changed since", function()
  local said, status = mneme "check lm"
  t.ok(status == 0 and not said:find "text.txt", said)
  sh "cp -r lm other; echo x >> text.txt"
  local held, rest = json.decode(files.read(dir .. "/other/manifest.json")), {}
  for _, file in ipairs(held.files) do rest[#rest + 1] = file.name ~= "config.json" and file or nil end
  held.files = json.array(rest)
  write("other/manifest.json", sealed.encode(held))
  local about = info "other"
  about.history[#about.history].program_checksum = "0"
  write("other/config.json", sealed.encode(about))
  said, status = mneme "check other"
  t.ok(status == 0 and said:find "note: text.txt has changed since the run was resumed at step 4096 %(%d+ bytes, then %d+%)", said)
  t.ok(said:find "note: it was made by another build of Mneme", said)
  write("rules.lua", "return 1\n")
  said = mneme "check r"
  t.ok(said:find "note: rules.lua has changed since the run began %(line 1%)", said)
  sh "rm rules.lua"
  t.ok(mneme("check r"):find "note: rules.lua is gone since the run began")
end)

files.remove_folder(dir)
