-- scene_rig.lua -- a frame for a scene to draw: a small agent that has not learnt, in the scene's own task.
local mn = require "mneme"
local player = require "mneme.player"
local recorder = require "mneme.recorder"

local rig = {}

---The nth frame of a fresh agent's life in the task that the scene names; the same each time.
---@return table frame
---@return table film the recorder, which has seen it all
function rig.frame(what, n)
  local core = { what.core[1], d_model = 16, n_layers = 2 }
  if what.core[1] == "agalite" then core.n_heads, core.d_head, core.d_ffn = 2, 8, 16 end
  mn.manual_seed(1)
  local source, film = player.fresh { task = what.task, core = core }, recorder.new()
  local frame
  for _ = 1, n do
    local now = source:next()
    if now.ended then film:finish(now.ended, now.reward) end
    frame = film:add(now)
  end
  return frame, film
end

return rig
