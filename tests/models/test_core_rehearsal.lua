-- test_core_rehearsal.lua -- what a user's core, torso or head does not keep is refused before a training; what keeps it trains as ever.
local t = require "tests.harness"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local look_matrix = require "tests.support.look_matrix"
local mn = require "mneme"
local random = require "mneme.tensor.random"
local check_own_parts = require "mneme.models.check_own_parts"
local action_spaces = require "mneme.envs.action_spaces"
local shell = require "tests.support.shell"

local folder = shell.folder()
look_matrix.prepare(folder)
local leaky = files.read(folder .. "/cores/leaky.lua")

-- A core like the leaky one, with one line changed.
local function variant(name, from, to, from2, to2)
  local text, n = leaky:gsub(from, to)
  t.eq(n, 1, name)
  if from2 then
    text, n = text:gsub(from2, to2)
    t.eq(n, 1, name)
  end
  files.write(("%s/cores/%s.lua"):format(folder, name), { text })
  return ("%s/cores/%s.lua"):format(folder, name)
end
local function check(core, own, resets) return check_own_parts.check({ core = core, module = core.module }, {}, resets, own or core.file) end
local function built(path, settings)
  settings = settings or {}
  settings.d_in = 6
  return mn.core(path, settings)
end

t.test("every core of the library acts as it learns", function()
  for _, name in ipairs(mn.names "cores") do
    local core = mn.core(name, { d_in = 6 })
    local ok, problem = pcall(check, core, "as if")
    t.ok(ok, name .. ": " .. tostring(problem))
  end
end)

local gate = "local z = gate%(x%)"
local faults = {
  deaf = { "cfg.reset and done or nil", "nil", what = "the memory is not cleared" },
  hears_first = { gate, "local T = x:shape()[1] if done and T > 1 then done = mn.concat(done:slice(0, 0, 1), mn.zeros(T - 1, done:shape()[2], "
    .. "{ dtype = 'u8' }), { axis = 0 }) end local z = gate(x)", what = "the memory is not cleared" },
  sees_all = { gate, "local z = gate(x) * 0.5 + 0.5 * gate(x):mean(0, true)", what = "called step by step it is not its sequence" },
  mixes = { gate, "local z = gate(x) * 0.5 + 0.5 * gate(x):mean(1, true)", what = "the input of one environment changes another" },
  clears_all = { gate, "if done then local f = done:to 'f32' done = (f * 0 + f:mean(1, true)):gt(0):to 'u8' end local z = gate(x)",
    what = "another's memory changes" },
  constant = { gate, "local z = gate(x) * mn.cat({ mn.ones(x:shape()[1], x:shape()[2], cfg.d_model) }, 0)",
    what = "it cannot act step by step" },
}
t.test("what a core does not keep is an error at its forward", function()
  for name, fault in pairs(faults) do
    local path = variant(name, fault[1], (fault[2]:gsub("%%", "%%%%")))
    local ok, problem = pcall(check, built(path))
    t.ok(not ok, name .. " is not refused")
    t.ok(errors.is(problem) and tostring(problem):find(fault.what, 1, true), name .. ": " .. tostring(problem))
    t.ok(problem.where and problem.where:find(name .. ".lua:", 1, true), name .. ": " .. tostring(problem.where))
  end
end)

t.test("a core that is never to be cleared may ignore done, and the library's are not rehearsed", function()
  local path = folder .. "/cores/deaf.lua"
  check(built(path, { reset = false }))
  check(built(path), nil, false)
  local gru = mn.core("gru", { d_in = 6 })
  gru.forward = function() error "not to be called" end
  check(gru)
end)

t.test("dropout is off meanwhile and on again; what draws by itself is not compared; no random stream moves", function()
  mn.manual_seed(5)
  local lazy = built(variant("lazy", "local gate, value", "local drop = mn.nn.dropout(0.5) local gate, value",
    '{ "value", value }', '{ "value", value }, { "drop", drop }'))
  mn.dropout(mn.ones(4), 0.5)
  local before, weights = random.state():to_table(), lazy.module:state_dict()["gate.weight"]:to_table()
  check(lazy)
  t.eq(lazy.module.training, true)
  for _, child in ipairs(lazy.module.children) do t.eq(child[2].training, true, child[1]) end
  lazy.module.children[3][2]:eval()
  check(lazy)
  t.eq(lazy.module.children[3][2].training, false, "what was off stays off")
  check(built(variant("noisy", "return y, { h", "y = mn.dropout(y, 0.5) return y, { h")))
  local after = random.state():to_table()
  for i, word in ipairs(before) do t.eq(after[i], word) end
  for i, row in ipairs(lazy.module:state_dict()["gate.weight"]:to_table()) do for k, w in ipairs(row) do t.eq(w, weights[i][k]) end end
end)

t.test("an own torso or head that sees other steps or environments is refused", function()
  for _, space in ipairs { { shape = { 3 }, dtype = "f32" }, { shape = { 2, 2 }, dtype = "u8", codes = 5 }, { shape = { 4, 4, 3 }, dtype = "u8" } } do
    local env = { observation_space = space, action_space = action_spaces.discrete { "0", "1" } }
    local n = 1
    for _, size in ipairs(space.shape) do n = n * size end
    local function flat(x) return (x:to "f32" * 0.01):reshape(x:shape()[1], x:shape()[2], n) end
    local function agent(more)
      local options = { env = env, core = { "gru", d_model = 4 }, hidden = 4, torso = flat }
      for key, value in pairs(more) do options[key] = value end
      local made = mn.agent(options)
      return made, made:describe()
    end
    check_own_parts.check(agent {})
    t.fails(function() check_own_parts.check(agent { torso = function(x) return flat(x) - flat(x):mean(0, true) end }) end)
    t.fails(function() check_own_parts.check(agent { policy = function(y) return (y - y:mean(0, true)):slice(2, 0, 2) end }) end)
    t.raises(function() check_own_parts.check(agent { torso = function(x) return flat(x) - flat(x):mean(1, true) end }) end, "its torso mixes environments")
    t.raises(function() check_own_parts.check(agent { policy = function(y) return (y - y:mean(1, true)):slice(2, 0, 2) end }) end, "head mixes environments")
  end
end)

t.test("mneme run refuses it before there is a folder, and says where", function()
  local words = "run train env=tmaze env.corridor=3 num_envs=2 num_steps=8 hidden=8 steps=64 threads=1 run=there core="
  local said, status = shell.mneme(folder, words .. "deaf")
  t.ok(status ~= 0 and said:find("cores/deaf.lua:", 1, true) and said:find "done is 1 at step", said)
  t.ok(not files.is_folder(folder .. "/there"))
  shell.fine(folder, words .. "leaky")
  shell.fine(folder, words:gsub("there", "kept") .. "deaf reset_on_done=0")
end)

os.execute("rm -r '" .. folder .. "'")
