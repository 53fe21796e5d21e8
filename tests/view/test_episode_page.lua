-- test_episode_page.lua -- an episode as an HTML file: for every core and every environment its data are those of the frames, it loads nothing
-- and stays small.  What a browser makes of it: test_episode_browser.lua.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"
local mn = require "mneme"
local envs = require "mneme.envs.env"
local registry = require "mneme.base.registry"
local rig = require "mneme.models.contract_rig"
local engine = require "mneme.base.engine"
local episode_data = require "mneme.view.episode_data"
local episode_page = require "mneme.view.episode_page"
local files = require "mneme.base.files"
local attention_history = require "mneme.view.attention_history"
local intervention_options = require "mneme.episodes.intervention_options"
local json = require "mneme.base.json"
local playback = require "mneme.episodes.playback"
local shell = require "tests.support.shell"
local state_arrays = require "mneme.models.state_arrays"
local stepper = require "mneme.episodes.stepper"
local parsed = require "tests.support.parsed"
local view = require "mneme.commands.view"

local C = engine.C
local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local folder = shell.folder()

-- Bytes from base64, written another way than the page's.
local function bytes_of(text)
  local value, out, n = {}, {}, 0
  for i = 1, 64 do value[letters:byte(i)] = i - 1 end
  for four in text:gmatch "...." do
    local word, missing = 0, select(2, four:gsub("=", "="))
    for i = 1, 4 do word = word * 64 + (value[four:byte(i)] or 0) end
    for i = 1, 3 - missing do
      out[n] = bit.band(bit.rshift(word, 24 - 8 * i), 255)
      n = n + 1
    end
  end
  return out, n
end

-- An untrained agent's episode, as it was or with all of its memory erased at step `at`.
local function shown_of(env, core, at)
  local function open()
    if type(core) == "table" then
      mn.manual_seed(5)
      return stepper.fresh { env = env, core = core, seed = 3, seeded = true }
    end
    local made, about = mn.env(env[1], { corridor = env.corridor, num_envs = 1 }), { seed = 3, seeded = true }
    return stepper.new(made, mn.agent { env = made, core = rig.fresh({ core }, 3, { d_in = 16 }), hidden = 8 }, about)
  end
  local shown = playback.new { { source = open(), open = open } }
  if at then
    shown:go_to(at)
    local option = intervention_options.of { { kind = "erase", what = "all" } }
    t.ok(shown:change(intervention_options.change(option, shown.tracks[1].timeline, shown.slots[shown.at][1]), 0), "erased")
  end
  return shown
end

-- What a reader of the file gets: the text between its tags.
local function read(html) return json.decode((html:match '<script type="application/json">(.-)</script>')) end

-- The data of an episode, and the frames they are of: frames[variant][step, from 1].
local function both(shown, options)
  local data = episode_data.of(shown, options)
  local frames, from, to = {}, shown:episode()
  for k, track in ipairs(shown.tracks) do
    frames[k] = {}
    for slot = from, to do
      local frame = track.timeline:frame(shown.slots[slot][k])
      if #frames[k] < options.most and not frame.outcome then frames[k][#frames[k] + 1] = frame end
    end
  end
  return read(episode_page.whole(data)), frames
end

-- Lists of drawings from their changes.
local function worlds_of(v)
  local list, now = {}, {}
  for i, change in ipairs(v.world) do
    if json.is_array(change) then now = change
    elseif change ~= 0 then
      local before = now
      now = {}
      for k, x in ipairs(before) do now[k] = x end
      if change.cut then
        for _ = 1, change.cut[2] do table.remove(now, change.cut[1] + 1) end
        for k = 3, #change.cut do table.insert(now, change.cut[1] + k - 2, change.cut[k]) end
      else
        for k = 1, #change.at, 2 do now[change.at[k] + 1] = change.at[k + 1] end
      end
    end
    list[i] = now
  end
  return list
end

