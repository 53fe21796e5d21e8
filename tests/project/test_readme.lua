-- test_readme.lua -- what the README prints works as printed: its experiment with its commands; and the recipes of CONTRIBUTING.md.
local t = require "tests.harness"
local lfs = require "lfs"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local outcome = require("mneme.runs.run_folder").outcome
local reference_scores = require "mneme.envs.reference_scores"
local shell = require "tests.support.shell"

local root = shell.root
local readme = files.read(root .. "/README.md")
local recipes = files.read(root .. "/CONTRIBUTING.md")
local dir = shell.folder()
for _, folder in ipairs { "/cores", "/scenes", "/engine/ops", "/engine/envs" } do files.make_folder(dir .. folder) end

local function works(line)
  local said, status = shell.run(dir, (line:gsub("build/mneme", "'" .. shell.program .. "'")))
  t.eq(status, 0, line .. "\n" .. said)
  return said
end

-- The text that names a file, `NAME`: and the block of code below it, written where the name says.
local function block(name, page)
  local code = (page or readme):match("`" .. name:gsub("%p", "%%%0") .. "`:\n```%a+\n(.-)```")
  t.ok(code, "the page has no block below `" .. name .. "`:")
  files.write(dir .. "/" .. name, { code })
  return code
end

t.test("README: the experiment has 24 lines, and its commands run", function()
  local code = block "sign.lua"
  local _, lines = code:gsub("\n", "")
  t.eq(lines, 24)
  local n = 0
  for line in readme:gmatch "\n(build/mneme run sign%.lua[^\n#]*)" do
    local steps = line:find "resume" and 4096 or 2048
    t.ok(works(line:gsub(" steps=%S+", "") .. " steps=" .. steps):find(steps .. " steps, score"), line)
    n = n + 1
  end
  t.eq(n, 4)
end)

t.test("README: the first script, and its commands", function()
  block "corridor.lua"
  local n = 0
  for line in readme:gmatch "\n(build/mneme run corridor%.lua[^\n#]*)" do
    t.ok(works(line:gsub(" steps=%S+", "") .. " steps=2048"):find("2048 steps", 1, true), line)
    n = n + 1
  end
  t.eq(n, 3)
end)

t.test("README: what guessing gives, as the runs say it", function()
  local function shown(x) return tonumber(("%.2g"):format(x)) end
  for _, name in ipairs { "train", "tmaze", "memory_maze", "mystery_path", "noisy_cartpole", "reinforce", "rebuild_observation", "overwrite",
    "listops", "recall" } do
    works(("build/mneme run %s quick=1 threads=1 steps=64 run=guess/%s"):format(name, name))
    local at = dir .. "/guess/" .. name
    local guess = reference_scores.guess(json.decode((files.read(at .. "/config.json"))).reference) or outcome.read(at).results.commonest
    local cell = readme:match("\n| `" .. name .. "` |[^|]*|[^|]*|([^|]*)|")
    t.eq(tonumber(cell:match "[%d.]+"), shown(guess), name .. ":" .. cell)
  end
end)

t.test("CONTRIBUTING: the op and the environment compile", function()
  block("engine/ops/cube.c", recipes)
  works(("mkdir -p engine/envs && touch Makefile && cp '%s/engine/envs/tmaze_bakker.c' engine/envs"):format(root))
  works((recipes:match "\n(build/mneme new env mymaze [^\n]*)\n"))
  local cc = "unset LD_PRELOAD; cc -std=gnu11 -fopenmp -Wall -Wextra -Wshadow -Werror -c -o /dev/null"
  for _, source in ipairs { "engine/ops/cube.c", "engine/envs/mymaze.c" } do
    works(("%s -I'%s/engine' -I'%s/engine/ops' -I'%s/engine/envs' %s"):format(cc, root, root, root, source))
  end
end)

t.test("CONTRIBUTING: the memory learns and the scene is drawn", function()
  block("cores/ungated.lua", recipes)
  block("scenes/thoughts.lua", recipes)
  local run = "build/mneme run '" .. root .. "/experiments/demo.lua' core=ungated steps=2048 where=0 run=mine"
  t.ok(works(run .. " core.n_layers=1 core.d_model=16 core.d_head=8 core.d_ffn=16"):find "ungated on tmaze")
  t.eq(works "build/mneme view mine scene=thoughts out=thoughts.png wait=600", "thoughts.png\n")
  t.eq(files.read(dir .. "/thoughts.png"):sub(2, 4), "PNG")
end)

t.test("README: at most 1,700 words", function()
  local _, n = readme:gsub("%S+", "")
  t.ok(n <= 1700, n .. " words")
end)

t.test("README: every folder and picture that it names is there", function()
  local named = {}
  for path in readme:gmatch "\n| `([%w_/]+/)`" do named[#named + 1] = path end
  for path in readme:gmatch "%]%(([%w_/.]+)%)" do named[#named + 1] = path end
  for _, path in ipairs(named) do t.ok(lfs.attributes(root .. "/" .. path, "mode"), path) end
  t.ok(#named > 8, "names found")
end)

t.test("README, docs: every experiment and environment has its place", function()
  local registry, envs = require "mneme.base.registry", require "mneme.envs"
  local environments, count = files.read(root .. "/docs/environments.md"), 0
  for _, e in ipairs(envs.list()) do
    count = count + 1
    t.ok(environments:find("\n| `" .. e.name .. "` |", 1, true), "docs/environments.md has no row of " .. e.name)
  end
  t.eq(tonumber(readme:match "; (%d+) environments"), count)
  local asked = readme:match "\n## Try\n(.-)\n## Install\n" .. "\n" .. files.read(root .. "/docs/results/README.md"):match "\n## All studies\n(.-)\n## "
  local experiments = registry.names "experiments"
  for _, name in ipairs(experiments) do
    t.ok(name == "demo" or asked:find("\n| `" .. name .. "` |", 1, true), "no table of the README or of the results has " .. name)
  end
  for name in asked:gmatch "\n| `([%w_]+)` |" do
    t.ok(table.concat(experiments, " "):find(name, 1, true), "there is no experiment " .. name)
  end
end)

t.test("README: as many memories and attentions as it says", function()
  local registry = require "mneme.base.registry"
  t.eq(tonumber(readme:match "%[(%d+) memories%]"), #registry.names "cores")
  t.eq(tonumber(readme:match "; (%d+) memories and nine attentions"), #registry.names "cores")
  t.eq(tonumber(files.read(root .. "/docs/README.md"):match "the (%d+) cores"), #registry.names "cores")
  t.eq(tonumber(files.read(root .. "/CHANGELOG.md"):match "Models%.%*%* (%d+) memories"), #registry.names "cores")
  t.eq(#registry.names "attentions", 9)
end)

os.execute("rm -rf '" .. dir .. "'")
