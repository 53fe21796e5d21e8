-- which_memory.lua -- the table of docs/which-memory.md: what the cores declare, and what the kept runs of docs/results have
-- measured.   build/mneme run tests/support/which_memory.lua
local mn = require "mneme"
local result_archive = require "mneme.lab.study.result_archive"
local cores = require "mneme.models.cores"
local registry = require "mneme.base.registry"
local exact_credit = require "mneme.learn.exact_credit"
local grouped = require("mneme.base.format").grouped

local cfg = mn.config { out = "docs/which-memory.md", about = { out = { "the page whose table is replaced" } } }

-- The metrics of a study's runs, by their settings without the seed.
local function kept(name)
  local found = {}
  for run, line in pairs(result_archive.lines(registry.root .. "docs/results/" .. name .. ".jsonl")) do
    local settings = run:match "^(.*),seed=%d+$"
    found[settings] = found[settings] or {}
    table.insert(found[settings], line.metrics)
  end
  return found
end

-- How many seeds end where their study calls it solved.
local function solved(name, settings, metric, least)
  local runs = kept(name)
  return function(of)
    local all, n = runs[settings:format(of)], 0
    for _, metrics in ipairs(all or {}) do n = n + (metrics[metric] >= least and 1 or 0) end
    return all and ("%d of %d"):format(n, #all) or ""
  end
end

local capacity = kept "memory_capacity_quick"
local function bits(of)
  local all, sum = capacity["core=" .. of], 0
  for _, metrics in ipairs(all or {}) do sum = sum + metrics.held_bits end
  return all and ("%.1f"):format(sum / #all) or ""
end

local function steps(n) return n == math.huge and "no end" or n >= 1000 and grouped(math.floor(n + 0.5)) or ("%.3g"):format(n) end
local function half_life(layers)
  local low, high = math.huge, 0
  for _, layer in ipairs(layers or {}) do low, high = math.min(low, layer.shortest), math.max(high, layer.longest) end
  return not layers and "" or steps(low) == steps(high) and steps(low) or steps(low) .. " to " .. steps(high)
end

local long = solved("tmaze_solved_full", "core=%s,corridor=200", "score", 0.97)
local short = solved("tmaze_solved_quick", "core=%s,corridor=120", "score", 0.97)
local recalled = solved("recall_quick", "core=%s,pairs=8", "accuracy", 0.99)
local function floats_of(carried)
  local n = 0
  for _, kind in ipairs(carried.kinds) do n = n + #kind.S * kind.S[1]:size() end
  return n
end

local rows = {}
for _, name in ipairs(mn.names "cores") do
  mn.manual_seed(1)
  local c = mn.nn.dry(cores.new, name)
  local about, back = c:describe(), c:reach()
  rows[#rows + 1] = ("| %s |"):format(table.concat({ "`" .. name .. "`", c.reads or "", grouped(about.state_floats), grouped(about.weights + about.step.macs),
    grouped(about.step.macs), half_life(c:half_lives()), back and grouped(back) or "",
    c.sensitivities and grouped(floats_of(mn.nn.dry(exact_credit, c, 1))) or "", bits(name), long(name), short(name), recalled(name) }, " | "))
end

local page = assert(io.open(cfg.out)):read "*a"
local head, tail = page:match "^(.-\n| core |[^\n]*\n|[-:|]+\n)|.-\n(\n.*)$"
assert(head, cfg.out .. " has no table that begins with | core |")
local file = assert(io.open(cfg.out, "w"))
file:write(head, table.concat(rows, "\n"), "\n", tail)
file:close()
print(("%d memories in %s"):format(#rows, cfg.out))
