-- run_table.lua -- the runs of a folder as a page: a client of window.lua that opens the viewer of the run that is chosen, and comes back from it.
local action_keys = require "mneme.insight.view.action_keys"
local errors = require "mneme.base.errors"
local engine = require "mneme.base.engine"

local ROW, AGAIN, MOST = 22, 10, 120         -- design pixels of a row; seconds until the runs are read again, while one is trained; letters of a filter
local SHARES = { 4, 1.8, 2.6, 2, 1.2, 1.5, 1.6, 2, 2.5, 5 }                 -- of the columns' widths

---@class RunTable
---@field inner table? the client that is shown in its place
local RunTable = {}

-- What the window reads of a client is the viewer's while one is open.
function RunTable:__index(key)
  local inner = rawget(self, "inner")
  if RunTable[key] ~= nil then return RunTable[key] end
  if key == "playing" and not inner then return false end
  return inner and inner[key]
end

---@param folder string
---@param source table { rows = function(folder, words, sort): the rows that a filter's words fit, and of how many; columns = { { title, sort } ... };
---  cells = function(row): the text of each column; open = function(path): a viewer }
---@return RunTable
local function new(folder, source)
  local self = setmetatable({ source = source, folders = {}, filter = "", at = 1, top = 1, period = 1 / 60, dirty = true }, RunTable)
  self:go(folder)
  return self
end

-- Every setting of a run by its name: "core.d_model".
local function flat(of, before, out)
  for key, value in pairs(of or {}) do
    if type(value) == "table" then flat(value, before .. key .. ".", out) else out[before .. key] = tostring(value) end
  end
  return out
end

