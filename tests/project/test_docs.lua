-- test_docs.lua -- the guides work as printed: in order, every file that a page of docs/ asks to be saved is written, every
-- command is run, and what it is said to print is compared, word by word where numbers may differ.
local t = require "tests.harness"
local files = require "mneme.base.files"
local lfs = require "lfs"
local shell = require "tests.support.shell"

local root = shell.root

-- A folder for the pages that need the program alone.
local dir = shell.folder()
files.make_folder(dir .. "/build")
lfs.link(shell.program, dir .. "/build/mneme", true)

-- A copy of the tree with what was built of it, for the pages that add files to the engine: there `make` compiles these
-- alone.  nil and why, where the build is one that a plain `make` would not make.
local tree, other
local function copied_tree()
  if tree then return not other and tree, other end
  tree = shell.folder()
  local said, status = shell.run(root, ("cp -a engine lua gpu scenes experiments tests bindings Makefile '%s' && "
    .. "mkdir '%s/build' && cd '%s' && cp -a engine lua scenes *.so mneme flags registry.h '%s/build'"):format(tree, tree, shell.build, tree))
  if status ~= 0 then other = said return nil, other end
  local flags = files.read(tree .. "/build/flags")
  shell.run(tree, "env -u MAKEFLAGS -u MAKELEVEL make build/flags")
  if files.read(tree .. "/build/flags") ~= flags then other = "this build has other flags than a plain `make`" end
  return not other and tree, other
end

