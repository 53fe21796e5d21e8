-- test_large_logs.lua -- a log of any length is read in bounded memory: of a long one some points are kept, the newest always.
local t = require "tests.harness"
local files = require "mneme.base.files"
local metrics_reader = require "mneme.runs.metrics_reader"
local shell = require "tests.support.shell"

local dir = shell.folder()

-- Lines first .. last of a log: a value in every line, one in few, one in none but the last.
local function lines(first, last)
  local list = {}
  for i = first, last do
    list[#list + 1] = ('{"step": %d, "a": %.17g%s%s}\n'):format(64 * i, i / 7, i % 100 == 0 and (', "rare": %d'):format(i) or "",
      i == last and ', "last": 1' or "")
  end
  return table.concat(list)
end

t.test("of a long log some points of each metric are kept, from its first to its newest; a short one is whole", function()
  local most, path = metrics_reader.most, dir .. "/long"
  files.make_folder(path)
  metrics_reader.most = 64
  local written = 0
  for _, upto in ipairs { 50, 1000, 1003, 20000 } do
    files.append(path .. "/metrics.jsonl", lines(written + 1, upto) .. '{"step": 9')            -- a line that is not whole yet
    local of = metrics_reader.read(path)
    files.cut(path .. "/metrics.jsonl", #files.read(path .. "/metrics.jsonl") - #'{"step": 9')
    written = upto
    t.ok(of.a.n <= 64 and of.a.n == #of.a.x and of.a.n == #of.a.y and of.a.n >= math.min(upto, 32), of.a.n)
    t.eq(of.a.x[of.a.n], 64 * upto)
    t.eq(of.last.y[of.last.n], 1)
    t.ok(of.a.x[1] <= 64 * upto / 32, of.a.x[1])
    for i = 1, of.a.n do
      t.eq(of.a.y[i], of.a.x[i] / 64 / 7)
      t.ok(i == 1 or of.a.x[i] > of.a.x[i - 1])
    end
    if upto == 1003 then t.eq(of.rare.n, 10) end
    if upto == 50 then t.eq(of.a.n, 50) end
  end
  metrics_reader.most = most
end)

t.test("what is no plain line is read as JSON, and what is no JSON left out", function()
  files.make_folder(dir .. "/odd")
  files.write(dir .. "/odd/metrics.jsonl", { '{"step": 1, "a": 1}\n{"a":2,"step":2}\n{"step": 3, "a": 3\nnonsense\n{"step": 4, "a": null, "b\\n": 1e-3}\n',
    '{"step": 5, "a": -5e2}x\n{"step": 6, "a": 1-2}\n{"step": 7, "a": -7.5e+1}\n' })
  local of = metrics_reader.read(dir .. "/odd")
  t.eq(table.concat(of.a.x, " "), "1 2 7") t.eq(table.concat(of.a.y, " "), "1 2 -75")
  t.eq(of["b\n"].y[1], 1e-3)
end)

t.test("compare, report, list and check read a log of 60 MB with 400 MB of addresses", function()
  shell.mneme(dir, "run tmaze quick=1 core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 threads=1 steps=20000 run=run")
  local last = files.read(dir .. "/run/metrics.jsonl"):match "([^\n]+)\n$"
  local f = assert(io.open(dir .. "/run/metrics.jsonl", "w"))
  for i = 1, 100000 do f:write((last:gsub('^{"step": %d+', ('{"step": %d'):format(i))), "\n") end
  f:close()
  for _, words in ipairs { "compare run", "report run out=r.html", "list runs", "check run" } do
    local said, status = shell.run(dir, ("(ulimit -v 400000; exec '%s' %s)"):format(shell.program, words))
    t.eq(status, words == "check run" and 1 or 0, words .. ": " .. said)
  end
end)

os.execute("rm -rf '" .. dir .. "'")
