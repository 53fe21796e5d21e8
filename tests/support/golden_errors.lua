-- golden_errors.lua -- tests/golden/errors.txt: what the errors say that tests raise by t.fails.  After a line with the file and one with the name
-- of a test, one line an error, in order: its exit status (- where it has none), its place (HERE: the test), its message and its hint.
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"

local PATH = registry.root .. "tests/golden/errors.txt"
local keep = os.getenv "MNEME_GOLDEN" == "keep"

-- list[file] = { [test] = lines }; a file's tests in order.
local list = {}
do
  local file, test
  for line in (files.is_file(PATH) and files.read(PATH) or ""):gmatch "[^\n]+" do
    if line:find "^# " then
      file = {}
      list[line:sub(3)] = file
    elseif line:find "^## " then
      test = {}
      file[#file + 1], file[line:sub(4)] = line:sub(4), test
    else test[#test + 1] = line end
  end
end

local golden_errors = {}
local file, test, kept, at, whole                 -- the file, the test, the file's lines now, { [test] = line read last }, { [test] = it has passed }

---A test begins; one that is named as a file holds the others.
function golden_errors.enter(name)
  local path = name:match "tests/([%w_/]+/test_[%w_]+%.lua)$"
  if path then file, kept, at, whole, test = path, {}, {}, {}, "at its top" else test = name end
end

---A test has passed.
function golden_errors.passed(name) if whole then whole[name] = true end end

-- Without what differs from run to run and place to place.
local function line_of(err)
  local text = tostring(err):gsub("[^%s'\"(]*tests/[%w_/]+%.lua:%d+", "HERE"):gsub("(lua/mneme/[%w_/]+%.lua:)%d+", "%1N"):gsub("/tmp/lua_%w+", "TMP")
    :gsub("0x%x+", "0x"):gsub("\n", "\\n")
  return ("%s %s"):format(type(err) == "table" and err.status or "-", text)
end

---What an error says, and what it is to say.
---@return string got
---@return string? want
function golden_errors.next(err)
  local got = line_of(err)
  at[test] = (at[test] or 0) + 1
  if not kept[test] then kept[#kept + 1], kept[test] = test, {} end
  kept[test][at[test]] = got
  return got, keep and got or ((list[file] or {})[test] or {})[at[test]]
end

---The file is over: with MNEME_GOLDEN=keep its errors are what is expected from now on.
function golden_errors.leave()
  if not keep or not file or not (list[file] or kept[1]) then return end
  for _, one in ipairs(list[file] or {}) do                   -- of tests that were left out, or failed, what they had
    if not whole[one] and one ~= "at its top" then
      if not kept[one] then kept[#kept + 1] = one end
      kept[one] = list[file][one]
    end
  end
  list[file] = kept[1] and kept or nil
  local names, out = {}, {}
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    out[#out + 1] = "# " .. name
    for _, one in ipairs(list[name]) do
      out[#out + 1] = "## " .. one
      for _, line in ipairs(list[name][one]) do out[#out + 1] = line end
    end
  end
  files.write(PATH, { table.concat(out, "\n"), "\n" })
end

return golden_errors
