-- init.lua -- `mneme bench`: each benchmark is a file of this folder and declares its options.
local arguments = require "mneme.commands.arguments"
local errors = require "mneme.base.errors"
local next_step = require("mneme.base.terminal").next_step
local options = require "mneme.commands.options"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"

local USUAL = { "gemm", "envs", "train" }         -- without a name, in this order
local on_device = { train = true, kernels = true }
local DEVICE = "mneme.commands.bench.parts.device"

local bench = { name = "bench", doc = "measure speed on this machine", raw = "but help", about = [[
mneme bench: the usual ones; mneme bench NAME [key=value ...]: one; mneme bench gemm envs: several.  Each figure stands next to a bound that is
measured in the same run; times are medians.  Compare ratios between machines, not times.]],
  arguments = { { "words", "BENCHMARK", nil, noun = "benchmark", several = true, optional = true } } }

local function is_one(name) return tables.has(registry.benchmarks(), name) end

---A benchmark, or what measures on a device ("device"); nil: there is none of this name.
---@return Command?
function bench.part(name)
  if name == "device" then return require(DEVICE) end
  return is_one(name) and require("mneme.commands.bench." .. name) or nil
end

---@return Command[] each benchmark
function bench.parts()
  local names = registry.benchmarks()
  names[#names + 1] = "device"
  return tables.map(names, bench.part)
end

---Each benchmark with its options, for help.
function bench.more()
  return table.concat(tables.map(bench.parts(), options.section), "\n")
end

function bench.run(o)
  local words, all, device = o.words, true, nil
  for _, word in ipairs(words) do all, device = all and is_one(word), device or word:find "^%-*device$" or word:find "^%-*device=" end
  if words[1] and not is_one(words[1]) and not (device and words[1] == "kernels") then errors.unknown("bench", words[1], registry.benchmarks()) end
  local several = all and #words ~= 1
  for _, name in ipairs(not several and { words[1] } or words[1] and words or USUAL) do
    local part = bench.part(device and on_device[name] and "device" or name)
    local read = arguments.read(part, several and {} or { unpack(words, 2) })
    if read.help then io.stdout:write(options.page(part)) return 0 end
    read.benchmark = name
    part.run(read)
  end
  if several then next_step.say "help bench" end
  return 0
end

return bench
