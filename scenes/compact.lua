-- compact.lua -- environment, policy and memory on a small page: for videos of two agents side by side.
--   mneme view RUN scene=compact erase=layers.1.head.3 at=5 size=900x360 out=FILE.gif
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local u = view.unit
  local header, world, below = view:split(view:inset(view.box, 10), "rows", { 36, "3*", "5*" }, 8)
  local name, agent = (now.title or ""):match "^(.-) – (.*)"           -- of one of two
  view:text(name or now.title or "", header.x, header.y + 15 * u, 15, view.theme.text, "left", header.w - 150 * u)
  view:text(agent or "", header.x, header.y + 32 * u, 11.5, view.theme.dim, "left", header.w - 150 * u)
  local progress = ("step %d   return %+.1f"):format(now.step or 0, now.ret or 0):gsub("-", "−")
  view:text(progress, header.x + header.w, header.y + 15 * u, 13, view.theme.dim, "right")
  local cue = now.truth.cue and now.truth.position           -- in a T-Maze: where the light of what is known goes out
  panels.world(view, world, now, cue and { known = "cue", place = function(entry) return entry.x and entry.x + 0.5, 0 end } or nil)
  local policy, memory = view:split(below, "columns", { "2*", "3*" }, 8)
  panels.policy(view, policy, now)
  panels.memory(view, memory, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
