-- shell.lua -- a folder of a test file's own, and the program as a user runs it there.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local lfs = require "lfs"

ffi.cdef "int usleep(unsigned us);"

local shell = {}

---A path that means the same in every folder.
function shell.absolute(path) return path:sub(1, 1) == "/" and path or lfs.currentdir() .. "/" .. path end

shell.root, shell.build = shell.absolute(registry.root), shell.absolute(engine.build)
shell.program = shell.build .. "/mneme"

---An empty folder; whoever asks for it removes it.
---@return string path
function shell.folder()
  local path = os.tmpname()
  os.remove(path)
  files.make_folder(path)
  return path
end

---Run a line of the shell in a folder.
---@return string said what it printed, errors too
---@return integer status
function shell.run(folder, line)
  local pipe = io.popen(("cd '%s'; { %s; } 2>&1; echo \"[$?]\""):format(folder, line))
  local text = pipe:read "*a"
  pipe:close()
  local said, status = text:match "^(.*)%[(%d+)%]\n$"
  -- Messages print the program as it was called, by its whole path here; tests are about the commands (tests/commands/test_arguments.lua).
  for _, name in ipairs { "'" .. shell.program .. "'", shell.program } do
    said = said and said:gsub(name:gsub("%p", "%%%0") .. "(%s+%l+)", "mneme%1")
  end
  return said, tonumber(status)
end

---Run the program in a folder.
---@param words string "eval there episodes=20"
function shell.mneme(folder, words) return shell.run(folder, ("'%s' %s"):format(shell.program, words)) end

---The same where all goes well: what it said.
function shell.fine(folder, words)
  local said, status = shell.mneme(folder, words)
  if status ~= 0 then error(("mneme %s: status %s: %s"):format(words, tostring(status), said), 2) end
  return said
end

---The same where the line is wrong, which it says so.
---@param what string that it says
function shell.refused(folder, words, what)
  local said, status = shell.mneme(folder, words)
  if status ~= 2 or not said:find(what, 1, true) then
    error(("mneme %s: status %s, expected 2 and \"%s\": %s"):format(words, tostring(status), what, said), 2)
  end
end

---The same as a user to whom somebody gave the folder: nothing that lies there was run by a run of theirs.
function shell.stranger(folder, words) return shell.run(folder, ("XDG_STATE_HOME='%s/of-another-user' '%s' %s"):format(folder, shell.program, words)) end

---The build folder as a plain `make` in the checkout calls it: by another name it would compile all again.
function shell.make_build()
  local home = shell.run(shell.root, "pwd -P"):gsub("\n", "/")
  local there = shell.run(shell.build, "pwd -P"):gsub("\n", "")
  return there:sub(1, #home) == home and there:sub(#home + 1) or there
end

---Is a program installed?
function shell.has(program) return os.execute("command -v " .. program .. " >/dev/null 2>&1") == 0 end

---Wait until f() gives something true; an error when it does not within some minutes, which a busy machine may need.
---@param what string what is waited for
function shell.wait(what, f)
  local deadline = engine.C.mn_clock(false) + 400
  repeat
    local result = f()
    if result then return result end
    ffi.C.usleep(30000)
  until engine.C.mn_clock(false) > deadline
  error("waited in vain for " .. what, 2)
end

return shell
