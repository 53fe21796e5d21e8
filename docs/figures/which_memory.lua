-- which_memory.lua -- the table of docs/which-memory.md, from what the cores declare and measure.   build/mneme run docs/figures/which_memory.lua
local mn = require "mneme"
local cfg = mn.config { out = "docs/which-memory.md", about = { out = { "the page whose table is replaced" } } }
local core = require "mneme.models.core"
local grouped = require("mneme.base.format").grouped

local function steps(n) return n >= 1000 and grouped(math.floor(n + 0.5)) or ("%.3g"):format(n) end

local rows = {}
for _, name in ipairs(mn.names "cores") do
  mn.manual_seed(1)
  local c = mn.nn.dry(core.new, name)
  local about, layers, low, high = c:describe(), c:half_lives(), math.huge, 0
  for _, layer in ipairs(layers or {}) do low, high = math.min(low, layer.shortest), math.max(high, layer.longest) end
  local half = not layers and "" or steps(low) == steps(high) and steps(low) or steps(low) .. " to " .. steps(high)
  local back = c:reach()
  rows[#rows + 1] = ("| `%s` | %s | %s | %s | %s | %s | %s |"):format(name, c.reads or "", grouped(about.state_floats), grouped(math.floor(about.step.macs + 0.5)),
    half, back and grouped(back) or "", c.sensitivities and "yes" or "")
end

local page = assert(io.open(cfg.out)):read "*a"
local _, head = page:find("\n|---|---|---:|---:|---:|---:|---|\n", 1, true)
local text = page:sub(1, assert(head, "the page has no table")) .. table.concat(rows, "\n") .. page:match("\n\n.*", page:find("\n\n", head, true) or head)
local file = assert(io.open(cfg.out, "w"))
file:write(text)
file:close()
print(("%d memories in %s"):format(#rows, cfg.out))
