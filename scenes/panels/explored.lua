-- explored.lua -- the map of everything observed so far: every cell that the agent has observed in this episode, darker the
-- longer ago.  It cannot know what is missing, and must remember what is dark.
local mn = require "mneme"
local canvas = mn.ui.canvas
local ffi = require "ffi"

local FADED = 100                                -- steps after which a cell is darkest

-- The map cell (row * W + column) of each observed cell; -1: outside.  Cached with the step.
local kept = setmetatable({}, { __mode = "k" })
local function cells_of(entry, options, W, H, margin)
  local known, n = kept[entry], options.view ^ 2
  if known and known.W == W and known.H == H and known.n == n then return known.at end
  local at = ffi.new("double[?]", n)
  for k = 0, n - 1 do
    local x, y = options.place(entry.truth, k)
    local inside = entry.observation.values[k] > 0 and x >= -margin and y >= -margin and x < W - margin and y < H - margin
    at[k] = inside and (y + margin) * W + x + margin or -1
  end
  kept[entry] = { at = at, W = W, H = H, n = n }
  return at
end

---options: view, palette: as for cells; place = function(truth, k): column and row in the map of the k-th observed cell, from 0;
---width, height: of the map; margin: cells around the map that can be observed
return function(view, box, now, options)
  local u = view.unit
  local margin = options.margin or 0
  local W, H = (options.width or 0) + 2 * margin, (options.height or 0) + 2 * margin
  local code, when, count = {}, {}, 0
  for _, entry in ipairs(options.view and now.history or {}) do
    local seen = entry.observation and entry.truth and cells_of(entry, options, W, H, margin)
    for k = 0, seen and options.view ^ 2 - 1 or -1 do
      local at = seen[k]
      if at >= 0 then
        if not code[at] then count = count + 1 end
        code[at], when[at] = entry.observation.values[k], entry.step
      end
    end
  end
  local cells = ("%d cells"):format(count)
  local note = count > 0 and { cells .. ", darker the longer ago", cells } or nil
  local inner = view:card(box, "explored so far", note)
  if count == 0 then return view:say(inner, "no observations to draw") end
  local side = math.min(inner.w / W, inner.h / H)
  local left, top = inner.x + (inner.w - side * W) / 2, inner.y + (inner.h - side * H) / 2
  view:rect(left, top, side * W, side * H, 0x0B0E13FF)
  for at, is in pairs(code) do
    local x, y = left + at % W * side, top + math.floor(at / W) * side
    local colour, sign = options.palette(is)
    local age = math.max(0.3, 1 - (now.step - when[at]) / FADED)
    if colour then view:rect(x, y, side - 1, side - 1, canvas.fade(colour, age)) end
    if sign then view:text(sign, x + side / 2, y + side * 0.7, side * 0.55 / u, canvas.fade(canvas.ink(colour), age), "center") end
  end
  local truth = now.truth
  if truth.x and truth.y then
    local x, y = left + (truth.x + margin + 0.5) * side, top + (truth.y + margin + 0.5) * side
    view:disc(x, y, side * 0.38, 0xF5F7FAFF)
  end
end
