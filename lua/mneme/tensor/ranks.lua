-- ranks.lua -- several processes that train one agent: `mpirun -n 4 mneme run SCRIPT`.  Each rank steps its share of the
-- environments; gradients are averaged, so all keep the same parameters, bit for bit.  Only rank 0 has the run folder, the
-- log and the terminal.  Without mpirun there is one rank, and these functions return their arguments.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local json = require "mneme.base.json"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local tensor_bytes = { f32 = 4, i32 = 4, u8 = 1 }
local C, check = engine.C, engine.check

local PATIENCE = 0.5               -- seconds in which rank 0 says what went wrong everywhere
local number, numbers = ffi.new "double[1]", ffi.typeof "double[?]"
local ranks = { rank = 0, size = 1 }

-- ---- the life of a process ----

---Join the others, where mpirun started several.
function ranks.begin()
  local problem = C.mn_ranks_begin()
  if problem ~= nil then
    errors.fail("mpirun started several processes, but they cannot be joined: " .. ffi.string(problem),
      "they need Open MPI's libmpi.so.40 (Debian: libopenmpi3)")
  end
  ranks.rank, ranks.size, ranks.begun = C.mn_rank(), C.mn_ranks(), true
end

---How many threads a process uses: by default one, if other ranks train too.
---@param threads integer 0: nothing is said
function ranks.threads(threads) return threads == 0 and ranks.size > 1 and 1 or threads end

---The prefix of messages: "rank 1: ", or nothing for rank 0.  Rank 0 reports an error that all ranks have, and ends the others.
function ranks.speaker()
  if ranks.rank == 0 then return "" end
  C.mn_sleep(PATIENCE)
  return ("rank %d: "):format(ranks.rank)
end

