-- screen_capture.lua -- screenshots and videos of the window, as files in the working folder.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"

local C = engine.C
local FPS = 10                               -- of videos

---@class ScreenCapture
---@field path string? of the video that is being recorded
local ScreenCapture = {}
ScreenCapture.__index = ScreenCapture

---@return ScreenCapture
local function new() return setmetatable({ frames = 0 }, ScreenCapture) end

-- mneme-EPISODE-STEP.KIND, with a number where the name is taken.
local function free_name(kind, frame)
  return files.free_name(("mneme-%d-%d"):format(frame and frame.episode or 0, frame and frame.step or 0), kind)
end

local function why() return ffi.string(C.mn_error(engine.ctx)) end

---Save a picture.
---@param frame Frame? names the file
---@return string text for the user
function ScreenCapture.picture(_, frame, pixels, width, height)
  local path = free_name("png", frame)
  return C.mn_image_write(engine.ctx, path, pixels, width, height) == 0 and "saved " .. path or why()
end

---Start a video: MP4, or GIF without ffmpeg.
---@return string text for the user
function ScreenCapture:begin(frame, width, height)
  for _, kind in ipairs { "mp4", "gif" } do
    self.path = free_name(kind, frame)
    self.movie = C.mn_movie_new(engine.ctx, self.path, width, height, FPS)
    if self.movie ~= nil then
      ffi.gc(self.movie, C.mn_movie_free)
      self.width, self.height, self.frames = width, height, 0
      return "recording " .. self.path .. "; v stops it"
    end
  end
  self.path, self.movie = nil, nil
  return why()
end

---A page was painted: add it to the video that is being recorded, if any.
---@return string? text for the user
function ScreenCapture:painted(pixels, width, height)
  if not self.path then return nil end
  if width ~= self.width or height ~= self.height then
    return "the window was resized: " .. self:stop()
  end
  if C.mn_movie_add(self.movie, pixels) ~= 0 then
    local problem = why()
    self:stop()
    return problem
  end
  self.frames = self.frames + 1
end

---End the video; its file is complete.
---@return string? text for the user; nil: none was being recorded
function ScreenCapture:stop()
  if not self.path then return nil end
  local path, ended = self.path, C.mn_movie_end(self.movie) == 0
  local text = ended and ("saved %s, %d frames"):format(path, self.frames) or why()
  C.mn_movie_free(ffi.gc(self.movie, nil))
  self.path, self.movie = nil, nil
  return text
end

return new
