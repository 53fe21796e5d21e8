-- viewer_rig.lua -- a viewer without a window, for tests that press its keys and click on its page.
local ffi = require "ffi"
local scene = require "mneme.insight.view.scene"
local viewer = require "mneme.insight.view.viewer"

local rig = { width = 1280, height = 800, painter = scene.painter() }
local W, H, painter = rig.width, rig.height, rig.painter

---A viewer, with what a test does to it.
function rig.new(tracks, options)
  local v = viewer.new(tracks, options)
  v.canvas = painter.view
  local r = { v = v, clock = 0 }
  function r.draw()                              -- what a page has and where; pixels take ten times as long
    local what, frame = v:page()
    painter:draw(what, frame, W, H)
  end
  function r.paint()
    r.draw()
    return painter:fill(), W, H
  end
  function r.picture() return ffi.string(r.paint(), W * H * 4) end
  function r.press(key) return v:key(type(key) == "string" and key:byte() or key, r.clock, r.paint) end
  function r.pass(seconds)
    for _ = 1, seconds * 10 do
      r.clock = r.clock + 0.1
      v:tick(r.clock)
    end
  end
  function r.click(x, y)
    v:pointer("press", x, y, 1, r.clock, r.paint)
    v:pointer("release", x, y, 1, r.clock, r.paint)
  end
  function r.frame() return select(2, v:page()) end
  return r
end

---The middle of the spot that means this.
function rig.find_spot(of)
  local view = painter.view
  for i = view.n_spots, 1, -1 do
    local s = view.spots[i]
    if of(s.what) then return s.x + s.w / 2, s.y + s.h / 2, s end
  end
  error "no such spot on the page"
end

---The middle of a key's button.
function rig.spot_of_key(key)
  return rig.find_spot(function(what) return what.key == (type(key) == "string" and key:byte() or key) end)
end

return rig
