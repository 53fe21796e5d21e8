-- test_golden.lua -- every scene looks as it did: its page, 1280x800, as 64x40 mean colours, beside the one that is
-- kept in tests/golden/SCENE.png.  Means forgive another version of the font, not a panel that is missing.
-- `make golden` keeps what the scenes draw now; look at the pages before you commit it.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local scene_rig = require "tests.support.scene_rig"
local scene = require "mneme.insight.view.scene"

local C, painter = engine.C, scene.painter()
local W, H, BLOCK, LIFE = 1280, 800, 20, 60           -- the frame is the LIFEth of an agent that has not learnt
local COLUMNS, ROWS = W / BLOCK, H / BLOCK
local FAR, SOME = 8, 0.01                             -- levels of 255 between two means; the share that may be so far apart

-- The mean colours of a scene's page: rgba[ROWS, COLUMNS].
local function means(what, frame)
  local pixels = painter:paint(what, frame, W, H)
  local coarse = ffi.new("uint8_t[?]", ROWS * COLUMNS * 4)
  for i = 0, ROWS * COLUMNS - 1 do
    local x0, y0 = i % COLUMNS * BLOCK, math.floor(i / COLUMNS) * BLOCK
    for channel = 0, 3 do
      local sum = 0
      for y = y0, y0 + BLOCK - 1 do
        for x = x0, x0 + BLOCK - 1 do sum = sum + pixels[(y * W + x) * 4 + channel] end
      end
      coarse[4 * i + channel] = math.floor(sum / BLOCK ^ 2 + 0.5)
    end
  end
  return coarse
end

-- The share of blocks that are far apart.
local function apart(a, b)
  local far = 0
  for i = 0, ROWS * COLUMNS - 1 do
    local most = 0
    for channel = 0, 2 do most = math.max(most, math.abs(a[4 * i + channel] - b[4 * i + channel])) end
    if most > FAR then far = far + 1 end
  end
  return far / (ROWS * COLUMNS)
end

local function kept(path)
  local w, h, coarse = ffi.new "int[1]", ffi.new "int[1]", ffi.new("uint8_t[?]", ROWS * COLUMNS * 4)
  engine.check(C.mn_image_read(engine.ctx, path, nil, w, h))
  t.eq(w[0], COLUMNS) t.eq(h[0], ROWS)
  engine.check(C.mn_image_read(engine.ctx, path, coarse, w, h))
  return coarse
end

-- The scene without each of its panels in turn: f(panel, means).
local function without_each(what, frame, f)
  local drawn, panels, real = {}, scene.panels, {}
  for _, name in ipairs(registry.names "scenes/panels") do
    real[name] = panels[name]
    panels[name] = function(...) drawn[name] = true return real[name](...) end
  end
  local ok, why = pcall(function()
    painter:paint(what, frame, W, H)
    for name in pairs(drawn) do
      panels[name] = function() end
      f(name, means(what, frame))
      panels[name] = real[name]
    end
  end)
  for name, panel in pairs(real) do panels[name] = panel end
  if not ok then error(why, 0) end
end

local scenes = {}
for _, name in ipairs(scene.list()) do
  scenes[name .. ".png"] = true
  t.test("scene " .. name .. " looks as it did, and a missing panel would be seen", function()
    local what, path = scene.load(name), registry.root .. "tests/golden/" .. name .. ".png"
    local frame = scene_rig.frame(what, LIFE)
    local now = means(what, frame)
    if os.getenv "MNEME_GOLDEN" == "keep" then engine.check(C.mn_image_write(engine.ctx, path, now, COLUMNS, ROWS)) end
    t.ok(files.is_file(path), path .. " is missing: make golden")
    local share = apart(now, kept(path))
    t.ok(share <= SOME, ("%.1f %% of the page differs from %s; if it should, make golden"):format(100 * share, path))
    without_each(what, frame, function(panel, less)
      t.ok(apart(now, less) > SOME, "nobody would miss the panel " .. panel)
    end)
  end)
end

t.test("no page is kept of a scene that is gone", function()
  for _, file in ipairs(files.list(registry.root .. "tests/golden")) do t.ok(scenes[file] or file == "errors.txt", "tests/golden/" .. file) end
end)
