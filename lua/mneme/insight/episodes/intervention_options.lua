-- intervention_options.lua -- the interventions that are possible at the displayed step: as a list for the menu, and as changes that
-- playback.lua shows next to the original episode; and those that the command line names.
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local state_arrays = require "mneme.models.state_arrays"
local interventions = require "mneme.insight.episodes.interventions"

local intervention_options = {}
local EPISODES, PATIENCE = 16, 3          -- searched for another episode's memory; seconds

---@class InterventionOption
---@field text string "erase layers.2.head.1"
---@field specs table[] interventions, without `at`

-- ---- the options ----

-- The layers that occur in names, from 0, in order.
local function layers_of(names)
  local list, seen = {}, {}
  for name in pairs(names) do
    local layer = state_arrays.parse(name)
    if layer and not seen[layer] then list[#list + 1], seen[layer] = layer, true end
  end
  table.sort(list)
  return list
end

-- The parts that a core or a stepper has.
local function known(words, check)
  return tables.map(words, function(word) return errors.try(check, word) and word or nil end)
end

-- The selected parts of the state; all of it without a selection, or where the selection has no state.
local function selected_parts(core, selection)
  if next(core.states) == nil then return {} end
  local words, head = {}, selection.head and ".head." .. selection.head or ""
  for _, layer in ipairs(selection.layer and { selection.layer } or selection.head and layers_of(core.states) or {}) do
    words[#words + 1] = "layers." .. layer .. head
  end
  local list = known(words, function(word) interventions.parts(core, word) end)
  return #list > 0 and list or { "all" }
end

-- The selected gates of a kind: of one layer or all, of one head where it has heads.
local function selected_gates(stepper, frame, kind, selection)
  local words = {}
  local function try(word) return known({ word }, function() interventions.probe(stepper, word) end)[1] end
  for _, name in ipairs(tables.keys(frame.probes)) do
    local layer, of = state_arrays.parse(name)
    if of == kind and (not selection.layer or not layer or layer == selection.layer) then
      local head = selection.head and layer and name:gsub("%.([^.]+)$", ".head." .. selection.head .. ".%1")
      words[#words + 1] = head and try(head) or try(name)
    end
  end
  return words
end

-- One option that applies to several parts; `all` is their name together.
local function add(list, kind, words, all, to)
  if #words == 0 then return end
  local option = { specs = {} }
  for i, word in ipairs(words) do option.specs[i] = { kind = kind, what = word, to = to } end
  option.text = interventions.text(#words == 1 and option.specs[1] or { kind = kind, what = all, to = to })
  if kind == "swap" then option.text = option.text .. " with another episode" end
  list[#list + 1] = option
end

-- By how much a fact is shifted.
local function stride(fact)
  local range = fact.hi - fact.lo
  return (fact.whole or range >= 10) and 1 or range / 20
end

local function add_facts(list, env, truth)
  for _, fact in ipairs(env.settable) do
    local now = truth[fact.name]
    for i, word in ipairs(fact.words or {}) do
      if fact.lo + i - 1 ~= now then add(list, "set", { fact.name }, nil, word) end
    end
    if not fact.words then
      if fact.whole then add(list, "flip", { fact.name }) end
      for sign = -1, 1, 2 do
        local by = sign * stride(fact)
        if type(now) == "number" and now + by >= fact.lo and now + by <= fact.hi then
          local spec = { kind = "shift", what = fact.name, by = by }
          list[#list + 1] = { text = interventions.text(spec), specs = { spec } }
        end
      end
    end
  end
end

---The interventions that are possible at a frame.
---@param selection table { layer, head }: the selected part of the memory; nil: all
---@return InterventionOption[]
function intervention_options.list(stepper, frame, selection)
  local list, parts = {}, selected_parts(stepper.agent.core, selection)
  local all = selection.head and "head " .. selection.head .. " of every layer" or "all"
  if frame.step > 0 then                            -- at step 0 the memory is empty
    add(list, "erase", parts, all)
    add(list, "hold", parts, all)
    add(list, "swap", parts, all)
  end
  for _, kind in ipairs(frame.gates) do
    local words = selected_gates(stepper, frame, kind, selection)
    local name = kind .. (selection.head and " of head " .. selection.head .. " of every layer" or " of every layer")
    add(list, "freeze", words, name)
    add(list, "force", words, name, 0)
    add(list, "force", words, name, 1)
  end
  add_facts(list, stepper.env, frame.truth)
  return list
end

-- ---- the memory of another episode ----

-- The frame before `step` in the episode that begins with frame `start`: its memory is the one at the beginning of `step`.
local function frame_before(line, start, step)
  local at, tick = start + step - 1, line.ticks[start + step - 1]
  if tick and tick.episode == line.ticks[start].episode and not tick.ended then return at end
end

---The memory of another episode of the timeline at the beginning of `step`: of a previous one, or of one that follows.
---@param i integer a frame of the episode that receives it
---@return table? donor { memory, episode }
local function find_donor(line, i, step)
  local mine, found, deadline = line.ticks[i].start, nil, C.mn_clock(false) + PATIENCE
  local start = mine
  while not found and start > 1 and mine - start < EPISODES * (step + 1) do
    start = line.ticks[start - 1].start
    found = frame_before(line, start, step)
  end
  start = mine
  for _ = 1, EPISODES do
    if found then break end
    line:ahead(start, deadline)
    local stop = line:stop(start)
    if not stop or (stop == line.n and not line:extend(deadline)) then break end
    start = stop + 1
    while start + step - 1 > line.n and not line:stop(start) and line:extend(deadline) do end
    found = frame_before(line, start, step)
  end
  local frame = found and line:frame(found)
  return frame and { memory = frame.memory, episode = frame.episode } or nil
end

-- ---- changes ----

---@class Change
---@field text string
---@field make fun(stepper: Stepper) see Timeline:edit
---@field specs table[] the interventions, each with its step
---@field restarts_plan boolean the agent's state is changed, so that its plan restarts
---@field refused fun(): string? why it had no effect, after it was applied

-- The interventions with their step; those that last with their duration, swaps with their donor.
local function specs_at(given, line, i, steps)
  local specs, step = {}, line.ticks[i].step
  for k, spec in ipairs(given) do
    local one = tables.merged({ at = step }, spec)
    if interventions.kinds[spec.kind].steps then one.steps = steps end
    if spec.kind == "swap" then
      one.donor = step > 0 and find_donor(line, i, step) or nil
      if not one.donor then errors.usage(("swap: no other known episode reaches step %d"):format(step)) end
    end
    specs[k] = one
  end
  return specs
end

---An option as a change at frame i of a timeline whose source is a Stepper.  It ends with the episode.
---@param steps integer? for how many steps a gate is forced or frozen, or a part held; nil: to the end of the episode
---@return Change
function intervention_options.change(option, line, i, steps)
  local specs, episode = specs_at(option.specs, line, i, steps), line.ticks[i].episode
  local change, made = { text = ("%s at step %d"):format(option.text, specs[1].at), restarts_plan = false, specs = specs }, nil
  for _, spec in ipairs(specs) do
    change.restarts_plan = change.restarts_plan or spec.kind == "erase" or spec.kind == "hold" or spec.kind == "swap"
    if spec.steps then change.text = ("%s, %d step%s"):format(change.text, spec.steps, spec.steps > 1 and "s" or "") end
  end
  function change.make(stepper)
    local list = interventions.new(stepper, specs)
    made = list
    return function()
      local step = stepper.step_of[0]
      if stepper.episode_of[0] == episode then list:before(step, { 0 }) elseif step == 0 then list:release() end
    end
  end
  function change.refused()
    for _, spec in ipairs(made.specs) do
      if spec.done > 0 or spec.kind == "freeze" then return nil end
    end
    return ("%s: not possible in the present state of the environment"):format(option.text)
  end
  return change
end

-- ---- of the command line: erase=layers.0,tick force=layers.0.beta:0.5 flip=1 ----

-- What stands after a colon, by kind: its key, and what it may be; a fact may have words for its values.
local values = { force = { "to", "a number" }, shift = { "by", "a number" }, set = { "to", "a value" } }

---Reads "layers.0.beta:0.5,layers.1.beta:0" of a kind.
---@param list table[] the interventions are appended to it, without at and steps
---@param command string name of the command, for errors
function intervention_options.read(list, kind, text, command)
  for word in text:gmatch "[^,]+" do
    local what, value = word:match "^(.-)[:=](.*)$"                        -- set=cue:up, and set=cue=up
    local spec = { kind = kind, what = what or word }
    local takes = values[kind]
    if not takes and value then errors.usage(("%s: %s=%s: takes no value after a colon"):format(command, kind, word)) end
    if takes then
      spec[takes[1]] = tonumber(value) or kind == "set" and value or nil
      if spec[takes[1]] == nil then
        errors.usage(("%s: %s=%s: expected %s after a colon, as in %s=%s:1"):format(command, kind, word, takes[2], kind, spec.what))
      end
    end
    if kind == "flip" and word == "1" then spec.what = nil end
    list[#list + 1] = spec
  end
end

---Sets the step of all interventions of a list.
---@param steps integer? duration of those that last
function intervention_options.time(list, at, steps, command)
  local lasting = false
  for _, spec in ipairs(list) do
    spec.at = at
    if interventions.kinds[spec.kind].steps then spec.steps, lasting = steps, true end
  end
  if steps and not lasting then
    errors.usage(("%s: for=%d goes with force, freeze and hold, not with %s"):format(command, steps, list[1] and list[1].kind or "nothing"))
  end
end

---Interventions of the command line as an option.
---@param specs table[] their `at` and `steps` are those of the change
---@return InterventionOption
function intervention_options.of(specs)
  local texts, plain = {}, {}
  for i, spec in ipairs(specs) do
    plain[i] = tables.merged(spec)
    plain[i].at, plain[i].steps = nil, nil
    texts[i] = interventions.text(plain[i])
  end
  return { text = table.concat(texts, ", "), specs = plain }
end

return intervention_options
