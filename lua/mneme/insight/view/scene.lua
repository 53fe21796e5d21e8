-- scene.lua -- loads scenes and paints them.  A scene is one file in scenes/ that draws a frame with panels from scenes/panels;
-- it is painted into pixels, without a window.
local ffi = require "ffi"
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local catalogue = require "mneme.base.catalogue"
local registry = require "mneme.base.registry"
local canvas = require "mneme.base.canvas"
local trusted_code = require "mneme.base.trusted_code"
local envs = require "mneme.envs"

local here = debug.getinfo(1, "S").source:match "^@(.*)insight/view/scene%.lua$" or "./lua/mneme/"
local scene = { default_width = 1280, default_height = 800 }

---The frame of most pages: margins, and the header above.
---@param view Canvas
---@param now Frame
---@param options table? story = true: below the header what the maps of the memory say, see scenes/panels/story.lua
---@return table box { x, y, w, h } of what is left
function scene.body(view, now, options)
  local header, body = view:split(view:inset(view.box, view.edge + 4), "rows", { 44, "1*" })
  scene.panels.header(view, header, now)
  local high = options and options.story and scene.panels.story(view, nil, now, body) or 0
  if high == 0 then return body end
  local story, rest = view:split(body, "rows", { high, "1*" }, 0)
  scene.panels.story(view, story, now)
  return rest
end

local sides = { rows = true, columns = true }

-- Refuse a layout that scene.lay could not draw.
local function check_layout(layout)
  local function refuse(...)
    errors.raise("scene: layout: " .. (...):format(select(2, ...)), { hint = '{ "rows", { "2*", "world" }, { 44, "policy" } }' })
  end
  if type(layout) ~= "table" then refuse("a %s, expected a table", type(layout)) end
  if not sides[layout[1]] then refuse('%s comes first, expected "rows" or "columns"', tostring(layout[1])) end
  for i = 2, #layout do
    local part = layout[i]
    local size, panel = type(part) == "table" and part[1], type(part) == "table" and part[2]
    local share = type(size) == "string" and tonumber(size:match "^([%d.]+)%*$") or type(size) == "number" and size >= 0 and 1 or 0
    if share <= 0 then refuse('part %d has the size %s, expected "2*", shares of the room, or a number of pixels', i - 1, tostring(size)) end
    if panel and type(panel) ~= "string" then refuse("part %d is a %s, expected the name of a panel", i - 1, type(panel)) end
  end
end

---Draw panels side by side or one above the other, as a layout says: { "rows" or "columns", part, ... }.  A part is { size, panel, options }, or
---{ size, "rows" or "columns", part, ... }, or { size } alone, which stays empty; sizes as in view:split.
---@param view Canvas
---@param box table { x, y, w, h }
---@param now Frame
---@param layout table
---@param where string? "file:line" that errors name; nil: the caller's
function scene.lay(view, box, now, layout, where)
  check_layout(layout)
  local sizes = {}
  for i = 2, #layout do sizes[i - 1] = layout[i][1] end
  for i, place in ipairs { view:split(box, layout[1], sizes) } do
    local part = layout[i + 1]
    if sides[part[2]] then scene.lay(view, place, now, { unpack(part, 2) }, where)
    elseif part[2] then
      local ok, why = pcall(scene.panels[part[2]], view, place, now, part[3] or {})
      if not ok then
        errors.raise(("scene: layout: panel %s with %s: %s"):format(part[2], part[3] and "these options" or "no options", tostring(why)),
          { where = where, hint = ("the head of scenes/panels/%s.lua says which it takes"):format(part[2]) })
      end
    end
  end
end

---The names of all scenes, sorted.
function scene.list() return registry.names("scenes", true) end

-- Runs a scene or panel file, and checks what it returns.
local function run(path, expected, by)
  local result = registry.load(path, by)()
  if type(result) ~= expected then
    errors.raise(("%s returns a %s, expected a %s"):format(path, type(result), expected), { status = 2 })
  end
  return result
end

---Panels by name: `scene.panels.value` is what scenes/panels/value.lua returns, a function
---`panel(view, box, now, options)`.
---@type table<string, fun(view: Canvas, box: table, now: Frame|table, options: table?)>
scene.panels = setmetatable({}, { __index = function(panels, name)
  local path = registry.file("scenes/panels", name, "panel")
  local draw, about = run(path, "function", trusted_code.caller()), catalogue.first_comment(path)
  panels[name] = function(view, box, ...)        -- the first sentence of its file explains a panel where the pointer is on its title
    if view.about then return draw(view, box, ...) end              -- a panel of a panel
    errors.need(("panel %s: now"):format(name), (...), nil, "panel(view, box, now, options)")
    if not box then return draw(view, nil, ...) end                 -- to ask it something
    box = view:panel(box)
    if not box then return end
    view.about = about
    draw(view, box, ...)
    view.about = nil
  end
  return panels[name]
end })

---@class SceneSpec
---@field draw fun(view: Canvas, now: Frame)
---@field layout table|fun(now: Frame, body: table, view: Canvas): table? in place of draw: what scene.lay draws below the header
---@field story boolean? of a layout: as of scene.body
---@field doc string? not used: the first comment of its file says what a scene shows
---@field shared string? the panel that a window draws once below two episodes of one agent; their frames then have map_apart
---@field env string|table|nil shown without a run: { "tmaze", corridor = 20 }
---@field core string|table|nil shown without a run; nil: { "agalite" }

