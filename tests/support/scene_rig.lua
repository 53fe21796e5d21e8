-- scene_rig.lua -- a frame for a scene to draw: a small agent that has not learnt, in the scene's own environment; and where
-- on a drawn page a text is.
local ffi = require "ffi"
local canvas = require "mneme.base.canvas"
local mn = require "mneme"
local stepper = require "mneme.insight.episodes.stepper"
local frames = require "mneme.insight.episodes.frames"

local C = require("mneme.base.engine").C
local rig = {}

---The nth frame of a fresh agent's life in the environment that the scene names; the same each time.
---@return table frame
---@return table film the recorder, which has seen it all
function rig.frame(what, n)
  local core = { what.core[1], d_model = 16, n_layers = 2 }
  if what.core[1]:find "galite$" then core.n_heads, core.d_head, core.d_ffn = 2, 8, 16 end
  mn.manual_seed(1)
  local source, film = stepper.fresh { env = what.env, core = core }, frames.new()
  local frame
  for _ = 1, n do
    local now = source:next()
    if now.ended then film:finish(now.ended, now.reward) end
    frame = film:add(now)
  end
  frame.story = function()
    return { episodes = 64, sentences = { "Layer 1, head 0 loses the cue between steps 4 and 7: kept as it is before step 4, success is 0.98 in "
      .. "place of 0.51." } }
  end
  return frame, film
end

---Where a page says something: the middle of the text's height, near its beginning; nothing where it does not.
---@param beginning boolean? a longer text that begins so will do
---@return number? x
---@return number? y
function rig.place_of(page, text, beginning)
  local list = C.mn_canvas_shapes(page.shapes)
  for i = 0, C.mn_canvas_count(page.shapes) - 1 do
    local s = list[i]
    local said = s.kind == canvas.TEXT and ffi.string(C.mn_canvas_string(page.shapes, s.text))
    if said and (beginning and said:sub(1, #text) or said) == text then
      return s.x + 2, s.y - 0.3 * s.h
    end
  end
end

---The boxes of all texts on the page that a painter drew last, from the shapes themselves.
---@return table[] boxes { text, x0, x1, y0, y1 }
function rig.text_boxes(by)
  local shapes = by.view.shapes
  local list, boxes = C.mn_canvas_shapes(shapes), {}
  for i = 0, C.mn_canvas_count(shapes) - 1 do
    local s = list[i]
    if s.kind == canvas.TEXT then
      local text = ffi.string(C.mn_canvas_string(shapes, s.text))
      local width = by.lib.mn_raster_text_width(by.raster, text, s.h)
      local top, bottom = s.y - 0.75 * s.h, s.y + 0.05 * s.h
      boxes[#boxes + 1] = { x0 = s.x, x1 = s.x + width, y0 = top, y1 = bottom, text = text }
    end
  end
  return boxes
end

return rig
