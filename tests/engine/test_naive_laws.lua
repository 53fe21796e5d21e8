-- test_naive_laws.lua -- gru, lstm and the gates of sLSTM and minLSTM against their laws in double precision; every recurrent op has a law.
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

local function sigmoid(v) return 1 / (1 + math.exp(-v)) end
local function near(got, want, name) t.near(got, want, 2e-6 * math.max(1, math.abs(want)), name) end

-- Extremes: what an episode begins from, gates that are shut or open to the last bit.
t.test("slstm_gate is a step of its law, minlstm_gate the shares of two sigmoids", function()
  local D = 37
  local x, r, c, n, m = core_rig.normal({ 3, 2, 4 * D }, 1), core_rig.normal({ 3, 2, 4 * D }, 2), core_rig.normal({ 3, 2, D }, 3),
    core_rig.normal({ 3, 2, D }, 4), core_rig.normal({ 3, 2, D }, 5)
  for k, v in ipairs { 100, -100, 30, -30 } do x:data()[k], x:data()[D + 9 + k], x:data()[2 * D + k], x:data()[3 * D + 20 + k] = v, v, v, v end
  for k = 0, n:size() - 1 do n:data()[k] = math.abs(n:data()[k]) + 0.1 end
  for k = 10, 15 do c:data()[k], n:data()[k], m:data()[k] = 0, 0, -1e30 end
  local y, c2, n2, m2 = mn.ops.slstm_gate(x, r, c, n, m)
  for k = 0, c:size() - 1 do
    local function part(g) return x:data()[(k - k % D) * 4 + g * D + k % D] + r:data()[(k - k % D) * 4 + g * D + k % D] end
    local i, keep = part(0), m:data()[k] + math.log(sigmoid(part(1)))
    local top = math.max(i, keep)
    local a, b = math.exp(keep - top), math.exp(i - top)
    local cell, norm = a * c:data()[k] + b * math.tanh(part(2)), a * n:data()[k] + b
    near(c2:data()[k], cell, "c2 " .. k) near(n2:data()[k], norm, "n2 " .. k) near(m2:data()[k], top, "m2 " .. k)
    near(y:data()[k], sigmoid(part(3)) * cell / norm, "y " .. k)
  end
  local f, i, v = x, r, core_rig.normal({ 3, 2, 4 * D }, 6)
  for k, g in ipairs { 100, -100, 88, -88 } do f:data()[50 + k], i:data()[50 + k], f:data()[60 + k], i:data()[60 + k] = g, g, g, -g end
  local share, keep = mn.ops.minlstm_gate(f, i, v)
  for k = 0, f:size() - 1 do
    local of_f, of_i = sigmoid(f:data()[k]), sigmoid(i:data()[k])
    near(share:data()[k], of_i / (of_f + of_i) * v:data()[k], "x " .. k) near(keep:data()[k], of_f / (of_f + of_i), "keep " .. k)
  end
  mn.clear_tape()
  local low = { mn.tensor { data = { -95, -30 }, grad = true }, mn.tensor { data = { -94, -31 }, grad = true } }
  local _, kept = mn.ops.minlstm_gate(low[1], low[2], mn.tensor { 1, 1 })
  mn.ops.scale(kept, 1e-4, 0):sum():backward()
  for k = 1, 2 do
    local part = 1 / (1 + math.exp(k == 1 and 1 or -1))                          -- the gate is exp(f) there
    for side, sign in ipairs { 1, -1 } do t.near(low[side]:grad():to_table()[k], sign * 1e-4 * part * (1 - part), 1e-9, "shut gates learn") end
  end
  mn.clear_tape()
end)

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
