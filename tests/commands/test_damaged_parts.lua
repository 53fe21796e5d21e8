-- test_damaged_parts.lua -- a run whose own parts were damaged after it: every command that makes them again refuses with the run, the file and
-- a way out, or goes on with the run's copies; a report is written without the episode.
local t = require "tests.harness"
local files = require "mneme.base.files"
local look_matrix = require "tests.support.look_matrix"
local shell = require "tests.support.shell"

local dir = shell.folder()
look_matrix.prepare(dir)
files.write(dir .. "/head.lua", { [[
local mn = require "mneme"
return function(d, n) return mn.nn.sequential { mn.nn.linear(d, 8, { act = "tanh" }), mn.nn.linear(8, n) } end
]] })
files.write(dir .. "/sign.lua", { [[
return function() return { name = "sign", observation = { 2 }, actions = 2,
  reset = function(self) self.t = 0 return { 1, 0 } end,
  step = function(self, action)
    self.t = self.t + 1
    return { 0, 1 }, action, self.t == 4, action
  end } end
]] })
files.write(dir .. "/own.lua", { [[
local mn = require "mneme"
local cfg = mn.config { learner = "grouped", parts = 2, minibatches = 2, num_envs = 2, num_steps = 8, steps = 32, hidden = 8, threads = 1 }
local env = mn.env("sign.lua", { num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local core = mn.core("leaky", { d_in = 2, d_model = 8 })
local agent = mn.agent { env = env, core = core, policy = require(("head"))(core.d_out, 2), value = mn.nn.linear(core.d_out, 1) }
return mn.learner(cfg, env, agent):train()
]] })
local said, status = shell.mneme(dir, "run own.lua run=r")
t.eq(status, 0, said)

-- The file, what is done to it, and what use=now says of it.
local damages = {
  { "cores/leaky.lua", "rm F", "unknown core 'leaky'" }, { "cores/leaky.lua", "echo 'x = = 3' >> F", "cores/leaky.lua:%d+: .- near 'x'" },
  { "cores/leaky.lua", "sed -i 's/cfg.d_model/9/g' F", "checkpoint of step 32 .- actor.0.weight is %[8,8%], expected %[8,9%]" },
  { "cores/leaky.lua", [[sed -i 's/local z = gate(x)/error "boom"/' F]], "cores/leaky.lua:%d+: boom" },
  { "cores/leaky.lua", "mv F cores/leakier.lua", "unknown core 'leaky'" }, { "cores/leaky.lua", "echo 'return 3' > F", "a core file returns" },
  { "cores/leaky.lua", [[sed -i 's/"gate", gate/"gote", gate/' F]], "missing core.gote.bias, core.gote.weight; unexpected core.gate.bias" },
  { "sign.lua", "mv F cosign.lua", "sign.lua: No such file" }, { "sign.lua", "echo 'x = = 3' >> F", "sign.lua:%d+: .- near 'x'" },
  { "sign.lua", "sed -i 's/actions = 2/actions = 3/; s/{ 2 }/{ 3 }/' F", "own.lua:6: agent: the core takes d_in=2" },
  { "sign.lua", [[sed -i 's/self.t = self.t + 1/error "boom"/' F]], "sign.lua:%d+: .-boom" },
  { "sign.lua", "echo 'return 3' > F", "sign.lua returns a number" },
  { "head.lua", "rm F", "module 'head' is not found" }, { "head.lua", "echo 'x = = 3' >> F", "head.lua:%d+: .- near 'x'" },
  { "head.lua", "sed -i 's/8/9/g' F", "actor.0.bias is %[8%], expected %[9%]" },
  { "head.lua", "echo 'return function() error \"boom\" end' > F", "head.lua:1: boom" }, { "head.lua", "echo > F", "attempt to call a boolean" },
  { "learners/grouped.lua", "rm F", "unknown learner 'grouped'" }, { "learners/grouped.lua", "echo 'x = = 3' >> F", "grouped.lua:%d+: .- near 'x'" },
  { "learners/grouped.lua", "echo 'return 3' > F", "grouped.lua is a number" },
  { "own.lua", "mv F other.lua", "own.lua, which is not here" }, { "own.lua", "echo 'x = = 3' >> F", "own.lua:%d+: .- near 'x'" },
  { "own.lua", "echo > F", "own.lua: this script trains no agent" }, { "own.lua", "sed -i 's/d_model = 8/d_model = 9/' F", "actor.0.weight is %[8,8%]" },
}
local commands = { "view r out=x.png", "view r out=x.html", "where r episodes=2", "eval r episodes=2", "credit r" }

t.test("each damage, by each file's every command: the run, the file and a way out, or the run's copies", function()
  for i, damage in ipairs(damages) do
    local file, gone = damage[1], damage[2]:find "^[rm][mv] "
    shell.run(dir, ("rm -rf kept; mkdir kept; cp -r *.lua cores learners kept; %s"):format((damage[2]:gsub("F", file))))
    for k = (gone or i % 5 == 0) and 0 or 1, 1 do
      local command = commands[(i + 3 * k) % #commands + 1]
      local now = k > 0 and " use=now trust=1" or ""
      said, status = shell.mneme(dir, command .. now)
      local what = ("%s; mneme %s%s: %s"):format((damage[2]:gsub("F", file)), command, now, said)
      local last = said:match "([^\n]+)\n$"
      if k == 0 and gone then t.ok(status == 0 and not said:find "warning", what)
      else
        t.ok(status ~= 0, what)
        t.ok(not said:find "attempt to index" and said:find(k > 0 and damage[3] or file, 1, k == 0), what)
        t.ok(last:find "%f[%w]r: " and last:find(file, 1, true) and last:find("use=stored .*r/source/" .. file:gsub("%p", "%%%0")), what)
      end
    end
    shell.run(dir, "rm -rf cores learners *.lua; mv kept/* .")
  end
end)

t.test("a copy that is needed and was altered is named, with the way out", function()
  shell.run(dir, "cp head.lua kept.lua; echo >> head.lua; echo >> r/source/head.lua")
  said, status = shell.mneme(dir, "eval r episodes=2 use=stored")
  t.ok(status == 1 and said:find "r/source/head.lua was changed after the run wrote it %(use=now takes head.lua as it is now%)", said)
end)

os.execute("rm -r '" .. dir .. "'")
