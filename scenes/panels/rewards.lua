-- rewards.lua -- the return (the sum of the rewards so far) in this episode, step by step.
local mn = require "mneme"
local panels = mn.scene.panels

-- Entry -> the sum up to it, of an episode.
local function sums_of(frames)
  local of = {}
  for _, frame in ipairs(frames) do
    local sum = 0
    for _, entry in ipairs(frame.episode_history or frame.history) do
      sum = sum + (entry.reward or 0)
      of[entry] = sum
    end
  end
  return of
end

return function(view, box, now)
  local sums, history, beyond = sums_of { now, unpack(now.beside or {}) }, now.episode_history or now.history, nil
  if now.outcome then                    -- what the last action brought
    beyond = { step = now.step + 1, ret = now.ret }
    history = { unpack(history) }
    history[#history + 1] = beyond
  end
  local shown = setmetatable({ history = history, episode_history = now.episode_history and history, step = beyond and beyond.step or now.step },
    { __index = now })
  panels.signals(view, box, shown, { title = "return", note = "now " .. mn.ui.canvas.number(now.ret or 0, 2), y_name = "sum of rewards",
    least = 0, span = 0.2, lines = { { name = "return", of = function(entry) return entry == beyond and beyond.ret or sums[entry] end } } })
end
