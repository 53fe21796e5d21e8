-- five_failures.lua -- five agents that fail for five natural reasons: not trained to the end, used beyond what they were trained for, with a memory that
-- leaks or is too short, or never where the cue is shown.   luajit tests/endurance/five_failures.lua [NAME ...]
-- Trains each for seconds, asks `mneme where` why it fails, and `mneme intervene`, with other episodes, whether that is right.  The last lines are the table
-- of docs/where.md; the status is 1 where a sentence is another one, or wrong.
local here = arg[0]:match "^(.*)tests/endurance/five_failures%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local engine = require "mneme.base.engine"
local shell = require "tests.support.shell"

local QUICK = "num_envs=16 hidden=64 num_steps=64 lr=2e-3 entropy_coef=0.01 learner=a2c where=0 threads=1 "
local SEED = 777
local LOST = "(%u[^.:]*%.?[^.:]* loses? the cue between steps %d+ and %d+)"

-- An effect that `intervene` measured: with the part kept before it was lost there is more success, by how much of that is there afterwards.
local function kept(before, after) return before.low > 0 and after.mean < before.mean / 2 end
local function none(effect) return effect.low > -0.1 and effect.high < 0.1 end

local cases = {
  { "drawn", "a GRU, stopped at score 0.8", "env=tmaze_bakker env.corridor=10 core=gru core.d_model=32 stop_score=0.8", "",
    "In %d+ of %d+ failures [^.]*: the draw of actions, not the memory", { "erase=all at=5 greedy=1" },
    function(greedy) return greedy.without > 0.97 and greedy.high < 0 end },
  { "faded", "a minGRU trained in a corridor of 6, in one of 40", "env=tmaze_bakker env.corridor=6 core=mingru core.d_model=64 stop_score=0.97",
    "env.corridor=40 time_limit=120", LOST, { "hold=PART at=LAST", "hold=PART at=GONE" }, kept },
  { "never stored", "a GRU that turns before it sees the sign", "env=tmaze_active env.corridor=5 core=gru core.d_model=32 steps=80000", "",
    "The cue was never stored", { "swap=all at=1", "swap=all at=4" }, function(a, b) return none(a) and none(b) end },
  { "not used", "a minGRU with slow gates, stopped after 16,384 steps",
    "env=tmaze_bakker env.corridor=10 core=mingru core.d_model=64 core.remember=100 steps=16384",
    "time_limit=60", "No part loses the cue: [^.]*%. It is there to the end, which leaves its use", { "swap=all at=5", "swap=all at=9" },
    function(a, b) return none(a) and none(b) end },
  { "overwritten", "the last 9 observations (framestack), trained in a corridor of 6, in one of 14",
    "env=tmaze_bakker env.corridor=6 core=framestack core.frames=9 core.n_layers=1 core.d_model=32 core.d_ffn=32 stop_score=0.97",
    "env.corridor=14 time_limit=60", LOST, { "hold=PART at=LAST", "hold=PART at=GONE" }, kept },
}

local folder = shell.folder()
local function mneme(words)
  local said, status = shell.mneme(folder, words)
  if status ~= 0 then error(("mneme %s: status %d: %s"):format(words, status, said), 0) end
  return said
end

-- What `intervene` measures in 400 other episodes.
local function effect_of(run, words, where)
  local said = mneme(("intervene %s %s %s episodes=400 seed=%d threads=1"):format(run, words, where, SEED))
  local without, with, mean, low, high = said:match "success%s+([%d.]+) %[[^%]]*%]%s+([%d.]+) %[[^%]]*%]%s+([-+%d.]+) %[([-+%d.]+), ([-+%d.]+)%]"
  return { without = tonumber(without), with = tonumber(with), mean = tonumber(mean), low = tonumber(low), high = tonumber(high),
    text = ("`%s`: %s to %s"):format(words, without, with) }
end

local rows, wrong, chosen = {}, 0, {}
for _, name in ipairs(arg) do chosen[name] = true end
for i, case in ipairs(cases) do
  local name, who, train, where, expected, interventions, is_right = unpack(case)
  if not next(chosen) or chosen[name] then
    local run = "agent-" .. i
    mneme(("run train %s %s run=%s"):format(QUICK, train, run))
    local asked = engine.C.mn_clock(false)
    local said = mneme(("where %s %s threads=1 2> %s.progress"):format(run, where, run))
    local seconds = engine.C.mn_clock(false) - asked
    local text = said:gsub("\n", " "):gsub("%s+", " ")
    local sentence = text:match(expected)
    local part, last = said:match "hold=(%S+) at=(%d+)"
    local gone = text:match "between steps %d+ and (%d+)"
    local effects, texts = {}, {}
    for k, words in ipairs(sentence and (part and gone or not interventions[1]:find "PART") and interventions or {}) do
      words = words:gsub("PART", part or ""):gsub("LAST", last or ""):gsub("GONE", gone or "")
      effects[k] = effect_of(run, words, where)
      texts[k] = effects[k].text
    end
    local right = #effects > 0 and is_right(unpack(effects))
    if not right then wrong = wrong + 1 end
    local success = said:match "success ([%d.]+)"
    print(("%s: %s\n%s"):format(name, right and "right" or "NOT RIGHT", said))
    io.stdout:flush()
    rows[#rows + 1] = ("| %s | %s: %s | %s | %.0f s | %s | %s |"):format(name, who, success, sentence or "another: " .. text:match "[^.]*%.%s*$", seconds,
      table.concat(texts, "; "), right and "yes" or "no")
  end
end
os.execute("rm -r '" .. folder .. "'")
print "| failure | agent: success | `where` says | in | `intervene`, 400 other episodes: success | right |\n|---|---|---|---|---|---|"
print(table.concat(rows, "\n"))
os.exit(wrong == 0 and 0 or 1, false)