---What all ranks must have alike; an error on each of them names what differs, and the ranks.  Every rank comes here before it trains and
---before it ends, so none waits for one that does something else.
---@param what string what the rank does next
---@param mine table<string, string>? name -> value in words
function ranks.compare(what, mine)
  if ranks.size == 1 then return end
  mine = mine or {}
  mine[""] = what
  local text, names, unlike = json.encode(mine), {}, {}
  local most = ranks.most(#text)
  local all, own = ffi.new("char[?]", most * ranks.size), ffi.new("char[?]", most)
  ffi.fill(own, most, 32)
  ffi.copy(own, text, #text)
  check(C.mn_ranks_gather(engine.ctx, own, all, most, true))
  local of = {}
  for r = 0, ranks.size - 1 do
    of[r] = json.decode(ffi.string(all + r * most, most), "what a rank has")
    for name in pairs(of[r]) do names[name] = true end
  end
  for _, name in ipairs(tables.keys(names)) do
    local values, who = {}, {}
    for r = 0, ranks.size - 1 do
      local value = of[r][name] or "nothing"
      if not who[value] then values[#values + 1], who[value] = value, {} end
      table.insert(who[value], r)
    end
    for i, value in ipairs(values) do
      values[i] = ("%s on rank%s %s"):format(value, who[value][2] and "s" or "", table.concat(who[value], ", "))
    end
    if values[2] then unlike[#unlike + 1] = ("%s: %s"):format(name == "" and "what comes next" or name, table.concat(values, "; ")) end
    if values[2] and name == "" then break end
  end
  if not unlike[1] then return end
  errors.usage("the ranks of one training disagree: " .. table.concat(unlike, " | ", 1, math.min(4, #unlike)), "give all the same command line")
end

---The last thing of a process.
---@param together boolean all ranks end here with the same status; else the others are ended
function ranks.finish(together, status)
  local ok, problem = true, nil
  if together then ok, problem = pcall(ranks.compare, "the end") end
  if not ok then terminal.note(ranks.speaker() .. "mneme: " .. tostring(problem)) end
  C.mn_ranks_end(together and ok, ok and status or 2)
end

-- ---- a few numbers ----

---Rank 0's text, on every rank.
---@param text string? of rank 0
function ranks.tell(text)
  if ranks.size == 1 then return text end
  number[0] = text and #text or 0
  C.mn_ranks_share(number, 8)
  local bytes = ffi.new("char[?]", number[0] + 1, ranks.rank == 0 and text or "")
  C.mn_ranks_share(bytes, number[0])
  return ffi.string(bytes, number[0])
end

---The largest that any rank has.
function ranks.most(x)
  if ranks.size == 1 then return x end
  local all = numbers(ranks.size)
  number[0] = x
  check(C.mn_ranks_gather(engine.ctx, number, all, 8, true))
  for r = 0, ranks.size - 1 do x = math.max(x, all[r]) end
  return x
end

---Sums over ranks, in place.
---@param x ffi.cdata* double[n]
function ranks.sum(x, n) C.mn_ranks_sum(x, n) end

---The mean over ranks of numbers that lie where `read` says.
---@param read table<string, ffi.cdata*> name -> pointer
---@param into table<string, number>
function ranks.means(read, into)
  engine.wait()
  for name, p in pairs(read) do into[name] = p[0] end
  if ranks.size == 1 then return end
  local names = tables.keys(read)
  local all = numbers(#names)
  for i, name in ipairs(names) do all[i - 1] = into[name] end
  C.mn_ranks_sum(all, #names)
  for i, name in ipairs(names) do into[name] = all[i - 1] / ranks.size end
end

-- ---- checkpoints: lists of { name, tensor, batch_axis = axis }, where `axis` (from 1) counts the environments ----

-- How a rank's part lies in the whole: that many rows, of which a rank has that many bytes.
local function layout(item)
  local shape, rows, bytes = item[2]:shape(), 1, tensor_bytes[item[2]:dtype()]
  for i = 1, #shape do
    if item.batch_axis and i < item.batch_axis then rows = rows * shape[i] else bytes = bytes * shape[i] end
  end
  return rows, bytes
end

---The shape that an item has with the environments of all ranks.
function ranks.shape(item)
  local shape = item[2]:shape()
  if item.batch_axis then shape[item.batch_axis] = shape[item.batch_axis] * ranks.size end
  return shape
end

---Fill an item from the one that holds the environments of all ranks.
---@param whole Tensor of the shape from ranks.shape
function ranks.take(item, whole)
  local rows, bytes = layout(item)
  local parts, part = item.batch_axis and ranks.size or 1, item.batch_axis and ranks.rank or 0
  C.mn_copy_column(check(C.mn_tensor_write(engine.ctx, item[2], item[1])), 1, 0, whole:data(), parts, part, rows, bytes)
end

---Items with the environments of all ranks, on rank 0; another rank's list is not to be used.
function ranks.whole(items)
  if ranks.size == 1 then return items end
  local list = {}
  for i, item in ipairs(items) do
    list[i] = item
    if item.batch_axis then
      local rows, bytes = layout(item)
      local mine, parts = ffi.new("char[?]", rows * bytes), ffi.new("char[?]", rows * bytes * ranks.size)
      ffi.copy(mine, item[2]:data(), rows * bytes)         -- MPI sends memory that is the host's alone
      check(C.mn_ranks_gather(engine.ctx, mine, parts, rows * bytes, false))
      local whole = require("mneme.tensor.tensor").new { shape = ranks.shape(item), dtype = item[2]:dtype() }
      for r = 0, ranks.size - 1 do
        C.mn_copy_column(whole:data(), ranks.size, r, parts + r * rows * bytes, 1, 0, rows, bytes)
      end
      list[i] = { item[1], whole }
    end
  end
  return list
end

---Items that all ranks have alike are rank 0's from here on, where machines differ in how they make them.
function ranks.agree(items)
  for _, item in ipairs(items) do
    local rows, bytes = layout(item)
    if not item.batch_axis then C.mn_ranks_share(check(C.mn_tensor_write(engine.ctx, item[2], item[1])), rows * bytes) end
  end
end

return ranks
