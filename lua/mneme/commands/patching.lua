-- patching.lua -- mneme intervene RUN patch=A:B: which part of episode A's memory, before which step, changes a decision of episode B, and through
-- which other part it does.  As a table, and as JSON, CSV or SVG.
local contributions = require "mneme.insight.episodes.contributions"
local errors = require "mneme.base.errors"
local figures = require "mneme.insight.figures"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local patching = require "mneme.insight.episodes.patching"
local stepper = require "mneme.insight.episodes.stepper"
local tables = require "mneme.base.tables"

local command = {}
local LONGEST = 2000               -- steps of an episode

---A figure of the map.
function command.figure(job, title)
  return job.map:figure(title, ("Rows with an arrow: the change of the first part that reaches step %d through the second alone, the strongest. Cells without "
    .. "colour move less than %.0f %%."):format(job.decision, 100 * contributions.LITTLE))
end

-- Every number, row by row: from, step, through ("" for every way), what it does.
local function numbers(job)
  local list = {}
  for r, row in ipairs(job.parts) do
    for c, step in ipairs(job.map.steps) do list[#list + 1] = tables.merged(job.cells[r][c], { from = row, step = step }) end
  end
  for _, path in ipairs(job.paths) do list[#list + 1] = path end
  return json.array(tables.map(list, function(p)
    return { from = p.from.word, step = p.step, through = p.through and p.through.word or "", moved = p.loss, probability = p.probability,
      log_odds = p.log_odds, greedy = p.greedy }
  end))
end

local function write(job, o, about)
  if o.out:find "%.json$" then
    about.values = numbers(job)
    files.write(o.out, { json.encode(about, " "), "\n" })
  else figures.export(command.figure(job, ("What episode %d's memory does to step %d of episode %d"):format(o.patch[1], job.decision, o.patch[2])), o.out) end
  print(o.out)
end

---The report of a map: what all of A's memory does at the last column, and the map.
---@param space Space of the actions
function command.report(job, space)
  local c = #job.map.steps
  local all = job.cells[1][c]
  local text = ("with all of that memory before step %d: %s(%s) %.2f → %.2f, %s %+.2f, likeliest %s\n"):format(job.map.steps[c],
    space.kind == "box" and "density" or "p", space:words(job.action), job.before, all.probability,
    job.other and "log-odds to " .. space:words(job.other) or "log-probability", all.log_odds, space:words(all.greedy))
  return text:gsub("%-(%d)", "−%1") .. job.map:table()
    .. (#job.map.rows > #job.parts and ("A>B: what A changes at step %d through B alone\n"):format(job.decision)
      or "no path through a single part moves the policy\n")
end

---@param o table of intervene.check: folder, patch, decision, at, every, seed, greedy, best, checkpoint, out
---@param env table settings of the environment
function command.main(o, env)
  local histories, p, outcomes = {}, nil, {}
  for k = 1, 2 do
    p = stepper.from_run(o.folder, { num_envs = 1, seed = o.seed + o.patch[k], greedy = o.greedy, best = o.best, checkpoint = o.checkpoint, settings = env,
      seeded = true })
    histories[k], outcomes[k] = patching.play(p, LONGEST)
  end
  if o.decision and o.decision >= #histories[2] then
    errors.usage(("intervene: decision=%d, and episode %d has %d steps: expected 0 to %d"):format(o.decision, o.patch[2], #histories[2], #histories[2] - 1))
  end
  local job = patching.new(p.agent, histories[1], histories[2], { decision = o.decision, at = o.at, every = o.every })
  job:work()
  if job.problem then errors.usage("intervene: " .. job.problem) end
  local space = p.env.action_space
  print(("%s at %.0f steps: memory of episode %d (%d steps%s) in episode %d (%d steps%s), which did %s at step %d"):format(o.folder, p.steps,
    o.patch[1], #histories[1], outcomes[1] and (", return %.2f"):format(outcomes[1].ret) or "", o.patch[2], #histories[2],
    outcomes[2] and (", return %.2f"):format(outcomes[2].ret) or "", space:words(job.action), job.decision))
  io.stdout:write(command.report(job, space))
  if o.out then
    write(job, o, { run = o.folder, checkpoint = p.steps, seed = o.seed, memory_of = o.patch[1], episode = o.patch[2], decision = job.decision,
      action = job.action, other = job.other, actions = json.array(space.names) })
  end
  return 0
end

return command
