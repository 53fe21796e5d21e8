-- test_naive_laws.lua -- gru and lstm against their laws in double precision; every recurrent op has a law.
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local files = require "mneme.base.files"
local mn = require "mneme"
local naive_laws = require "tests.support.naive_laws"
local registry = require "mneme.base.registry"

for name, gates in pairs { gru = 3, lstm = 4 } do
  t.test(name .. " is its law, resets included", function()
    for _, sizes in ipairs { { 1, 1, 1 }, { 7, 3, 5 }, { 33, 2, 16 }, { 9, 4, 37 } } do
      local T, B, D = unpack(sizes)
      local a = { i = core_rig.normal({ T, B, gates * D }, 1), w = core_rig.normal({ gates * D, D }, 2), h = core_rig.normal({ B, D }, 3),
        done = core_rig.done(T, B, { { 0 }, { 4, 0 }, { 5, 0 } }) }
      for k = 0, a.w:size() - 1 do a.w:data()[k] = a.w:data()[k] / math.sqrt(D) end
      if name == "gru" then a.bias = core_rig.normal({ D }, 4) else a.c = core_rig.normal({ B, D }, 4) end
      local y, want = mn.ops[name](a), naive_laws[name](a)
      for k = 0, y:size() - 1 do t.near(y:data()[k], want[k], 5e-6, ("T=%d B=%d D=%d %d"):format(T, B, D, k)) end
      mn.clear_tape()
    end
  end)
end

t.test("position is its law: an episode's beginning, and the largest", function()
  local T, B = 40, 2
  local a = { like = core_rig.normal({ T, B, 1 }, 1), done = core_rig.done(T, B, { { 0, 1 }, { 9, 0 } }), tick = mn.tensor { 3, 5 }, most = 16, back = 4 }
  local pos, want = mn.ops.position(a), naive_laws.position(a, T, B)
  for k = 0, T * B - 1 do t.eq(pos:data()[k], want[k], k) end
  mn.clear_tape()
end)

-- An op that walks time and hands a state on.
t.test("every recurrent op has its law, in a test's file that names it", function()
  local found = 0
  for _, file in ipairs(files.list(registry.root .. "engine/ops")) do
    local text, name = files.read(registry.root .. "engine/ops/" .. file), file:match "^([%w_]+)%.c$"
    local signature = name and text:find("MN_SCAN", 1, true) and text:match "%.sig = (.-),\n"
    if signature and signature:find "%->.*%w'" or name and text:find '#include "scan.h"' and text:find "const mn_op" then
      found = found + 1
      local path = naive_laws.elsewhere[name]
      t.ok(naive_laws[name] or path, name .. " has no law in tests/support/naive_laws.lua")
      if path then t.ok(files.read(registry.root .. "tests/" .. path):find(name, 1, true), ("%s does not name %s"):format(path, name)) end
    end
  end
  t.ok(found >= 15, found .. " recurrent ops were found")
end)
