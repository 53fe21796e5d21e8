-- bigbird_blocks.lua -- which blocks attend to which, for the attention and the core `bigbird`.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"

local bigbird = {}

local function whole(x) return type(x) == "number" and x >= 0 and x % 1 == 0 end

local function bad(...) errors.raise("bigbird: " .. string.format(...), { status = 2 }) end

---Are the settings lists of blocks?
function bigbird.check(cfg)
  for _, g in ipairs(cfg.global_blocks) do
    if not whole(g) then bad("global_blocks has %s, expected numbers of blocks", tostring(g)) end
  end
  for h, rows in ipairs(cfg.random) do
    if type(rows) ~= "table" then bad("random[%d] is %s, expected a list of lists of blocks", h - 1, tostring(rows)) end
  end
end

-- `count` other blocks than the neighbours of i, drawn without repetition, fewer where there are fewer.
local function draw(cfg, h, i, n, upto)
  local p, list = ffi.new("float[?]", n), {}
  engine.C.mn_random_uniform(cfg.seed, h * 2 ^ 20 + i, 7, p, n)
  for j = 0, upto - 1 do if math.abs(i - j) > 1 then list[#list + 1] = j end end
  table.sort(list, function(a, b) return p[a] < p[b] or (p[a] == p[b] and a < b) end)
  return { unpack(list, 1, math.min(cfg.random_blocks, #list)) }
end

local function random_blocks(cfg, H, h, i, n)
  if #cfg.random == 0 then return draw(cfg, h, i, n, cfg.causal and i or n) end
  if #cfg.random ~= H then bad("random has lists for %d heads, expected %d", #cfg.random, H) end
  local rows = cfg.random[h + 1]
  if #rows ~= n then bad("random[%d] has lists for %d blocks, expected %d", h, #rows, n) end
  for _, j in ipairs(rows[i + 1]) do
    if not whole(j) or j >= n then bad("random[%d][%d] has block %s, expected 0 to %d", h, i, tostring(j), n - 1) end
  end
  return rows[i + 1]
end

---What every block of every head sees, as runs of neighbouring blocks: seen[h][i] = { { first, count }, ... }, lists
---from 1, blocks from 0.  Causally, blocks after one's own are left out.
function bigbird.seen(cfg, H, n)
  local seen, global = {}, {}
  for _, g in ipairs(cfg.global_blocks) do
    if g >= n then bad("global_blocks has %d, expected blocks 0 to %d", g, n - 1) end
    global[g] = true
  end
  for h = 0, H - 1 do
    seen[h + 1] = {}
    for i = 0, n - 1 do
      local see = { [i - 1] = true, [i] = true, [i + 1] = true }
      for _, j in ipairs(random_blocks(cfg, H, h, i, n)) do see[j] = true end
      local runs, last = {}, nil
      for j = 0, cfg.causal and i or n - 1 do
        if not (see[j] or global[i] or global[j]) then last = nil
        elseif last then last[2] = last[2] + 1
        else
          last = { j, 1 }
          runs[#runs + 1] = last
        end
      end
      seen[h + 1][i + 1] = runs
    end
  end
  return seen
end

return bigbird
