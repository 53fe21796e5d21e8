-- beliefs.lua -- what the memory knows, drawn over the world (mn.measure.readings_of_frame): the path lit by the probability that the memory gave
-- there to the right answer, frames where it says that things are, or what it says of each place: green where that is so, red where it is not.
local mn = require "mneme"
local readings = mn.measure.readings_of_frame
local canvas = mn.ui.canvas
local NOTHING = 0.05               -- read so little: chance

-- Green above even odds, red below: of the part of the memory in use there, bright; striped where none is, or it is not measured, and it can only be read;
-- hatched where nothing was read.
local function light(view, now, _, options, _, map)
  local place, kept = options.place, now.known and now.known()
  local cells, order = {}, {}                      -- the last that was said in each
  for _, entry in ipairs(now.history) do
    local x, y = options.at(entry)
    if x then
      local key = x .. "," .. y
      if not cells[key] then cells[key], order[#order + 1] = { x = x, y = y }, key end
      local c = map:column(entry.step)
      local used = kept and kept:in_use(entry.step + 1)
      local cell = c and (map.cells[used and map:row(used) or 1][c] or map.cells[1][c])
      if cell then cells[key].p, cells[key].used = cell.p, used ~= nil end
    end
  end
  for _, key in ipairs(order) do
    local cell = cells[key]
    local left, top = place(cell.x - 0.5, cell.y - 0.5)
    local right, bottom = place(cell.x + 0.5, cell.y + 0.5)
    if cell.p then
      view:rect(left, top, right - left, bottom - top,
        canvas.fade(cell.p >= 0.5 and canvas.theme.good or canvas.theme.bad, (cell.used and 0.8 or 0.5) * math.abs(2 * cell.p - 1)))
    end
    if not cell.used then mn.ui.hatch(view, left, top, right - left, bottom - top, cell.p ~= nil) end
  end
end

-- Frames as strong as the share of the numbers' variance that is read beyond chance; none where nothing is.
local function frames(view, now, said, options, worth)
  local value, places = {}, 0
  if worth <= NOTHING then return end
  for _, one in ipairs(said[now.step] and said[now.step].list or {}) do
    value[one.entry], places = one.value, math.max(places, math.ceil(one.entry / 2))
  end
  for k = 1, places do
    local x, y = value[2 * k - 1], value[2 * k]
    if x and y then
      local px, py, scale = options.place(x + 0.5, y + 0.5)
      local colour, letter = options.colour(k)
      colour = canvas.fade(colour, worth)
      view:frame(px - 0.32 * scale, py - 0.32 * scale, 0.64 * scale, 0.64 * scale, colour, math.max(1.5 * view.unit, 0.08 * scale))
      if letter then view:text(letter, px + 0.3 * scale, py + 0.62 * scale, 0.3 * scale / view.unit, colour, "center") end
    end
  end
end

-- What the memory says of each of many places: the likeliest class, as strong as it is sure beyond even odds.
local function marks(view, now, said, options, worth)
  if worth <= NOTHING then return end
  for _, one in ipairs(said[now.step] and said[now.step].list or {}) do
    local best, most, others = nil, 0, 0
    for class, p in pairs(one.p or {}) do
      if p > most then best, most = class, p end
      others = others + 1
    end
    local x, y = options.cells(one.entry, now)
    local sign, sure = x and best and options.mark(best), (most - 1 / others) / (1 - 1 / others)
    if sign and sure > 0.05 then
      local truth = now.truth[options.fact]
      local px, py, scale = options.place(x, y)
      if type(truth) == "table" then truth = truth[one.entry] end
      local colour = canvas.fade(truth == best and canvas.theme.good or canvas.theme.bad, math.min(1, sure * worth))
      view:frame(px - 0.36 * scale, py - 0.36 * scale, 0.72 * scale, 0.72 * scale, colour, math.max(1.5 * view.unit, 0.08 * scale))
      if sign ~= true then view:text(sign, px + 0.3 * scale, py + 0.62 * scale, 0.3 * scale / view.unit, colour, "center") end
    end
  end
end

---below: x, y, w of the line on which it says how much is read, or nil.  options: fact; place = function(x, y) -> where that is on the page, and how long
---1 is; of a class: at = function(entry) -> x, y; of a list of numbers, x and y of each thing, colour = function(k) of the kth, and its letter; of a list of
---classes cells = function(entry, now) -> x, y of its place, nil: none,
---mark = function(class) -> true: a frame, a letter: a frame with it, nil: nothing
return function(view, below, now, options)
  local job, problem = readings.job(now, view.deadline)
  local u = view.unit
  local function say(text) return below and view:text(text, below.x + 4 * u, below.y - 4 * u, 11, view.theme.dim, "left", below.w - 8 * u) end
  if not job then return now.run and say("what the memory knows: " .. problem) end
  view.unfinished = view.unfinished or not job.done and job
  if not job.done then say("what the memory knows: " .. (job.steps and ("%d of %d steps read"):format(job.read, #job.steps) or "nothing read yet")) end
  for _, fact in ipairs(job.facts) do
    if fact.name == options.fact then
      local draw = options.at and light or options.cells and marks or frames
      local worth = readings.worth(job, now.step, fact, 1)
      draw(view, now, readings.episode(job, now, fact, 1), options, worth or 0, draw == light and readings.map(job, now, fact))
      if draw == light and job.done then
        local text = ("green: the %s can be read; orange: another one; striped: read, not known to be used"):format(fact.name)
        local wide = below and view:text_width(text, 11) > below.w - 8 * u
        if wide then text = ("green: the %s is read; orange: another; striped: use unknown"):format(fact.name) end
        say(text)
      end
      if worth and draw ~= light then
        say(("%s: %.2f of what is so can be read%s"):format(fact.name, worth, worth <= NOTHING and ", nothing is shown" or ""))
      end
    end
  end
end
