-- test_episode_browser.lua -- an episode's page in Chromium: slider, keys, pointer and switch do what they say, what is drawn is what the
-- data say, nothing is loaded, and themes and motion are as the reader prefers.
local t = require "tests.harness"
local chromium = require "tests.support.chromium"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"

local folder = shell.folder()
local path = folder .. "/episode.html"
local said, status = shell.mneme(folder, "view tmaze seed=4 erase=all at=4 out=episode.html")
t.eq(status, 0, said)
local data = json.decode((files.read(path):match '<script type="application/json">(.-)</script>'))
local first, second = data.variants[1], data.variants[2]
local steps = math.max(first.n, second.n)

local function with_page(options, f, file)
  if not chromium.program() then t.skip "no Chromium is installed (apt-get install chromium)" end
  local page = chromium.open(file or path, options)
  local ok, why = xpcall(f, debug.traceback, page)
  local problems, requests = page:problems(), page:requests()
  page:close()
  if not ok then error(why, 0) end
  t.eq(table.concat(problems, "\n"), "", "no error in the page")
  t.eq(table.concat(requests, "\n"), "", "nothing is loaded")
end

local function step_of(page) return tonumber(page:value "document.querySelector('.mn-episode').dataset.step") end
local function mode_of(page) return tonumber(page:value "document.querySelector('.mn-episode').dataset.mode") end
local function sentence(page) return page:value "document.querySelector('.mn-say').textContent" end
local function canvas(name) return ("[data-panel=%s] canvas"):format(name) end
local function picture(page, name) return page:value(("document.querySelector('%s').toDataURL()"):format(canvas(name))) end
local function minus(x) return (("%.2f"):format(x):gsub("-", "−")) end

-- Shares of the bars of the policy panel, counted in pixels: along the middle of each row, the pixels of a bar among those of bar and ground.
local function bars(page, rows)
  return page:value(([=[(() => { const c = document.querySelector("%s"), g = c.getContext("2d"), out = [];
    const style = getComputedStyle(document.querySelector(".mn-episode"));
    const hex = name => { const h = style.getPropertyValue("--mn-" + name).trim(); return [1, 3, 5].map(i => parseInt(h.slice(i, i + 2), 16)).join(); };
    const bar = [hex("accent"), hex("warm")], ground = hex("grid"), high = Math.min(34, c.height / %d);
    for (let r = 0; r < %d; r++) {
      const line = g.getImageData(40, Math.floor((r + 0.35) * high), c.width - 40, 1).data;
      let filled = 0, all = 0;
      for (let x = 0; x < line.length; x += 4) {
        const color = [line[x], line[x + 1], line[x + 2]].join();
        if (bar.includes(color)) { filled++; all++; } else if (color === ground) all++;
      }
      out.push(all ? filled / all : -1);
    }
    return out; })()]=]):format(canvas "policy", rows, rows))
end

-- Where the agent is drawn in the environment: the middle of the pixels of its colour.
local function agent_at(page)
  return page:value(([=[(() => { const c = document.querySelector("%s"), p = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    let sum = 0, n = 0;
    for (let i = 0; i < p.length; i += 4) if (p[i] === 0x56 && p[i + 1] === 0xB4 && p[i + 2] === 0xE9) { sum += i / 4 %% c.width; n++; }
    return n ? sum / n : -1; })()]=]):format(canvas "world"))
end

