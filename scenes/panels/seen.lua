-- seen.lua -- the map that the agent could have drawn by now: every cell that it has seen in this episode, the
-- darker the longer ago.  What is missing it cannot know; what is dark it must remember.
local mn = require "mneme"
local canvas = mn.ui.canvas
local ffi = require "ffi"

local FADED = 100                                -- steps after which a cell is darkest

-- Which cell of the world each seen one is, at W to a row; -1: none.  Kept as long as the step is.
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

---options: view, palette: as of cells; place = function(truth, k): column and row of the world that the k-th seen
---cell, from 0, is; width, height: of the world; margin: cells around it that are seen too
return function(view, box, now, options)
  local theme, u = view.theme, view.unit
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
  local inner = view:card(box, "seen so far", note)
  if count == 0 then
    return view:text("nothing is known of what it saw", inner.x, inner.y + 16 * u, 12, theme.dim, "left", inner.w)
  end
  local side = math.min(inner.w / W, inner.h / H)
  local left, top = inner.x + (inner.w - side * W) / 2, inner.y + (inner.h - side * H) / 2
  view:rect(left, top, side * W, side * H, 0x0B0E13FF)
  for at, is in pairs(code) do
    local x, y = left + at % W * side, top + math.floor(at / W) * side
    local colour, sign = options.palette(is)
    local age = math.max(0.3, 1 - (now.step - when[at]) / FADED)
    if colour then view:rect(x, y, side - 1, side - 1, canvas.fade(colour, age)) end
    if sign then view:text(sign, x + side / 2, y + side * 0.7, side * 0.55 / u, canvas.fade(0xFFFFFFFF, age), "center") end
  end
  local truth = now.truth
  if truth.x and truth.y then
    local x, y = left + (truth.x + margin + 0.5) * side, top + (truth.y + margin + 0.5) * side
    view:disc(x, y, side * 0.38, 0xF5F7FAFF)
  end
end
