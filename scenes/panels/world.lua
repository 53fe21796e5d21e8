-- world.lua -- the environment as it draws itself, the path of the agent, and the outcome of the episode.
local mn = require "mneme"
local attention_history, implicit_attention = mn.inspect.attention_history, mn.inspect.implicit_attention
local canvas, selection = mn.ui.canvas, mn.ui.selection
local panels = mn.scene.panels

local LITTLE = 0.02                              -- share of attention: less is not marked

-- Does a point lie on a letter?
local function on_letter(letters, x, y)
  for _, b in ipairs(letters) do if x > b.x - b.w and x < b.x + 2 * b.w and y > b.y - b.h and y < b.y + 2 * b.h then return true end end
end

-- Marks the positions at the steps that the selected head attends to; larger for a larger share.
local function mark_read(view, now, at)
  if implicit_attention.problem(now) then return end
  local rows, history, theme = selection.rows(now, selection.all(implicit_attention.size(now))), now.history, canvas.theme
  for i, entry in ipairs(#rows == 1 and history or {}) do
    local x, y, scale = at(entry)
    local share = x and attention_history.of(now, #history, rows[1].layer, rows[1].head)[i - 1] or 0
    if share > LITTLE then
      local r = 0.3 * scale * math.sqrt(share)
      view:disc(x, y, r, canvas.fade(theme.violet, 0.75))
      view:tip({ x = x - r, y = y - r, w = 2 * r, h = 2 * r }, ("step %d: %.0f %% of what the selected head reads now"):format(entry.step, 100 * share))
    end
  end
end

---options: title, note, or a list of which the first that fits is shown; place = function(entry) -> x, y in the units of the drawing; known = a fact, by
---which the path is lit; believed = a fact, x and y of each of several places, which are framed where the memory says that they are, colour = function(k)
---of the kth; or a class of each of many places, cells and mark: see beliefs.lua
return function(view, box, now, options)
  local theme, u = view.theme, view.unit
  local title, note, outcome = options and options.title or "world", options and options.note, now.outcome
  local facts = now.run and options and (options.known or options.believed)
  local score = outcome and outcome.score
  local solved = score and score >= 1
  local verdict = outcome and (solved and "solved" or score and ("score %.2f"):format(score) or "over")
  local used, notes = view:text_width(title, 13) + 36 * u, type(note) == "table" and note or { note }
  local function room() return box.w - 2 * math.max(used, note and view:text_width(note, 11.5) + 36 * u or 0) - 24 * u end
  for i = 1, #notes + 1 do                        -- the first that leaves room for how it ended, or none
    note = notes[i]
    if not note or (outcome and view:text_width(verdict, 14) <= room()) or not outcome and used + view:text_width(note, 11.5) <= box.w then break end
  end
  if outcome and view:text_width(verdict, 14) > room() then title, used = "", 0 end
  local inner = view:card(box, title, note)
  local below = facts and inner.h > 40 * u and { x = inner.x, y = inner.y + inner.h, w = inner.w }          -- where it says what is read
  if below then inner.h = inner.h - 17 * u end
  view:rect(inner.x, inner.y, inner.w, inner.h, theme.ground)
  local place = view:append(now.canvas, inner)
  local letters = (now.rules or options and options.place) and view:letters(now.canvas, place) or {}
  for i, name in ipairs(now.rules and not now.outcome and now.actions or {}) do          -- a person plays: what is named like an action takes it
    for _, letter in ipairs(letters) do if letter.word == name and letter.box then view:spot(letter.box, { action = i - 1 }) end end
  end

  -- where positions are known in the units of the drawing: the path, fading with age
  if options and options.known and now.run then panels.beliefs(view, below, now, { fact = options.known, at = options.place, place = place }) end
  if options and options.place then
    local n = #now.history
    local function at(entry)
      local x, y = options.place(entry)
      if x then return place(x, y) end
    end
    for i = 2, n do
      local x0, y0, scale = at(now.history[i - 1])
      local x1, y1 = at(now.history[i])
      if x0 and x1 then
        local age = math.max(0.15, 1 - (n - i) / 60)
        local from, to = on_letter(letters, x0, y0), on_letter(letters, x1, y1)              -- it can be read
        if from then x0, y0 = (x0 + x1) / 2, (y0 + y1) / 2 elseif to then x1, y1 = (x0 + x1) / 2, (y0 + y1) / 2 end
        if not (from and to) then view:line(x0, y0, x1, y1, canvas.fade(canvas.theme.warm, age), math.max(1, scale * 0.12)) end
      end
    end
    mark_read(view, now, at)
    local x, y, scale = at(now.history[n] or {})
    if x and options.known then                    -- the light lies over the agent
      view:disc(x, y, math.max(0.34 * scale, 6 * u), theme.ground)
      view:disc(x, y, math.max(0.28 * scale, 5 * u), theme.accent)
    end
  end

  if options and options.believed and now.run then
    panels.beliefs(view, below, now, { fact = options.believed, colour = options.colour, cells = options.cells, mark = options.mark, place = place })
  end
  if outcome then                     -- in the title's line, where it covers nothing
    local ret = "  ·  return " .. canvas.number(outcome.ret, 1)
    local in_time = tonumber(now.env and now.env.settings.time_limit) ~= outcome.length          -- else no action ended it
    local p = not solved and in_time and now.policy and now.policy[(now.action or -1) + 1]
    local draw = p and p < 0.5 and ("  ·  %s drawn with %.0f %%"):format(now.actions[now.action + 1], 100 * p) or ""
    for _, part in ipairs { draw, ret, ("  ·  %d step%s"):format(outcome.length, outcome.length == 1 and "" or "s") } do
      if view:text_width(verdict .. part, 14) > room() then break end
      verdict = verdict .. part
    end
    local w = view:text_width(verdict, 14) + 24 * u
    local x = math.max(box.x + box.w / 2, box.x + view:text_width(title, 13) + 20 * u + w / 2)          -- in the middle, or after the title
    local y, high = box.y + view.edge * u, view.edge < 12 and 18 or 24
    local tone = solved and theme.good or score and score > 0 and theme.text or theme.bad          -- part of a score is neither
    view:frame(x - w / 2, y - 4 * u, w, high * u, tone, 1.5 * u)
    view:text(verdict, x, y + (high / 2 + 1) * u, 14, tone, "center")
  end
end
