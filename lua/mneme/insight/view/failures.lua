-- failures.lua -- the episodes that a viewer knows: which failed, why, the next one that did, and one that ended otherwise.
local right_actions = require "mneme.envs.right_actions"

local STRIP, HUNT = 16, 200                  -- episodes that are computed ahead; that are searched for a failure

-- Adds to the class of viewers.
return function(Viewer)
  ---The episodes of a track, each with whether it failed: its score is below 1, or, where none reaches that, below their mean.
  ---Without scores it is not known.
  ---@return table[] episodes see Timeline.episodes; failed = boolean or nil where it is not over; and mean, of the scores where that decides
  function Viewer:episodes_of(k)
    local list, most, sum, n = self:untouched(k):episodes(), -math.huge, 0, 0
    for _, e in ipairs(list) do
      local score = e.outcome and e.outcome.score
      if score and score == score then most, sum, n = math.max(most, score), sum + score, n + 1 end
    end
    local bound = (most >= 1 or most <= 0) and 1 or sum / math.max(1, n)
    for _, e in ipairs(list) do
      if n > 0 and e.outcome then e.failed = (e.outcome.score or 0) < bound end
      if e.failed then self:explain(k, e) end
    end
    if k == 1 then self:mark_pinned(list) end
    list.mean = bound < 1 and bound or nil
    return list
  end

  -- Why an episode failed: "drawn", at more than half of its wrong decisions the right action had clearly more probability; else "memory", and where readings
  -- of the memory are made, "unused" (they find the right answer there) or "lost".  Nil: which action is right is not known, or none was wrong.
  local reasons = setmetatable({}, { __mode = "k" })

  ---Why an episode failed, where its environment declares the right action: fills why and, where a reading of the memory is missing, settle.
  ---@param k integer the track
  ---@param e table of Timeline.episodes
  function Viewer:explain(k, e)
    local line, known = self:untouched(k), reasons[e.outcome]
    local env = line.source.env
    local fact, entries = env and env.to_know and right_actions.acting(env.to_know), not known and line:whole(e.start)
    if fact and entries then
      local count = right_actions.of_episode(fact, entries, env.action_space.n)
      known = { why = count.wrong > 0 and (2 * count.clear > count.wrong and "drawn" or "memory") or nil, at = count.first and e.start + count.first.step,
        right = count.right }
      reasons[e.outcome] = known
    end
    e.why = known and known.why
    local causes = self:causes_of(k)
    local told = causes and causes.words
    if (e.why == "memory" or e.why == "unused") and told and told.lost then e.why = "lost" end          -- holding it helps: what is left of it is too little
    if e.why ~= "memory" then return end
    ---read: fun(frame, fact): probabilities by class, or nil
    e.settle = function(read)
      local looked = line.looked_at
      local frame = line:frame(known.at)
      line:look_at(looked)
      local p = frame and read(frame, fact)
      if p then known.why = (p[known.right] or 0) > 0.5 and "unused" or "lost" end
      e.why = known.why
    end
  end

  -- The number of the displayed episode in a list.
  local function place_of(self, list)
    local at, slot = 1, self.slots[self.at]
    for i, e in ipairs(list) do if slot and e.start <= slot[1] then at = i end end
    return at
  end

  ---Go to the next or previous episode that failed, or that is looked for; more episodes are played until there is one.
  ---@param by integer 1 or -1
  function Viewer:to_failure(by, clock)
    local source = self:source()
    self.hunting, self.note, self.dirty = nil, nil, true
    if self.at == 0 or source.live then return self:say("a training shows each episode once; after it, r plays its agent", clock) end
    local list = self:episodes_of(1)
    local i = place_of(self, list) + by
    while list[i] and not self:wanted(list[i]) do i = i + by end
    if list[i] then return self:to_start(list[i].start, clock) end
    if by < 0 or #list >= HUNT then
      return self:say(by < 0 and ("no %s before this episode"):format(self:sought_text()) or ("no %s after this one in %d episodes"):format(
        self:sought_text(), #list), clock)
    end
    self.hunting = #list + 1
    self:say(("looking for %s %s …"):format(self.sought and "an" or "a", self:sought_text()), clock)
    self.note_until = math.huge                                      -- until it is found
  end

  -- How many facts of the first step of two episodes are the same: of an equal cue the difference says more.
  local function alike(line, a, b)
    local first, other, n = line:frame(a.start), line:frame(b.start), 0
    for name, value in pairs(first and other and first.truth or {}) do
      if type(value) == "number" and value == other.truth[name] then n = n + 1 end
    end
    return n
  end

  ---Show an episode that ended otherwise next to this one, a failure and a success of one agent: of those that begin most alike the nearest.
  function Viewer:contrast(clock)
    if self.at == 0 or #self.tracks > 1 then return self:say("two episodes are shown: c closes one", clock) end
    local list, line = self:episodes_of(1), self:untouched(1)
    local at, best, most = place_of(self, list), nil, nil
    for i, e in ipairs(list) do
      if e.failed ~= nil and list[at].failed ~= nil and e.failed ~= list[at].failed then
        local same = alike(line, list[at], e)
        if not best or same > most or same == most and math.abs(i - at) < math.abs(best - at) then best, most = i, same end
      end
    end
    if not best then return self:say("no known episode ended otherwise", clock) end
    self:beside(list[best].start, clock)
  end

  ---For a picture of two episodes: one that ended otherwise, or else the next one, beside the displayed one, both at their last step.
  ---@param deadline number of engine.C.mn_clock(false)
  function Viewer:pair(deadline)
    self:scout(STRIP, deadline)
    self:contrast(0)
    local list = self:episodes_of(1)
    local other = #self.tracks == 1 and list[place_of(self, list) + 1]
    if other then self:beside(other.start, 0) end
    self.note = nil
    self:look_ahead(deadline)
    self:seek(#self.slots)
  end

  ---Plays episodes ahead while nothing else is to be done.
  function Viewer:look_for_failures(clock, deadline)
    if self.at == 0 or self:source().live then return end
    if self:scout(self.hunting or STRIP, deadline) then self.dirty = true end
    local list = self.hunting and self:episodes_of(1)
    if not list or not (list[self.hunting] and list[self.hunting].stop) then return end
    self:to_failure(1, clock)
  end

  ---Plays the next episodes for the strip of a picture, where it can be said why they fail.
  ---@param deadline number? of engine.C.mn_clock(false)
  ---@return boolean changed
  function Viewer:ahead(deadline)
    local env = self:source().env
    self.scouted = env ~= nil and right_actions.acting(env.to_know) ~= nil and #self.tracks == 1
    return self.scouted and self:scout(STRIP, deadline or math.huge)
  end
end
