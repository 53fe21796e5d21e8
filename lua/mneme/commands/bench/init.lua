-- init.lua -- measure speed on this machine: mneme bench [train] [act] [gemm], or one of these:
--   cores [NAME ...] [part=kernels|train|step] [threads=1] [torch=PYTHON] [out=FILE.csv] [figure=FILE.svg]
--   eager [threads=1]
--   envs [NAME ...] [device=cuda]
--   peers torch=PYTHON|official=PYTHON agalite=FOLDER [rounds=5] [threads=1] [steps=10000]
--   ranks [num_envs=8,16,32] [updates=12]
--   scenes [NAME ...] [part=pages|training] [core=NAME] [size=small] [steps=1000] [seconds=0.5] [updates=40]
--   recur [threads=1] [torch=PYTHON]
--   small [widths=32,64,128,256] [rounds=5] [threads=1]
--   solve [NAME ...] [seeds=5] [precision=fp32] [threads=1] [torch=PYTHON]
--   sweep [runs=1000] [jobs=2] [seconds=1]
--   torsos [NAME ...] [images=N] [threads=1] [torch=PYTHON]
--   train [NAME ...] precision=bf16 (next to fp32, by turns)
--   train|cores|kernels [NAME ...] device=cuda [precision=fp32|tf32|bf16] [num_envs=8,1024] [steps=256] [rounds=5] [torch=PYTHON]
-- Each figure stands next to a bound that is measured in the same run; times are medians.  Compare ratios
-- between machines, not times.
local errors = require "mneme.base.errors"
local next_step = require "mneme.base.next_step"
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
  for _, name in ipairs { "cores", "eager", "envs", "peers", "ranks", "recur", "scenes", "small", "solve", "sweep", "torsos" } do
    if words[1] == name then return require("mneme.commands.bench." .. name).main { unpack(words, 2) } end
  end
  for i, word in ipairs(words) do
    if words[1] == "train" and word == "precision=bf16" then
      table.remove(words, i)
      train.precisions { unpack(words, 2) }
      return 0
    end
  end
  local chosen, known = {}, { "cores", "eager", "peers", "ranks", "recur", "small", "solve", "sweep", "torsos" }
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
  next_step.say "help bench"
  return 0
end

return bench
