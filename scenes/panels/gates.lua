-- gates.lua -- what the gates let through: their mean over time, a line for each head of each
-- layer, so that the moment of writing shows as a bright column and holding as a dark stretch.
local bands = require "mneme.bands"
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
  local range = ("%.2f … %.2f"):format(lo, hi)
  local note = rows > 0 and { "mean of each head, " .. range, "means, " .. range, range } or nil
  local inner = view:card(box, title, note, canvas.SEQUENTIAL)
  if rows == 0 then
    return view:text("this core reports no gates", inner.x, inner.y + 16 * u, 12, theme.dim, "left", inner.w)
  end
  local over = bands.over(history, rows, function(entry)
    local means = entry.gates[kind]
    return means and function(row) return means[row] or 0 end
  end)
  bands.draw(view, inner, over, { lo = lo, hi = hi, names = bands.layers(rows, now.n_heads) })
end
