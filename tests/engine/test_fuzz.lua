-- test_fuzz.lua -- every reader of bytes takes a few hundred changed inputs well (tests/fuzz/smoke.lua); `make fuzz` goes on
-- from there with libFuzzer.  Below: what it has found.
local t = require "tests.harness"
local shell = require "tests.support.shell"
local setting_types = require "mneme.base.setting_types"

t.test("changed files, drawings, words and calls are taken or refused in words", function()
  local folder = shell.folder()
  local here = require("lfs").currentdir()
  local said, status = shell.run(here, ("MNEME_BUILD='%s' luajit tests/fuzz/seeds.lua '%s'"):format(shell.program:match "^(.*)/", folder))
  t.eq(status, 0, said)
  said, status = shell.run(here, ("MNEME_BUILD='%s' luajit tests/fuzz/smoke.lua '%s' 300 2> '%s/last'"):format(shell.program:match "^(.*)/",
    folder, folder))
  if status ~= 0 then said = said .. shell.run(folder, "head -c 2000 last") end
  t.eq(status, 0, said)
  t.ok(said:find "%d+ inputs\n", said)
  os.execute("rm -r '" .. folder .. "'")
end)

t.test("an option of a thing is no NaN and no infinity", function()
  local function fresh() return { core = { "gru" } }, { core = { default = { "gru" } } } end
  for _, text in ipairs { "nan", "inf", "-inf" } do
    local cfg, schema = fresh()
    setting_types.set(cfg, schema, "core.scale", text)
    t.eq(type(cfg.core.scale), "string", text)
  end
  t.fails(function()
    local cfg, schema = fresh()
    setting_types.set(cfg, schema, "core.scale", "1e999")
  end)
end)
