-- test_trajectory.lua -- trajectory files: every environment replays bit for bit; a damaged file is refused
-- or read as what it was; a changed environment is found out.
local ffi = require "ffi"
local t = require "tests.harness"
local envs = require "mneme.envs.env"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local trajectory_writer = require "mneme.insight.episodes.trajectory_writer"
local trajectory_replay = require "mneme.insight.episodes.trajectory_replay"
local env_rig = require "tests.support.env_rig"
local trajectory = require "mneme.insight.episodes.trajectory"
local shell = require "tests.support.shell"

local rig, seen, step = env_rig.rig, env_rig.seen, env_rig.step
local folder = shell.folder()
local function path(name) return folder .. "/" .. name end

local function spot(r, copy) return ffi.cast("char *", r.obs) + copy * r.bytes end

-- Record `steps` steps of one copy, and every observation it had.
local function record(r, copy, steps, options)
  local rec = trajectory_writer.new(r.env, copy, options)
  rec:begin(spot(r, copy))
  local seen_list = { seen(r, copy) }
  for k = 1, steps do
    step(r)
    rec:add(r.env.action_space:read(r.action, copy), r.reward[copy], r.terminated[copy] ~= 0, r.truncated[copy] ~= 0, spot(r, copy))
    seen_list[k + 1] = seen(r, copy)
  end
  return rec, seen_list
end

local function lived(env, steps, seed)
  local r = rig(env)
  env:reset_raw(r.obs, seed or 5)
  for _ = 1, steps do step(r) end
  return r
end

for _, e in ipairs(envs.list()) do
  t.test(e.name .. ": a file replays bit for bit, begun at a reset or in the middle of an episode", function()
    for _, before in ipairs { 0, 7 } do
      local r = lived(envs.new(e.name, { num_envs = 3, time_limit = 150 }), before)
      local rec, want = record(r, 1, 400)
      rec:write(path "a.mnt")
      local back = trajectory.read(path "a.mnt")
      t.eq(back.steps, 400)
      t.eq(back.env, r.env.id)
      t.eq(back.seed, 5)
      for k = 0, 399 do
        t.eq(back.actions[k], rec.actions[k])
        t.eq(back.rewards[k], rec.rewards[k])
        t.eq(back.flags[k], rec.flags[k])
      end
      local again = trajectory_replay.new(back)
      for k = 1, 401 do
        t.eq(ffi.string(again.obs, r.bytes), want[k], "observation " .. k - 1)
        t.eq(again:advance(), k <= 400)
      end
      t.eq(again.problem, nil)
      again:restart()
      t.eq(again:verify(), nil, "a second time")
      rec:write(path "b.mnt")
      t.ok(files.read(path "a.mnt") == files.read(path "b.mnt"), "equal trajectories, different bytes")
    end
  end)
end

local function corridor(settings)
  settings = settings or {}
  settings.num_envs, settings.corridor = 2, settings.corridor or 5
  return envs.new("tmaze", settings)
end

t.test("a step takes a few bits", function()
  local rec = record(lived(corridor { corridor = 160 }, 0), 0, 8000)
  rec:write(path "long.mnt")
  local bytes = #files.read(path "long.mnt")
  t.ok(bytes < 8000 / 2 + 8000 / 256 * 4 + 1000, bytes .. " bytes for 8000 steps")
end)

