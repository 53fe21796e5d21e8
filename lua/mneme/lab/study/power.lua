-- power.lua -- what the claims of a study can decide with their number of seeds, before anything runs: mneme sweep SCRIPT power=1.
-- Differences are those that are found in four of five studies, at 5 % after Holm's correction for all claims (the first of m: 5 % / m).
-- Those of means hold for normal numbers; at_least of a metric with a range has a test that needs somewhat more.
local study_claims = require "mneme.lab.study.claims"
local stats = require "mneme.stats"

local POWER, LEVEL = 0.8, 0.05
local PIECES = 2000                -- of the integral over deviations

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

-- The mean of f(s) over s, the standard deviation of n normal numbers whose deviation is 1.
local function over_deviations(n, f)
  local most, sum, all = 1 + 10 / math.sqrt(n - 1), 0, 0
  for i = 0, PIECES - 1 do
    local s = (i + 0.5) / PIECES * most
    local weight = math.exp((n - 2) * math.log(s) - (n - 1) * (s * s - 1) / 2)
    sum, all = sum + weight * f(s), all + weight
  end
  return sum / all
end

-- The least d for which share(d * sqrt(n), s), a share of studies that rises with d, has enough power over all deviations s.
local function least(n, share)
  local low, high = 0, 1
  local function found_at(d) return over_deviations(n, function(s) return share(d * math.sqrt(n), s) end) end
  while found_at(high) < POWER do low, high = high, 2 * high end
  for _ = 1, 30 do
    local d = (low + high) / 2
    if found_at(d) < POWER then low = d else high = d end
  end
  return high
end

-- The least mean that Student's t test of n numbers finds to differ from 0, in deviations of these numbers.
local function least_mean(n, level)
  local t = stats.student_quantile(1 - level / 2, n - 1)
  return least(n, function(x, s) return stats.normal_cdf(x - t * s) end)
end

function of.better(n, level) return ("a difference of %#.2g standard deviations of the differences between paired seeds"):format(least_mean(n, level)) end

function of.ratio(n, level)
  return ("a mean ratio %#.2g standard deviations from at_least, those of the logarithms of the ratios of paired seeds"):format(least_mean(n, level))
end

function of.at_least(n, level) return ("a mean %#.2g standard deviations between seeds from the value"):format(least_mean(n, level)) end

-- Two one-sided tests at `level`, and the interval at 5 % must lie within: the stricter one decides.
function of.equal(n, level)
  local t = stats.student_quantile(1 - math.min(level, LEVEL / 2), n - 1)
  local within = least(n, function(x, s) return math.max(0, 2 * stats.normal_cdf(x - t * s) - 1) end)
  return ("if nothing differs, equal within %#.2g standard deviations of the differences between paired seeds"):format(within)
end

---One line for each claim: what it can decide.
---@param runs table[] of the sweep: only claims that they can test count
function power.lines(claims, n, runs)
  local tested, lines = 0, {}
  for _, claim in ipairs(claims) do
    tested = tested + (claim.test and not claim.test.exact and study_claims.covered(runs, claim.test) and 1 or 0)
  end
  for i, claim in ipairs(claims) do
    local test = claim.test
    local text = not test and "no test" or not study_claims.covered(runs, test) and "no runs in this sweep"
      or test.exact and "exact: one seed is enough" or n < study_claims.FEWEST and "no verdict with fewer than five seeds"
      or of[test[1]](n, LEVEL / tested)
    lines[i] = ("  %s: %s"):format(claim.id or tostring(i), text)
  end
  return lines
end

return power
