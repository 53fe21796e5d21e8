-- test_pages.lua -- what the pages name is there: files of the tree, commands and what follows them, every memory with its costs.
local t = require "tests.harness"
local files = require "mneme.base.files"
local lfs = require "lfs"
local shell = require "tests.support.shell"

local root = require("mneme.base.registry").root
local dir = shell.folder()

local pages = { "README.md", "CONTRIBUTING.md" }
for _, folder in ipairs { "docs/", "docs/results/", "experiments/" } do
  for _, file in ipairs(files.list(root .. folder)) do if file:find "%.md$" then pages[#pages + 1] = folder .. file end end
end

-- Code of a page: f(text) for what stands between backticks, in a line or as a block, and for indented lines.
local function each_code(page, f)
  local text = files.read(root .. page):gsub("\\\n%s*", ""):gsub("\n```%a*\n(.-)\n```", function(block) f(block) return "" end)
  for code in text:gmatch "\n    ([^\n]+)" do f(code) end
  for code in text:gmatch "`([^`\n]+)`" do f(code) end
end

-- What a page asks its reader to write: `NAME`: with a block of code below it, or is made from another by sed; by path and
-- by the name that it then has.
local written, named = {}, {}
for _, page in ipairs(pages) do
  local text = files.read(root .. page)
  local function add(path) written[path], named[path:match "([%w_]+)%.%w+$" or ""] = true, true end
  for path in text:gmatch "`([%w_./]+%.%w+)`[^\n]*:\n```" do add(path) end
  for path in text:gmatch "\nsed [^\n]* > ([%w_./]+)\n" do add(path) end
  for name in text:gmatch "\nbuild/mneme new env ([%w_]+) like=" do add("engine/envs/" .. name .. ".c") end
end

t.test("docs: every file of the tree that a page names is there", function()
  local folders, wrong, found = {}, {}, 0
  for _, name in ipairs { "engine", "gpu", "lua", "scenes", "experiments", "tests", "bindings", "docs" } do folders[name] = true end
  for _, page in ipairs(pages) do
    each_code(page, function(code)
      for folder, rest in code:gmatch "%f[%w_./:-](%l+)/([%w_./*-]*)" do
        local path = (folder .. "/" .. rest):gsub("%.$", "")
        if folders[folder] and not path:find "[%u*]" and not written[path] then
          found = found + 1
          if not lfs.attributes(root .. path, "mode") then wrong[#wrong + 1] = page .. ": " .. path end
        end
      end
    end)
  end
  t.ok(#wrong == 0, "files that are not there:\n  " .. table.concat(wrong, "\n  "))
  t.ok(found > 60, found .. " files were found")
end)

-- What may follow a command, as a set; a command that is not here may be followed by anything.
local function following()
  local registry, catalogue, after = require "mneme.base.registry", require "mneme.base.catalogue", {}
  local function set(command, ...)
    after[command] = after[command] or {}
    for _, list in ipairs { ... } do
      for _, name in ipairs(list) do after[command][name] = true end
    end
  end
  local experiments, envs = registry.names "experiments", {}
  for i, name in ipairs(catalogue.names "envs") do envs[i] = name:gsub("%-v%d+$", "") end
  set("run", experiments)
  set("sweep", experiments)
  set("report", experiments)
  set("play", envs)
  set("view", registry.names "scenes", { "runs" })          -- a folder of runs
  set("list", catalogue.kinds, { "runs" })
  set("bench", registry.benchmarks(), { "kernels" })        -- of train on a device
  set("help", catalogue.kinds, { "config", "torso", "a2c", "ppo", "supervised", "core", "attention", "annotations", "api", "commands", "man" }, envs)
  set("help", require("mneme.commands.help").names())
  return after
end

t.test("docs: every command, experiment, environment and topic that a page names is there", function()
  local commands, wrong, found, after = {}, {}, 0, following()
  for name in ("\n" .. shell.mneme(dir, "complete ''")):gmatch "\n([%l]+)" do commands[name] = true end
  for _, page in ipairs(pages) do
    each_code(page, function(code)
      for line in code:gmatch "[^\n]+" do
        local command, rest = line:match "^build/mneme (%l+)%s*([^#]*)"
        if not command then command, rest = line:match "^mneme (%l+)%s*([^#]*)" end
        if command then
          found = found + 1
          local word = rest:match "^([%l_%d]+)%f[%s%z]"
          local ok = commands[command] and (not word or not after[command] or after[command][word] or named[word])
          if not ok then wrong[#wrong + 1] = page .. ": " .. line end
        end
      end
    end)
  end
  t.ok(#wrong == 0, "commands that are not there:\n  " .. table.concat(wrong, "\n  "))
  t.ok(found > 80, found .. " commands were found")
end)

t.test("docs: every function and module of `mn` that a page names is there, or is made by it", function()
  local mn, wrong, found, own = require "mneme", {}, 0, { cube = true, leak = true, NAME = true }          -- ops that a page writes
  local function there(name)
    local at = mn
    for part in name:gmatch "[%w_]+" do
      if own[part] then return true end
      local ok, value = pcall(function() return at[part] end)
      if not ok or value == nil then return false end
      at = value
    end
    return true
  end
  for _, page in ipairs(pages) do
    local text = files.read(root .. page)
    for name in text:gmatch "%f[%w_.]mn%.([%a_][%w_.]*)" do
      name, found = name:gsub("%.+$", ""), found + 1
      if not text:find("mn." .. name .. " = ", 1, true) and not there(name) then wrong[#wrong + 1] = page .. ": mn." .. name end
    end
  end
  t.ok(#wrong == 0, "names that are not there:\n  " .. table.concat(wrong, "\n  "))
  t.ok(found > 200, found .. " names")
end)

-- The words after a command of a page: without its comment, what the shell does with it, and quotes; nil where one stands for several
-- (`[key=value ...]`, `RUN|STUDY`, `seed=N`), or is the shell's.
local function words_of(line)
  local command, rest = line:match "^%s*build/mneme (%l+)%s+([^#]*)"
  if not command then command, rest = line:match "^%s*mneme (%l+)%s+([^#]*)" end
  if not command or rest:find "[%[|$%%{]" or (rest .. " "):find "=%u%s" then return nil end
  local words = {}
  for word in rest:gsub("%s[&>;].*", ""):gsub("%)?%s*$", ""):gsub('"(.-)"', function(text) return (text:gsub(" ", "\1")) end):gmatch "%S+" do
    words[#words + 1] = word:gsub("\1", " ")
  end
  return command, words
end

t.test("docs: every option of a command line that a page prints is one, with a value that it takes", function()
  local arguments, commands = require "mneme.commands.arguments", require("mneme.commands.options").commands
  local options, lines, wrong, scripts = require "mneme.commands.options", 0, {}, {}
  local function settings(command, script)                -- of an experiment, as completion knows them
    local name = script:gsub("^experiments/", ""):gsub("%.lua$", "")
    if not lfs.attributes(root .. "experiments/" .. name .. ".lua") then return nil end
    local key = command .. " " .. name
    if not scripts[key] then
      scripts[key] = {}
      for word in shell.mneme(dir, ("complete %s ''"):format(key)):gmatch "[^\n]+=" do scripts[key][word:sub(1, -2)] = true end
    end
    return scripts[key]
  end
  for _, page in ipairs(pages) do
    each_code(page, function(code)
      for line in code:gmatch "[^\n]+" do
        local name, words = words_of(line)
        local command = name and commands.find(name)
        if command and words[1] and not command.raw then
          local part = command.part and command.part(words[1])
          if part then command, words = part, { unpack(words, 2) } end
          local run = options.takes(command, "RUN") or options.takes(command, "STUDY")
          if run and words[1]:find "=" then table.insert(words, 1, dir) end
          for i, word in ipairs(words) do
            words[i] = word:gsub("^resume=.*", "resume=" .. dir)
            if run and not word:find "=" then words[i] = dir end
          end
          local ok, o = pcall(arguments.read, command, words)
          lines = lines + 1
          if not ok then wrong[#wrong + 1] = ("%s: %s: %s"):format(page, line, tostring(o)) end
          local known = ok and command.others == "script" and not line:find "resume=" and not line:find "learner=mine" and settings(name, words[1])
          for _, item in ipairs(known and o.items or {}) do
            if item[1] and not (known[item[1]] or item[1] == "clip_coef" or item[1]:find "%.") then          -- CleanRL's; of a core, of env
              wrong[#wrong + 1] = ("%s: %s: %s="):format(page, line, item[1])
            end
          end
        end
      end
    end)
  end
  t.ok(#wrong == 0, "not taken:\n  " .. table.concat(wrong, "\n  "))
  t.ok(lines > 300, lines .. " command lines")
end)

t.test("docs/how-memory-works.md: every memory is explained, with the costs that it has", function()
  local registry, cores = require "mneme.base.registry", require "mneme.models.cores"
  local page = files.read(root .. "docs/how-memory-works.md")
  local told, costs = page:match "^(.-)\n## What each costs\n(.*)$"
  for _, name in ipairs(registry.names "cores") do
    local about = require("mneme.tensor.nn").dry(cores.new, name):describe()
    t.ok(told:find("`" .. name .. "`", 1, true), name .. " is not explained")
    local state, formula, step = costs:match("\n| `" .. name .. "` | ([%d,]+) | `([^`]+)` | `([^`]+)` |")
    t.eq(tonumber(((state or ""):gsub(",", ""))), about.state_floats, name .. ": numbers of its state")
    t.eq(formula, about.state_formula, name)
    t.eq(step, about.step.formula, name)
  end
end)

t.test("docs: a picture of memories is drawn by the command that the page names", function()
  local page = files.read(root .. "docs/how-memory-works.md")
  local script = page:match "`build/mneme run ([%w_./]+memories%.lua)`"
  local said, status = shell.mneme(dir, ("run '%s' only=vectors out=."):format(shell.root .. script))
  t.eq(status, 0, said)
  local drawn = files.read(dir .. "/memory_vectors.svg")
  for _, name in ipairs { "feedforward", "framestack", "gru", "lstm" } do t.ok(drawn:find(">" .. name .. "</text>", 1, true), name) end
  t.ok(drawn:find '<path class="c1"', "something is drawn")
  t.ok(page:find("(figures/memory_vectors.svg)", 1, true))
end)

os.execute("rm -rf '" .. dir .. "'")
t.test("tests/README.md: the tests that it names for each fault are there", function()
  local rows = 0
  for line in files.read(root .. "tests/README.md"):gmatch "\n(| [^\n]* |)" do
    local paths, names = line:match "^| .- | (`.-`) | (.-) |$"
    if paths then
      rows = rows + 1
      local text = ""
      for path in paths:gmatch "`([^`]+)`" do text = text .. files.read(root .. (path:find "^bindings" and "" or "tests/") .. path) end
      for name in (names .. ";"):gmatch "%s*(.-);" do
        t.ok(text:find((name:gsub("%.%.%.$", ""):gsub("[ :]+$", "")), 1, true), ("%s: no test '%s'"):format(paths, name))
      end
    end
  end
  t.ok(rows >= 30, rows .. " rows")
end)

