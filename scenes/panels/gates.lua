-- gates.lua -- what the gates let through: their mean over time, a line for each head of each
-- layer, so that the moment of writing shows as a bright column and holding as a dark stretch.
local ffi = require "ffi"
local canvas = require "mneme.canvas"

---options.kind: which gate; nil: the first that the core has
return function(view, box, now, options)
  local theme, u, history = view.theme, view.unit, now.history
  local kind = options and options.kind or now.gates[1]
  local title = kind and "gate " .. kind .. " over time" or "gates over time"
  local rows = kind and #(history[#history].gates[kind] or {}) or 0
  local lo, hi = 1, 0
  for _, entry in ipairs(history) do                  -- means differ little: the colours span what there is
    for _, mean in ipairs(kind and entry.gates[kind] or {}) do lo, hi = math.min(lo, mean), math.max(hi, mean) end
  end
  lo, hi = math.max(0, math.min(lo, hi - 0.02)), math.min(1, math.max(hi, lo + 0.02))
  local note = rows > 0 and ("mean of each head, %.2f … %.2f"):format(lo, hi) or nil
  local inner = view:card(box, title, note, canvas.SEQUENTIAL)
  if rows == 0 then
    return view:text("this core reports no gates", inner.x, inner.y + 16 * u, 12, theme.dim)
  end

  local wide = view:text_width("layer 0", 11) + 10 * u
  local steps = math.max(10, history[#history].step + 1)
  local cols = math.min(steps, 512)                   -- a long episode: several steps share a column
  local values, used = ffi.new("float[?]", rows * cols), 0
  for _, entry in ipairs(history) do                  -- where steps were not seen, the last mean stays
    local upto = math.floor(entry.step * cols / steps)
    for col = math.min(used, upto), upto do
      for row, mean in ipairs(entry.gates[kind]) do values[(row - 1) * cols + col] = mean end
    end
    used = upto + 1
  end
  local seen = ffi.new("float[?]", rows * used)
  for row = 0, rows - 1 do ffi.copy(seen + row * used, values + row * cols, used * 4) end
  local plot = { x = inner.x + wide, y = inner.y, w = inner.w - wide, h = inner.h - 20 * u }
  view:rect(plot.x, plot.y, plot.w, plot.h, theme.grid)
  local part = { x = plot.x, y = plot.y, w = plot.w * used / cols, h = plot.h }
  view:heat(part, rows, used, seen, lo, hi, canvas.SEQUENTIAL)

  local layers = rows / now.n_heads == math.floor(rows / now.n_heads) and rows / now.n_heads or 1
  for layer = 0, layers - 1 do
    local y = plot.y + plot.h * layer / layers
    view:text("layer " .. layer, inner.x, y + plot.h / layers / 2 + 4 * u, 11, theme.dim)
    if layer > 0 then view:line(plot.x, y, plot.x + plot.w, y, theme.card, 2 * u) end
  end
  view:text("step 0", plot.x, plot.y + plot.h + 15 * u, 11, theme.dim)
  view:text(tostring(steps - 1), plot.x + plot.w, plot.y + plot.h + 15 * u, 11, theme.dim, "right")
end