local function near(a, b, most, what) t.ok(math.abs(a - b) <= most, ("%s: %g, expected %g"):format(what, a, b)) end
local function digits(x) return 1e-3 * math.abs(x) + 1e-9 end

-- Every number of a step is the frame's.
local function check_step(v, frame, i, what)
  local a, b = v.action[i], frame.action
  t.eq(a, b, what)
  for k, p in ipairs(frame.policy) do near(v.policy[i][k], p, 1e-4, what .. " policy") end
  near(v.value[i], frame.value, digits(frame.value), what .. " value")
  near(v.reward[i], frame.reward, digits(frame.reward), what .. " reward")
  for name, value in pairs(frame.truth) do
    local kept = v.truth[name]
    if type(kept) == "table" and kept ~= json.null then kept = kept[i] end
    if type(value) == "number" and value - value == 0 then near(kept, value, digits(value), what .. " " .. name) end
  end
end

local HEAT, IMAGE = 6, 7                         -- engine/canvas.h
local sides = ffi.new "int[2]"

-- The pixels of an image as the page has them: a palette, and a letter of base64 each.
local function check_image(kept, canvas, s, what)
  local rgb, palette = C.mn_canvas_pixels(canvas, s.text, sides, sides + 1), {}
  for colour in kept[2]:gmatch "#(%x+)" do palette[#palette + 1] = tonumber(colour, 16) end
  t.eq(kept[7], sides[1], what .. ": columns")
  t.eq(#kept[8], sides[0] * sides[1], what .. ": pixels")
  for i = 0, #kept[8] - 1 do
    local letter = letters:find(kept[8]:sub(i + 1, i + 1), 1, true)
    t.eq(palette[letter], rgb[3 * i] * 65536 + rgb[3 * i + 1] * 256 + rgb[3 * i + 2], what .. ": a pixel")
  end
end

-- Every shape of a drawing is the environment's.
local function check_world(data, list, frame, what)
  local all, shapes = C.mn_canvas_shapes(frame.canvas), {}
  for i = 0, C.mn_canvas_count(frame.canvas) - 1 do
    if all[i].kind ~= HEAT then shapes[#shapes + 1] = all[i] end       -- the page has no heat maps, and says so
  end
  t.eq(#list, #shapes, what .. ": shapes")
  for i, index in ipairs(list) do
    local s, kept = shapes[i], data.shapes[index + 1]
    t.ok(kept[1] == s.kind and (s.kind == IMAGE or kept[2] == ("#%08x"):format(s.color)), what .. ": kind and colour")
    if s.kind == IMAGE then check_image(kept, frame.canvas, s, what) end
    local keys = s.kind == IMAGE and { "x", "y", "w", "h" } or { "x", "y", "w", "h", "data" }
    for k, key in ipairs(keys) do near(kept[2 + k], s[key], digits(s[key]), what .. " " .. key) end
  end
end

-- The memory of a step: gates, attention, and the state by blocks.
local function check_memory(data, v, bytes, frame, i, what)
  local k, entry = v.from + i - 1, frame.history[#frame.history]
  for g, gate in ipairs(data.gates) do
    for r = 1, #gate.rows do
      local kept = gate.lo + bytes.gates[g][(i - 1) * #gate.rows + r - 1] / 255 * (gate.hi - gate.lo)
      near(kept, entry.gates[gate.kind][r], (gate.hi - gate.lo) / 255 + 1e-3, what .. " gate " .. gate.kind)
    end
  end
  local rows = data.attention.rows
  if rows and (k - v.from) % data.attention.stride == 0 then
    for r, row in ipairs(rows) do
      local share, n, unseen = attention_history.of(frame, #frame.history, row.layer, row.head)
      for past = unseen, n - 1 do
        local root = bytes.attention[bytes.read + (r - 1) * (k + 1) + past] / 255
        near(root, math.sqrt(share[past]), 1 / 254, what .. " attention")
      end
    end
    bytes.read = bytes.read + #rows * (k + 1)
  end
  local _, _, by_layer = state_arrays.grid(frame.memory)
  for _, cell in ipairs(data.state.cells) do
    local n_rows, cols, values = state_arrays.slice(by_layer[cell.layer][cell.kind], cell.head == json.null and 0 or cell.head, frame.n_heads)
    t.ok(n_rows == cell.rows and cols == cell.cols, what .. ": the shape of " .. cell.kind)
    local range, greatest = math.max(data.state.range[cell.kind], 1e-30), 0
    for x = 0, n_rows * cols - 1 do greatest = math.max(greatest, math.min(1, math.abs(values[x]) / range)) end
    local kept = 0
    for x = 0, cell.down * cell.across - 1 do kept = math.max(kept, math.abs(bytes.state[(i - 1) * data.state.size + cell.at + x] - 128) / 127) end
    near(kept, greatest, 1.5 / 127, what .. ": the greatest value of " .. cell.kind)
    if cell.down == cell.rows and cell.across == cell.cols then
      for x = 0, n_rows * cols - 1 do
        near((bytes.state[(i - 1) * data.state.size + cell.at + x] - 128) / 127, math.max(-1, math.min(1, values[x] / range)), 1.5 / 127, what .. " state")
      end
    end
  end
end

local function check(env, core, at, most, what)
  local data, frames = both(shown_of(env, core, at), { at = at, most = most, open = at })
  t.eq(#data.variants, at and 2 or 1, what)
  for k, v in ipairs(data.variants) do
    t.eq(v.n, #frames[k], what .. ": steps")
    t.eq(v.from, k == 2 and at or 0, what)
    local worlds, bytes = worlds_of(v), { gates = {}, attention = bytes_of(v.attention), state = bytes_of(v.state), read = 0 }
    for g, text in ipairs(v.gates) do bytes.gates[g] = bytes_of(text) end
    for i = 1, v.n - v.from do
      local frame, where = frames[k][v.from + i], ("%s, variant %d, step %d"):format(what, k, v.from + i - 1)
      check_step(v, frame, i, where)
      check_world(data, worlds[i], frame, where)
      check_memory(data, v, bytes, frame, i, where)
    end
  end
  -- before the intervention both are one: the second variant need not store it
  for i = 1, at or 0 do
    t.ok(frames[1][i].value == frames[2][i].value and frames[1][i].action == frames[2][i].action, what .. ": the same before step " .. at)
  end
end

for _, core in ipairs(registry.names "cores") do
  t.test("the page of an episode says what the frames say: core " .. core, function()
    local has_state = next(rig.fresh({ core }, 3, { d_in = 16 }).states) ~= nil
    check({ "tmaze", corridor = 8 }, core, has_state and 3 or nil, 7, core)
  end)
end

for _, e in ipairs(envs.list()) do
  t.test("the page of an episode says what the frames say: " .. e.name, function() check({ e.name }, { "gru", d_model = 16 }, nil, 12, e.name) end)
end

t.test("a page is one file: nothing to load, and text cannot leave its place", function()
  local data = episode_data.of(shown_of({ "tmaze", corridor = 6 }, { "gru", d_model = 8 }), { most = 5 })
  local at = 0
  for _, group in ipairs(data.seen.groups) do
    t.eq(group.from, at)
    at = at + group.n
  end
  t.eq(at, data.seen.n, "each number of an observation is of a group")
  t.eq(#data.seen.names, data.seen.n)
  t.eq(data.seen.groups[1].name, "cue")
  data.title = '</script><img src="http://example.org/x.png">&'
  local html = episode_page.whole(data, { theme = "dark" })
  t.eq(read(html).title, data.title, "the data are what they were")
  t.ok(not html:find("<img", 1, true), "no markup from a title")
  for _, bad in ipairs { "%ssrc%s*=%s*[\"']", "<link", "@import", "url%(", "fetch%(", "XMLHttp", "import%(" } do
    t.ok(not html:find(bad), "the page loads: " .. bad)
  end
  t.ok(html:find("default-src 'none'", 1, true), "and browsers are told so")
  t.ok(html:find('data-theme="dark"', 1, true), "theme=")
  t.eq(data.left_out, true, "five steps of an untrained agent's episode")
  t.ok(html:find("the first 5 steps only", 1, true), "said on the page")
end)

t.test("200 steps of the published agalite, twice, are less than 1 MiB", function()
  local shown = shown_of({ "tmaze", corridor = 200 }, { "agalite" }, 20)
  local data = episode_data.of(shown, { at = 20, most = 200 })
  local html = episode_page.whole(data)
  t.eq(data.variants[2].n, 200)
  t.ok(#html < 2 ^ 20, ("%d bytes"):format(#html))
  t.ok(#html > 1e5, "and hold the memory")
  local small = episode_page.section(episode_data.of(shown, { at = 20, most = 200, share = 0.4 }), "a-b")
  t.ok(#small < 0.7 * #html, ("a report's: %d of %d bytes"):format(#small, #html))
end)

t.test("mneme view out=FILE.html", function()
  local path = folder .. "/e.html"
  for _, bad in ipairs { { "tmaze", "out=" .. path, "erase=all" }, { "tmaze", "out=" .. path, "erase=all", "at=2", "episodes=2" } } do
    local ok, e = pcall(function() return view.prepare(parsed(view, bad)) end)
    t.ok(not ok and e.status == 2, table.concat(bad, " "))
  end
  local said, status = shell.mneme(folder, "view tmaze seed=4 erase=all at=2 theme=light wait=0 out=e.html")
  t.eq(status, 0, said)
  local data = read(files.read(path))
  t.eq(data.at, 2) t.eq(data.open, 2) t.eq(#data.variants, 2)
  t.eq(data.variants[2].name, "erase all at step 2")
  said, status = shell.mneme(folder, "view tmaze seed=4 episodes=3 wait=0 out=third.html")
  t.eq(status, 0, said)
  t.eq(#read(files.read(folder .. "/third.html")).variants, 1)
end)

t.test("a report has an episode of its best run, and episode=0 leaves it out", function()
  local best, most = nil, -1
  for seed = 1, 2 do
    local said, status = shell.mneme(folder, ("run demo corridor=6 core=gru core.d_model=8 hidden=8 steps=4096 where=0 seed=%d run=r%d"):format(seed, seed))
    t.eq(status, 0, said)
    local score = tonumber(said:match "score ([%d.]+) over the last 100")
    if score > most then best, most = "r" .. seed, score end
  end
  local said, status = shell.mneme(folder, "report r1 r2 out=with.html")
  t.eq(status, 0, said)
  local html = files.read(folder .. "/with.html")
  t.eq(select(2, html:gsub('<section class="mn%-episode"', "")), 1, "one episode")
  local data = read(html)
  t.eq(#data.variants, 2) t.eq(data.variants[2].name, ("erase all at step %d"):format(data.at))
  said, status = shell.mneme(folder, "report r1 r2 out=page.md")
  t.eq(status, 0, said)
  t.ok(files.read(folder .. "/page.md"):find(("mneme view %s out=episode.html erase=all at="):format(best), 1, true), "the best run is " .. best)
  said, status = shell.mneme(folder, "report r1 r2 out=without.html episode=0")
  t.eq(status, 0, said)
  t.ok(not files.read(folder .. "/without.html"):find("mn-episode", 1, true))
  said, status = shell.mneme(folder, "where r1")
  t.eq(status, 0, said)
  said, status = shell.mneme(folder, "view r1 seed=9 wait=1 out=seeded.html")
  t.eq(status, 0, said)
  t.ok(files.read(folder .. "/seeded.html"):find("64 episodes: ", 1, true), "a stored map serves any episode")
end)

os.execute("rm -r '" .. folder .. "'")
