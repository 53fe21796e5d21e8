-- special.lua -- distribution functions for intervals and tests: normal, Student's t, and the
-- incomplete beta function that it needs.  They agree with scipy to ten digits.
local ffi = require "ffi"
local errors = require "mneme.base.errors"

ffi.cdef [[
double erfc(double x);
double lgamma(double x);
double log1p(double x);
]]
local libm = ffi.C

local special = {}
local TINY = 1e-300
local INFINITE = 1e10          -- degrees of freedom from which on Student's t is normal, to ten digits

local function refuse(name, what, v, expected)
  errors.raise(("stats.%s: %s is %s, expected %s"):format(name, what, tostring(v), expected))
end

local function number(name, what, v)
  if type(v) ~= "number" or v ~= v then refuse(name, what, v, "a number") end
end

local function probability(name, p)
  if type(p) ~= "number" or not (p >= 1e-100 and p < 1) then refuse(name, "p", p, "a probability from 1e-100 to below 1") end
end

-- ---- normal ----

---The share of the standard normal distribution at or below z.
---@param z number
---@return number
function special.normal_cdf(z)
  number("normal_cdf", "z", z)
  return 0.5 * libm.erfc(-z / math.sqrt(2))
end

---The z below which a share p of the standard normal distribution lies: a start from Abramowitz and Stegun 26.2.23,
---made exact by Newton's steps on the logarithm, which do not fail far out.
---@param p number 1e-100 .. below 1
---@return number
function special.normal_quantile(p)
  probability("normal_quantile", p)
  local q = math.min(p, 1 - p)
  if q == 0.5 then return 0 end
  local t = math.sqrt(-2 * math.log(q))
  local z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
  for _ = 1, 4 do                                       -- z > 0 with a share of q above it
    local above = 0.5 * libm.erfc(z / math.sqrt(2))
    local density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    z = z + math.log(above / q) * above / density
  end
  return p < 0.5 and -z or z
end

-- ---- beta ----

-- What Stirling's series leaves of log gamma, x >= 20.
local function stirling_rest(x)
  local s = 1 / (x * x)
  return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s / 1680))) / x
end

-- log B(a, b).  The larger one goes through Stirling's series: two large log gammas would cancel each other's digits.
local function log_beta(a, b)
  if a > b then a, b = b, a end
  if b < 20 then return libm.lgamma(a) + libm.lgamma(b) - libm.lgamma(a + b) end
  return libm.lgamma(a) - (b - 0.5) * libm.log1p(a / b) - a * math.log(a + b) + a + stirling_rest(b) - stirling_rest(a + b)
end

-- The continued fraction of the incomplete beta function, the even part of DLMF 8.17.22, by the modified method of
-- Lentz.  It takes y = 1 - x, too (Didonato and Morris 1992): where x is nearly 1, the digits that count are in y.
local function beta_fraction(a, b, x, y)
  local h = a * (a * y - b * x + 1) / (a + 1)
  if math.abs(h) < TINY then h = TINY end
  local c, d = h, 0
  for m = 1, 200000 do
    local step = a + 2 * m - 1
    local above = (a + m - 1) / step * ((a + b + m - 1) / step) * m * (b - m) * x * x
    local below = m + m * (b - m) * x / step + (a + m) * (a * y - b * x + 1 + m * (1 + y)) / (step + 2)
    d, c = below + above * d, below + above / c
    d = 1 / (math.abs(d) < TINY and TINY or d)
    if math.abs(c) < TINY then c = TINY end
    h = h * c * d
    if math.abs(c * d - 1) < 1e-15 then break end
  end
  return 1 / h
end

-- The regularised incomplete beta function I_x(a, b) (DLMF 8.17), where y = 1 - x is known to all its digits, too: ten digits where a or b is
-- below 10,000, nine beyond.
local function beta_share(a, b, x, y)
  if x <= 0 then return 0 elseif y <= 0 then return 1 end
  local log_x = x < 0.5 and math.log(x) or libm.log1p(-y)
  local log_y = y < 0.5 and math.log(y) or libm.log1p(-x)
  local front = math.exp(a * log_x + b * log_y - log_beta(a, b))
  if x < (a + 1) / (a + b + 2) then return front * beta_fraction(a, b, x, y) end
  return 1 - front * beta_fraction(b, a, y, x)
end

-- ---- Student's t ----

local function degrees(name, df)
  if type(df) ~= "number" or not (df >= 1) then refuse(name, "df", df, "degrees of freedom of at least 1") end
end

-- The share above t >= 0.
local function student_above(t, df)
  if df > INFINITE then return 0.5 * libm.erfc(t / math.sqrt(2)) end
  local square = t * t
  return 0.5 * beta_share(df / 2, 0.5, df / (df + square), square < math.huge and square / (df + square) or 1)
end

---The share of Student's t distribution (1908) at or below t.
---@param t number
---@param df number degrees of freedom, at least 1; math.huge: the normal distribution
---@return number
function special.student_cdf(t, df)
  number("student_cdf", "t", t)
  degrees("student_cdf", df)
  return t < 0 and student_above(-t, df) or 1 - student_above(t, df)
end

---The t below which a share p of Student's t distribution lies: between bounds that are halved wherever a step of
---Newton's leaves them.
---@param p number 1e-100 .. below 1
---@param df number at least 1
---@return number
function special.student_quantile(p, df)
  probability("student_quantile", p)
  degrees("student_quantile", df)
  local q = math.min(p, 1 - p)
  if q == 0.5 then return 0 end
  if df > INFINITE then return special.normal_quantile(p) end
  local low, high = 0, 1
  while student_above(high, df) > q do low, high = high, 2 * high end
  local log_front = -log_beta(df / 2, 0.5) - 0.5 * math.log(df)
  local t = (low + high) / 2
  for _ = 1, 200 do
    local above = student_above(t, df)
    if above > q then low = t else high = t end
    local density = math.exp(log_front - (df + 1) / 2 * libm.log1p(t * t / df))
    local after = t + math.log(above / q) * above / density
    if not (after > low and after < high) then after = (low + high) / 2 end
    local moved = math.abs(after - t)
    t = after
    if moved <= 1e-15 * t then break end
  end
  return p < 0.5 and -t or t
end

return special
