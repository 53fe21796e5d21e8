-- intervene.lua -- `mneme intervene`: measure what a part of a memory is good for.
local lazy = require "mneme.base.lazy"
local arguments = require "mneme.commands.arguments"
local options = require "mneme.commands.options"
local contributions = lazy "mneme.insight.episodes.contributions"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"
local figures = lazy "mneme.insight.figures"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local intervention_options = lazy "mneme.insight.episodes.intervention_options"
local interventions = lazy "mneme.insight.episodes.interventions"
local paired_episodes = lazy "mneme.insight.episodes.paired_episodes"
local patching = lazy "mneme.insight.episodes.patching"
local stepper = lazy "mneme.insight.episodes.stepper"
local next_step = require("mneme.base.terminal").next_step
local progress = require "mneme.base.progress"
local stats = lazy "mneme.stats"
local columns = require("mneme.base.layout").table
local setting_types = require "mneme.base.setting_types"
local tables = require "mneme.base.tables"

local intervene = { name = "intervene", doc = "ablate part of a memory, clamp a gate or change the world, and measure the effect on success",
  others = "env", loads = true, draws = "episode k begins with this seed + k, while the environments of eval all draw from one",
  arguments = options.run, about = [[
Plays every episode twice, with and without an intervention at step `at`, with the same environments and random numbers: the two are equal up
to that step, and every later difference is the intervention's effect.  erase=each at=each: every part at every step, as mneme where.]],
  options = options.join({ { "at", "the step", type = "whole", also = "each", example = "40", hint = "one step at a time; every step: mneme where RUN" } },
    options.interventions, options.episodes(200), options.common.num_envs, options.agent,
    { "record", "keep all episodes as arrays for NumPy", type = "folder", example = "episodes" }, {
      { "patch", "memory of episode A in episode B, part by part and step by step, and by which way it changes a decision", type = "text",
        pattern = "^%d+:%d+$", expected = "the numbers of two episodes, from 0", example = "0:1",
        hint = "patch=0:1 puts memory of episode 0 into episode 1", set = function(o, text)
          local a, b = text:match "^(%d+):(%d+)$"
          o.patch = { tonumber(a), tonumber(b) }
        end },
      { "decision", "with patch=: the step of the decision", type = "whole", example = "9" },
      { "every", "with patch=: steps between columns", type = "whole", range = { 1 }, example = "2" },
      { "out", "with patch=: all numbers, or a figure", type = "file", endings = { "svg", "csv", "json" } } }) }

---What does not go together.
---@param o table of arguments.read; gets `list`, the interventions
function intervene.check(o)
  o.list = o.list or {}
  for _, key in ipairs { "out", "decision", "every" } do
    if o[key] and not o.patch then errors.usage(("intervene: %s= is for patch=A:B"):format(key)) end
  end
  if o.patch and #o.list > 0 then errors.usage "intervene: patch= is a map of its own, without another intervention" end
  if o.patch then return end
  if #o.list == 0 then
    arguments.check_env(intervene, o.folder, o.env_settings)           -- noise=: it is not one, and what is
    errors.usage("intervene: no intervention is given", "erase= swap= hold= force= freeze= set= shift= flip= patch=; mneme help intervene")
  end
  if not o.at then errors.usage("intervene: at which step?", "at=40") end
  intervention_options.time(o.list, o.at, o["for"], "intervene")
end

-- ---- what came of it ----

-- An estimate with its interval; a single episode has none.
local function with_interval(text, value, low, high)
  return format.said(text, value) .. (low and format.said(" [%.3f, %.3f]", low, high) or "")
end

-- A row of the table: the mean of each arm and of their differences, with Student's intervals.
local function mean_row(key, name, cases)
  local lists = { {}, {}, {} }
  for i, c in ipairs(cases) do
    lists[1][i], lists[2][i], lists[3][i] = c[1][key], c[2][key], c[2][key] - c[1][key]
  end
  local row = { name }
  for i, list in ipairs(lists) do
    row[i + 1] = with_interval(i == 3 and "%+.3f" or "%.3f", stats.t_interval(list))
  end
  return row
end

local function share_row(count, n)
  local function arm(k) return with_interval("%.3f", stats.wilson(k, n)) end
  return { "success", arm(count.both + count.without), arm(count.both + count.with),
    with_interval("%+.3f", stats.paired_shares(count.both, count.with, count.without, count.neither)) }
end

---The table of an experiment.
---@param pairs_of table[] from paired_episodes.play
---@param at integer the step of the intervention
function intervene.report(pairs_of, at)
  local cases, longest, refused = paired_episodes.reaching(pairs_of, at)
  local reached, rest = #cases + refused, ""
  if reached == 0 then rest = (": the longest had %s"):format(format.counted(longest, "step"))
  elseif #cases == 0 then rest = "; in none of them could it be applied"
  elseif refused > 0 then rest = ("; in %d of them it could not be applied: the results below are of the other %d"):format(refused, #cases)
  elseif reached < #pairs_of then rest = ": the results below are of these" end
  local out = { ("step %d was reached by %d of %s%s\n"):format(at, reached, format.counted(#pairs_of, "episode"), rest) }
  if #cases == 0 then return out[1] end
  local count, rows = paired_episodes.count_success(cases), { { "", "without", "with", "difference" } }
  if cases[1][1].score then rows[2] = count and share_row(count, #cases) or mean_row("score", "score", cases) end
  rows[#rows + 1], rows[#rows + 2] = mean_row("ret", "return", cases), mean_row("length", "length", cases)
  out[2] = columns(rows)
  if count then
    local p = stats.sign_test(count.without, count.with)
    out[3] = ("%d succeed only without it, %d only with it: p %s (McNemar, exact)\n"):format(count.without, count.with,
      p > 0 and ("= %.2g"):format(p) or "< 1e-300")
  end
  out[#out + 1] = ("95 %% intervals: %sStudent's, differences over pairs\n"):format(
    count and "success Wilson's, its difference Newcombe's for pairs (method 10); the others " or "")
  return table.concat(out)
end

-- ---- patch=A:B: which part of episode A's memory, before which step, changes a decision of episode B, and through which other part ----

local LONGEST = 2000               -- steps of an episode

-- A figure of the map.
local function figure_of(job, title)
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

local function write_map(job, o, about)
  if o.out:find "%.json$" then
    about.values = numbers(job)
    files.write(o.out, { json.encode(about, " "), "\n" })
  else figures.export(figure_of(job, ("What episode %d's memory does to step %d of episode %d"):format(o.patch[1], job.decision, o.patch[2])), o.out) end
  print(o.out)
end

-- The report of a map: what all of A's memory does at the last column, and the map.
local function report_of(job, space)
  local c = #job.map.steps
  local all = job.cells[1][c]
  local text = ("with all of that memory before step %d: %s(%s) %.2f → %.2f, %s %+.2f, likeliest %s\n"):format(job.map.steps[c],
    space.kind == "box" and "density" or "p", space:words(job.action), job.before, all.probability,
    job.other and "log-odds to " .. space:words(job.other) or "log-probability", all.log_odds, space:words(all.greedy))
  return text:gsub("%-(%d)", "−%1") .. job.map:table()
    .. (#job.map.rows > #job.parts and ("A>B: what A changes at step %d through B alone\n"):format(job.decision)
      or "no path through a single part moves the policy\n")
end

local function patch(o)
  local histories, p, outcomes = {}, nil, {}
  for k = 1, 2 do
    p = stepper.from_run(o.folder, { num_envs = 1, seed = o.seed + o.patch[k], greedy = o.greedy, best = o.best, checkpoint = o.checkpoint,
      settings = o.env_settings, seeded = true })
    histories[k], outcomes[k] = patching.play(p, LONGEST)
  end
  if o.decision and o.decision >= #histories[2] then
    errors.usage(("intervene: decision=%d, and episode %d has %s: expected 0 to %d"):format(o.decision, o.patch[2],
      format.counted(#histories[2], "step"), #histories[2] - 1))
  end
  local job = patching.new(p.agent, histories[1], histories[2], { decision = o.decision, at = o.at, every = o.every })
  job:work()
  if job.problem then errors.usage("intervene: " .. job.problem) end
  local space = p.env.action_space
  print(("%s at %.0f steps: memory of episode %d (%s%s) in episode %d (%s%s), which did %s at step %d"):format(o.folder, p.steps,
    o.patch[1], format.counted(#histories[1], "step"), outcomes[1] and format.said(", return %.2f", outcomes[1].ret) or "", o.patch[2],
    format.counted(#histories[2], "step"), outcomes[2] and format.said(", return %.2f", outcomes[2].ret) or "", space:words(job.action), job.decision))
  io.stdout:write(report_of(job, space))
  if o.out then
    write_map(job, o, { run = o.folder, checkpoint = p.steps, seed = o.seed, memory_of = o.patch[1], episode = o.patch[2], decision = job.decision,
      action = job.action, other = job.other, actions = json.array(space.names) })
  end
  return 0
end

-- ---- the command ----

-- erase=each at=each is a map of its own: the same words for mneme where; nil: it is none.
local function words_of_map(o)
  local each = 0
  for _, item in ipairs(o.all) do if item[2] == "each" and (item[1] == "erase" or item[1] == "at") then each = each + 1 end end
  if each == 1 then errors.usage("intervene: each is for both, every part at every step", "erase=each at=each") end
  return each > 1 and setting_types.without(o.words, "erase", "at") or nil
end

function intervene.run(o)
  local map = words_of_map(o)
  if map then return arguments.run(require "mneme.commands.where", map) end
  intervene.check(o)
  local num_envs = o.num_envs or math.min(o.episodes, 64)
  arguments.check_run(intervene, o, "to intervene in")
  if o.patch then return patch(o) end
  local p = stepper.from_run(o.folder, { num_envs = num_envs, seed = o.seed, greedy = o.greedy, best = o.best,
    checkpoint = o.checkpoint, settings = o.env_settings, threads_that_pay = not o.threads })
  local made = interventions.new(p, o.list)
  local bar = progress.new { steps = o.episodes, unit = "episodes", after = 2 }
  local status, cases = engine.heeding(o.record ~= nil, paired_episodes.play, p, made, { episodes = o.episodes, seed = o.seed, record = o.record,
    done = function(n) bar:update(n, {}) end })
  bar:clear()
  if #cases == 0 then errors.stop(status) end
  local texts = {}
  for i, spec in ipairs(made.specs) do
    texts[i] = interventions.text(spec)
    if spec.done < #cases then texts[i] = ("%s (applied in %s)"):format(texts[i], format.counted(spec.done, "episode")) end
  end
  print(("%s at %.0f steps, %s%s: %s at step %d"):format(o.folder, p.steps, format.counted(#cases, "episode"), p:how_chosen(),
    table.concat(texts, ", "), made.specs[1].at))
  io.stdout:write(intervene.report(cases, made.specs[1].at))
  if o.record then print(("episodes in %s/without and %s/with"):format(o.record, o.record)) end
  if status == 0 then
    local shown = { "view", o.folder }
    for _, item in ipairs(o.all) do
      if item[1] == "at" or item[1] == "for" or interventions.kinds[item[1]] then shown[#shown + 1] = item.word end
    end
    next_step.say(shown)
  end
  return status
end

return intervene
