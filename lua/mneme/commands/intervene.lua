-- intervene.lua -- measure what a part of a memory is good for: mneme intervene RUN erase=layers.2 at=40.
-- Plays every episode twice, with and without an intervention at step `at`, with the same environments and
-- random numbers: the two are equal up to that step, and every later difference is the intervention's effect.
--   erase=PART swap=PART             a part of the memory: all, layers.2, layers.2.head.1, a state's name;
--                                    erase sets it to its initial value, swap to that of another episode
--   hold=PART                        it keeps what it holds before step `at`: what did it lose later?  for=STEPS
--   force=PROBE:NUMBER freeze=PROBE  a gate: layers.0.beta, layers.0.head.1.beta; from step `at` on, or
--                                    for=STEPS
--   set=FACT:VALUE shift=FACT:NUMBER flip=FACT (flip=1: the first)
--                                    the environment: cue, position; mneme help ENV lists its facts
-- Several interventions (comma-separated or repeated) apply at the same step.
--   episodes=200 greedy=1 num_envs=N
--   seed=N                           episode k begins with seed + k, with and without; mneme eval seed=N plays others
--   best=1 checkpoint=STEPS          the best checkpoint, or that one, instead of the newest
--   erase=each at=each               every part at every step: mneme where
--   patch=A:B                        memory of episode A in episode B, part by part and step by step, and by which way it changes a
--                                    decision; decision=STEP every=STEPS out=FILE.svg|csv|json
--   record=FOLDER                    keep all episodes as trajectories
--   threads=N                        CPU threads; default: all processors
-- Other keys are settings of the environment.
local arguments = require "mneme.commands.run_arguments"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local intervention_args = require "mneme.episodes.intervention_args"
local interventions = require "mneme.episodes.interventions"
local paired_episodes = require "mneme.episodes.paired_episodes"
local patching = require "mneme.commands.patching"
local stepper = require "mneme.episodes.stepper"
local next_step = require "mneme.base.next_step"
local progress = require "mneme.base.progress"
local stats = require "mneme.stats"
local columns = require("mneme.base.layout").table
local C = engine.C

local intervene = {}

-- ---- the command line ----

local command = { name = "intervene", draws = "episode k begins with this seed + k, while the environments of eval all draw from one",
  usage = "mneme intervene RUN erase=layers.0 at=40 [episodes=200]", other = {},
  whole = { at = 0, ["for"] = 1, episodes = 1, seed = 0, num_envs = 1, greedy = 0, best = 0, checkpoint = 0, decision = 0, every = 1 } }
for kind in pairs(interventions.kinds) do
  command.other[kind] = function(o, text) intervention_args.read(o.list, kind, text, "intervene") end
end
function command.other.record(o, text)
  if text == "" then errors.usage "intervene: record= is empty, expected the name of a folder" end
  o.record = text
end

function command.other.patch(o, text) o.patch = patching.read(text) end
function command.other.out(o, text)
  if not (text:find "%.svg$" or text:find "%.csv$" or text:find "%.json$") then
    errors.usage(("intervene: out=%s, expected FILE.svg, FILE.csv or FILE.json"):format(text))
  end
  o.out = text
end

---Read the command line.
---@param words string[]
---@return table options { folder, episodes, seed, greedy, best, checkpoint, num_envs, record }
---@return table[] list of interventions
---@return table environment settings
function intervene.parse(words)
  local o, env = arguments.read(command, words, { episodes = 200, greedy = false, best = false, seed = 12345, list = {} })
  for key in pairs { out = 1, decision = 1, every = 1 } do
    if o[key] and not o.patch then errors.usage(("intervene: %s= is for patch=A:B"):format(key)) end
  end
  if o.patch then
    if #o.list > 0 then errors.usage "intervene: patch= is a map of its own, without another intervention" end
    return o, o.list, env
  end
  if #o.list == 0 then
    arguments.check_settings(command, o.folder, env)           -- noise=: it is not one, and what is
    errors.usage("intervene: no intervention is given", "erase= swap= hold= force= freeze= set= shift= flip= patch=; mneme help intervene")
  end
  if not o.at then errors.usage("intervene: at which step?", "at=40") end
  intervention_args.time(o.list, o.at, o["for"], "intervene")
  return o, o.list, env
