-- credit.lua -- `mneme credit`: which earlier observations an agent's value and action depend on.
local lazy = require "mneme.base.lazy"
local arguments = require "mneme.commands.arguments"
local next_step = require("mneme.base.terminal").next_step
local options = require "mneme.commands.options"
local credit = lazy "mneme.insight.measure.credit"
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"
local figures = lazy "mneme.insight.figures"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local stepper = lazy "mneme.insight.episodes.stepper"

local command = { name = "credit", doc = "which earlier observations an agent's value and action depend on", others = "env", loads = true,
  arguments = options.run, about = [[
Plays an episode and prints how large the gradient of the value, or of the chosen action's logit (of an action of several numbers: its
log-probability), at step `at` is with respect to the observation of every earlier step.  A gradient says what a small change
would do: mneme where RUN erases memory instead.]],
  options = options.join({ { "at", "the step that is explained", type = "whole", unless = "the last of the episode", example = "10" },
    { "of", "the value, or what was done", type = "choice", choices = { "value", "action" }, default = "value" } },
    options.agent,
    { "out", "a heat map of every step against every earlier one, or all gradients", type = "file", endings = { "svg", "json" } }) }
local MOST = 10                    -- parts in the table
local LONGEST = 2000               -- steps of an episode that is explained

-- ---- what is said ----

-- The share of a step's gradient that belongs to each earlier step, by steps before it, from 0; and the sum of the sizes.
local function shares(row, t)
  local sum, back = 0, {}
  for s = 0, t do sum = sum + row[s + 1] end
  for k = 0, t do back[k + 1] = sum > 0 and row[t - k + 1] / sum or 0 end
  return back, sum
end

-- How far back half of the gradient lies.
local function half_within(back)
  local sum = 0
  for k = 1, #back do
    sum = sum + back[k]
    if sum >= 0.5 then return k - 1 end
  end
  return #back - 1
end

local function describe(o, agent, map, episode)
  local t, done = map.at[1], episode.action[map.at[1] + 1]
  local of = o.of == "value" and "value" or credit.action_words(agent, type(done) == "table" and agent.action_space:words(done) or "action " .. done)
  local back, sum = shares(map[o.of][1], t)
  if sum == 0 then
    print(("the %s at step %d depends on no observation: its gradient is zero"):format(of, t))
    return
  end
  print(("the %s at step %d depends on these observations, by their shares of a gradient of %.2g:"):format(of, t, sum))
  io.stdout:write((credit.view(map.rows[1], map.all_parts, o.of, of, MOST):table()))
  print(("%.1f %% of it is of earlier observations; half lies within %s"):format(100 * (1 - back[1]), format.counted(half_within(back), "step")))
end

-- ---- files ----

-- Every step against every earlier one.
local function figure(map, of, title)
  local cells, rows, steps = {}, {}, {}
  for s = 0, map.T - 1 do steps[s + 1] = s end
  for i, t in ipairs(map.at) do
    local back = shares(map[of][i], t)
    rows[i], cells[i] = { word = tostring(t), text = tostring(t) }, {}
    for s = 0, t do cells[i][s + 1] = { share = back[t - s + 1] } end
  end
  return credit.shares(rows, steps, cells, "by the observation of step"):figure(title, "A row for each step that is explained; rows add up to 1.")
end

local function write(o, map, episode, title)
  if o.out:find "%.json$" then
    files.write(o.out, { json.encode({ run = o.folder, seed = o.seed, at = map.at, steps = map.T, value = map.value, action = map.action, names = map.names,
      parts = map.parts, actions = episode.action, values = episode.value }), "\n" })
  else figures.export(figure(map, o.of, title), o.out) end
  print(o.out)
end

-- ---- the command ----

function command.run(o)
  arguments.check_run(command, o, "to explain")
  local p = stepper.from_run(o.folder, { num_envs = 1, seed = o.seed, greedy = o.greedy, best = o.best, checkpoint = o.checkpoint,
    settings = o.env_settings, seeded = true, threads_that_pay = not o.threads })
  local episode = credit.play(p, LONGEST)
  if o.at and o.at >= episode.T then
    errors.usage(("credit: at=%d, and the episode of seed %d has %s: expected 0 to %d"):format(o.at, o.seed, format.counted(episode.T, "step"),
      episode.T - 1))
  end
  print(("%s: episode of seed %d, %s%s"):format(p.title, o.seed, format.counted(episode.T, "step"),
    episode.outcome and (episode.outcome.score and (", score %.3g"):format(episode.outcome.score) or "")
      .. (", return %.3g"):format(episode.outcome.ret) or " (it goes on)"))
  describe(o, p.agent, credit.map(p.agent, p.env, episode, { o.at or episode.T - 1 }), episode)
  print "a gradient is what a small change would do: a cue that is held firmly may have little of it"
  if o.out then write(o, credit.map(p.agent, p.env, episode), episode, ("what the %s depends on: %s"):format(o.of, p.title)) end
  next_step.note { "where", o.folder }
  return 0
end

return command
