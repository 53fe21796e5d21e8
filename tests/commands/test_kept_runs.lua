-- test_kept_runs.lua -- runs and a study of earlier versions (tests/fixtures/kept_runs, an archive for each) are read by this one: evaluated,
-- resumed, compared, reported, checked, shown, exported, swept on.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local function check_version(version, archive, turn)
  local dir = shell.folder()
  t.eq(select(2, shell.run(dir, ("tar xzf '%s'"):format(archive))), 0)

  local function works(words, expected)
    local said, status = shell.mneme(dir, words)
    t.eq(status, 0, words .. ": " .. said)
    if expected then t.ok(said:find(expected), words .. ": " .. said) end
    return said
  end

  local runs = {}
  for _, name in ipairs(files.list(dir)) do if files.is_file(dir .. "/" .. name .. "/config.json") then runs[#runs + 1] = name end end
  for _, name in ipairs(files.list(dir .. "/two/runs")) do runs[#runs + 1] = "two/runs/" .. name end

  t.test(version .. ": there are runs of each learner, of a script's own environment, of sequences, and of a study", function() t.eq(#runs, 8) end)

  t.test(version .. ": the study is reported, compared, swept on, and its results are taken from a file", function()
    works "check two"
    works "report two export=two.jsonl"
    works("report two", "two/report.html")
    works("sweep two.lua run=two estimate=0 jobs=1 seeds=3", "6 of 6 runs done")
    works "report two"
    works("sweep two.lua run=again import=two.jsonl estimate=0 jobs=0", "4 of the 4 runs of two.jsonl were open here and are taken")
  end)

  if files.is_file(dir .. "/tuned/declaration.json") then
    t.test(version .. ": a tuning is reported; a causal map is taken as it is", function()
      works "check tuned"
      works("report tuned", "tuned/report.html")
      local map = ("%s/a2c/where/%s"):format(dir, files.list(dir .. "/a2c/where")[1])
      local before = files.read(map)
      works("where a2c episodes=8", "0 of 75 cells stand out")
      t.eq(files.read(map), before)
      t.eq(#files.list(dir .. "/a2c/where"), 2, "that map, and since episodes fail one of holding")
      works("compare tuned a2c")
    end)
  end

  -- Each run of a version is looked at or resumed, by turns; another version has the other.
  for k, run in ipairs(runs) do
    if (k + turn) % 2 == 0 then t.test(version .. ": " .. run .. " is checked, evaluated, shown and exported", function()
      works("check " .. run, "^ok ")
      local acts = files.is_file(("%s/%s/config.json"):format(dir, run)) and run ~= "sequences"
      works("eval " .. run .. " trust=1" .. (acts and " episodes=4 seed=1" or ""), acts and "return" or "accuracy")
      if acts then works("view " .. run .. " out=picture.png size=640x480 wait=0 trust=1") end
      works("export " .. run .. " to=weights.safetensors trust=1")
    end) else t.test(version .. ": " .. run .. " is resumed", function()
      local step = 0
      for _, name in ipairs(files.list(("%s/%s/checkpoints"):format(dir, run))) do step = math.max(step, tonumber(name:match "%d+")) end
      works(("run resume=%s steps=%d trust=1"):format(run, step + 2048), ("going on at step %d"):format(step))
      works("check " .. run, "^ok ")
    end) end
  end

  t.test(version .. ": runs are compared", function()
    works "compare a2c ppo signs"
    works("compare two", "core=gru")
    t.ok(select(2, shell.mneme(dir, "diff a2c ppo")) == 1)
  end)

  files.remove_folder(dir)
end

for i, name in ipairs(files.list(shell.root .. "tests/fixtures/kept_runs")) do
  local version = name:match "^(.*)%.tar%.gz$"
  if version then check_version(version, shell.root .. "tests/fixtures/kept_runs/" .. name, i) end
end
