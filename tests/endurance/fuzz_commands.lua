-- fuzz_commands.lua -- command lines as nobody types them: each must work, or say in words what is wrong.
--   luajit tests/endurance/fuzz_commands.lua [CASES [SEED]]
-- A line takes one that works, and changes, adds, doubles or drops words; values are odd numbers, odd names and other settings' values.
-- Reported: signals, more than a minute, raw Lua errors, control characters, failures without a message.
local fuzz = dofile((arg[0]:match "^(.*)endurance/[%w_]+%.lua$" or "tests/") .. "support/fuzz.lua")
local files = require "mneme.base.files"
local foreign = require "tests.support.foreign"
local shell = require "tests.support.shell"
local shell_quote = require("mneme.base.terminal").shell_quote

local pick = fuzz.pick
local values = { "0", "1", "-1", "2", "0.5", "1e18", "1e308", "1e309", "5e-324", "nan", "-inf", "0x10", "1_000", "", " ", "5M", "{}", "{1,2}", "1..3", "3..1",
  "true", "no", "%s%n", ("a"):rep(300), "gru", "gru,lstm", "ppo", "bf16", "cuda:9", "../x", "/etc/passwd", "-", "=", "'", '"', "$(touch PWNED)",
  "`touch PWNED`",
  "\27[31m", "\255", "日本", "a\nb", "2147483648", "9007199254740993", "two.lua", "r", "s" }
local keys = { "core", "core.d_model", "hidden", "lr", "gamma", "lambda", "learner", "num_envs", "num_steps", "seed", "seeds", "size", "quick",
  "device", "precision",
  "checkpoint_every", "episodes", "greedy", "best", "checkpoint", "out", "by", "at", "erase", "width", "jobs", "list", "power", "import", "sort",
  "state", "nosuch",
  "core.", ".x", "a..b", "corridor", "env.corridor", "threads", "record_every", "figures", "export", "episode", "facts", "every", "measure", "to",
  "use", "trust" }
local bases = { "run tmaze " .. foreign.small .. " corridor=4 steps=64 run=w", "sweep two.lua run=w list=1", "sweep tmaze " .. foreign.small
  .. " budget=2x64 lr=1e-4..1e-2:log run=w estimate=0 jobs=1", "list cores", "list envs", "help gru", "help run",
  "complete run", "doctor",
  "play tmaze keys=left,right out=w.png", "report s out=w.md" }
for _, list in ipairs { foreign.of_run, foreign.of_study } do
  for _, line in ipairs(list) do bases[#bases + 1] = (line:gsub("%f[%w]x%f[^%w]", list == foreign.of_run and "r" or "s")) end
end

local function line_of()
  local words = {}
  for w in pick(bases):gmatch "%S+" do words[#words + 1] = w end
  for _ = 1, math.random(2) do
    local at, kind = math.random(2, #words + 1), math.random(5)
    local key = (words[at] or ""):match "^([%w_.]+)="
    if kind == 1 and key and key ~= "steps" and key ~= "budget" then words[at] = key .. "=" .. pick(values)
    elseif kind <= 3 then table.insert(words, at, pick(keys) .. "=" .. pick(values))
    elseif kind == 4 and words[at] then table.insert(words, at, words[at])
    else words[at] = pick(values) end
  end
  for i, w in ipairs(words) do words[i] = shell_quote(w) end
  return table.concat(words, " ")
end

local function odd(said, status)
  return said == "" and status ~= 0 and "no message" or files.is_file(fuzz.folder .. "/PWNED") and "a name was run by a shell" or nil
end
for i = 1, fuzz.cases do
  fuzz.try(i, line_of(), nil, odd)
  shell.run(fuzz.folder, "rm -rf w PWNED")
end
fuzz.finish()
