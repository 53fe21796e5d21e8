-- run_table.lua -- the runs of a folder as a page: a client of window.lua that opens the viewer of the run that is chosen, and comes back from it.
-- Below the rows are curves of those that are chosen, and which settings go with the score, or the claims of a study.
local action_keys = require "mneme.insight.view.action_keys"
local errors = require "mneme.base.errors"
local engine = require "mneme.base.engine"
local metrics_reader = require "mneme.runs.metrics_reader"
local score_effects = require "mneme.insight.view.score_effects"

local ROW, AGAIN, MOST = 22, 10, 120         -- design pixels of a row; seconds until the runs are read again, while one is trained; letters of a filter
local CURVES, TOGETHER, POINTS = 7, 4, 200   -- curves at most; runs that are opened side by side; points of a curve
local LOWER, HIGH = 0.4, 560                 -- the cards' share of a page that is higher than that
local COLORS = { "accent", "warm", "good", "violet", "bad", "text", "dim" }
local SHARES = { 3.4, 2.4, 2.6, 2, 1.2, 1.5, 1.6, 2, 2.5, 5 }                 -- of the columns' widths

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

---@param source table { rows = function(folder, words, sort): the rows that a filter's words fit, of how many, and the settings in which they differ;
---  columns = { { title, sort } ... };
---  cells = function(row): the text of each column; open = function(paths): a viewer of one or several runs side by side;
---  curve = function(path): { n, x, y, of = its name } of the score, nil: none is logged; claims = function(path): { { text, verdict } ... } of a study }
---@return RunTable
local function new(folder, source)
  local self = setmetatable({ source = source, folders = {}, chosen = {}, claims = {}, filter = "", at = 1, top = 1, period = 1 / 60, dirty = true },
    RunTable)
  self:show(folder)
  return self
end

