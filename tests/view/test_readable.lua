-- test_readable.lua -- on the page of every environment in every scene that suits it, from small to large: each text lies within the page and its
-- card, is at least 9 pixels high, and covers no other one; no card is empty, no note is cut, and on the environment's own page no
-- action's name; observations of codes are drawn as the environment draws them; no path covers a letter; cards take clicks.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"
local canvas = require "mneme.base.canvas"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local human_play = require "mneme.insight.view.human_play"
local mn = require "mneme"
local scene_rig = require "tests.support.scene_rig"
local scene = require "mneme.insight.view.scene"

local C, LINE = engine.C, 3
local LEAST = 9
local sizes = { { 480, 320 }, { 640, 480 }, { 1280, 800 } }
local painter = scene.painter()

local function check(what, page, w, h)
  local boxes, cards = scene_rig.text_boxes(page), page.view.cards
  t.ok(#boxes > 3, what .. ": hardly any text")
  for i, a in ipairs(boxes) do
    local high = (a.y1 - a.y0) / 0.8
    t.ok(high >= LEAST - 0.01, ("%s: '%s' is %.1f pixels high"):format(what, a.text, high))
    t.ok(a.x0 >= 0 and a.x1 <= w and a.y0 >= 0 and a.y1 <= h, ("%s: '%s' leaves the page"):format(what, a.text))
    for k = #cards, 1, -1 do
      local card, y = cards[k], (a.y0 + a.y1) / 2
      if a.x0 >= card.x and a.x0 < card.x + card.w and y >= card.y and y < card.y + card.h then
        t.ok(a.x1 <= card.x + card.w + 0.1 and a.y1 <= card.y + card.h + 0.1, ("%s: '%s' leaves its card"):format(what, a.text))
        break
      end
    end
    for j = 1, i - 1 do
      local b = boxes[j]
      t.ok(a.x0 >= b.x1 or b.x0 >= a.x1 or a.y0 >= b.y1 - 0.01 or b.y0 >= a.y1 - 0.01, ("%s: '%s' covers '%s'"):format(what, a.text, b.text))
    end
  end
end

-- Something stands below the title of each card, and a title and a note are whole.
local function check_cards(what, page)
  local boxes, shapes, u = scene_rig.text_boxes(page), C.mn_canvas_shapes(page.view.shapes), page.view.unit
  for _, card in ipairs(page.view.cards) do
    local base, full, title = card.y + (page.view.edge + 12) * u, false, "?"
    for _, box in ipairs(boxes) do
      if box.x0 >= card.x and box.x1 <= card.x + card.w and box.y0 >= card.y and box.y1 <= card.y + card.h then
        if box.y1 > base + 4 * u then full = true
        elseif box.y0 < base then
          title = box.text
          t.ok(not title:find "%S…$", ("%s: '%s' is cut"):format(what, title))
        end
      end
    end
    for i = 0, full and -1 or C.mn_canvas_count(page.view.shapes) - 1 do
      local s = shapes[i]
      local bottom = s.kind == LINE and math.max(s.y, s.h) or s.y + s.h
      full = full or s.kind ~= canvas.TEXT and s.x > card.x and s.x < card.x + card.w and s.y > card.y and bottom > base and bottom < card.y + card.h
    end
    t.ok(full, ("%s: the card '%s' is empty"):format(what, title))
  end
end

-- Strings that a drawing has.
local function words_of(drawing)
  local list, shapes = {}, C.mn_canvas_shapes(drawing)
  for i = 0, C.mn_canvas_count(drawing) - 1 do
    if shapes[i].kind == canvas.TEXT then list[ffi.string(C.mn_canvas_string(drawing, shapes[i].text))] = true end
  end
  return list
end

-- Paths and letters of the environment: does a path run through a letter?
local titles = { world = true, maze = true, corridor = true, board = true, cards = true }
local function check_path(what, page)
  local world
  for _, box in ipairs(scene_rig.text_boxes(page)) do
    for _, card in ipairs(titles[box.text] and page.view.cards or {}) do
      if box.x0 >= card.x and box.x1 <= card.x + card.w and box.y0 >= card.y and box.y1 <= card.y + 40 * page.view.unit then world = card end
    end
  end
  if not world then return end
  local shapes, warm = C.mn_canvas_shapes(page.view.shapes), bit.rshift(canvas.theme.warm, 8)
  for i = 0, C.mn_canvas_count(page.view.shapes) - 1 do
    local s = shapes[i]
    local inside_world = s.kind == LINE and bit.rshift(s.color, 8) == warm and s.x >= world.x and s.x < world.x + world.w and s.y >= world.y
      and s.y < world.y + world.h
    for _, b in ipairs(inside_world and scene_rig.text_boxes(page) or {}) do
      for k = 0, 20 do
        local x, y = s.x + k / 20 * (s.w - s.x), s.y + k / 20 * (s.h - s.y)
        local inside = #b.text == 1 and x > b.x0 and x < b.x1 and y > b.y0 and y < b.y1
        t.ok(not inside, ("%s: the path covers '%s'"):format(what, b.text))
      end
    end
  end
end

-- The panel of the policy names the action taken, or its beginning, however many there are; `whole`: no name is cut.
local function check_policy(what, page, now, whole)
  local name, card = now.space and now.space.kind ~= "discrete" and now.space.names[1] or now.actions[now.action + 1], nil
  for _, box in ipairs(scene_rig.text_boxes(page)) do
    for _, one in ipairs(box.text == "policy" and page.view.cards or {}) do
      if box.x0 >= one.x and box.x1 <= one.x + one.w and box.y0 >= one.y and box.y1 <= one.y + 40 * page.view.unit then card = one end
    end
  end
  local named = not card
  for _, box in ipairs(card and scene_rig.text_boxes(page) or {}) do
    local start, inside = box.text:gsub("…$", ""), box.x0 >= card.x and box.x1 <= card.x + card.w and box.y0 >= card.y and box.y1 <= card.y + card.h
    named = named or inside and box.y0 > card.y + 18 * page.view.unit and name:sub(1, #start) == start
    t.ok(not (whole and inside and box.text:find "…$"), ("%s: '%s' is cut"):format(what, box.text))
  end
  t.ok(named, what .. ": the policy does not name " .. name)
end

for _, env in ipairs(envs.list()) do
  t.test(env.name .. ": every text can be read, in every scene and size", function()
    local frame, film = scene_rig.frame({ env = { env.name }, core = { "agalite" } }, 30)
    local ended = film:finish({ score = 0.25, ret = -11.5, length = 1021 }, 1)
    for _, name in ipairs(scene.suiting(env.name .. "-v0")) do
      local what = scene.load(name)
      for _, size in ipairs(sizes) do
        for k, shown in ipairs { frame, ended } do
          painter:draw(what, shown, size[1], size[2])
          local words = ("%s, scene %s, %dx%d%s"):format(env.name, name, size[1], size[2], k == 2 and ", at its end" or "")
          check(words, painter, size[1], size[2])
          check_path(words, painter)
          check_cards(words, painter)
          check_policy(words, painter, shown, name == scene.for_env(env.name))
        end
      end
    end
    local named, groups = 0, frame.observation_groups or {}
    painter:draw({ draw = function(view) mn.scene.panels.observation(view, { x = 0, y = 0, w = 620, h = 200 }, frame) end }, frame, 620, 200)
    local said = words_of(painter.view.shapes)
    for _, group in ipairs(groups) do named = named + (said[group.name] and 1 or 0) end
    t.ok(named == 0 or named == #groups, ("%d of %d groups of the observation have their names"):format(named, #groups))
    if not frame.agent.observation_space.codes then return end
    local seen = words_of(frame.seen)
    painter:draw({ draw = function(view) mn.scene.panels.observation(view, { x = 0, y = 0, w = 600, h = 600 }, frame) end }, frame, 600, 600)
    for _, box in ipairs(scene_rig.text_boxes(painter)) do t.ok(box.text == "observation" or seen[box.text],
      box.text .. " is not of the environment's drawing") end
  end)
end

t.test("a text that would lie over another one, leave its card or be tiny is left out; a box that is drawn later makes room", function()
  local function page(draw)
    painter:draw({ draw = draw }, {}, 400, 300)
    local list = {}
    for i, box in ipairs(scene_rig.text_boxes(painter)) do list[i] = box.text end
    return table.concat(list, " ")
  end
  t.eq(page(function(view)
    view:text("one", 20, 50, 12) view:text("two", 24, 52, 12) view:text("three", 20, 80, 12) view:text("tiny", 20, 120, 5)
    view:text("beyond", 390, 150, 12) view:text("small", 20, 150, 9)
  end), "one three small")
  t.eq(page(function(view)
    view:card({ x = 0, y = 0, w = 100, h = 100 }, "card")
    view:text("too wide for its card", 20, 50, 12) view:text("fits", 20, 70, 12)
  end), "card fits")
  t.eq(page(function(view)
    view:text("below", 20, 50, 12) view:rect(0, 20, 200, 60, 0xFFFFFFFF) view:text("above", 20, 50, 12)
  end), "below above")
end)

t.test("in a game, a click on what is named like an action takes it", function()
  local env = mn.env("concentration", { num_envs = 1, seed = 3 })
  local played = human_play.new(env, { scene = scene.load "world" })
  local by = scene.painter()
  played.canvas = by.view
  local taken = {}
  for _, name in ipairs { "7", "51", "0" } do
    local what, frame = played:page()
    by:draw(what, frame, 1280, 800)
    local list, place = scene_rig.text_boxes(by), nil
    for _, box in ipairs(list) do if box.text == name and (not place or box.x0 < place.x0) then place = box end end
    t.ok(place, "no card is numbered " .. name)
    local spot = by.view:spot_at((place.x0 + place.x1) / 2, (place.y0 + place.y1) / 2)
    played:pointer("press", (place.x0 + place.x1) / 2, (place.y0 + place.y1) / 2, 1)
    taken[#taken + 1] = spot and env.action_space.names[spot.action + 1] or "nothing"
    t.eq(played.last, tonumber(name))
  end
  t.eq(table.concat(taken, " "), "7 51 0")
end)
