-- moments.lua -- which moment a viewer shows, as the fields of an address, and the way back to it; episodes that are looked for; pinned moments, which
-- stay with their run.
local action_keys = require "mneme.insight.view.action_keys"
local moment_links = require "mneme.insight.view.moment_links"
local search_conditions = require "mneme.insight.view.search_conditions"
local right_actions = require "mneme.envs.right_actions"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"

local PATIENCE, MOST = 2, 80                 -- seconds for playing to an episode; letters that are looked for
local FILE, LINES = "pinned", 1000           -- of a run's folder, an address a line
local LAST = 2 ^ 31 - 1                      -- episode that can be counted

-- Adds to the class of viewers.
return function(Viewer)
  ---Where a viewer is.
  ---@return table[] fields { key, value } for addresses.write
  function Viewer:address()
    local source = self:source()
    if source.live or self.at == 0 then return { { "scene", self.scene_name } } end
    local function whole(n) return n and ("%.0f"):format(n) end
    local fields = { { "checkpoint", whole(source.steps) }, { "seed", whole(source.seed) }, { "episode", self:tick_of(1).episode },
      { "step", self:frame(1).step }, { "scene", self.scene_name } }
    if self.together then fields[#fields + 1] = { "beside", self:tick_of(2).episode } end
    if self.original and self.erased then
      fields[#fields + 1] = { self.erased.test, self.erased.word }
      fields[#fields + 1] = { "at", self.erased.at }
    end
    return fields
  end

  -- Goes to the beginning of an episode by its number; false: there is none.
  local function to_number(self, number, clock)
    if number > LAST then return false end
    local line = self:untouched(1)
    local function find() for _, e in ipairs(line:episodes()) do if e.episode == number then return e.start end end end
    local first = line:episodes()[1]
    local start = find()
    if not start and first and number > first.episode then
      self:scout(number - first.episode + 1, engine.C.mn_clock(false) + PATIENCE)
      start = find()
    end
    if start then
      self:to_start(start, clock)
      return true
    elseif not self.tracks[1].open or not self:source().restore then return false end
    self:reopen({ episode = number }, clock)                     -- far away, or before the first: alone
    return self:tick_of(1).episode == number
  end

  ---Go to a moment.
  ---@param fields table<string, string> of addresses.read
  function Viewer:go(fields, clock)
    local source, whole = self:source(), moment_links.whole
    self.dirty = true
    for _, name in ipairs(self.scenes) do if name == fields.scene then self:show_scene(name) end end
    if not (fields.episode or fields.step) then return end
    if source.live or self.at == 0 then return self:say("this training has no moments to go back to yet", clock) end
    if self.original or self.together then self:close(1, clock) end
    local changes, some = { episode = 0 }, false
    for key, now in pairs { checkpoint = source.steps, seed = source.seed } do
      local wanted = whole(fields[key])
      if wanted and wanted ~= now then changes[key], some = wanted, true end
    end
    if some and self.tracks[1].open then
      self:reopen(changes, clock)
      if self.follows ~= nil then self.follows = false end
      if changes.checkpoint and self:source().steps ~= changes.checkpoint then
        self:say(("there is no checkpoint of %s steps any more"):format(fields.checkpoint), clock)
      end
    end
    self.playing = false
    local episode, step = whole(fields.episode), whole(fields.step) or 0
    if episode and not to_number(self, episode, clock) then return self:say(("there is no episode %d"):format(episode), clock) end
    local beside = whole(fields.beside)
    for _, e in ipairs(beside and self:episodes_of(1) or {}) do if e.episode == beside then self:beside(e.start, clock) break end end
    for _, test in ipairs { "erase", "hold" } do
      if fields[test] and whole(fields.at) then self:without(test, fields[test], whole(fields.at), clock) end
    end
    local from, deadline = self:episode(), engine.C.mn_clock(false) + PATIENCE
    self:seek(from)
    while self:tick_of(1).step < step and not self:ended() and engine.C.mn_clock(false) < deadline and self:forward() do end
    self.playing = false
  end

  -- ---- search ----

  -- What an episode has, by the names that one may look for.
  local function value_of(self, e, key)
    local o = e.outcome or {}
    if key == "seed" then return self:source().seed and self:source().seed + e.episode end
    if key == "why" then return e.why end
    return ({ episode = e.episode, ["return"] = o.ret, score = o.score, length = o.length, steps = o.length })[key]
  end

  local words = { failed = function(e) return e.failed == true end, solved = function(e) return e.failed == false end,
    pinned = function(e) return e.pinned == true end }
  for _, reason in ipairs(right_actions.reasons) do words[reason[1]] = function(e) return e.why == reason[1] end end

  ---Is this episode one that is looked for: what was asked for, else a failure?
  ---@param e table of Viewer:episodes_of
  function Viewer:wanted(e)
    if not self.sought then return e.failed end
    return e.outcome ~= nil and search_conditions.met(self.sought.list, function(key) return value_of(self, e, key) end, function(word)
      return words[word] ~= nil and words[word](e)
    end)
  end

  ---What is looked for, in words.
  function Viewer:sought_text() return self.sought and "episode with " .. self.sought.text or "failure" end

  ---Look for episodes from the one shown on; f and F go on with it.
  ---@param text string "why=drawn return<0.5"; "": for failures, as before
  function Viewer:search(text, clock)
    local list = search_conditions.read(text)
    self.sought = nil
    if #list == 0 then return self:say("f goes to the next failure", clock) end
    for _, c in ipairs(list) do
      if c.word and not words[c.word] or c.key and value_of(self, { episode = 0, why = "", outcome = { ret = 0, score = 0, length = 0 } }, c.key) == nil then
        return self:say(("%s: expected return, score, length, episode, seed or why with <, = or >, failed, solved, drawn, unused, lost or pinned"):format(
          c.word or c.key), clock)
      end
    end
    local only, source = list[1], self:source()
    if #list == 1 and only.sign == "=" and only.number and (only.key == "episode" or only.key == "seed" and source.seed) then
      local number = only.number - (only.key == "seed" and source.seed or 0)
      if number < 0 or number % 1 ~= 0 or not to_number(self, number, clock) then self:say(("there is no episode with %s"):format(text), clock) end
      return
    end
    self.sought = { text = text, list = list }
    self:to_failure(1, clock)
  end

  ---A key while it is typed what to look for.
  function Viewer:key_of_search(key, clock)
    if key == action_keys.ENTER then
      local text = self.prompt
      self.prompt = nil
      self:search(text, clock)
    elseif key == action_keys.ESCAPE then self.prompt = nil
    elseif key == action_keys.BACKSPACE then self.prompt = self.prompt:sub(1, -2)
    elseif key >= 32 and key < 127 and #self.prompt < MOST then
      self.prompt = self.prompt .. (key == ("+"):byte() and "=" or string.char(key))          -- a window's + is = without Shift
    end
  end

  -- ---- pins ----

  -- The pinned moments of the run that is shown, as addresses in the order of the file.
  local function pins(self)
    local run = self:source().run
    if self.pins_of ~= run then
      self.pins_of, self.pins = run, {}
      local path = run and run .. "/" .. FILE
      for line in (path and files.is_file(path) and files.read(path) or ""):gmatch "[^\n]+" do
        if #self.pins < LINES then self.pins[#self.pins + 1] = line end
      end
    end
    return self.pins or {}
  end

  -- What names the episode of an address, whichever step and scene it has.
  local function episode_of(text)
    local fields = moment_links.read(text)
    return ("%s %s %s"):format(fields.checkpoint, fields.seed, fields.episode)
  end

  ---Marks which episodes are pinned.
  ---@param list table[] of Viewer:episodes_of, of the first track
  function Viewer:mark_pinned(list)
    local set, source = {}, self:source()
    for _, text in ipairs(pins(self)) do set[episode_of(text)] = true end
    for _, e in ipairs(next(set) and list or {}) do
      e.pinned = set[("%.0f %s %d"):format(source.steps or 0, source.seed, e.episode)] or nil
    end
  end

  ---Pin the moment that is shown, or take the pin of its episode off.
  function Viewer:pin(clock)
    local list, run, kept, gone = pins(self), self:source().run, {}, false
    if self:source().live or self.at == 0 or not run then return self:say("only moments of a run that is not trained here can be pinned", clock) end
    local text = moment_links.write(self:address())
    for _, line in ipairs(list) do
      if episode_of(line) == episode_of(text) then gone = true else kept[#kept + 1] = line end
    end
    if not gone then kept[#kept + 1] = text end
    self.pins = kept
    local ok, why = errors.try(files.write, run .. "/" .. FILE, { table.concat(kept, "\n"), #kept > 0 and "\n" or "" })
    self:say((gone and "no longer pinned" or "pinned; P goes from one to the next") .. (ok and "" or ", until this ends: " .. why.message), clock)
  end

  ---Go to the next pinned moment.
  function Viewer:next_pin(clock)
    local list = pins(self)
    if #list == 0 then return self:say("no moment is pinned; p pins the one that is shown", clock) end
    self.last_pin = (self.last_pin or 0) % #list + 1
    self:go(moment_links.read(list[self.last_pin]), clock)
    self:say(("pinned moment %d of %d"):format(self.last_pin, #list), clock)
  end
end
