-- fuzz_folders.lua -- run and study folders as nobody wrote them: each command must say in words what is wrong, or work.
--   luajit tests/endurance/fuzz_folders.lua [CASES [SEED]]
-- A case changes a value or a name in a JSON file or a line of a log, bytes of any file, or puts a link, a FIFO or a folder in a file's place;
-- some commands then read it.  Reported: signals, more than a minute, raw Lua errors, control characters, lines that a name smuggled in.
-- No link leads to an endless device.
local fuzz = dofile((arg[0]:match "^(.*)endurance/[%w_]+%.lua$" or "tests/") .. "support/fuzz.lua")
local files = require "mneme.base.files"
local foreign = require "tests.support.foreign"
local json = require "mneme.base.json"
local lfs = require "lfs"
local shell = require "tests.support.shell"

local pick = fuzz.pick

local PAYLOAD, SMUGGLED = "\27[2J\194\155q\nZZ smuggled", "ZZ smuggled"
local nested = {}
for _ = 1, 50 do nested = { a = nested } end
local values = { json.null, true, false, 0, -1, 1e308, 2 ^ 53, 0.1, "", "x", ("a"):rep(70000), "../../x", "/etc/passwd", "/proc/kmsg", json.array {}, {},
  json.array { json.array {} }, { [""] = "" }, { name = "x" }, "NaN", "Infinity", PAYLOAD, "=1+1", "$\\input{x}$", "</script>", "gru", "x.lua", nested }

local function change_json(root)
  local list = foreign.nodes(root)
  if #list == 0 then return pick(values) end
  local path, kind = pick(list), math.random()
  if kind < 0.7 then foreign.set(root, path, pick(values))
  elseif kind < 0.85 then foreign.set(root, path, nil)
  elseif type(path[#path]) == "string" then foreign.set(root, path, nil, pick { PAYLOAD, "", "x", ("k"):rep(70000) }) end
  return root
end

local function change_bytes(text)
  for _ = 1, pick { 1, 1, 3, 20 } do
    local at = math.random(math.max(1, #text))
    local kind = math.random(4)
    local put = kind == 1 and string.char(math.random(0, 255)) or kind == 2 and "" or kind == 3 and text:sub(at, at + math.random(300)) or PAYLOAD
    text = text:sub(1, at - 1) .. put .. text:sub(at + math.random(0, 20))
  end
  return text
end

local function all_files(folder, list)
  for _, name in ipairs(files.list(folder)) do
    local path = folder .. "/" .. name
    if lfs.symlinkattributes(path, "mode") == "directory" then all_files(path, list) else list[#list + 1] = path end
  end
  return list
end

local function mutate(folder)
  local list, structured = all_files(folder .. "/x", {}), {}
  for _, path in ipairs(list) do if path:find "%.jsonl?$" then structured[#structured + 1] = path end end
  local path, kind = pick(math.random() < 0.7 and structured or list), math.random()
  if kind < 0.1 then
    local put = pick { "mkfifo '%s'", "mkdir '%s'", "ln -s /proc/self/status '%s'", "ln -s /dev/full '%s'", "ln -s nowhere '%s'", ": > '%s'" }
    os.execute(("rm -f '%s'; "):format(path) .. put:format(path))
    return path .. ": " .. put
  end
  local text = files.read(path)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  if kind < 0.8 and path:find "%.json$" then
    local root = json.decode(text)
    if type(root) == "table" and math.random() < 0.8 then root.checksum = nil end
    text = json.encode(change_json(root))
  elseif kind < 0.8 and path:find "%.jsonl$" and #lines > 0 then
    local k = math.random(#lines)
    local root = json.decode(lines[k])
    if type(root) == "table" then lines[k] = json.encode(change_json(root)) end
    text = table.concat(lines, "\n") .. "\n"
  else text = change_bytes(text) end
  files.write(path, { text })
  return path
end

for i = 1, fuzz.cases do
  local of_study = math.random(3) == 1
  foreign.copy(fuzz.folder, of_study and "s" or "r")
  local what = mutate(fuzz.folder)
  for _ = 1, 3 do
    if fuzz.try(i, pick(of_study and foreign.of_study or foreign.of_run), what, nil, SMUGGLED) then
      shell.run(fuzz.folder, ("cp -r x 'bad-%d'"):format(fuzz.bad))
    end
  end
end
fuzz.finish()
