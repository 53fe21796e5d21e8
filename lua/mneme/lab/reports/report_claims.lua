-- report_claims.lua -- the claims of a study in a report: as statements that can be tested, with their verdicts.  `out` is a page of
-- lab/reports/page/blocks.lua, `spec` what mn.study was given, `judged` of lab/study/claims.lua.
local format = require "mneme.base.format"
local labels = require("mneme.lab.study.grid").text
local setting_types = require "mneme.base.setting_types"
local tables = require "mneme.base.tables"

local report_claims = { words = { holds = "holds", fails = "does not hold", undecided = "undecided" } }         -- of verdicts
local NAMED = 4                    -- missing runs that are named; of more only the number is given
-- Of each kind of test: where it holds, and what it estimates.
local test_of = { better = "{metric} of {a} lies above that of {b}", at_least = "{metric} of {a} is at least {value}",
  ratio = "{metric} of {a} is at least {at_least} times that of {b}", solves = "more seeds of {a} than of {b} reach {above} of {metric}",
  sooner = "seeds of {a} reach {above} of {metric} sooner than those of {b}", equal = "{metric} of {a} and of {b} differ by at most {within}" }
local estimated = { better = "difference %s", at_least = "value %s", ratio = "%s times", equal = "difference %s" }
-- Why a verdict is not decided, or what is to say of one.
local whys = { no_run = "the study has no such runs",
  no_seed = "no seed has all runs that it needs", one_seed = "one seed says nothing of the next: an interval takes two",
  no_spread = "all %d seeds differ by the same, so their spread is not known; counting signs alone gives p = %s",
  not_positive = "a ratio needs numbers above 0", reaches_over = "the interval has both sides of the border in it",
  reaches_out = "the interval reaches beyond the distance that counts as equal", no_test = "no test was written",
  few_seeds = "a verdict takes at least five seeds of each side", several_points = "a side names several points: narrow it with where",
  no_difference = "the difference is within chance", corrected = "decided by itself, but not when corrected for all claims",
  stopping_rule = "every run stopped where it reached this number, which makes them alike whatever was changed",
  window = "a side acts on fewer steps than the task asks back, so that it cannot know: this is so by construction",
  failed_runs = "runs failed, and what they would have come to could change the verdict" }

-- A test as a sentence.
local function statement(test)
  local text = test_of[test[1]]:gsub("{([%w_]+)}", function(key)
    return type(test[key]) == "table" and labels(test[key]) or setting_types.show(test[key])
  end)
  if test.where then text = text .. (", %s"):format(labels(test.where)) end
  return test.exact and text .. ", in every seed" or text
end

local function id_of(claim, i) return claim.id or tostring(i) end

