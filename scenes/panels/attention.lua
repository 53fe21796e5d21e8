-- attention.lua -- what the memory reads now of each past step: a row for each head of each layer.  Of softmax the
-- attention itself; of a memory with gates the weight with which what was written then comes out now.
local bands = require "mneme.bands"
local canvas = require "mneme.canvas"
local recall = require "mneme.recall"

return function(view, box, now)
  local theme, u, history = view.theme, view.unit, now.history
  local problem = recall.problem(now)
  if problem then
    local inner = view:card(box, "read from each step")
    return view:text(problem, inner.x, inner.y + 16 * u, 12, theme.dim, "left", inner.w)
  end
  local layers, heads = recall.size(now)
  local shares, most, unseen = {}, 0.05, 0
  for row = 1, layers * heads do
    local w, n, blind = recall.weights(now, math.floor((row - 1) / heads), (row - 1) % heads)
    local sum, share = 0, {}
    for i = blind, n - 1 do sum = sum + math.abs(w[i]) end
    for i = 1, n do
      share[i] = i > blind and sum > 0 and math.abs(w[i - 1]) / sum or 0
      most = math.max(most, share[i])
    end
    shares[row], unseen = share, blind
  end
  local range = ("0 … %.0f %%"):format(100 * most)
  local note = { "share, root scale, " .. range, "share, " .. range, range }
  if unseen > 0 then note[1] = ("share in the last %d steps, root scale, "):format(#history - unseen) .. range end
  local inner = view:card(box, "read from each step", note, canvas.SEQUENTIAL)
  local over = bands.over(history, layers * heads, function(_, i) return function(row) return math.sqrt(shares[row][i]) end end)
  bands.draw(view, inner, over, { lo = 0, hi = math.sqrt(most), names = bands.layers(layers * heads, heads) })
end