-- So that minutes become seconds: what is added to a command, by how it begins.
local shorter = {
  { "build/mneme run overwrite", " steps=12288" }, { "build/mneme sweep gates.lua", " steps=4096 seeds=2 estimate=0" },
  { "build/mneme intervene", " num_envs=32" }, { "build/mneme run latch.lua", " steps=8192" }, { "build/mneme run fast.lua", " steps=8192" },
  { "build/mneme run decay.lua", " steps=4096" },
  { "build/mneme run demo run=", " steps=40960 checkpoint_every=16384 where=0" }, { "build/mneme where", " episodes=24 time_limit=25" },
  { "build/mneme run demo corridor=10 stop_score", " checkpoint_every=100000 where=0" }, { "build/mneme run demo corridor=10 lr", " steps=16384 where=0" },
  { "build/mneme run tmaze quick=1 core=gru", " steps=20480" }, { "build/mneme run resume=runs/one steps", " steps=24576" },
  { "build/mneme run train env=tmaze", " steps=16384" }, { "build/mneme run resume=runs/mine", " steps=20480" },
}
local function shortened(line)
  for _, rule in ipairs(shorter) do
    if line:sub(1, #rule[1]) == rule[1] then
      for key in rule[2]:gmatch "([%w_]+)=" do line = line:gsub(" " .. key .. "=%S+", "") end          -- in place of the page's
      return line .. rule[2]
    end
  end
  -- `make test` would also install packages; make's own status is 2 where a test fails.
  line = line:gsub("make test TESTS=(%b\"\")", function(list) return "make test TESTS=" .. list:sub(2, -2) end)
  line = line:gsub("make test TESTS=(.*)", "make all && { env -u MNEME_BUILD luajit tests/run.lua %1 || (exit 2); }")
  if line:find "luajit tests/run.lua" then line = "export MNEME_ONLY='leak|latch|broken|episodes come|forged bytes'; " .. line end      -- the pages' own
  return (line:gsub("%f[%w]make%f[ %z]", "env -u MAKEFLAGS -u MAKELEVEL make"))
end

-- The fenced blocks of a page in order: { language, text, name of the file that it is to be saved as }.
local function blocks(page)
  local list, at = {}, 1
  while true do
    local first, last, language, text = page:find("\n```([%a+]+)\n(.-)\n```", at)
    if not first then return list end
    list[#list + 1] = { language = language, text = text, name = page:sub(at, first):match "[Ss]ave%s[%w%s]-as%s`([%w_./]+)`:\n?$" }
    at = last
  end
end

-- The words of a text, and the lines of files that it names; other figures, bars of characters and parts of a memory, which differ from
-- CPU to CPU, are left out.
local function words(text)
  local list = {}
  for word, line in text:gsub("build/mneme", "mneme"):gmatch "([%a_][%w_./]*)(:?%d*)" do
    if not word:find "^layers%.%d" then list[#list + 1] = word .. (word:find "%.%l+$" and line:find ":%d" and line or "") end
  end
  return list
end

-- Does the text have these lines' words, in this order?
local function follows(said, expected)
  local have, at = words(said), 1
  for _, word in ipairs(words(expected)) do
    while have[at] and have[at] ~= word do at = at + 1 end
    if not have[at] then return false, word end
    at = at + 1
  end
  return true
end

-- A line of a page, `command   # what it is for`; one that is to fail says so: `command   # exit status 1`.  A copied tree
-- has an engine of its own.
local python                       -- for a page that needs one
local function run(place, line)
  local command, note = line:match "^(.-)%s+#(.*)$"
  command, note = command or line, note or ""
  local said, status = shell.run(place, (place == dir and "unset LD_PRELOAD; " or "unset LD_PRELOAD MNEME_BUILD; ")
    .. (python and ("export PYTHON='%s'; "):format(python) or "") .. shortened(command))
  t.eq(status, tonumber(note:match "exit status (%d+)" or 0), command .. "\n" .. said)
  return said
end

-- What each page has at least: commands, files, outputs that are compared; and whether it adds to the engine.
local guides = {
  { "first-ablation", 7, 1, 3 }, { "write-an-environment", 14, 3, 5, tree = true }, { "write-a-core", 13, 1, 7, tree = true },
  { "write-an-op", 18, 3, 5, tree = true }, { "from-study-to-report", 10, 2, 6 },
  { "faq", 15, 0, 12, tree = true }, { "write-a-loop", 4, 4, 4 }, { "write-a-learner", 5, 2, 2 }, { "tensors", 2, 2, 2 },
  { "tuning", 3, 1, 1 }, { "where", 3, 1, 1 }, { "credit", 5, 0, 0 }, { "from-another-run", 3, 1, 2 },
  { "your-environment", 6, 4, 1, tree = true, python = true },
}
for _, page in ipairs(guides) do
  local name, said, commands, saved, compared = page[1], "", 0, 0, 0
  t.test("docs/" .. name .. ".md: its files and commands work", function()
    local place, why = dir, nil
    if page.tree then place, why = copied_tree() end
    if place and page.python then
      python, why = require("tests.support.python")()
      place = python and place
    end
    if not place then t.skip(why) end
    for _, block in ipairs(blocks(files.read(root .. "docs/" .. name .. ".md"))) do
      if block.name then
        files.make_folder(place .. "/" .. (block.name:match "^(.*)/" or ""))
        files.write(place .. "/" .. block.name, { block.text, "\n" })
        saved = saved + 1
      elseif block.language == "sh" then
        for line in block.text:gmatch "[^\n]+" do
          said = run(place, line)
          commands = commands + 1
        end
      elseif block.language == "text" then
        local ok, missing = follows(said, block.text)
        t.ok(ok, ("'%s' was not printed:\n%s"):format(missing or "", said))
        compared = compared + 1
      else t.ok(false, "a block of " .. block.language .. " that is neither saved nor run") end
    end
    t.ok(commands >= page[2] and saved >= page[3] and compared >= page[4], ("%d commands, %d files, %d outputs"):format(commands, saved, compared))
  end)
end

-- The first script of a page whose commands take too long for a test, and what it prints or writes.
t.test("docs: the scripts of interventions, statistics, figures and studies work", function()
  local function script(name, command)
    files.write(dir .. "/script.lua", { (files.read(root .. "docs/" .. name .. ".md"):match("\n```lua\n(.-)\n```"):gsub("runs/cue", "runs/script")), "\n" })
    return run(dir, (command or "build/mneme run") .. " script.lua")
  end
  run(dir, "build/mneme run demo corridor=10 lr=1e-3 run=runs/script")
  local said = script "interventions"
  for _, line in ipairs { "erase\tlayers.0.head.0\t1", "force\tlayers.1.beta\t1", "flip\tcue\t1" } do t.ok(said:find(line, 1, true), said) end
  t.ok(script("statistics"):find("^[%d.]+\n[%d.]+\t[%d.]+\t[%d.]+\n"))
  script "figures"
  t.ok(files.read(dir .. "/latency.svg"):find ">gtrxl<")
  t.ok(script("studies", "build/mneme check"):find("a study of 20 runs, with 2 claims", 1, true))
end)

t.test("docs: every page, heading and picture that a page links to is there", function()
  local function anchors(page)
    local set = {}
    for heading in page:gmatch "\n#+ ([^\n]+)" do
      set[heading:lower():gsub("[^%w_%- ]", ""):gsub(" ", "-")] = true
    end
    return set
  end
  local wrong = {}
  local pages = { "README.md", "CONTRIBUTING.md", "CHANGELOG.md" }
  for _, folder in ipairs { "docs/", "docs/results/", "experiments/" } do
    for _, file in ipairs(files.list(root .. folder)) do if file:find "%.md$" then pages[#pages + 1] = folder .. file end end
  end
  for _, page in ipairs(pages) do
    local text = files.read(root .. page)
    for target in text:gmatch "%]%(([^)]+)%)" do
      local path, anchor = target:match "^([^#]*)#?(.*)$"
      local file = path == "" and page or (page:match "^(.*/)" or "") .. path
      if not target:find "^https?:" then
        if not lfs.attributes(root .. file, "mode") then wrong[#wrong + 1] = page .. ": " .. target
        elseif anchor ~= "" and not anchors("\n" .. files.read(root .. file))[anchor] then wrong[#wrong + 1] = page .. ": " .. target end
      end
    end
  end
  t.ok(#wrong == 0, "links to nowhere:\n  " .. table.concat(wrong, "\n  "))
end)

os.execute("rm -rf '" .. dir .. "' '" .. (tree or dir) .. "'")
