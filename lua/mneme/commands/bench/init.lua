-- init.lua -- measure speed on this machine: mneme bench, or one benchmark: mneme bench NAME [key=value ...], or several: mneme bench gemm act.
-- Each figure stands next to a bound that is measured in the same run; times are medians.  Compare ratios
-- between machines, not times.
--   train|cores|kernels [NAME ...] device=cuda [precision=fp32|tf32|bf16] [num_envs=8,1024] [steps=256] [rounds=5] [torch=PYTHON]
-- measures on a device.  Without one:
local errors = require "mneme.base.errors"
local next_step = require "mneme.base.next_step"
local registry = require "mneme.base.registry"

local bench = {}
local USUAL = { "gemm", "envs", "scenes", "act", "train" }         -- without a name, in this order

local NOTHING_TO_SET = { act = true, gemm = true }

local function main_of(name) return require("mneme.commands.bench." .. name).main end

---@param words string[]
---@return integer status
function bench.main(words)
  if words[1] == "window" then require("mneme.commands.bench.parts.window").child(words[2]) return 0 end           -- a process of scenes
  local known, all = {}, true
  for _, name in ipairs(registry.benchmarks()) do known[name] = true end
  for _, word in ipairs(words) do all = all and known[word] end
  if words[1] and not known[words[1]] then errors.unknown("bench", words[1], registry.benchmarks()) end
  if NOTHING_TO_SET[words[1]] and not all then
    local word = words[2]
    for i = #words, 2, -1 do word = known[words[i]] and word or words[i] end
    errors.usage(("bench %s: it has no settings, got '%s'"):format(words[1], word))
  end
  if #words == 1 or not all then return main_of(words[1]) { unpack(words, 2) } end
  for _, name in ipairs(words[1] and words or USUAL) do main_of(name) {} end
  next_step.say "help bench"
  return 0
end

return bench
