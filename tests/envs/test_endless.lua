-- test_endless.lua -- Memory Gym's endless tasks: step by step and pixel by pixel what memory-gym did with the same commands and paths
-- (tests/reference/endless.py); how far each lasts is its score.
local t = require "tests.harness"
local crc32 = require("mneme.base.zlib").crc32
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local registry = require "mneme.base.registry"
local endless_plays = require "tests.support.endless_plays"

local recorded = json.decode((files.read((os.getenv "ORIGINALS" or registry.root .. "tests/fixtures/envs") .. "/endless.json")))
for i, theirs in ipairs(recorded) do
  for _, observation in ipairs { "pixels", "vector" } do
    t.test(("%s, play %d, %s: memory-gym moves, pays, ends and shows the same at every step"):format(theirs.name, i, observation), function()
      local played = endless_plays.play(i, observation, observation == "pixels" and crc32 or nil)
      local tile = theirs.name:find "^mortar" and 14 or 12
      t.eq(played.name, theirs.name)
      t.eq(#played.episodes, #theirs.episodes)
      local paid = 0
      for e, episode in ipairs(played.episodes) do
        local their = theirs.episodes[e]
        t.eq(#episode.actions, #their.reward, "steps of episode " .. e)
        for s = 1, #their.frame do
          local where = ("episode %d, step %d, "):format(e, s - 1)
          if s <= #episode.x then
            t.near(episode.x[s] * tile + tile / 2, their.x[s], 1e-4, where .. "x")
            t.near(episode.y[s] * tile + tile / 2, their.y[s], 1e-4, where .. "y")
            t.eq(episode.heading[s], their.heading[s], where .. "heading")
            t.eq(episode.count[s], their.count[s], where .. "executed or visited")
          end
          if observation == "pixels" then t.eq(episode.frames[s], their.frame[s], where .. "picture") end
          if s > 1 then
            t.near(episode.rewards[s - 1], their.reward[s - 1], 1e-6, where .. "reward")
            t.eq(episode.ended[s - 1], their.ended[s - 1], where .. "end")
            paid = paid + (their.reward[s - 1] > 0 and 1 or 0)
          end
        end
      end
      t.ok(paid > 20, "hardly anything was right: " .. paid)
    end)
  end
end

t.test("the score is how far it lasts, as a share of full", function()
  local ended = 0
  for i, play in ipairs(endless_plays.plays) do
    for _, full in ipairs { 4, 100 } do
      local played = endless_plays.play(i, "vector", nil, full)
      for e, episode in ipairs(played.episodes) do
        if episode.score then
          local count = episode.count[#episode.count]
          ended = ended + 1
          t.near(episode.score, math.min(1, count / full), 1e-6, ("%s, episode %d: %d of %d"):format(play[1], e, count, full))
        end
      end
    end
  end
  t.ok(ended > 20, ended .. " episodes ended")
end)