t.test("rewards of every kind come back with their bits", function()
  local values = { 0, -0.1, 1 / 0, -1 / 0, 1e-40, 3, 0 / 0 }
  local function write(n, reward)
    local r = lived(corridor(), 0)
    local rec = trajectory_writer.new(r.env, 0)
    rec:begin(r.obs)
    for k = 1, n do rec:add(k % 4, reward(k), k % 50 == 0, k % 70 == 0, r.obs) end
    rec:write(path "r.mnt")
    local back = trajectory.read(path "r.mnt")
    for k = 0, n - 1 do
      local a, b = rec.rewards[k], back.rewards[k]
      t.ok(a == b and 1 / a == 1 / b or a ~= a and b ~= b, ("reward %d: %g, %g"):format(k, a, b))
      t.eq(back.flags[k], (k + 1) % 50 == 0 and 1 or (k + 1) % 70 == 0 and 2 or 0)
      t.eq(back.actions[k], (k + 1) % 4)
    end
  end
  for n = 1, 9 do write(n, function(k) return values[k % #values + 1] end) end
  write(1000, function(k) return values[k % #values + 1] end)
  write(9000, function(k) return k / 7 end)                  -- too many different ones for a table
  write(300, function() return 1 end)
end)

t.test("records: what an agent had in mind, step by step", function()
  local r = lived(corridor(), 0)
  local fields = { value = { shape = { 1 } }, policy = { shape = { 4 } }, ["memory:layers.0.C"] = { shape = { 2, 3 }, dims = "HK" },
    seen = { shape = { 7 }, dtype = "u8" } }
  local rec = trajectory_writer.new(r.env, 1, { fields = fields, about = { title = "a test", source = "numbers" } })
  rec:begin(spot(r, 1))
  local C, bytes, memory = { 0, 0, 0, 0, 0, 0 }, ffi.new "uint8_t[7]", ffi.new "float[6]"
  for k = 0, 299 do
    for i = 0, 6 do bytes[i] = (k + i) % 256 end
    for i = 0, 5 do memory[i] = k * i end
    C[1] = k
    rec:internals { value = { k / 2 }, policy = { 0.1, 0.2, 0.3, k }, ["memory:layers.0.C"] = k % 2 == 0 and memory or C, seen = bytes }
    step(r)
    rec:add(r.action[1], r.reward[1], r.terminated[1] ~= 0, r.truncated[1] ~= 0, spot(r, 1))
  end
  rec:write(path "i.mnt")
  local back = trajectory.read(path "i.mnt")
  for k = 0, 299 do
    t.eq(trajectory.recorded(back, k, "value")[0], k / 2)
    t.eq(trajectory.recorded(back, k, "policy")[3], k)
    t.eq(trajectory.recorded(back, k, "memory:layers.0.C")[k % 2 == 0 and 5 or 0], k % 2 == 0 and 5 * k or k)
    t.eq(trajectory.recorded(back, k, "seen")[6], (k + 6) % 256)
  end
  t.eq(trajectory.recorded(back, 0, "nothing"), nil)
  local source = trajectory_replay.new(back)
  local now = source:next()
  t.eq(now.title, "a test")
  t.eq(now.memory["layers.0.C"].dims, "HK")
  t.near(now.policy[1], 0.2, 1e-7)
  t.fails(function() rec:internals { value = { 1 } } end)
end)

-- ---- damage ----

-- What a file says, in one string; or the error.
local function reading(p)
  local ok, back = pcall(trajectory.read, p)
  if not ok then return nil, back end
  local n, parts = back.steps, { back.env, back.start, back.stride, back.seed }
  for k = 0, n - 1 do parts[#parts + 1] = ("%d %.9g %d"):format(back.actions[k], back.rewards[k], back.flags[k]) end
  parts[#parts + 1] = ffi.string(back.checks, 4)
  parts[#parts + 1] = ffi.string(back.records, n * back.stride)
  return table.concat(parts, "|")
end

local function small_file()
  local r = lived(corridor(), 3)
  local rec = trajectory_writer.new(r.env, 0, { fields = { value = { shape = { 1 } } } })
  rec:begin(r.obs)
  for k = 1, 40 do
    rec:internals { value = { k } }
    step(r)
    rec:add(r.action[0], r.reward[0], r.terminated[0] ~= 0, r.truncated[0] ~= 0, r.obs)
  end
  rec:write(path "small.mnt")
  return files.read(path "small.mnt")
end

t.test("a file with any byte changed, or cut anywhere, is refused or reads the same", function()
  local whole = small_file()
  local want = reading(path "small.mnt")
  local refused = 0
  local function try(bytes, what)
    local f = assert(io.open(path "bad.mnt", "wb"))
    f:write(bytes)
    f:close()
    local got, e = reading(path "bad.mnt")
    if got then t.eq(got, want, what) return end
    refused = refused + 1
    t.ok(errors.is(e) and tostring(e):find("bad.mnt: ", 1, true), what .. ": " .. tostring(e))
    t.ok(tostring(e):find "byte" or tostring(e):find "cut short", what .. " names no place: " .. tostring(e))
  end
  for at = 1, #whole do
    for _, change in ipairs { 1, 32, 128, 255 } do
      local flipped = bit.bxor(whole:byte(at), change)
      try(whole:sub(1, at - 1) .. string.char(flipped) .. whole:sub(at + 1), ("byte %d xor %d"):format(at - 1, change))
    end
  end
  t.ok(refused >= 4 * #whole - 20, "changes that nobody saw")
  for n = 0, #whole - 1 do try(whole:sub(1, n), "cut to " .. n) end
  for n = 1, 20 do try(whole .. ("\0"):rep(n), "zeros behind it") end
end)

-- The file with another header, its sizes and checksum made right: what no accident does, a program may.
local function forged(whole, change)
  local C = require("mneme.base.engine").C
  local size = tonumber(whole:sub(20, 27), 16)
  local text, rest = change(whole:sub(38, 37 + size)), whole:sub(38 + size)
  local first = ("mneme-trajectory 1 %08x "):format(#text)
  local crc = C.mn_crc32c(C.mn_crc32c(0, first, #first), text .. rest, #text + #rest)
  files.write(path "forged.mnt", { first .. bit.tohex(crc) .. "\n" .. text .. rest })
  return path "forged.mnt"
end

t.test("a header that lies is refused: sizes, types, places", function()
  local whole = small_file()
  local function refused(from, to, pattern)
    local p = forged(whole, function(text)
      local changed, n = text:gsub(from, to)
      t.eq(n, 1, "nothing to change: " .. from)
      return changed
    end)
    t.raises(function() trajectory_replay.new(trajectory.read(p)) end, pattern)
  end
  t.eq(reading(forged(whole, function(text) return text end)), reading(path "small.mnt"), "an honest forgery")
  for _, steps in ipairs { "0", "-1", "0.5", "41", "1e9", "1e300", '"x"', "null", "268435456" } do
    refused('"steps": 40', '"steps": ' .. steps, "forged.mnt: byte %d+: damaged")
  end
  refused('"rewards": %d+', '"rewards": 5000', "rewards is 5000")
  refused('"rewards": %d+', '"rewards": 1', "byte %d+")
  refused('"ends": %d+', '"ends": 1000', "ends is 1000")
  refused('"start": %[(%d+), %d+%]', '"start": [%1, 1]', "pair of sizes")
  refused('"start": %[%d+, (%d+)%]', '"start": [1000000, %1000000]', "byte %d+")
  refused('"up", ', "", "step %d+: action%[%d+%]=3, expected 0%.%.2")
  refused('"env": "tmaze%-v0"', '"env": "nomaze-v0"', "forged.mnt: cannot be replayed: unknown environment 'nomaze")
  refused('"env": "tmaze%-v0"', '"env": "tmaze-v7"', "cannot be replayed: unknown environment 'tmaze%-v7'")
  refused('"corridor": 5', '"corridor": 5000', "cannot be replayed: .*corridor=5000")
  refused('"corridor": 5', '"corridor": 6', "saved with corridor=5, here it is 6")
  refused('"corridor": 5', '"korridor": 5', "unknown setting of tmaze")
  refused('"dtype": "f32", "shape": %[16%]', '"dtype": "f32", "shape": [17]', "recorded with observations f32 %[17%]")
  refused('"shape": %[1%]', '"shape": [1000000000]', "byte %d+: damaged: records needs")
  refused('"at": 0', '"at": 4', "one after another")
  refused('"fields": %[', '"fields": [7, ', "one after another")
  local function intervened(list, pattern) refused('"observation":', '"interventions": ' .. list .. ', "observation":', pattern) end
  intervened("7", "interventions are no list")
  intervened('{"at": 3}', "interventions are no list")
  for _, one in ipairs { "7", '{"at": 3}', '{"at": 41, "kind": "erase", "what": "all"}', '{"at": -1, "kind": "erase", "what": "all"}',
    '{"at": 3, "kind": "set", "what": "cue"}', '{"at": 3, "kind": "set", "what": 5, "to": 1}' } do
    intervened("[" .. one .. "]", "damaged: intervention 0 is none")
  end
  intervened('[{"at": 5, "kind": "erase", "what": "all"}, {"at": 3, "kind": "erase", "what": "all"}]', "intervention 1 is none")
  refused("^{", "[", "not valid JSON")
  refused("^.*$", "[]", "not an object")
end)

t.test("what is no trajectory is refused with its reason", function()
  t.fails(function() trajectory.read(path "none.mnt") end)
  t.fails(function() trajectory.read(folder) end)
  files.write(path "empty.mnt", { "" })
  t.raises(function() trajectory.read(path "empty.mnt") end, "not a trajectory")
  files.write(path "text.mnt", { ("hello "):rep(100) })
  t.fails(function() trajectory.read(path "text.mnt") end)
  local newer = small_file():gsub("^mneme%-trajectory 1", "mneme-trajectory 2")
  files.write(path "newer.mnt", { newer })
  t.fails(function() trajectory.read(path "newer.mnt") end)
  local rec = trajectory_writer.new(corridor(), 0)
  t.fails(function() rec:write(path "no.mnt") end)
  t.fails(function() trajectory_writer.new(corridor(), 0, { field = {} }) end)
end)

t.test("an environment that has changed is found out: reward, end, observation", function()
  local function changed(change)
    local rec = record(lived(corridor(), 0), 0, 300)
    local made = rec:trajectory()
    change(made)
    return trajectory_replay.new(made):verify()
  end
  t.eq(changed(function() end), nil)
  t.ok(changed(function(made) made.rewards[17] = 0.5 end):find "^step 17: reward .*, recorded 0.5")
  t.ok(changed(function(made) made.flags[8] = made.flags[8] == 0 and 1 or 0 end):find "^step 8: the episode .*, recorded: ")
  t.ok(changed(function(made) made.checks[1] = made.checks[1] + 1 end):find "^the observations of steps 256 to 300 ")
  t.ok(changed(function(made) made.actions[0] = 3 end), "another action goes unnoticed")
end)

-- ---- rules in Lua ----

local function spec(more)
  local s = { name = "count", observation = { 2 }, actions = { "less", "more" }, num_envs = 3, time_limit = 9,
    reset = function(self, random) self.n = random(5) return { self.n, random() } end,
    step = function(self, action, random)
      self.n = self.n + (action == 1 and 1 or -1)
      return { self.n, random() }, self.n / 3, self.n == 0, 1
    end }
  for key, value in pairs(more or {}) do s[key] = value end
  return s
end

t.test("an environment in Lua replays beside its environment, and says why it cannot without", function()
  local env = envs.new(spec())
  local rec, want = record(lived(env, 4), 2, 200)
  rec:write(path "lua.mnt")
  local back = trajectory.read(path "lua.mnt")
  local again = trajectory_replay.new(back, env)
  for k = 1, 201 do
    t.eq(ffi.string(again.obs, 8), want[k])
    again:advance()
  end
  t.eq(again.problem, nil)
  t.fails(function() trajectory_replay.new(back) end)
  t.fails(function() trajectory_replay.new(back, envs.new(spec { actions = 3 })) end)
  t.ok(trajectory_replay.new(back, envs.new(spec { step = function(self, _, random) return { self.n, random() }, 0, false end })):verify())
  env = envs.new(spec { reset = function(self) self.f = print return { 0, 0 } end })
  local r = lived(env, 0)
  t.fails(function() trajectory_writer.new(env, 0):begin(r.obs) end)
end)

t.test("as many actions as there may be are kept by their names", function()
  local names = {}
  for i = 1, 2 ^ 14 do names[i] = "a" .. i end
  record(lived(envs.new(spec { actions = names }), 2), 0, 3):write(path "many.mnt")
  local back = trajectory.read(path "many.mnt")
  t.eq(#back.names, 2 ^ 14) t.eq(back.names[2 ^ 14], names[2 ^ 14])
end)

t.test("docs/trajectories.md: its script works as printed", function()
  local text = files.read(require("mneme.base.registry").root .. "docs/trajectories.md")
  local code = text:match("```lua\n(.-)```"):gsub("walk%.mnt", path "walk.mnt")
  local said
  local chunk = assert(loadstring(code))
  setfenv(chunk, setmetatable({ print = function(what) said = what end }, { __index = _G }))
  chunk()
  t.eq(said, "replayed without a difference")
end)

os.execute("rm -r '" .. folder .. "'")
