-- hatch.lua -- oblique lines over a box: nothing was measured there; or, with its colour between them, it is known and not used.
local canvas = require "mneme.base.canvas"
local GAP = 7                      -- between two lines

---Draw oblique lines over a box.
---@param view Canvas
---@param x number
---@param y number
---@param w number
---@param h number
---@param striped boolean? what is below stays: it can be read, and is not used
return function(view, x, y, w, h, striped)
  local u, ink = view.unit, striped and view.theme.grid or canvas.fade(view.theme.dim, 0.5)
  if not striped then view:rect(x, y, w, h, view.theme.grid) end
  for d = GAP * u / 2, math.min(w + h, view.width + view.height), GAP * u do
    local x0, y0 = math.max(0, d - h), math.min(d, h)
    local x1, y1 = math.min(d, w), math.max(0, d - w)
    view:line(x + x0, y + y0, x + x1, y + y1, ink, striped and 2.5 * u or u)
  end
end
