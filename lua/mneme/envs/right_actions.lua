-- right_actions.lua -- was an action right?  Known where an environment declares, among the facts that a memory may know, one that is the right action.
local right_actions = {}
local CLEAR = 2                    -- times the probability of the action that was drawn: less is near to a toss

---Why an episode failed, in the order of a legend: name, in words, and the letter of its mark where marks are text.
right_actions.reasons = {
  { "drawn", "drawn wrongly", "•", "the right action had twice the probability of the one drawn, or more" },
  { "unused", "memory hardly used", "–", "the right action can be read from the memory, and had not clearly more probability" },
  { "lost", "memory lost", "/", "the memory has too little of the right action: lost, or never stored" },
  { "memory", "memory?", "×", "the right action had not clearly more probability; whether the memory has it is not read yet" },
}
for _, reason in ipairs(right_actions.reasons) do right_actions.reasons[reason[1]] = reason end

---The fact that is the right action.
---@param to_know table[] of an Env
---@return table? fact nil: this environment declares none
function right_actions.acting(to_know)
  for _, fact in ipairs(to_know) do if fact.acts then return fact end end
end

---The right action now.
---@param fact table of decisions.acting
---@param truth table<string, number|number[]> of the facts that it names
---@return integer? action from 0; nil: any will do, or it is not known
function right_actions.right(fact, truth, actions)
  local value = truth[fact.name]
  if type(value) ~= "number" or fact.when and truth[fact.when] ~= 0 then return nil end
  return value >= 0 and value < actions and value % 1 == 0 and value or nil
end

-- Adds a wrong decision to what is counted: had the right action more probability than the one drawn, and clearly more?
local function add(to, ratio)
  to.wrong = to.wrong + 1
  if ratio > 1 then to.drawn = to.drawn + 1 end
  if ratio >= CLEAR then to.clear = to.clear + 1 end
end

local function nothing() return { wrong = 0, drawn = 0, clear = 0 } end

---The wrong decisions of an episode.
---@param fact table of decisions.acting
---@param entries Entry[] its steps
---@return table count { wrong = decisions; drawn = those where the right action had more probability than the one drawn; clear = where it had twice as
---  much; first = Entry of the first of the others, right = the right action there }
function right_actions.of_episode(fact, entries, actions)
  local count = nothing()
  for _, entry in ipairs(entries) do
    local right, p = entry.truth and right_actions.right(fact, entry.truth, actions), entry.policy
    if right and fact.when then count = nothing() end
    if right and p and p[right + 1] and entry.action ~= right then
      local ratio = p[right + 1] / p[entry.action + 1]
      add(count, ratio)
      if ratio < CLEAR and not count.first then count.first, count.right = entry, right end
    end
  end
  return count
end

---Counts the wrong decisions of many environments: call note() between forward() and step(), and take(b) when an episode of b has ended.
---@return table? counter { note(), take(b) -> { wrong, drawn, clear } as of_episode has them }; nil: which action is right is not known
function right_actions.counter(p)
  local fact, counts, truth = right_actions.acting(p.env.to_know), {}, {}
  if not fact or p.env.action_space.kind ~= "discrete" then return nil end
  local A = p.env.action_space.n
  local function note()
    local at = p.row * p.num_envs
    local actions, logits = p.actions:data() + at, p.logits:data() + at * A
    for b = 0, p.num_envs - 1 do
      if fact.when then truth[fact.when] = p.env:truth_of(b, fact.when) end
      if not fact.when or truth[fact.when] == 0 then truth[fact.name] = p.env:truth_of(b, fact.name) end
      local right, action = right_actions.right(fact, truth, A), actions[b]
      if right and (fact.when or not counts[b]) then counts[b] = nothing() end
      if right and action ~= right then add(counts[b], math.exp(logits[b * A + right] - logits[b * A + action])) end
    end
  end
  local function take(b)
    local count = counts[b] or nothing()
    counts[b] = nil
    return count
  end
  return { note = note, take = take }
end

return right_actions
