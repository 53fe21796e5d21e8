-- report_front.lua -- what a reader of a report sees first: how far the study is, whether claims were replicable in one sentence, and a
-- card for each claim with its verdict, its estimate, how many seeds, and a small drawing of both sides.  Arguments as in report_claims.lua.
local aggregate = require "mneme.lab.study.aggregate"
local report_claims = require "mneme.lab.reports.report_claims"
local setting_types = require "mneme.base.setting_types"

local front = {}
local WIDE = 50                -- times the least: beyond, numbers stand on a logarithmic axis
local NAME = 34                -- letters of a side's name in a card

-- ---- cards ----

-- What a side is called: the values in which the sides differ.
local function side_name(labels, other)
  local parts = {}
  for axis, label in pairs(labels) do
    local name = setting_types.show(label)
    if not other or setting_types.show(other[axis]) ~= name then parts[#parts + 1] = tonumber(name) and ("%s %s"):format(axis, name) or name end
  end
  table.sort(parts)
  local name = table.concat(parts, ", ")
  return #name > NAME and name:sub(1, NAME - 1):gsub("[\128-\191]*$", "") .. "…" or name
end

-- Both sides of a claim: means, intervals and seeds.
local function drawing(v, spec)
  local test, bars, least, most = v.claim.test, {}, math.huge, -math.huge
  if not v.sides then return nil end
  local metric = (spec.metrics or {})[test[1] == "sooner" and test.time or test.metric] or {}
  for i, side in ipairs { test.a, test.b or nil } do
    local list = v.sides[i] or {}
    if #list > 0 then
      local mean, low, high = aggregate.interval(list, "mean", metric.range)
      if low == high then low, high = nil, nil end
      bars[#bars + 1] = { name = side_name(side, i == 1 and test.b or test.a), y = mean, low = low, high = high, seeds = list, marked = i == 1 or nil }
      for _, y in ipairs { mean, low or mean, high or mean, unpack(list) } do least, most = math.min(least, y), math.max(most, y) end
    end
  end
  if #bars == 0 or not (most - least < math.huge) then return nil end
  if #bars == 1 and not (test.value or test.above) then return nil end
  local unit = (metric.unit == "s" or metric.unit == "%") and metric.unit or nil
  local border = test[1] == "at_least" and test.value or test[1] == "solves" and test.above or nil
  local fig = { kind = "dots", title = v.claim.text, x = {}, y = { unit = unit, range = aggregate.two_ends(metric.range) and metric.range or nil }, bars = bars,
    references = border and { { name = "≥", y = border } } or nil }
  if least > 0 and most > WIDE * least and not (border and border <= 0) then fig.y.log, fig.y.range = true, nil end
  return fig
end

---The cards of the claims.
function front.cards(judged, spec, size)
  local list = {}
  for i, v in ipairs(judged) do
    local about = { ("seeds: %d"):format(v.n) }
    if v.p then about[#about + 1] = ("p %s corrected"):format(report_claims.p(v.holm or v.p)) end
    if size ~= "" then about[#about + 1] = size end
    for _, r in ipairs(v.rollout) do about[#about + 1] = r.name .. ": core.sees=rollout" end
    if v.claim.source then about[#about + 1] = ("claim: %s"):format(v.claim.source) end
    local estimate, interval = report_claims.estimate(v, spec)
    list[i] = { verdict = v.verdict, word = report_claims.words[v.verdict], name = v.claim.id or tostring(i), text = v.claim.text, target = "verdict-" .. i,
      estimate = estimate, interval = interval and ("95 %% interval %s"):format(interval), empty = not v.estimate and not v.shares,
      about = table.concat(about, " · "), fig = drawing(v, spec) }
  end
  return list
end

-- ---- was it replicable? ----

local verbs = { holds = { "holds", "hold" }, fails = { "does not hold", "do not hold" }, undecided = { "is undecided", "are undecided" } }
-- First words of a source that names nobody: "ours, 4096 tokens", "a reviewer's question", "the task's rules".
local nobody = { our = true, ours = true, my = true, mine = true, an = true, the = true }

-- Does a claim come from what others published?  Its source then begins with their name ("Lambert, in press"), or with paper or authors.
local function is_original(claim)
  local source = (claim.source or ""):lower():gsub("^the (paper)", "%1"):gsub("^the (authors)", "%1")
  local first = source:match "^[%a\128-\255'.-]+" or ""          -- a letter alone is no name, "O(N)"
  return #first > 1 and not nobody[first]
end

---The answer in one sentence, from the verdicts of the claims that others published; nil: there are none.
function front.replicable(judged, size)
  local count, n, fewest, most = { holds = 0, fails = 0, undecided = 0 }, 0, math.huge, 0
  for _, v in ipairs(judged) do
    if is_original(v.claim) then
      n, count[v.verdict] = n + 1, count[v.verdict] + 1
      fewest, most = math.min(fewest, v.n), math.max(most, v.n)
    end
  end
  if n == 0 then return nil end
  local answer = count.holds == n and "Yes" or count.undecided == n and "Not known yet" or count.fails == n and "No"
    or count.holds == 0 and "Not as far as was tested" or "In part"
  local parts = {}
  for _, verdict in ipairs { "holds", "fails", "undecided" } do
    local k = count[verdict]
    local verb = verbs[verdict][k == 1 and 1 or 2]
    parts[#parts + 1] = k > 0 and (n == 1 and ("the published claim %s here"):format(verb) or parts[1] and ("%d %s"):format(k, verb)
      or ("%d of the %d published claims %s here"):format(k, n, verb)) or nil
  end
  local at = most > fewest and ("seeds: %d to %d"):format(fewest, most) or ("seeds: %d"):format(fewest)
  return ("Was it replicable? %s: %s (%s)."):format(answer, table.concat(parts, ", "), (size ~= "" and size .. ", " or "") .. at)
end

-- ---- the opening ----

---Put the opening into a page.
function front.write(out, study, spec, judged, size)
  local count = { done = 0, failed = 0, open = 0 }
  for _, c in ipairs(study.runs) do count[c.status] = (count[c.status] or 0) + 1 end
  if spec.question then out:paragraphs(spec.question, "question") end
  if setting_types.show(study.info.settings):find "%f[%w]quick=1%f[%W]" then
    out:paragraphs("These are the study's small values (quick=1): they show that it works, not what is true at its full size.", "warning")
  end
  if count.done < #study.runs then
    out:paragraphs(("%d of %d runs are done, %d failed, %d are open: what follows is about those that are done."):format(count.done, #study.runs,
      count.failed, count.open), "warning")
  end
  local answer = front.replicable(judged, size)
  if answer then out:paragraphs(answer, "lead") end
  if #judged > 0 then out:add { kind = "cards", cards = front.cards(judged, spec, size) } end
end

return front