end

-- ---- what came of it ----

-- An estimate with its interval; a single episode has none.
local function with_interval(format, value, low, high)
  return format:format(value) .. (low and (" [%.3f, %.3f]"):format(low, high) or "")
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
---@return string text
function intervene.report(pairs_of, at)
  local cases, longest, refused = paired_episodes.reaching(pairs_of, at)
  local reached, rest = #cases + refused, ""
  if reached == 0 then rest = (": the longest had %d steps"):format(longest)
  elseif #cases == 0 then rest = "; in none of them could it be applied"
  elseif refused > 0 then rest = ("; in %d of them it could not be applied: the results below are of the other %d"):format(refused, #cases)
  elseif reached < #pairs_of then rest = ": the results below are of these" end
  local out = { ("step %d was reached by %d of %d episodes%s\n"):format(at, reached, #pairs_of, rest) }
  if #cases == 0 then return out[1] end
  local count, rows = paired_episodes.count_success(cases), { { "", "without", "with", "difference" } }
  local scored = true
  for _, c in ipairs(cases) do scored = scored and c[1].score ~= nil and c[2].score ~= nil end
  if scored then rows[2] = count and share_row(count, #cases) or mean_row("score", "score", cases) end
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

-- erase=each at=each is a map of its own: the remaining words, or nil.
local function words_of_map(words)
  local rest, each = {}, 0
  for _, word in ipairs(words) do
    if word:find "^%-*erase=each$" or word:find "^%-*at=each$" then each = each + 1 else rest[#rest + 1] = word end
  end
  if each == 1 then errors.usage("intervene: each is for both, every part at every step", "erase=each at=each") end
  return each > 1 and rest or nil
end

---@param words string[]
---@return integer status
function intervene.main(words)
  local map = words_of_map(words)
  if map then return require("mneme.commands.where").main(map) end
  local o, list, env = intervene.parse(words)
  local num_envs = o.num_envs or math.min(o.episodes, 64)
  arguments.check(command, o, env, "to intervene in")
  if o.patch then return patching.main(o, env) end
  local p = stepper.from_run(o.folder, { num_envs = num_envs, seed = o.seed, greedy = o.greedy, best = o.best,
    checkpoint = o.checkpoint, settings = env })
  local made = interventions.new(p, list)
  C.mn_watch_signals(true)
  local bar = progress.new { steps = o.episodes, unit = "episodes", after = 2 }
  local cases = paired_episodes.play(p, made, { episodes = o.episodes, seed = o.seed, record = o.record,
    done = function(n) bar:update(n, {}) end })
  bar:clear()
  local status = errors.status_of(C.mn_interrupted())
  C.mn_watch_signals(false)
  if #cases == 0 then errors.stop(status) end
  local texts = {}
  for i, spec in ipairs(made.specs) do
    texts[i] = interventions.text(spec)
    if spec.done < #cases then texts[i] = ("%s (applied in %d episodes)"):format(texts[i], spec.done) end
  end
  print(("%s at %.0f steps, %d episodes%s: %s at step %d"):format(o.folder, p.steps, #cases, o.greedy and ", greedy" or "",
    table.concat(texts, ", "), made.specs[1].at))
  io.stdout:write(intervene.report(cases, made.specs[1].at))
  if o.record then print(("episodes in %s/without and %s/with"):format(o.record, o.record)) end
  if status == 0 then
    local shown = { "view", o.folder }
    for _, word in ipairs(words) do
      local key = word:match "^%-*([%w_]+)="
      if key == "at" or key == "for" or interventions.kinds[key] then shown[#shown + 1] = word end
    end
    next_step.say(shown)
  end
  return status
end

return intervene