---Define a scene.
---@param spec SceneSpec
---@return SceneSpec spec
function scene.new(spec)
  errors.need("scene", spec, nil, "{ doc = ..., draw = function(view, now) ... end }")
  errors.members("a scene", spec, "core doc:string draw env layout shared:string story:boolean")
  local layout = spec.layout
  if layout and not spec.draw then                -- once: scene.load comes here again
    local where = errors.position()
    if type(layout) ~= "function" then check_layout(layout) end
    function spec.draw(view, now)
      local body = scene.body(view, now, spec)
      scene.lay(view, body, now, type(layout) == "function" and layout(now, body, view) or layout, where)
    end
  end
  if type(spec.draw) ~= "function" then
    errors.raise("scene: draw is a " .. type(spec.draw) .. ", expected a function(view, now)")
  end
  if spec.env and not spec.core then spec.core = { "agalite" } end
  return spec
end

---The path of a scene, or an error that lists what there is.
---@param name string of one of the scenes, or the path of a file: "my.lua"
---@param word string? what it is for an error: "run or scene"
---@return string path
function scene.file(name, word)
  if name:find "%.lua$" then
    if not files.is_file(name) then errors.usage(name .. ": there is no such file") end
    return name
  end
  return registry.file("scenes", name, word or "scene")
end

---Load a scene by name, or by the path of its file.
---@param name string
---@return SceneSpec
function scene.load(name)
  local path = scene.file(name)
  if trusted_code.may_load(path) == "named" then trusted_code.name(path, true) end          -- its core may be the user's, too
  return scene.new(run(path, "table"))
end

---What a scene shows, in one line.
---@param name string
---@return string
function scene.about(name) return catalogue.first_comment(registry.file("scenes", name, "scene")) end

---The scenes for an environment: its own first, then those that are made for no environment.
---@param id string? "tmaze-v0"
function scene.suiting(id)
  local names, made_for = scene.list(), {}
  local own = scene.for_env(id, names)
  local list = { own }
  for _, env in ipairs(envs.list()) do made_for[scene.for_env(env.name, names)] = true end
  for _, name in ipairs(names) do
    if (name == "memory" or not made_for[name]) and name ~= own then list[#list + 1] = name end
  end
  return list
end

---The name of the scene made for an environment: its own ("memory_maze-v0": memory_maze), or the one that begins its name
---("tmaze_bakker-v0": tmaze), or "memory", which suits every environment.
---@param names string[]? scene.list(), from who asks often: it reads every scene's file
function scene.for_env(id, names)
  local name, best = id and id:match "^([%w_]+)" or "", ""
  for _, known_name in ipairs(names or scene.list()) do
    if name:find(known_name, 1, true) == 1 and #known_name > #best then best = known_name end
  end
  return best ~= "" and best or "memory"
end

local library

---The library that paints and opens windows; loaded on first use.
function scene.library()
  if library then return library end
  for _, path in ipairs { here .. "../../scenes/view/view.h", here .. "../../../../include/mneme/view.h" } do
    if lfs.attributes(path, "mode") == "file" then engine.declare(path) break end
  end
  local loaded, result = pcall(ffi.load, engine.build .. "/libmneme_view.so")
  if not loaded then
    errors.raise("pictures need libmneme_view.so with FreeType (make deps, then make): " .. result)
  end
  library = result
  return library
end

local painter = {}
painter.__index = painter

---A painter of frames: `painter:paint(scene, frame, width, height)` gives RGBA8 pixels.
---@param font string? a font file; nil: $MNEME_FONT, else DejaVu Sans
---@param look table? theme, scale: see canvas.new
function scene.painter(font, look)
  local lib = scene.library()
  local raster = ffi.gc(engine.check(lib.mn_raster_new(engine.ctx, font or "")), lib.mn_raster_free)
  local self = setmetatable({ raster = raster, lib = lib }, painter)
  self.view = canvas.new(self, scene.default_width, scene.default_height, look)
  return self
end

function painter:text_width(text, size)
  return self.lib.mn_raster_text_width(self.raster, text, size)
end

-- A scene must not change a frame, or stepping back would show something else.
function scene.read_only(frame)
  return setmetatable({}, { __index = frame, __newindex = function(_, key)
    errors.raise(('a scene cannot set now.%s: a frame is read-only'):format(tostring(key)))
  end })
end

---Draw a frame: shapes, no pixels yet.
function painter:draw(what, frame, width, height)
  self.view:clear(width, height)
  what.draw(self.view, scene.read_only(frame))
end

---Paint the shapes of the last draw.
---@return ffi.cdata* rgba uint8_t[height * width * 4], rows from the top, until the next paint
function painter:fill()
  local view = self.view
  engine.check(self.lib.mn_raster_paint(self.raster, view.shapes, view.theme.page, view.width, view.height))
  return self.lib.mn_raster_pixels(self.raster)
end

---Draw a frame and paint it.
---@return ffi.cdata* rgba as of fill
function painter:paint(what, frame, width, height)
  self:draw(what, frame, width, height)
  return self:fill()
end

return scene
