-- checkpoint_files.lua -- writes, lists and reads the checkpoints of a run: RUN/checkpoints/step-N.safetensors.  A file appears whole or not at
-- all, and holds no clock, path or host: equal runs give equal files.
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local lazy = require "mneme.base.lazy"
local safetensors = lazy "mneme.tensor.safetensors"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"

local checkpoint_files = {}

-- ---- writing ----

---Keep the newest ones and the best (the later of equals).
---@param list table[] those that a run has; changed
---@param kept integer how many of the newest
function checkpoint_files.prune(list, kept)
  local best
  for _, at in ipairs(list) do
    if at.score and (not best or at.score >= best.score) then best = at end
  end
  for i = #list - kept, 1, -1 do
    if list[i] ~= best then
      local ok, problem = pcall(files.remove, list[i].path)
      if not ok then terminal.note(("mneme: warning: %s"):format(problem.message or problem)) end
      table.remove(list, i)
    end
  end
end

---Write one; older ones but the last ones and the best go.
---@param path string the run's folder
---@param list table[] those that it has: see checkpoint_files.list; changed
---@param state table { step, score = number?, lines = of the log, counters = whatever JSON can hold }
---@param tensors table[] { name, Tensor } or { name =, dtype =, shape =, data = }
---@param kept integer how many of the newest stay
---@param after string[] files that reach the disk before the checkpoint appears: see files.write
function checkpoint_files.write(path, list, state, tensors, kept, after)
  local file = ("%s/checkpoints/step-%.0f.safetensors"):format(path, state.step)
  local metadata, folder = { format = "mneme-checkpoint-1", state = json.encode(state) }, path .. "/checkpoints"
  local at = { step = state.step, path = file, score = state.score }
  for attempt = 1, 10 do
    if files.is_folder(path) and files.make_folder(folder) then          -- somebody removed it
      for i = #list, 1, -1 do list[i] = nil end
    end
    local ok, problem = pcall(safetensors.write, file, tensors, metadata, after)
    if ok then break end
    if attempt == 10 or files.is_folder(folder) and not tostring(problem):find "No such file" then error(problem, 0) end   -- it went, or the draft in it
  end
  if #list > 0 and list[#list].step == state.step then list[#list] = nil end
  list[#list + 1] = at
  checkpoint_files.prune(list, kept)
end

-- ---- reading ----

---Those of a run's folder, oldest first.
---@return { step: number, path: string }[]
function checkpoint_files.list(path)
  local list = {}
  for _, name in ipairs(files.list(path .. "/checkpoints")) do
    local step = tonumber(name:match "^step%-(%d+)%.safetensors$")
    if step and files.is_file(path .. "/checkpoints/" .. name) then list[#list + 1] = { step = step, path = path .. "/checkpoints/" .. name } end
  end
  table.sort(list, function(a, b) return a.step < b.step end)
  return list
end

---A whole number of 0 .. most that a checkpoint holds; an error where it is none.
---@param path string of the checkpoint
---@param key string what it is called
---@param most number?
---@return number n
function checkpoint_files.whole(path, key, n, most)
  most = most or 2 ^ 53
  if type(n) ~= "number" or n < 0 or n % 1 ~= 0 or n > most then
    errors.fail(("%s: damaged: %s is %s, expected a whole number"):format(path, key, setting_types.show(n)) .. (most < 2 ^ 53
      and (" up to %.0f"):format(most) or ""))
  end
  return n
end

---Read one; an error if it is damaged.
---@return table { step, score, lines of the log, counters, tensors, path }
function checkpoint_files.read(path)
  local file = safetensors.load(path)
  local metadata = file.metadata
  json.sealed.need(path, tonumber((metadata.format or ""):match "^mneme%-checkpoint%-(%d+)$"), 1)
  if metadata.format ~= "mneme-checkpoint-1" then
    errors.fail(("%s: format '%s', expected mneme-checkpoint-1"):format(path, tostring(metadata.format)))
  end
  local state = json.decode(metadata.state or "", path)
  if type(state) ~= "table" then errors.fail(path .. ": damaged: it has no state") end
  for _, key in ipairs { "step", "lines" } do checkpoint_files.whole(path, key, state[key]) end
  if type(state.counters) ~= "table" or state.score ~= nil and type(state.score) ~= "number" then
    errors.fail(path .. ": damaged: its counters are not a table, or its score is not a number")
  end
  return { step = state.step, score = state.score, lines = state.lines, counters = state.counters,
    tensors = file.tensors, path = path }
end

---A checkpoint, or nil and what is wrong with the file: damaged, or no longer there.  What is there and cannot be read
---at all, for want of memory or because of a disk, may be whole: passing it over would lose it, so that is an error.
function checkpoint_files.read_unless_damaged(path)
  local ok, result = xpcall(checkpoint_files.read, errors.handler, path)
  if ok then return result end
  local about_file = result.message:find(path, 1, true) == 1 and not result.message:find(": cannot be read: ", 1, true)
    and not result.message:find(json.sealed.NEWER, 1, true)
  if not about_file and files.is_file(path) then error(result, 0) end
  return nil, result
end

return checkpoint_files
