-- test_bench.lua -- mneme bench: what it prints and writes makes sense, and mistakes on its line are told.
local t = require "tests.harness"
local bench = require "mneme.commands.bench"
local errors = require "mneme.base.errors"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"
local stopwatch = require "mneme.insight.measure.stopwatch"

-- Run the command: its exit status and all that it printed.
local function run(...)
  local said, real_print, words = {}, print, { ... }
  print = function(s) said[#said + 1] = tostring(s) .. "\n" end   -- luacheck: ignore
  local ok, status = xpcall(function() return bench.run { words = words } end, errors.handler)
  print = real_print                                              -- luacheck: ignore
  if not ok then return status.status, tostring(status) end
  return status, table.concat(said)
end

t.test("the folder is the list of benchmarks: each file runs, and its header is in the help", function()
  local names = registry.benchmarks()
  t.ok(#names >= 6, #names .. " benchmarks")
  local help = shell.mneme(".", "help bench")
  for _, name in ipairs(names) do
    t.eq(type(require("mneme.commands.bench." .. name).run), "function", name)
    t.ok(help:find("\nmneme bench " .. name .. "%f[%s]"), name .. " is not in: " .. help)
  end
  local status, said = run "gem"
  t.ok(status == 2 or status == 1, said)
  t.ok(said:find("unknown bench 'gem'; did you mean 'gemm'", 1, true), said)
  status, said = run("gemm", "gemm")
  t.eq(status, 0, said)
  t.eq(select(2, said:gsub("sgemm 1024%^3, one thread", "")), 2, "several, one after another")
  status, said = run("train", "agalite")
  t.ok(status ~= 0 and said:find("names go with precision=bf16", 1, true), said)
end)

t.test("the median of times leaves them in their order, and is one of them", function()
  local list = { 9, 1, 5, 3 }
  t.eq(stopwatch.lower_median(list), 3)
  t.eq(table.concat(list, " "), "9 1 5 3")
  t.eq(stopwatch.lower_median { 4, 2, 8 }, 4)
end)

t.test("train precision=bf16: an unknown agent, and a CPU without it, are errors", function()
  local status, said = run("train", "precision=bf16", "agalit")
  t.ok(status ~= 0, said)
  t.ok(said:find "agalite" or said:find "precision=bf16: this CPU has neither", said)
end)

t.test("cores: a core's training and its steps, as a table", function()
  local status, said = run("cores", "gru")
  t.eq(status, 0, said)
  t.ok(said:find "1 thread: products %d+ GFLOP/s", said)
  t.ok(said:find "\ngru +1422560 +%d+ ms +%d+ ms +%d+ ms +%d+ %% +%d+", said)
  t.ok(said:find("\ngru" .. (" +%d+"):rep(6) .. "  %(%d+%)\n"), said)
end)

t.test("every benchmark refuses what it does not know, and values that none of its settings has, before it measures", function()
  for _, name in ipairs(registry.benchmarks()) do
    local words = { "nosuch=1", "nosuch" }
    for _, option in ipairs(bench.part(name).options or {}) do
      if option.type ~= "text" then words[#words + 1] = option[1] .. "=nosuch" end           -- texts are names of programs
    end
    for _, word in ipairs(words) do
      local said, status = shell.run(".", ("timeout 20 '%s' bench %s %s"):format(shell.program, name, word))
      t.eq(status, 2, name .. ": " .. said)
      t.ok(said:find "nosuch" and not said:find "steps/s", said)
    end
  end
end)

t.test("small: steps a second, operations and their share of the bound; two threads next to one", function()
  local said, status = shell.mneme(".", "bench small widths=8 rounds=1 seconds=0.02")
  t.eq(status, 0, said)
  for _, name in ipairs { "PPO", "A2C" } do t.ok(said:find(name .. "  GRU 8 +%d+ steps/s +%d+ GFLOP/s of +%d+ +%d+ %% %(%d+ %- %d+%)\n"), said) end
  said = shell.fine(".", "bench small widths=8 rounds=1 threads=2 seconds=0.02")
  t.ok(said:find "\nA2C  GRU 8 +%d+ steps/s on one thread, +%d+ on two, by the clock: %d+%.%d%d times", said)
  for words, what in pairs { ["widths=8,x"] = "whole numbers", ["rounds=1,2"] = "a whole number",
                             ["width=8"] = "unknown setting" } do
    said, status = shell.mneme(".", "bench small " .. words)
    t.eq(status, 2) t.ok(said:find(what, 1, true), said)
  end
end)

t.test("peers: without a Python that has them", function()
  for words, what in pairs { [""] = "expected torch=PYTHON", ["torch=/bin/false rounds=1"] = "tests/reference/README.md", ["torch=x rounds=0"] = "rounds=0",
    ["official=/bin/false agalite=. rounds=1"] = "bench_official.py ended", ["official=x"] = "a clone of subho406/agalite" } do
    local said, status = shell.mneme(".", "bench peers " .. words)
    t.eq(status, 2, said) t.ok(said:find(what, 1, true), said)
  end
end)

t.test("mistakes on the line are told, with status 2", function()
  for _, case in ipairs { { "threads=x", "whole number" }, { "part=al", "did you mean 'all'" }, { "colour=red", "unknown setting" },
                          { "gruu", "did you mean 'gru'" } } do
    local status, said = run("cores", case[1])
    t.eq(status, 2, case[1])
    t.ok(said:find(case[2], 1, true), said)
  end
  t.eq(run "corez", 2)
  local status, said = run("cores", "part=kernels", "torch=/no/such/python")
  t.eq(status, 2, said)
  t.ok(said:find "PyTorch", said)
end)

t.test("envs: every environment has its line, by each loop; the rows name settings that there are", function()
  local status, said = run("envs", "tmaze")
  t.eq(status, 0, said)
  t.ok(said:find "\ntmaze +1024 +[%d.]+ [kM] +[%d.]+ [kM] +[%d.]+ [kM]  [%d.]+ x PufferLib", said)
  local list = require("mneme.envs").list()
  for _, e in ipairs(list) do
    for _, row in ipairs(require("mneme.commands.bench.envs").rows(e.name)) do
      local settings = { num_envs = 1 }
      for key, value in pairs(row[2]) do settings[key] = value end
      require("mneme.envs").new(e.name, settings):close()
    end
  end
  t.eq(select(2, run("envs", "tmase")):match "did you mean '(%w+)'", "tmaze")
end)
