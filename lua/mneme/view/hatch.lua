-- hatch.lua -- oblique lines over a box: nothing was measured there.
local canvas = require "mneme.base.canvas"
local GAP = 7                      -- between two lines

---Draw oblique lines over a box: nothing was measured there.
---@param view Canvas
---@param x number
---@param y number
---@param w number
---@param h number
return function(view, x, y, w, h)
  local u, ink = view.unit, canvas.fade(view.theme.dim, 0.5)
  view:rect(x, y, w, h, view.theme.grid)
  for d = GAP * u / 2, w + h, GAP * u do
    local x0, y0 = math.max(0, d - h), math.min(d, h)
    local x1, y1 = math.min(d, w), math.max(0, d - w)
    view:line(x + x0, y + y0, x + x1, y + y1, ink, u)
  end
end
