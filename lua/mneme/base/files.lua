-- files.lua -- files from Lua.  Reading and writing go through the engine (engine/io/file.c), which guarantees
-- that no file is half written; folders are listed through LuaFileSystem.
local ffi = require "ffi"
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local terminal = require "mneme.base.terminal"

local C = engine.C
local files = {}

local of_run = { "metrics%.jsonl$", "checkpoints/[^/]*$", "config%.json$", "manifest%.json$", "/events%.out", "/lock$", "outcome%.json$", "resources%.json$" }
local hints = {
  ["No space left on device"] = "with room again, resume=FOLDER goes on from the last checkpoint",
  ["Read-only file system"] = "run=FOLDER puts a run elsewhere",
  ["Permission denied"] = "run=FOLDER puts a run elsewhere",
}

---Hand a result of the engine's file functions through, or raise what it says went wrong: that is about the
---disk, not about a line of the user's script.
function files.check(result)
  if result ~= nil and result ~= -1 then return result end
  local message = ffi.string(C.mn_error(engine.ctx))
  local path, reason = message:match "^(.*): cannot be written: ([^:]*)$"
  local hint
  for _, name in ipairs(path and of_run or {}) do if path:find(name) then hint = hints[reason] end end
  errors.fail(message, hint or reason == "No space left on device" and "with room again, repeat the command" or nil)
end
local check = files.check

---The whole of a file as a block of memory, valid as long as `owner` is.
---@return ffi.cdata* data uint8_t *
---@return number bytes
---@return ffi.cdata* owner
function files.block(path)
  if type(path) ~= "string" then errors.raise(("the path of a file is a %s, expected a text"):format(type(path))) end
  local file = ffi.gc(check(C.mn_file_new(engine.ctx, path)), C.mn_file_free)
  return ffi.cast("const uint8_t *", C.mn_file_data(file)), C.mn_file_bytes(file), file
end

local function too_large(path) return type(path) == "string" and (lfs.attributes(path, "size") or 0) > 2 ^ 30 end

---The whole of a file as a string.
function files.read(path)
  if too_large(path) then errors.fail(("%s: %.1f GiB, expected at most 1 GiB of text"):format(path, lfs.attributes(path, "size") / 2 ^ 30)) end
  local data, bytes, owner = files.block(path)
  return ffi.string(data, bytes), owner
end

---The whole of a regular file as a string, read without a context of the engine; nil: there is none, or it cannot be read.
---@param path string?
function files.text(path)
  local f = files.is_file(path) and not too_large(path) and io.open(path, "rb")
  local text = f and f:read "*a"
  if f then f:close() end
  return text or nil
end

---What a command of the shell prints; "" where no process can be started.
function files.output(command)
  local pipe = io.popen(command)
  local text = pipe and pipe:read "*a" or ""
  if pipe then pipe:close() end
  return text
end

