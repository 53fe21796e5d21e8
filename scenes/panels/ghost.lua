-- ghost.lua -- the agent that plays the episode which a person plays: the rewards of both at each step, and, when it is over, what it did.
local mn = require "mneme"
local canvas = mn.ui.canvas

-- One row: a cell a step, green for a reward and orange for a cost, paler for less.
local function row(view, x, y, wide, high, rewards, most)
  for i, reward in ipairs(rewards) do
    local colour = reward > 0 and view.theme.good or reward < 0 and view.theme.bad or view.theme.line
    local strength = reward == 0 and 1 or 0.25 + 0.75 * math.abs(reward) / most
    view:rect(x + (i - 1) * wide, y, math.max(1, wide - (wide > 4 and 1 or 0)), high, canvas.fade(colour, strength))
  end
end

return function(view, box, now)
  local theme, u, ghost = view.theme, view.unit, now.ghost
  local o = ghost.outcome
  local note = o and ("it has ended: %sreturn %+.2f, %d steps"):format(o.score and ("score %.2f, "):format(o.score) or "", o.ret, o.length)
    or ("return %+.2f after %d step%s"):format(ghost.ret, #ghost.rewards, #ghost.rewards == 1 and "" or "s")
  local inner = view:card(box, ghost.name .. " in the same episode", (note:gsub("%-(%d)", "−%1")))
  local mine, most = {}, 1e-6
  for i = 2, #now.history do mine[i - 1] = now.history[i].reward end
  if now.outcome then mine[#mine + 1] = now.reward end
  for _, list in ipairs { mine, ghost.rewards } do for _, reward in ipairs(list) do most = math.max(most, math.abs(reward)) end end
  local left = 16 * u + math.max(view:text_width("you", 11), view:text_width(ghost.name, 11))
  local steps, high = math.max(20, #mine, #ghost.rewards), 14 * u
  local wide = (inner.w - left) / steps
  for i, line in ipairs { { "you", mine }, { ghost.name, ghost.rewards } } do
    local y = inner.y + (i - 1) * (high + 4 * u)
    view:text(line[1], inner.x, y + 11 * u, 11, theme.dim)
    view:rect(inner.x + left, y, inner.w - left, high, theme.ground)
    row(view, inner.x + left, y, wide, high, line[2], most)
  end
  local below = inner.y + 2 * (high + 4 * u) + 12 * u
  local text = "rewards at each step; its actions are shown at the end"
  if ghost.actions then
    local names, from = {}, math.max(1, #ghost.actions - 30)
    for i = from, #ghost.actions do names[#names + 1] = ghost.actions[i] end
    text = "its actions: " .. (from > 1 and "… " or "") .. table.concat(names, " ")
  end
  view:text(text, inner.x, below, 11, theme.dim, "left", inner.w)
end