---Claims that these runs can say something of, apart from the others: a study may be run in part.
---@return table[] judged those of which the study has runs
---@return table[] claims theirs
---@return string[] unasked what the others are called
function report_claims.asked(judged)
  local asked, claims, unasked = {}, {}, {}
  for i, v in ipairs(judged) do
    if v.why == "no_run" then unasked[#unasked + 1] = id_of(v.claim, i)
    else asked[#asked + 1], claims[#claims + 1] = v, v.claim end
  end
  return asked, claims, unasked
end

---What is claimed.
---@param unasked string[] of report_claims.asked
function report_claims.claims(out, list, unasked)
  if #unasked > 0 then out:paragraphs(("The study has no runs for these claims: %s."):format(table.concat(unasked, ", ")), "dim") end
  if #list == 0 then return end
  out:table({ "", "claim", "holds where", "source" }, tables.map(list, function(claim, i)
    local sentence = claim.test and statement(claim.test) or whys.no_test
    return { { id_of(claim, i), href = "#verdict-" .. i }, { claim.text, class = "wide" }, { sentence, class = "wide" }, claim.source or "–" }
  end))
end

---A p-value in words.
function report_claims.p(p) return not p and "–" or p < 0.001 and "< 0.001" or ("= %.3f"):format(p) end

---A probability in words: not 0.00 or 1.00 where that is rounded, as if it were certain.
function report_claims.share(p) return p > 1e-12 and p < 0.005 and "< 0.01" or p < 1 - 1e-12 and p >= 0.995 and "> 0.99" or ("%.2f"):format(p) end

-- A time by which half have solved it.
local function when(x) return x and format.short(x) or "never" end

-- What there is to say of a verdict besides its numbers.
local function remarks(v)
  local parts = {}
  local function add(s, ...) parts[#parts + 1] = s:format(...) end
  if v.why == "no_spread" then add(whys.no_spread, v.n, (report_claims.p(v.p):gsub("^= ", "")))
  elseif v.why then add("%s", whys[v.why]) end
  if v.shares then add("%d of %d against %d of %d", unpack(v.shares)) end
  if v.medians then add("half have solved it after %s and %s", when(v.medians[1]), when(v.medians[2])) end
  local c = v.counted
  if c and c.fresh > 0 then
    add("runs that count by the fresh episodes which they played after they had stopped (at least %s): %d",
      setting_types.show(v.claim.test.fresh or v.claim.test.above), c.fresh)
  end
  if c and c.first > 0 then
    add("runs that count because their last 100 training episodes first reached %s, some by luck: %d", setting_types.show(v.claim.test.above), c.first)
  end
  if v.stopped and v.why ~= "stopping_rule" then add("%d of %d runs stopped where they reached this number", unpack(v.stopped)) end
  if v.low and v.claim.test.exact then add("%s", "counted, not drawn: no interval") end
  if v.improvement then
    local p, low, high = unpack(v.improvement)
    add("a run of the first is better than one of the second with probability %s",
      report_claims.share(p) .. (low and low < high and (" (%s … %s)"):format(report_claims.share(low), report_claims.share(high)) or ""))
  end
  for _, r in ipairs(v.rollout) do
    add("%d of %d runs of %s act with core.sees=rollout: on the steps of their rollout besides their memory", r.n, r.of, r.name)
  end
  if v.over then add("each seed's number is the mean over %s", table.concat(v.over, "; ")) end
  if v.failed then
    local sides = tables.map({ "a", "b" }, function(side)
      local of = v.failed[side]
      return of and ("%d of %d runs of %s"):format(of[1], of[2], labels(v.claim.test[side]))
    end)
    add("failed: %s", table.concat(sides, ", "))
    if v.shares then add("%s", "a run that failed counts as one that has not solved it") end
  end
  if #v.missing > 0 then
    local names = tables.map({ unpack(v.missing, 1, NAMED) }, function(run)
      return ("%s (%s)"):format(run.name, run.status == "no number" and "has no such number" or run.status)
    end)
    if #v.missing > NAMED then names[#names + 1] = ("and %d more"):format(#v.missing - NAMED) end
    add("missing: %s", table.concat(names, "; "))
  end
  return table.concat(parts, "; ")
end

---What was estimated, in words: a difference, a ratio, shares that solved it, or times.
---@return string? interval "0.1 … 0.3"
function report_claims.estimate(v, spec)
  local test = v.claim.test or {}
  local unit = ((spec.metrics or {})[test.metric] or {}).unit
  if v.medians then return ("half solved after %s against %s"):format(when(v.medians[1]), when(v.medians[2]))
  elseif v.shares then return ("%d of %d against %d of %d"):format(unpack(v.shares))
  elseif not v.estimate then return whys[v.why] or "–" end
  local say = estimated[test[1]] or "%s"
  local interval = v.low and v.low < v.high
  local numbers = interval and { v.estimate, v.low, v.high } or { v.estimate }
  local huge = test[1] == "ratio" and math.max(v.estimate, v.high or 0) >= 1e6
  local shown = huge and tables.map(numbers, format.times) or format.alike(numbers, test[1] ~= "ratio" and unit or nil)
  for i, s in ipairs(shown) do shown[i] = s:gsub("^%-", "−") end
  if interval and shown[2]:match " (.*)$" == shown[3]:match " (.*)$" then shown[2] = shown[2]:match "^%S+" end        -- the unit once
  return say:format(test.exact and ("%.6g"):format(v.estimate) or shown[1]), interval and ("%s … %s"):format(shown[2], shown[3]) or nil
end

---One result as a section: the claim, what became of it, how it was tested, and what there is to say of it.
---@param shown string? a sentence that names the figure
function report_claims.section(out, v, i, spec, shown)
  out:heading(3, "verdict-" .. i, v.claim.text, ("%s: %s"):format(id_of(v.claim, i), report_claims.words[v.verdict]))
  local estimate, interval = report_claims.estimate(v, spec)
  local parts = { ("**%s**: %s%s"):format(report_claims.words[v.verdict]:gsub("^%l", string.upper), estimate, interval and (" (%s)"):format(interval) or "") }
  if v.p then parts[1] = ("%s, p %s, %s"):format(parts[1], report_claims.p(v.p), ("p %s corrected"):format(report_claims.p(v.holm or v.p))) end
  parts[1] = ("%s, %s."):format(parts[1], ("seeds: %d"):format(v.n))
  if v.claim.test then parts[2] = ("It holds where %s."):format(statement(v.claim.test)) end
  if v.claim.source then parts[#parts + 1] = ("Source: %s."):format(v.claim.source) end
  if shown then parts[#parts + 1] = shown end
  out:paragraphs(table.concat(parts, " "))
  local more = remarks(v)
  if more ~= "" then out:paragraphs(more:gsub("^%l", string.upper) .. ".", "dim") end
end

return report_claims
