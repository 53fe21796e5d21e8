-- report_claims.lua -- the claims of a study in a report: as statements that can be tested, with their verdicts.
local tables = require "mneme.base.tables"
local numbers = require "mneme.base.format"
local page = require "mneme.study.html_page"
local values = require "mneme.base.setting_types"

local verdicts = {}
local escape = page.escape
local NAMED = 4                    -- missing runs that are named; of more only the number is given

local function labels(t)
  local parts = {}
  for _, axis in ipairs(tables.keys(t or {})) do parts[#parts + 1] = axis .. "=" .. values.show(t[axis]) end
  return table.concat(parts, ", ")
end

-- A test as a sentence.
local function statement(test, words)
  local metric, say, a, b = test.metric, words.test_of[test[1]], labels(test.a), labels(test.b)
  local text
  if test[1] == "better" then text = say:format(metric, a, b)
  elseif test[1] == "at_least" then text = say:format(metric, a, values.show(test.value))
  elseif test[1] == "solves" then text = say:format(a, b, values.show(test.above), metric)
  elseif test[1] == "sooner" then text = say:format(a, values.show(test.above), metric, b)
  elseif test[1] == "ratio" then text = say:format(metric, a, values.show(test.at_least), b)
  else text = say:format(metric, a, b, values.show(test.within)) end
  if test.where then text = text .. words.where:format(labels(test.where)) end
  return test.exact and text .. words.exactly or text
end

local function id_of(claim, i) return claim.id or tostring(i) end

---What is claimed.
---@param out table page
---@param list table[] claims
---@param words table of mneme.studies.words
function verdicts.claims(out, list, words)
  if #list == 0 then return out:paragraphs(words.no_claims, "dim") end
  local rows = {}
  for i, claim in ipairs(list) do
    local sentence = claim.test and statement(claim.test, words) or words.why.no_test
    local id = id_of(claim, i)
    rows[i] = { { id, href = "#verdict-" .. i }, { claim.text, class = "wide" }, { sentence, class = "wide" }, claim.source or "–" }
  end
  out:table({ "", words.claim, words.test, words.source }, rows)
end

local function p_text(p) return not p and "–" or p < 0.001 and "< 0.001" or ("%.3f"):format(p) end

-- What there is to say of a verdict besides its numbers.
local function remarks(v, words)
  local parts = {}
  local function add(s, ...) parts[#parts + 1] = escape(s:format(...)) end
  if v.why == "no_spread" then add(words.why.no_spread, v.n, p_text(v.p))
  elseif v.why then add("%s", words.why[v.why]) end
  if v.shares then add(words.solved, unpack(v.shares)) end
  if v.medians then
    local function when(x) return x and numbers.short(x) or words.never end
    add(words.medians, when(v.medians[1]), when(v.medians[2]))
  end
  if v.low and v.claim.test.exact then add("%s", words.counted) end
  if v.improvement then
    local p, low, high = unpack(v.improvement)
    add(words.improves, low and low < high and ("%.2f (%.2f … %.2f)"):format(p, low, high) or ("%.2f"):format(p))
  end
  for _, r in ipairs(v.rollout) do add(words.rollout, r.n, r.of, r.name) end
  if v.over then add(words.averaged, table.concat(v.over, "; ")) end
  if #v.missing > 0 then
    local names = {}
    for i = 1, math.min(NAMED, #v.missing) do names[i] = ("%s (%s)"):format(v.missing[i].name, words.statuses[v.missing[i].status]) end
    if #v.missing > NAMED then names[#names + 1] = words.more:format(#v.missing - NAMED) end
    add(words.without, table.concat(names, "; "))
  end
  return table.concat(parts, "; ")
end

---What became of it.
---@param judged table[] of mneme.studies.claims
---@param spec table of the study: its metrics have units
function verdicts.table(out, judged, spec, words)
  if #judged == 0 then return out:paragraphs(words.no_claims, "dim") end
  local rows = {}
  for i, v in ipairs(judged) do
    local test = v.claim.test or {}
    local unit = test[1] ~= "ratio" and ((spec.metrics or {})[test.metric] or {}).unit or nil
    local function short(x) return x and numbers.short(x, unit) or "–" end
    local estimate = short(v.estimate)
    if test.exact and v.estimate then estimate = ("%.6g"):format(v.estimate) end
    if v.low and not (test.exact and v.low == v.high) then estimate = ("%s (%s … %s)"):format(estimate, short(v.low), short(v.high)) end
    rows[i] = { { ('<span id="verdict-%d">%s</span>'):format(i, escape(id_of(v.claim, i))), html = true },
      { words[v.verdict], class = "verdict " .. v.verdict }, tostring(v.n), { estimate, class = "number" },
      { v.p and ("%s (%s)"):format(p_text(v.p), p_text(v.holm)) or "–", class = "number" }, { remarks(v, words), html = true, class = "wide" } }
  end
  out:table({ "", words.verdict, words.seeds, words.estimate, words.p, words.note }, rows)
  out:paragraphs(words.statistics, "dim")
end

return verdicts
