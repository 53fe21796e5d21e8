-- gradients.lua -- the gradient norm at each update before clipping, of the whole model and of each part: shows where it
-- explodes, in which layers it vanishes, and how often it is clipped.
local mn = require "mneme"
local selection = mn.ui.selection
local panels = mn.scene.panels

local MOST = 300                                 -- points drawn
local ALL = "grad/norm"

-- Averages of log10 of each norm, over an equal number of log lines.
local function points_of(series, names, unit)
  local all, points, at = series[ALL], {}, {}
  local each = math.max(1, all.n / MOST)
  for to = each, all.n, each do
    local step, point = all.x[math.floor(to)], {}
    for _, name in ipairs(names) do
      local s, sum, count, i = series[name], 0, 0, at[name] or 1
      while i <= s.n and s.x[i] <= step do
        if s.y[i] > 0 then sum, count = sum + math.log10(s.y[i]), count + 1 end
        i = i + 1
      end
      at[name], point[name] = i, count > 0 and sum / count or nil
    end
    point.step = step / unit
    points[#points + 1] = point
  end
  return points
end

return function(view, box, now)
  local series, names, lines, rows, level = now.run and mn.run.metrics(now.run) or {}, { ALL }, {}, {}, nil
  for name in pairs(series) do
    if name:find "^grad/" and name ~= ALL then names[#names + 1] = name end
  end
  table.sort(names, function(a, b) return a == ALL and b ~= ALL or b ~= ALL and a < b end)
  local all = series[ALL]
  local unit, word = mn.run.step_unit(all and all.x[all.n] or 0)
  for i, name in ipairs(names) do
    local layer = tonumber(name:match "layers%.(%d+)$")
    rows[i] = { layer = layer }
    lines[i] = { name = i == 1 and "all" or layer and (layer == 0 and "layer " or "") .. layer or name:match "[^./]+$",
      row = layer and rows[i], of = function(point) return point[name] end }
  end
  local _, chosen = selection.rows(now, rows)
  for i, line in ipairs(lines) do line.thick = (i == 1 or (chosen and rows[i].layer == chosen)) and 2.5 or 1 end
  local known, info = pcall(mn.run.info, now.run or "")
  local most = known and tonumber(info.max_norm) or 0
  if most > 0 then level = math.log10(most) end
  local curves = { history = all and points_of(series, names, unit) or {}, selection = now.selection }
  panels.signals(view, box, curves, {
    title = "gradient norm", x_name = word, x_least = 1e-3, lines = lines, level = level,
    y_name = "log10" .. (level and (", clipped at %g (line)"):format(most) or ""),
    empty = now.run and "not logged yet" or "no run to show" })
end
