-- init.lua -- measure speed on this machine: [train] [act] [gemm], or cores, envs, ranks, scenes, sweep, torsos.
-- Each figure stands next to a bound that is measured in the same run; times are medians.  Compare ratios
-- between machines, not times.
--   bound of training: 4 x the products of one step (act, update's forward, backward twice) plus the
--   recurrence (two forward, one backward), at the rate of a large matrix product measured here
local errors = require "mneme.base.errors"
local train = require "mneme.commands.bench.train"

local bench = {}

-- Sections of `mneme bench`, in the order in which they are printed without arguments.
local sections = {
  { "gemm", train.gemm },
  { "envs", function() require("mneme.commands.bench.envs").main {} end },
  { "scenes", function() require("mneme.commands.bench.scenes").main {} end },
  { "act", train.act },
  { "train", train.train },
}

---@param words string[]
---@return integer status
function bench.main(words)
  if words[1] == "one" then train.one(words[2]) return 0 end
  if words[1] == "window" then require("mneme.commands.bench.window").child(words[2]) return 0 end
  for _, name in ipairs { "cores", "envs", "ranks", "scenes", "sweep", "torsos" } do
    if words[1] == name then return require("mneme.commands.bench." .. name).main { unpack(words, 2) } end
  end
  local chosen, known = {}, { "cores", "ranks", "sweep", "torsos" }
  for _, word in ipairs(words) do chosen[word] = true end
  for _, s in ipairs(sections) do known[#known + 1] = s[1] end
  for _, word in ipairs(words) do
    local found = false
    for _, s in ipairs(sections) do found = found or s[1] == word end
    if not found then errors.unknown("bench", word, known) end
  end
  for _, s in ipairs(sections) do
    if #words == 0 or chosen[s[1]] then s[2]() end
  end
  return 0
end

return bench
