-- power.lua -- what the claims of a study can decide with their number of seeds, before anything runs: mneme sweep SCRIPT power=1.
-- Differences are those that are found in four of five studies, at 5 % after Holm's correction for all claims (the first of m: 5 % / m).
local claim_verdicts = require "mneme.study.claims"
local stats = require "mneme.stats"

local POWER = 0.8

local power = {}

-- The share of studies in which Boschloo's test finds that of n and n seeds a share p and a share q differ.
local function found(n, p, q, level, significant)
  local sum = 0
  local function chance(k, share) return math.exp(stats.log_choose(n, k)) * share ^ k * (1 - share) ^ (n - k) end
  for k = 0, n do
    for j = 0, n do
      if k > j then
        if significant[k] == nil then significant[k] = {} end
        if significant[k][j] == nil then significant[k][j] = stats.boschloo(k, n, j, n) < level end
        if significant[k][j] then sum = sum + chance(k, p) * chance(j, q) end
      end
    end
  end
  return sum
end

-- The least share that differs from q with enough power; nil: none does.
local function least_share(n, q, level, significant)
  for step = math.floor(q * 20) + 1, 20 do
    if found(n, step / 20, q, level, significant) >= POWER then return step / 20 end
  end
end

local of = {}

function of.solves(n, level)
  local parts, significant = {}, {}
  for _, q in ipairs { 0, 0.25, 0.5, 0.75 } do
    local p = least_share(n, q, level, significant)
    parts[#parts + 1] = p and ("%g against %g"):format(p, q) or ("nothing against %g"):format(q)
  end
  return "shares of seeds that can be told apart: " .. table.concat(parts, ", ")
end

function of.sooner(n, level)
  local ratio = math.exp(2 * (stats.normal_quantile(1 - level / 2) + stats.normal_quantile(POWER)) / math.sqrt(2 * n))
  return ("if all seeds solve it, times whose rates differ by a factor of %.1f"):format(ratio)
end

-- Student's t of n paired seeds: the difference in deviations of the differences, by the normal approximation with t's quantiles.
local function paired(n, level)
  local d = (stats.student_quantile(1 - level / 2, n - 1) + stats.normal_quantile(POWER)) / math.sqrt(n)
  return ("a difference of %.2g standard deviations between seeds"):format(d)
end

---One line for each claim: what it can decide.
---@param claims table[] of the study
---@param n integer seeds
---@return string[]
function power.lines(claims, n)
  local tested, lines = 0, {}
  for _, claim in ipairs(claims or {}) do tested = tested + (claim.test and not claim.test.exact and 1 or 0) end
  for i, claim in ipairs(claims or {}) do
    local test = claim.test
    local text = not test and "no test" or test.exact and "exact: one seed is enough" or n < claim_verdicts.FEWEST and
      "no verdict with fewer than five seeds" or (of[test[1]] or paired)(n, 0.05 / tested)
    lines[i] = ("  %s: %s"):format(claim.id or tostring(i), text)
  end
  return lines
end

return power
