-- reference_scores.lua -- what a score is compared with: the mean scores of random actions, of the best policy without memory, and of a perfect
-- memory, as an environment declares them.  What none is known of is absent.
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"

local reference_scores = { names = { "chance", "memoryless", "best" } }

---@class ReferenceScores mean scores 0..1; nil: not known
---@field chance number? of uniformly random actions
---@field memoryless number? of the best policy that knows the present observation alone
---@field best number? of the best policy that remembers all observations
---@field best_return number? the mean return of perfect play
---@field episodes integer? chance was measured over that many; nil: by rule, as the others are

-- At least one number, or nil.
local function kept(r) return next(r) and r or nil end

---Of a table that a script made: chance, memoryless and best, each a number or a function that returns one.
---@return ReferenceScores?
function reference_scores.of_script(spec)
  local r, before = {}, nil
  for _, name in ipairs(reference_scores.names) do
    if spec[name] ~= nil then
      local value = spec[name]
      if type(value) == "function" then value = value() end
      if type(value) ~= "number" or not (value >= 0 and value <= 1) then
        local given = type(value) == "number" and ("%s=%g"):format(name, value) or ("%s is a %s"):format(name, type(value))
        errors.usage(("env: %s, expected a mean score from 0 to 1, or a function that returns it"):format(given))
      end
      if before and value < r[before] then
        errors.usage(("env: %s=%g is less than %s=%g, expected chance <= memoryless <= best"):format(name, value, before, r[before]))
      end
      r[name], before = value, name
    end
  end
  return kept(r)
end

---A mean score, short.
function reference_scores.short(score) return score > 0 and score < 1e-3 and "<0.001" or format.short(score) end

---What guessing scores: without memory where that is known, else with random actions.
---@param r any a Reference, or what a config.json has there
---@return number? nil: neither is known
---@return string? words "no memory", "random actions"
function reference_scores.guess(r)
  if type(r) ~= "table" then return nil end
  if type(r.memoryless) == "number" then return r.memoryless, "no memory" end
  if type(r.chance) == "number" then return r.chance, "random actions" end
end

---The share of what a memory can add that a score has: (score - memoryless) / (best - memoryless).  0 is the best policy without memory, 1 a
---perfect memory; a policy that is worse than no memory is below 0.
---@param score number? a mean score
---@param r any as for guess
---@return number? nil: a bound is not known, or they are equal
function reference_scores.normalised(score, r)
  if type(r) ~= "table" or not score then return nil end
  local low, high = r.memoryless, r.best
  if type(low) ~= "number" or type(high) ~= "number" or not (high > low) then return nil end
  return (score - low) / (high - low)
end

---"no memory gives 0.5", or "random actions give 0.03"; with a score also what it is between no memory and a perfect one: "; normalised 0.84".
---@param r any as for guess
---@param score number?
---@return string?
function reference_scores.text(r, score)
  local guess, words = reference_scores.guess(r)
  if not guess then return nil end
  local share = reference_scores.normalised(score, r)
  return ("%s %s %s%s"):format(words, words:find "s$" and "give" or "gives", reference_scores.short(guess), share and ("; normalised %.3f"):format(share) or "")
end

---All of it: "random actions 0.21, no memory 0.5, a perfect memory 1".
function reference_scores.list(r)
  local parts = {}
  for _, item in ipairs { { "chance", "random actions" }, { "memoryless", "no memory" }, { "best", "a perfect memory" } } do
    if r[item[1]] then parts[#parts + 1] = item[2] .. " " .. reference_scores.short(r[item[1]]) end
  end
  if r.chance and r.episodes then parts[1] = ("%s (of %d episodes)"):format(parts[1], r.episodes) end
  return table.concat(parts, ", ")
end

return reference_scores
