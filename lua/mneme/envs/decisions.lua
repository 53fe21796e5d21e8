-- decisions.lua -- was an action right?  Known where an environment declares, among the facts that a memory may know, one that is the right action.
local decisions = {}

---Why an episode failed, in the order of a legend: name, in words, and the letter of its mark where marks are text.
decisions.reasons = {
  { "drawn", "drawn wrongly", "•", "the right action had more probability than the one drawn" },
  { "unused", "memory not used", "–", "the right action can be read from the memory, and had less probability" },
  { "lost", "memory lost", "/", "the right action cannot be read from the memory, and had less probability" },
  { "memory", "less probable", "×", "the right action had less probability; whether the memory has it is not read yet" },
}
for _, reason in ipairs(decisions.reasons) do decisions.reasons[reason[1]] = reason end

---A declared fact.  Kinds: "class", "number"; "action": a class that is the right action now, none where it is below 0; "action@FACT": the right
---action where FACT is 0, none elsewhere; there one may decide again until the episode ends, and the last decision counts.
---@param name string
---@param kind string
---@return table? fact { name, kind = "class"|"number", acts = it is the right action, when = FACT or nil }; nil: no such kind
function decisions.fact(name, kind)
  if kind == "class" or kind == "number" then return { name = name, kind = kind } end
  local when = kind:match "^action@([%w_]+)$"
  return (when or kind == "action") and { name = name, kind = "class", acts = true, when = when } or nil
end

---The fact that is the right action.
---@param to_know table[] of an Env
---@return table? fact nil: this environment declares none
function decisions.acting(to_know)
  for _, fact in ipairs(to_know) do if fact.acts then return fact end end
end

---The right action now.
---@param fact table of decisions.acting
---@param truth table<string, number|number[]>
---@param actions integer
---@return integer? action from 0; nil: any will do, or it is not known
function decisions.right(fact, truth, actions)
  local value = truth[fact.name]
  if type(value) ~= "number" or fact.when and truth[fact.when] ~= 0 then return nil end
  return value >= 0 and value < actions and value % 1 == 0 and value or nil
end

---The wrong decisions of an episode.
---@param fact table of decisions.acting
---@param entries Entry[] its steps
---@param actions integer
---@return integer wrong
---@return integer drawn those of them where the right action had more probability than the one drawn
---@return Entry? first of the others
---@return integer? right the right action there
function decisions.of_episode(fact, entries, actions)
  local wrong, drawn, first, there = 0, 0, nil, nil
  for _, entry in ipairs(entries) do
    local right, p = entry.truth and decisions.right(fact, entry.truth, actions), entry.policy
    if right and fact.when then wrong, drawn, first = 0, 0, nil end
    if right and p and p[right + 1] and entry.action ~= right then
      wrong = wrong + 1
      if p[right + 1] > p[entry.action + 1] then drawn = drawn + 1 elseif not first then first, there = entry, right end
    end
  end
  return wrong, drawn, first, there
end

---Counts the wrong decisions of many environments: call note() between forward() and step(), and take(b) when an episode of b has ended.
---@param p Stepper
---@return table? counter { note(), take(b) -> wrong decisions, those of them that were drawn although the right action had more probability };
---  nil: which action is right is not known
function decisions.counter(p)
  local fact, A = decisions.acting(p.env.to_know), p.env.action_space.n
  if not fact then return nil end
  local wrong, drawn = {}, {}
  local function note()
    local at = p.row * p.num_envs
    local actions, logits = p.actions:data() + at, p.logits:data() + at * A
    for b = 0, p.num_envs - 1 do
      local right, action = decisions.right(fact, p.env:truth(b), A), actions[b]
      if right and fact.when then wrong[b], drawn[b] = nil, nil end
      if right and action ~= right then
        wrong[b] = (wrong[b] or 0) + 1
        if logits[b * A + right] > logits[b * A + action] then drawn[b] = (drawn[b] or 0) + 1 end
      end
    end
  end
  local function take(b)
    local w, d = wrong[b] or 0, drawn[b] or 0
    wrong[b], drawn[b] = nil, nil
    return w, d
  end
  return { note = note, take = take }
end

return decisions