---A checksum of a text as text: CRC-32C in hexadecimal digits.
---@param before string? the checksum of the text before it
function files.crc(text, before) return ("%08x"):format(C.mn_crc32c(before and tonumber(before, 16) or 0, text, #text)) end

---The same of a file, which may be large, and its bytes.
---@param upto number? of its first bytes
---@param before string? the checksum of what goes before it
---@return string? checksum nil: there is no such file, or it cannot be read
---@return number bytes
function files.sum(path, upto, before)
  local f = files.is_file(path) and io.open(path, "rb")
  if not f then return nil, 0 end
  f:close()
  local crc, bytes = before or "00000000", 0
  for text in files.pieces(path, 0, upto, 2 ^ 20) do crc, bytes = files.crc(text, crc), bytes + #text end
  return crc, bytes
end

---A stretch of a file, piece by piece: no more than that is in memory.
---@param from number bytes before it
---@param upto number? bytes before its end; nil: all that is there
---@param at_once integer bytes of a piece
---@return fun(): string?
function files.pieces(path, from, upto, at_once)
  upto = upto or lfs.attributes(path, "size") or 0
  if from >= upto then return function() end end
  local f, why = io.open(path, "rb")
  if not f then errors.fail(path .. ": cannot be read: " .. why:match "[^:]*$":sub(2)) end
  f:seek("set", from)
  local read = 0
  return function()
    if read > 2 ^ 24 then collectgarbage("step", at_once / 1024) end         -- what reads much and allocates little would collect the pieces too late
    local text = from < upto and f:read(math.min(at_once, upto - from)) or nil
    from, read = from + #(text or ""), read + #(text or "")
    if not text then f:close() end
    return text
  end
end

---Write a file that appears whole or not at all.
---@param pieces (string|{[1]: ffi.cdata*, [2]: number})[] strings, or { pointer, bytes }
---@param after string[]? files and folders: what was appended to them, or the names in them, reach the disk before the file appears
function files.write(path, pieces, after)
  local n = #pieces
  local at, bytes = ffi.new("const void *[?]", n), ffi.new("double[?]", n)
  for i, piece in ipairs(pieces) do
    if type(piece) == "string" then at[i - 1], bytes[i - 1] = ffi.cast("const char *", piece), #piece
    else at[i - 1], bytes[i - 1] = piece[1], piece[2] end
  end
  after = after or {}
  check(C.mn_file_write_after(engine.ctx, path, n, at, bytes, #after, ffi.new("const char *[?]", #after, after)))
  if C.mn_file_unsynced() then
    terminal.note(("mneme: warning: %s: this file system cannot sync files; what is written may be lost in a power cut"):format(path))
  end
end

---A name that no file or folder has: STEM.KIND, or with a number, STEM-2.KIND; of a folder, without a kind: STEM, STEM-2.
---@param kind string?
function files.free_name(stem, kind)
  local ending, n = kind and "." .. kind or "", 1
  local path = stem .. ending
  while files.is_file(path) or files.is_folder(path) do
    n = n + 1
    path = ("%s-%d%s"):format(stem, n, ending)
  end
  return path
end

---Create an empty file next to `path` under a name that nobody can foresee.
---@return string draft
function files.draft(path)
  local draft = ffi.new "char[4096]"
  check(C.mn_file_draft(engine.ctx, path, draft))
  return ffi.string(draft)
end

---An empty file of this process alone, for a while: a draft of `stem`, or one in $TMPDIR or /tmp.
---@param f fun(path: string)? it is removed when f ends, and what f returns is returned
function files.temporary(f, stem)
  local path = files.draft(stem or (os.getenv "TMPDIR" or "/tmp") .. "/mneme")
  if not f then return path end
  local ok, result = pcall(f, path)
  files.remove(path)
  if not ok then error(result, 0) end
  return result
end

---Append a string, all of it or nothing.
function files.append(path, text) check(C.mn_file_append(engine.ctx, path, text, #text)) end

---Shorten a file to `bytes`; a shorter or missing one is left alone.
function files.cut(path, bytes) check(C.mn_file_cut(engine.ctx, path, bytes)) end

---Make a file this process's own until it ends, whatever ends it; an error where another process has it.  A file system without
---locks is a warning: nothing then keeps two processes apart.
function files.lock(path)
  if check(C.mn_file_lock(engine.ctx, path)) == 0 then
    terminal.note(("mneme: warning: %s: this file system has no locks; do not start a second process here"):format(path))
  end
end

---Does another process hold files.lock of this file?  Not for one that this process has locked.
function files.locked(path) return C.mn_file_locked(path) end

---Remove a file; one that is not there is removed.
function files.remove(path) check(C.mn_file_move(engine.ctx, path, nil)) end
function files.rename(path, to) check(C.mn_file_move(engine.ctx, path, to)) end

---Make a folder and those above it.
---@return boolean made false: it was there
function files.make_folder(path) return check(C.mn_folder_make(engine.ctx, path)) == 1 end

---Remove the drafts that processes which were killed have left in a folder: see mn_file_write.
function files.remove_drafts(path)
  for _, name in ipairs(files.list(path)) do
    if name:find "%.%x+%.tmp$" then files.remove(path .. "/" .. name) end
  end
end

---Remove a folder with all that is in it; none is there: nothing happens.  Links are removed, not followed.
function files.remove_folder(path)
  for _, name in ipairs(files.list(path)) do
    local inside = path .. "/" .. name
    if lfs.symlinkattributes(inside, "mode") == "directory" then files.remove_folder(inside) else files.remove(inside) end
  end
  if files.is_folder(path) and not lfs.rmdir(path) then errors.fail(path .. ": cannot be removed") end
end

---Is it a regular file?  A device, a FIFO, a socket or a file of /proc or /sys is none, whatever links lead there.
function files.is_file(path) return type(path) == "string" and C.mn_file_regular(path) end
function files.is_folder(path) return lfs.attributes(path, "mode") == "directory" end

---Names in a folder, sorted; none where there is no such folder.
function files.list(path)
  local names = {}
  if not files.is_folder(path) then return names end
  local ok, iter, dir = pcall(lfs.dir, path)
  if not ok then errors.fail(path .. ": cannot be listed") end
  for name in iter, dir do
    if name ~= "." and name ~= ".." then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

return files
