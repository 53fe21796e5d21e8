-- gates.lua -- gate values over time: the mean of each head of each layer, so that a write shows as a bright column and
-- retention as a dark stretch.  A selected head is drawn channel by channel.
local mn = require "mneme"
local state_arrays = mn.inspect.state_arrays
local canvas, selection, step_heatmap = mn.ui.canvas, mn.ui.selection, mn.ui.step_heatmap

-- "gate beta"; just "gate" for a probe of that name.
local function named(kind) return kind == "gate" and kind or "gate " .. kind end

-- Every channel of one head's gate over time.
local function channels(view, box, now, kind, row, parts)
  local name = ("layers.%d.%s"):format(row.layer, kind)
  local array = now.probes[name]
  local n = state_arrays.size(array.shape) / parts
  local inner = view:card(box, ("%s of %s"):format(named(kind), selection.name(row)),
    { ("%d channels, 0 … 1"):format(n), "0 … 1" }, canvas.SEQUENTIAL)
  local over = step_heatmap.over(now.episode_history or now.history, n, function(entry, _, channel)
    local probe = entry.probes and entry.probes[name]
    if not probe or state_arrays.size(probe.shape) ~= n * parts then return nil end
    return probe.values[(row.head or 0) * n + channel - 1]
  end, step_heatmap.span(now))
  local plot = step_heatmap.draw(view, inner, over, { lo = 0, hi = 1, names = { "channel" }, now = now.episode_history and now.step,
    row_name = function(channel) return "channel " .. channel - 1 end })
  selection.spot(view, plot, now, row)
end

---options.kind: the gate to draw; nil: the first one of the core
return function(view, box, now, options)
  local history = now.history
  local kind = options and options.kind or now.gates[1]
  local title = kind and named(kind) .. " over time" or "gates over time"
  local count = kind and #(history[#history].gates[kind] or {}) or 0
  if count == 0 then
    local text = "this core reports no gates: a gate is a probe with values from 0 to 1, named gate, beta, gamma, write, keep or as listed in "
      .. "docs/write-a-core.md"
    return view:say(view:card(box, title), text)
  end
  local layers, kinds, by_layer = state_arrays.grid(now.probes, { kind })
  local owners, parts = state_arrays.owners(layers, kinds, by_layer, now.n_heads)
  for i, row in ipairs(owners) do row.at = i end
  local rows, layer = selection.rows(now, owners)
  if #rows == 1 and layer then return channels(view, box, now, kind, rows[1], parts) end
  local lo, hi = 1, 0
  for _, frame in ipairs { now, unpack(now.beside or {}) } do          -- means differ little: the colours span their range
    for _, entry in ipairs(frame.episode_history or frame.history) do
      for _, mean in ipairs(entry.gates[kind] or {}) do lo, hi = math.min(lo, mean), math.max(hi, mean) end
    end
  end
  lo, hi = math.max(0, math.min(lo, hi - 0.02)), math.min(1, math.max(hi, lo + 0.02))
  local range = ("%.2f … %.2f"):format(lo, hi)
  local inner = view:card(box, title, { (parts > 1 and "mean of each head, " or "mean of all, ") .. range, "means, " .. range, range }, canvas.SEQUENTIAL)
  local over = step_heatmap.over(now.episode_history or history, #rows, function(entry, _, r)
    local means = entry.gates[kind]
    return means and (means[rows[r].at] or 0)
  end, step_heatmap.span(now))
  local plot = step_heatmap.draw(view, inner, over, { lo = lo, hi = hi, names = selection.names(rows, layer), now = now.episode_history and now.step,
    what = "mean of " .. kind, row_name = function(r) return selection.name(rows[r]) end })
  selection.spots(view, plot, now, rows)
end
