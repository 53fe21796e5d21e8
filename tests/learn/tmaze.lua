-- tmaze.lua -- every memory learns to carry the cue down a corridor of 20 cells: experiments/demo.lua, three
-- seeds each.  A seed is solved if a hundred episodes in a row were, within its 2 million steps; chance is 0.5.
local t = require "tests.harness"
local engine = require "mneme.engine"
local json = require "mneme.json"
local files = require "mneme.files"

local dir = os.tmpname()
os.remove(dir)
files.make_folder(dir)
local program, script = engine.build .. "/mneme", require("mneme.find").root .. "experiments/demo.lua"

local function run(line)
  local pipe = io.popen(("'%s' %s 2>&1"):format(program, line))
  local said = pipe:read "*a"
  pipe:close()
  return said
end

for _, core in ipairs { "agalite", "galite", "gru" } do
  for seed = 1, 3 do
    t.test(("%s, seed %d"):format(core, seed), function()
      local folder = ("%s/%s-%d"):format(dir, core, seed)
      local said = run(("run '%s' core=%s seed=%d run=%s"):format(script, core, seed, folder))
      local steps = tonumber(said:match ": (%d+) steps, score 1%.000")
      t.ok(steps, "not solved: " .. said:match "[^\r\n]*%s*$")
      local success = tonumber(run("eval " .. folder .. " episodes=1000"):match "success ([%d.]+)")
      local settings = json.decode((files.read(folder .. "/config.json"))).config
      print(("  %-8s seed %d: solved after %4.0fk of %.0fk steps, success %.3f over 1000 fresh episodes"):format(core,
        seed, steps / 1000, settings.steps / 1000, success))
      io.stdout:flush()
      t.ok(success >= 0.9, "success " .. success)
    end)
  end
end
os.execute("rm -rf " .. dir)