-- Says of each row which of its settings not all rows have.
local function differ(rows)
  local all, same = {}, {}
  for i, r in ipairs(rows) do all[i] = flat(r.config, "", {}) end
  for _, settings in ipairs(all) do
    for key, value in pairs(settings) do if same[key] == nil then same[key] = value end end
  end
  for key, value in pairs(same) do
    for _, settings in ipairs(all) do if settings[key] ~= value and next(settings) then same[key] = false end end
  end
  for i, r in ipairs(rows) do
    local list = {}
    for key, value in pairs(all[i]) do if same[key] == false then list[#list + 1] = key .. "=" .. value end end
    table.sort(list)
    r.differs = table.concat(list, "  ")
  end
end

function RunTable:read()
  self.rows, self.of = self.source.rows(self.folder, self.filter, self.sort)
  differ(self.rows)
  self.at, self.dirty, self.read_at = math.max(1, math.min(#self.rows, self.at)), true, engine.C.mn_clock(false)
end

---Show another folder.
function RunTable:go(folder)
  self.folder, self.filter, self.at, self.top, self.title = folder, "", 1, 1, folder
  self:read()
end

---Open a run, or the folder of a study.
---@param row table
function RunTable:open(row)
  self.note, self.dirty = nil, true
  if row.study then
    self.folders[#self.folders + 1] = self.folder
    return self:go(row.path)
  end
  local ok, viewer = pcall(self.source.open, row.path)
  if not ok and not errors.is(viewer) then error(viewer, 0) end
  if not ok then
    self.note = viewer.message
    return
  end
  self.inner, viewer.canvas = viewer, self.canvas
end

-- Back from a run or a study; false: there is nothing to go back to.
local function back(self)
  self.dirty = true
  if self.inner then
    self.note = self.inner:closed()
    self.inner = nil
    self:read()
  elseif self.filter ~= "" then
    self.filter = ""
    self:read()
  elseif #self.folders > 0 then self:go(table.remove(self.folders))
  else return false end
  return true
end

function RunTable:key(key, clock, paint)
  self.dirty = true
  if self.inner then
    if self.inner:key(key, clock, paint) then back(self) end
    return false
  end
  local by = ({ [action_keys.UP] = -1, [action_keys.DOWN] = 1, [action_keys.PAGE_UP] = -20, [action_keys.PAGE_DOWN] = 20, [action_keys.HOME] = -math.huge,
    [action_keys.END] = math.huge })[key]
  if by then self.at = math.max(1, math.min(#self.rows, self.at + by))
  elseif key == action_keys.ENTER then if self.rows[self.at] then self:open(self.rows[self.at]) end
  elseif key == action_keys.ESCAPE then return not back(self)
  elseif key == action_keys.BACKSPACE or key >= 32 and key < 127 and #self.filter < MOST then
    self.filter = key == action_keys.BACKSPACE and self.filter:sub(1, -2)
      or self.filter .. (key == ("+"):byte() and "=" or string.char(key))               -- a window's + is = without Shift
    self:read()
  end
end

function RunTable:pointer(what, x, y, by, clock, paint)
  if self.inner then
    if self.inner:pointer(what, x, y, by, clock, paint) then back(self) end
    self.dirty = self.dirty or self.inner.dirty
    return
  end
  if what == "wheel" then return self:key(by > 0 and action_keys.UP or action_keys.DOWN, clock, paint) end
  local spot = what == "press" and by == 1 and self.canvas:spot_at(x, y)
  if not spot then return end
  if spot.sort then
    self.sort = self.sort ~= spot.sort and spot.sort or nil
    self:read()
  elseif spot.row then self:open(spot.row) end
end

function RunTable:tick(clock, deadline)
  if self.inner then
    if self.inner.tick then self.inner:tick(clock, deadline) end
    self.dirty = self.dirty or self.inner.dirty
    return
  end
  local trained = false
  for _, r in ipairs(self.rows) do trained = trained or r.state == "running" end
  if trained and engine.C.mn_clock(false) - self.read_at > AGAIN then self:read() end
end

function RunTable:painted(...) if self.inner then self.inner:painted(...) end end
function RunTable:closed() return self.inner and self.inner:closed() end

-- ---- the page ----

local function draw(self, view)
  local u, theme, box = view.unit, view.theme, view:inset(view.box, 16)
  local head = ("%s: %d of %d runs"):format(self.folder, #self.rows, self.of)
  view:text(head, box.x, box.y + 20 * u, 17, theme.text, "left", box.w)
  local hint = "type a part of a name, or SETTING=VALUE, for fewer; ↑ ↓ Enter or a click opens; a click on a title sorts; Esc goes back"
  view:text(self.note or self.filter ~= "" and "filter: " .. self.filter .. "_" or hint, box.x, box.y + 40 * u, 12, self.note and theme.bad or theme.dim,
    "left", box.w)
  local sum, xs, x = 0, {}, box.x
  for _, share in ipairs(SHARES) do sum = sum + share end
  for i, share in ipairs(SHARES) do xs[i], x = x, x + share / sum * box.w end
  xs[#xs + 1] = box.x + box.w
  local top, room = box.y + 76 * u, math.max(1, math.floor((box.h - 80 * u) / (ROW * u)))
  for i, column in ipairs(self.source.columns) do
    local sorted = column[2] and column[2] == self.sort
    view:text(column[1], xs[i], top - 8 * u, 12, sorted and theme.warm or theme.dim, "left", xs[i + 1] - xs[i] - 8 * u)
    if column[2] then view:spot({ x = xs[i], y = top - ROW * u, w = xs[i + 1] - xs[i], h = ROW * u }, { sort = column[2] }) end
  end
  self.top = math.max(1, math.min(self.top, self.at), self.at - room + 1)
  for k = self.top, math.min(#self.rows, self.top + room - 1) do
    local r, y = self.rows[k], top + (k - self.top) * ROW * u
    local place = { x = box.x - 6 * u, y = y, w = box.w + 12 * u, h = ROW * u }
    if k == self.at then view:rect(place.x, y, place.w, place.h, theme.card) end
    local color = (r.state == "diverged" or r.state:find "^damaged") and theme.bad or r.state == "running" and theme.warm or theme.text
    local cells = self.source.cells(r)
    cells[#cells + 1] = r.differs
    for i, text in ipairs(cells) do
      view:text((text:gsub("^%-", "−")), xs[i], y + 15 * u, 12, i == #cells and theme.dim or color, "left", xs[i + 1] - xs[i] - 8 * u)
    end
    view:spot(place, { row = r })
  end
end

function RunTable:page()
  if not self.inner then return { draw = function(view) draw(self, view) end }, {} end
  self.inner.dirty = false
  return self.inner:page()
end

return { new = new }