t.test("keys and slider go to steps, and what is drawn is what the data say", function()
  with_page({}, function(page)
    t.eq(step_of(page), 4, "opened at the intervention")
    page:press "Home"
    t.eq(step_of(page), 0)
    page:press "ArrowRight" page:press "ArrowRight" page:press "ArrowLeft"
    t.eq(step_of(page), 1)
    page:press "PageDown"
    t.eq(step_of(page), 11)
    page:press "End"
    t.eq(step_of(page), steps, "the end has a place of its own")
    t.ok(sentence(page):find("end, .*return " .. minus(first.outcome.ret)), sentence(page))
    local places = {}
    for _, step in ipairs { 0, 2, 7, 15 } do
      page:value(("(s => { s.value = %d; s.dispatchEvent(new Event('input')); })(document.querySelector('input[type=range]'))"):format(step))
      t.eq(step_of(page), step, "the slider")
      t.ok(sentence(page):find(("value %s"):format(minus(first.value[step + 1])), 1, true), sentence(page))
      for a, share in ipairs(bars(page, #data.actions)) do
        t.ok(math.abs(share - first.policy[step + 1][a]) < 0.03, ("step %d: the bar of %s is %.3f, its probability %.3f"):format(step, data.actions[a],
          share, first.policy[step + 1][a]))
      end
      local x = first.truth.position or first.truth.x
      places[#places + 1] = { type(x) == "table" and x[step + 1] or x, agent_at(page) }
    end
    local origin
    for _, p in ipairs(places) do                      -- one cell is equally wide everywhere
      if not origin then origin = p
      elseif p[1] == origin[1] then t.ok(math.abs(p[2] - origin[2]) < 1, "it stands where it stood")
      else
        t.ok((p[2] - origin[2]) / (p[1] - origin[1]) > 5, "and further on the further it is")
      end
    end
  end)
end)

t.test("the switch shows one course of the episode, the other, or their difference", function()
  with_page({ dark = true }, function(page)
    local parts
    for k = 1, steps do
      if not parts and first.value[k] ~= (k > second.from and second.value[k - second.from] or first.value[k]) then parts = k - 1 end
    end
    t.ok(page:value("document.querySelector('.mn-variants').textContent"):find("differ since step " .. parts, 1, true), "since when")
    page:press "End" page:press "ArrowLeft"
    local seen = {}
    for mode = 0, 2 do
      page:press(tostring(mode + 1))
      t.eq(mode_of(page), mode)
      t.eq(page:value "+document.querySelector('.mn-variants input:checked').value", mode)
      for _, name in ipairs { "world", "policy", "state", "norms" } do
        seen[name] = seen[name] or {}
        seen[name][mode] = picture(page, name)
      end
      local both = page:value "document.querySelector('.mn-say').textContent.split('|').length"
      t.eq(both, mode == 2 and 2 or 1)
    end
    for name, list in pairs(seen) do t.ok(list[2] ~= list[0] and list[2] ~= list[1], name .. ": the difference is another picture") end
    t.ok(seen.state[0] ~= seen.state[1], "the states differ")
    page:press "1"
    t.ok(picture(page, "state") == seen.state[0], "and the first again as it was")
    page:press "Home" page:press "1"
    local before = picture(page, "policy")
    page:press "2"
    t.ok(picture(page, "policy") == before, "before the intervention both are one")
    page:press "2"
    local x, y = page:place ".mn-variants label:nth-of-type(3)"
    page:pointer(x, y, true)
    t.eq(mode_of(page), 2, "a click does the same")
  end)
end)

t.test("values under the pointer, and without a mouse", function()
  with_page({}, function(page)
    page:press "Home"
    local function tip() return page:value "document.querySelector('.mn-tip').hidden ? '' : document.querySelector('.mn-tip').textContent" end
    t.eq(tip(), "")
    local x, y = page:place(canvas "value", 0.6, 0.9)
    page:pointer(x, y)
    local step = tonumber(tip():match "step (%d+)")
    t.ok(step and step > 3 and tip():find "^reward: " or tip():find "^value: ", tip())
    t.ok(tip():find("discounted return that the agent expects", 1, true), "with a definition: " .. tip())
    page:pointer(x, y, true)
    t.eq(step_of(page), step, "a click goes to the step")
    local row_x, row_y = page:place(canvas "policy", 0.5, 0.1)
    page:pointer(row_x, row_y)
    t.ok(tip():find("^" .. data.actions[1] .. ": [%d.]+ %%"), tip())
    -- by keys alone: Tab reaches every panel, arrows choose a row and a step
    page:value "document.querySelector('.mn-episode').focus()"
    local reached, told = {}, false
    for _ = 1, 30 do
      page:press "Tab"
      local name = page:value "(document.activeElement.closest('[data-panel]') || { dataset: {} }).dataset.panel || ''"
      reached[name] = true
      if name == "policy" and not told then
        told = true
        page:press "ArrowDown"
        t.ok(tip():find("^" .. data.actions[2] .. ": "), tip())
        t.ok(sentence(page):find(data.actions[2], 1, true), "and said aloud: " .. sentence(page))
        page:press "ArrowRight"
        t.eq(step_of(page), step + 1)
      end
    end
    for _, name in ipairs { "world", "policy", "value", "policies", "seen", "attention", "gate-beta", "norms", "state" } do
      t.ok(reached[name], name .. " is reached by Tab")
    end
    t.ok(page:value "[...document.querySelectorAll('canvas')].every(c => c.getAttribute('aria-label'))", "drawings have names")
  end)
end)

t.test("playing, for those who want motion and those who do not", function()
  local until_moved = [[new Promise(done => { const e = document.querySelector('.mn-episode').episode;
    const look = () => e.step > 0 ? done(e.step) : setTimeout(look, 10); look(); })]]
  for _, calm in ipairs { false, true } do
    with_page({ calm = calm }, function(page)
      page:press "Home"
      t.eq(page:value "document.querySelector('.mn-episode').episode.playing", false, "nothing moves by itself")
      t.eq(page:value "document.querySelector('select').value", calm and "1" or "5", "steps a second")
      page:press " "
      t.ok(page:value(until_moved) >= 1, "it plays")
      page:press " "
      t.eq(page:value "document.querySelector('.mn-episode').episode.playing", false, "and pauses")
    end)
  end
end)

t.test("light, dark, and narrow", function()
  local colors = {}
  for _, dark in ipairs { false, true } do
    with_page({ dark = dark, width = 400 }, function(page)
      local function ground() return page:value "getComputedStyle(document.body).backgroundColor" end
      colors[dark] = ground()
      t.eq(page:value "document.documentElement.scrollWidth <= 400", true, "no page wider than the screen")
      page:press "t"
      t.ok(ground() ~= colors[dark], "t turns it")
    end)
  end
  if colors[true] then t.ok(colors[true] ~= colors[false], "as the reader prefers") end
end)

-- ---- what was measured of the memory, and the pages of reports ----

-- A study of two small runs with three claims, two of them about the same run.
files.write(folder .. "/two.lua", { [=[
local mn = require "mneme"
return mn.study {
  title = "Two memories", question = "Which one?", seeds = { 1 },
  axes = { core = { { "gru", d_model = 8, label = "gru" },
    { "galite", n_layers = 1, d_model = 8, n_heads = 2, d_head = 4, eta = 2, d_ffn = 8, label = "galite" } } },
  settings = { core = { "gru" }, steps = 8192, num_envs = 8, num_steps = 16, lr = 1e-3, threads = 1 },
  run = function(cfg)
    mn.manual_seed(cfg.seed)
    local env = mn.env("tmaze", { corridor = 6, num_envs = cfg.num_envs, seed = cfg.seed })
    return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 8 }):train()
  end,
  metrics = { score = { "success", range = { 0, 1 } } }, figures = { { "bars", y = "score", x = "core" } },
  claims = { { id = "one", text = "One.", test = { "at_least", metric = "score", a = { core = "gru" }, value = 0.4 } },
    { id = "two", text = "Two.", test = { "at_least", metric = "score", a = { core = "galite" }, value = 0.4 } },
    { id = "three", text = "Three.", test = { "at_least", metric = "score", a = { core = "gru" }, value = 0.9 } } },
}
]=] })

-- Of each panel with named rows, drawn 250 wide: how many names there are, where the widest ends, and where the cells begin.
local beside = [=[(e => e.panels.filter(p => p.names && p.draw).map(p => {
  const g = document.createElement("canvas").getContext("2d"), out = { title: p.title, rows: p.names.length, labels: 0, labels_end: 0, cells: 0 };
  g.fillText = (text, x, y, most) => { if (x > 0) return; out.labels++; out.labels_end = Math.max(out.labels_end, Math.min(g.measureText(text).width, most)); };
  g.drawImage = (image, x) => { out.cells = x; };
  p.draw(g, 250, p.height);
  return out; }))(document.getElementById("%s").episode)]=]

t.test("a report plays an episode for each claim that a run shows, once for each run; what was measured of the memory is what the panels say", function()
  local words, code = shell.mneme(folder, "sweep two.lua run=two jobs=1 estimate=0 && '" .. shell.program .. "' report two")
  t.eq(code, 0, words)
  local html = files.read(folder .. "/two/report.html")
  local ids, stored = {}, {}
  for id in html:gmatch '<section class="mn%-episode" id="([%w%-]+)"' do ids[#ids + 1] = id end
  t.eq(table.concat(ids, " "), "episode-1 episode-2")
  for text in html:gmatch '<script type="application/json">(.-)</script>' do stored[#stored + 1] = json.decode(text) end
  t.ok(html:find("An episode of core=gru,seed=1 stands with", 1, true), "the third claim's run is the first one's")
  t.ok(#html < 400 * 1024, ("%d KB"):format(#html / 1024))
  with_page({}, function(page)
    for e, id in ipairs(ids) do
      page:value(("(d => { if (d) d.open = true; })(document.getElementById('%s').closest('details'))"):format(id))
      page:value "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
      local names = {}
      for _, about in ipairs(stored[e].measures) do
        names[about.name] = true
        local v = about.variants[1]
        if v.why then t.ok(page:value(("document.querySelector('#%s [data-panel=%s]').textContent"):format(id, about.name)):find(v.why, 1, true), v.why) end
        for _, r in ipairs(v.why and {} or { 1, #about.rows }) do
          local c = #v.steps
          local spot = ("{ row: %d, step: %d }"):format(r - 1, v.steps[c])
          local ask = [=[(e => { e.choose(0); return e.panels.find(p => p.name === "%s").tell(%s); })(document.getElementById("%s").episode)]=]
          local told = page:value(ask:format(about.name, spot, id))
          local value = v.values[r][c]          -- null where it is not measured
          t.ok(told:find(about.rows[r], 1, true), told)
          if about.words == "percent" and v.looks[r]:sub(c, c) ~= "?" and value >= 0.0995 then
            t.ok(told:find(("%.0f %%"):format(100 * value), 1, true), told .. " of " .. value)
          end
          t.ok(told:find(v.tips[r][c], 1, true), told)
          local away = v.steps[c] + math.ceil(v.every)                    -- a value is not held over steps that are not measured
          if away < stored[e].variants[1].n then
            local there = page:value(ask:format(about.name, ("{ row: %d, step: %d }"):format(r - 1, away), id))
            t.ok(there:find "not measured", there)
          end
        end
        local drawn = v.why or page:value(("(c => c.width > 0 && new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size > 3)(%s)"):format(
          ("document.querySelector('#%s [data-panel=%s] canvas')"):format(id, about.name)))
        t.ok(drawn, about.name .. " is drawn")
      end
      for _, name in ipairs { "contribution", "knowledge-cue", "causes" } do t.ok(names[name], name) end
      for _, panel in ipairs(page:value(beside:format(id))) do
        t.eq(panel.labels, panel.rows, panel.title .. ": every row has its name")
        t.ok(panel.labels_end < panel.cells, ("%s: names end at %g, cells begin at %g"):format(panel.title, panel.labels_end, panel.cells))
      end
      local last = page:value(("(e => { e.go(1e9); return e.step; })(document.getElementById('%s').episode)"):format(id))
      t.eq(last, math.max(stored[e].variants[1].n, stored[e].variants[2].n), "each plays by itself")
    end
  end, folder .. "/two/report.html")
end)

chromium.stop()
os.execute("rm -r '" .. folder .. "'")