function RunTable:read()
  local rows, of, names = self.source.rows(self.folder, self.filter, self.sort)
  local scored = {}
  self.rows, self.of = rows, of
  for _, r in ipairs(self.rows) do
    if r.score and (not scored[1] or r.key == scored[1].key) then scored[#scored + 1] = r end          -- scores and returns are not compared
  end
  self.effects, self.scored = score_effects(scored, names), #scored
  self.at, self.dirty, self.read_at = math.max(1, math.min(#self.rows, self.at)), true, engine.C.mn_clock(false)
end

---Show another folder.
function RunTable:show(folder)
  self.folder, self.filter, self.at, self.top, self.title, self.chosen = folder, "", 1, 1, folder, {}
  self:read()
end

-- The row of this name or path, of all rows of the folder.
local function row_of(self, name)
  for _, r in ipairs((self.source.rows(self.folder, ""))) do if r.name == name or r.path == name then return r end end
end

---Where it is: the folder of a study, the run that is open, or the filter and the order of the rows.
---@return table[] fields { key, value } for addresses.write
function RunTable:address()
  local fields = { { "folder", #self.folders > 0 and self.folder } }
  if not self.inner then
    fields[2], fields[3] = { "filter", self.filter ~= "" and self.filter }, { "sort", self.sort }
    return fields
  end
  fields[2] = { "run", self.opened }
  for _, field in ipairs(self.inner.address and self.inner:address() or {}) do fields[#fields + 1] = field end
  return fields
end

---Go to what an address names: only to runs that the table has.
---@param fields table<string, string> of addresses.read
function RunTable:go(fields, clock)
  self.dirty = true
  if self.inner and fields.run == self.opened and (fields.folder or self.folder) == self.folder then return self.inner:go(fields, clock) end
  if self.inner then self.inner:closed() end
  self.inner = nil
  while #self.folders > 0 and self.folder ~= fields.folder do self:show(table.remove(self.folders)) end
  local study = fields.folder and fields.folder ~= self.folder and row_of(self, fields.folder)
  if study and study.study then self:open { study } end
  self.filter, self.sort = (fields.filter or ""):sub(1, MOST), nil
  for _, column in ipairs(self.source.columns) do if column[2] and column[2] == fields.sort then self.sort = column[2] end end
  self:read()
  local list = {}
  for name in (fields.run or ""):gmatch "[^,]+" do
    list[#list + 1] = row_of(self, name)
    if not list[#list] then self.note = ("there is no run %s in %s"):format(name, self.folder) return end
  end
  if #list > 0 and #list <= TOGETHER then self:open(list) end
  if self.inner and self.inner.go then
    if self.inner.tick then self.inner:tick(clock) end           -- its first step
    self.inner:go(fields, clock)
  end
end

---Open a run, up to four side by side, or the folder of a study.
function RunTable:open(rows)
  self.note, self.dirty = nil, true
  if rows[1].study then
    self.folders[#self.folders + 1] = self.folder
    return self:show(rows[1].path)
  end
  local paths, names = {}, {}
  for i, row in ipairs(rows) do paths[i], names[i] = row.path, row.name end
  local ok, viewer = errors.try(self.source.open, paths)
  if not ok then
    self.note = viewer.message
    return
  end
  self.inner, self.opened, viewer.canvas = viewer, table.concat(names, ","), self.canvas
end

-- Choose a run, or no longer.
local function choose(self, row)
  self.dirty = true
  if not row or row.study then return end
  self.chosen[row.path] = not self.chosen[row.path] or nil
end

-- The rows that are chosen.
local function chosen_of(self)
  local list = {}
  for _, r in ipairs(self.rows) do if self.chosen[r.path] then list[#list + 1] = r end end
  return list
end

-- Enter: those that are chosen, or the one below the bar.
local function enter(self)
  local list = chosen_of(self)
  if #list > TOGETHER then self.note = ("%d runs are chosen: up to %d are shown side by side"):format(#list, TOGETHER)
  elseif #list > 1 then self:open(list)
  elseif self.rows[self.at] then self:open { self.rows[self.at] } end
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
  elseif #self.folders > 0 then self:show(table.remove(self.folders))
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
  elseif key == action_keys.ENTER then enter(self)
  elseif key == action_keys.TAB then choose(self, self.rows[self.at])
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
  local spot = what == "press" and (by == 1 or by == 3) and self.canvas:spot_at(x, y)
  if not spot then return end
  if spot.sort then
    self.sort = self.sort ~= spot.sort and spot.sort or nil
    self:read()
  elseif spot.row and by == 3 then choose(self, spot.row)
  elseif spot.row then self:open { spot.row } end
end

-- The study whose claims are shown: the one below the bar, or the one whose runs these are.
local function study_of(self)
  local row = self.rows[self.at]
  return row and row.study and row.path or #self.folders > 0 and self.folder or nil
end

function RunTable:tick(clock, deadline)
  if self.inner then
    if self.inner.tick then self.inner:tick(clock, deadline) end
    self.dirty = self.dirty or self.inner.dirty
    return
  end
  local study = study_of(self)
  if study and not self.claims[study] and not self.dirty then                  -- the page says first that they are read
    local ok, list = errors.try(self.source.claims, study)
    self.claims[study], self.dirty = ok and list or { problem = list.message }, true
  end
  local trained = false
  for _, r in ipairs(self.rows) do trained = trained or r.state == "running" end
  if trained and engine.C.mn_clock(false) - self.read_at > AGAIN then self:read() end
end

function RunTable:painted(...) if self.inner then self.inner:painted(...) end end
function RunTable:closed() return self.inner and self.inner:closed() end

-- ---- the page ----

-- The runs that have curves: those that are chosen, else the first ones.
local function with_curves(self)
  local list, out = chosen_of(self), {}
  for _, r in ipairs(list[1] and list or self.rows) do
    if #out == CURVES then break end
    if not r.study and r.step then out[#out + 1] = r end
  end
  return out
end

local function curves(self, view, box, list)
  local u, theme, lines, far, least, most, what, others = view.unit, view.theme, {}, 0, math.huge, -math.huge, nil, 0
  for k, r in ipairs(list) do
    local ok, s = errors.try(self.source.curve, r.path)
    what = what or ok and s and s.of
    if ok and s and s.of ~= what then others = others + 1             -- a return is no score: one axis holds one of them
    elseif ok and s and s.n > 0 then
      lines[#lines + 1] = { s = s, name = r.name, color = theme[COLORS[k]] }
      far = math.max(far, s.x[s.n])
      for i = 1, s.n do least, most = math.min(least, s.y[i]), math.max(most, s.y[i]) end
    end
  end
  local note = others > 0 and ("%d of %d log another number"):format(others, #list) or next(self.chosen) and ("of %d chosen"):format(#list)
  local inner = view:card(box, (what == "charts/episodic_return" and "return" or "score") .. " while learning", note or "right click or Tab chooses runs")
  if not lines[1] then return view:say(inner, "none of these runs has logged a score") end
  local unit, word = metrics_reader.unit(far)
  local margin = require("mneme.base.canvas").margin(least, most)
  local place = view:axes(inner, 0, math.max(far / unit, 1e-3), least - margin, most + margin, word, "")
  for _, line in ipairs(lines) do
    local s, x0, y0 = line.s, nil, nil
    for at = 1, s.n, math.max(1, s.n / POINTS) do
      local x1, y1 = place(s.x[math.floor(at)] / unit, s.y[math.floor(at)])
      if x0 then view:line(x0, y0, x1, y1, line.color, 1.5 * u) end
      x0, y0 = x1, y1
    end
    x0, y0 = place(s.x[s.n] / unit, s.y[s.n])
    view:disc(x0, y0, 3 * u, line.color)
    view:tip({ x = x0 - 6 * u, y = y0 - 6 * u, w = 12 * u, h = 12 * u }, line.name)
  end
end

-- Which settings go with the score, and the mean score of each value.
local function effects(self, view, box)
  local u, theme = view.unit, view.theme
  local inner = view:card(box, "settings that go with the score", self.scored > 0 and ("of the %d runs listed; not a test"):format(self.scored) or nil)
  if not self.effects[1] then
    return view:say(inner, "Nothing to tell apart: four runs or more are needed, whose scores and settings differ, with one value in several runs.")
  end
  for i, e in ipairs(self.effects) do
    local y, words = inner.y + (38 * i - 24) * u, {}
    if y + 20 * u > inner.y + inner.h then break end
    for k, g in ipairs(e.groups) do words[k] = ("%s %.3g (%d)"):format(g.name, g.mean, g.n):gsub(" %-", " −") end
    view:text(e.name, inner.x, y, 12.5, theme.text, "left", 0.6 * inner.w)
    view:text(("%.0f %% of the spread"):format(100 * e.share), inner.x + inner.w, y, 12, theme.dim, "right")
    view:text(table.concat(words, "   "), inner.x, y + 16 * u, 12, theme.dim, "left", inner.w)
  end
end

-- The claims of a study and what its runs say of them.
local function claims(view, box, path, list)
  local u, theme = view.unit, view.theme
  local inner = view:card(box, "claims of " .. path:match "[^/]+/*$")
  if not list then return view:say(inner, "reading the study ...") end
  if list.problem or not list[1] then return view:say(inner, list.problem or "this study claims nothing that can be tested") end
  local y = inner.y
  for _, claim in ipairs(list) do
    if y + 16 * u > inner.y + inner.h then break end
    view:text(claim.verdict, inner.x, y + 13 * u, 12, claim.verdict == "holds" and theme.good or claim.verdict == "fails" and theme.bad or theme.dim)
    y = y + 18 * u * view:paragraph(claim.text, inner.x + 80 * u, y + 13 * u, 12, theme.text, inner.w - 80 * u, inner.y + inner.h - y)
  end
end

local function draw(self, view)
  local u, theme, box = view.unit, view.theme, view:inset(view.box, 16)
  local head = ("%s: %d of %d runs"):format(self.folder, #self.rows, self.of)
  view:text(head, box.x, box.y + 20 * u, 17, theme.text, "left", box.w)
  local hint = "type a part of a name, SETTING=VALUE or score<0.5 for fewer; ↑ ↓ Enter or a click opens, of chosen runs up to four side by side; "
    .. "a click on a title sorts; Esc goes back"
  view:text(self.note or self.filter ~= "" and "filter: " .. self.filter .. "_" or hint, box.x, box.y + 40 * u, 12, self.note and theme.bad or theme.dim,
    "left", box.w)
  local high, lined = view.box.h > HIGH * u and LOWER * box.h or 0, {}
  if high > 0 then
    local study, list = study_of(self), with_curves(self)
    local left, right = view:split({ x = box.x, y = box.y + box.h - high, w = box.w, h = high }, "columns", { "1*", "1*" })
    curves(self, view, left, list)
    if study then claims(view, right, study, self.claims[study]) else effects(self, view, right) end
    for k, r in ipairs(list) do lined[r.path] = theme[COLORS[k]] end
    box = { x = box.x, y = box.y, w = box.w, h = box.h - high }
  end
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
    if lined[r.path] then view:rect(place.x - 6 * u, y + 3 * u, 5 * u, place.h - 6 * u, lined[r.path]) end
    if self.chosen[r.path] then view:frame(place.x, y, place.w, place.h, theme.warm, u) end
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
