-- test_episode_browser.lua -- an episode's page in Chromium: slider, keys, pointer and switch do what they say, what is drawn is what the
-- data say, nothing is loaded, and themes and motion are as the reader prefers.
local t = require "tests.harness"
local chromium = require "tests.support.chromium"
local shell = require "tests.support.shell"

local folder = shell.folder()
local path = folder .. "/episode.html"
local said, status = shell.mneme(folder, "view tmaze seed=4 erase=all at=4 out=episode.html")
t.eq(status, 0, said)
local ready = "new Promise(done => { const look = () => document.querySelector('.mn-episode').episode ? done(1) : setTimeout(look, 10); look(); })"

local function with_page(options, f, file)
  if not chromium.program() then t.skip "no Chromium is installed (apt-get install chromium)" end
  local page = chromium.open(file or path, options)
  page:value(ready)
  local ok, why = xpcall(f, debug.traceback, page)
  local problems, requests = page:problems(), page:requests()
  page:close()
  if not ok then error(why, 0) end
  t.eq(table.concat(problems, "\n"), "", "no error in the page")
  t.eq(table.concat(requests, "\n"), "", "nothing is loaded")
end

local function step_of(page) return tonumber(page:value "document.querySelector('.mn-episode').dataset.step") end
local function sentence(page) return page:value "document.querySelector('.mn-say').textContent" end
local function picture(page) return page:value "document.querySelector('.mn-episode canvas').toDataURL()" end

t.test("keys and slider go to steps", function()
  with_page({}, function(page)
    t.eq(step_of(page), 4, "opened at the intervention")
    page:press "Home"
    t.eq(step_of(page), 0)
    local before = picture(page)
    page:press "ArrowRight" page:press "ArrowRight" page:press "ArrowLeft"
    t.eq(step_of(page), 1)
    t.ok(picture(page) ~= before, "another page")
    page:press "PageDown"
    t.eq(step_of(page), 11)
    page:press "End"
    t.eq(step_of(page), page:value "document.querySelector('.mn-episode').episode.last", "the end has a place of its own")
    t.ok(sentence(page):find "end, .*return ", sentence(page))
    page:value "(s => { s.value = 7; s.dispatchEvent(new Event('input')); })(document.querySelector('input[type=range]'))"
    t.eq(step_of(page), 7, "the slider")
    t.ok(sentence(page):find "^step 7 of %d+ .*as it was: .*value .*| erase all at step 4: ", sentence(page))
  end)
end)

t.test("what a part is, under the pointer", function()
  with_page({}, function(page)
    local x, y = page:place(".mn-episode canvas", 0.25, 0.05)
    page:pointer(x, y)
    local asked = page:value [[(e => e.data.pages[e.step].map(i => e.data.shapes[i]).filter(s => s[0] === 8).length)(
      document.querySelector(".mn-episode").episode)]]
    t.ok(asked > 3, "there are words for parts")
    local told = page:value [[(e => { const s = e.data.pages[e.step].map(i => e.data.shapes[i]).find(s => s[0] === 8), b = e.canvas.getBoundingClientRect();
      const at = { clientX: b.left + (s[2] + s[4] / 2) / 100 / e.data.width * b.width, clientY: b.top + (s[3] + s[5] / 2) / 100 / e.data.height * b.height };
      e.canvas.dispatchEvent(new PointerEvent("pointermove", at));
      return e.tip.hidden ? "" : e.tip.textContent; })(document.querySelector(".mn-episode").episode)]]
    t.ok(#told > 3, told)
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

chromium.stop()
os.execute("rm -r '" .. folder .. "'")
