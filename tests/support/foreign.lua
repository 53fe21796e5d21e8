-- foreign.lua -- folders that a stranger may have written: a run and a study, the places in their JSON where a value can be another, and
-- the commands that read them.  For tests/commands/test_foreign.lua and tests/endurance/fuzz_folders.lua.
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"
local tables = require "mneme.base.tables"

local foreign = {}

foreign.small = "quick=1 core=gru core.d_model=8 hidden=8 num_envs=2 num_steps=16 threads=1"
local STUDY = [[
local mn = require "mneme"
return mn.study { title = "Two", question = "Which?", of = "overwrite", axes = { core = { "gru", "lstm" } },
  settings = { learner = "ppo", pairs = 2, symbols = 2, num_envs = 4, num_steps = 16, hidden = 8, steps = 512, threads = 1 }, seeds = { 1 },
  metrics = { score = { "right answers", range = { 0, 1 } } },
  figures = { { "bars", y = "score", x = "core", title = "Scores" } },
  claims = { { id = "gate", text = "Gates help.", source = "mine", test = { "better", metric = "score", a = { core = "gru" }, b = { core = "lstm" } } } } }
]]

---Train a run `r` and sweep a study `s` in a folder.
function foreign.prepare(folder)
  files.write(folder .. "/two.lua", { STUDY })
  for _, line in ipairs { "run tmaze " .. foreign.small .. " corridor=4 steps=4096 checkpoint_every=2048 run=r",
    "sweep two.lua jobs=1 run=s core.d_model=8 estimate=0" } do
    local said, status = shell.mneme(folder, line)
    if status ~= 0 then error(said) end
  end
end

-- Commands that read the run x, and those that read the study x.
foreign.of_run = { "check x", "list runs .", "compare x", "eval x episodes=2 num_envs=2", "view x out=v.png wait=1", "report x out=v.html", "diff x x",
  "export x to=e.safetensors", "run resume=x steps=4160", "report x out=v.md", "where x episodes=2",
  "intervene x erase=all at=2 episodes=2", "credit x", "probe x episodes=4", "report x out=v.html figures=v" }
foreign.of_study = { "check x", "list runs x", "compare x", "report x out=v.html", "report x out=v.md", "list runs .",
  "report x out=v.html export=k.jsonl", "sweep two.lua run=x list=1" }

---All values in a JSON value, as paths.
function foreign.leaves(value, path, list)
  list, path = list or {}, path or {}
  if type(value) ~= "table" or value == json.null or next(value) == nil then
    if #path > 0 then list[#list + 1] = path end
    return list
  end
  local keys = json.is_array(value) and nil or tables.keys(value)
  for i = 1, keys and #keys or #value do
    local inner = { unpack(path) }
    inner[#inner + 1] = keys and keys[i] or i
    foreign.leaves(value[inner[#inner]], inner, list)
  end
  return list
end

---Every table in a JSON value, too.
function foreign.nodes(value)
  local list, seen = {}, {}
  for _, path in ipairs(foreign.leaves(value)) do
    for n = 1, #path do
      local name = table.concat({ unpack(path, 1, n) }, "\0")
      if not seen[name] then seen[name], list[#list + 1] = true, { unpack(path, 1, n) } end
    end
  end
  return list
end

---Another value at a path of a JSON value; `rename`: another name of that place.
function foreign.set(root, path, value, rename)
  local at = root
  for i = 1, #path - 1 do at = at[path[i]] end
  if rename then at[rename], at[path[#path]] = at[path[#path]], nil else at[path[#path]] = value end
end

---Copy the run or study `name` of a folder to x.
function foreign.copy(folder, name) shell.run(folder, ("rm -rf x && cp -r %s x"):format(name)) end

---Write a JSON file of x with one place changed; its checksum goes.
function foreign.write(folder, file, root)
  if type(root) == "table" then root.checksum = nil end
  files.write(("%s/x/%s"):format(folder, file), { json.encode(root, "  ") .. "\n" })
end

function foreign.read(folder, file) return (json.decode((files.read(("%s/x/%s"):format(folder, file))))) end

---What is wrong with what a command printed; nil: nothing.
---@param line string after the payload's end of line
function foreign.problem(said, status, line)
  if status == nil or status >= 124 then return "status " .. tostring(status) end
  if said:find "[%z\1-\8\11-\31\127]" then return "a control character" end
  if line and ("\n" .. said):find("\n" .. line, 1, true) then return "a line of a stranger's" end
  for _, word in ipairs { "stack traceback", "attempt to ", "bad argument #", "internal error", "invalid order", "invalid value", "table index is",
    "got no value", "malformed", "lua/mneme/[%w_/]+%.lua:%d+:" } do
    if said:find(word) then return "a raw Lua error" end
  end
end

---Run a command on x with limits: 60 s of processor time, 3 GB.
function foreign.run(folder, words)
  return shell.run(folder, ("ulimit -t 60; ulimit -v 3000000; timeout -k 2 100 '%s' %s < /dev/null"):format(shell.program, words))
end

return foreign
