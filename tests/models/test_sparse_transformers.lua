-- test_sparse_transformers.lua -- the cores longformer, bigbird and longshort: each is the attention of its name run causally,
-- episode by episode; what happens beyond their context, and where clocks run out of digits.
local t = require "tests.harness"
local encoder_attention = require "mneme.models.encoder_attention"
local mn = require "mneme"
local contract_rig = require "mneme.models.contract_rig"

local B = 2

-- A core of one layer.
local function small(name, settings, context)
  local given = { d_in = 5, d_model = 8, n_layers = 1, n_heads = 2, d_head = 4, d_ffn = 6, context = context }
  for key, value in pairs(settings) do given[key] = value end
  mn.manual_seed(2)
  return mn.core(name, given)
end

-- retrieved [T,B,H,dh] of a core's first layer, and what its attention was given, as [B,H,n,dh] of one episode.
local function of_episode(probes, from, to)
  local x = {}
  mn.no_grad(function()
    for key, p in pairs(probes) do
      local part = mn.slice { x = p, axis = 0, from = from, to = to }
      x[key] = mn.keep(encoder_attention.by_copy(part))
    end
  end)
  return x
end

local forms = {
  { "longformer", { window = 3, globals = 2, dilation = 1 } }, { "longformer", { window = 4, globals = 0, dilation = 3 } },
  { "longformer", { window = 2, globals = 5, dilation = 2 } },
  { "longshort", { window = 3, chunk = 4, rho = 2, ln_eps = 1e-8 }, context = 64 },
  { "longshort", { window = 9, chunk = 3, rho = 1, ln_eps = 1e-8 }, context = 60 },
  { "bigbird", { block = 4, global_blocks = { 0 }, random_blocks = 1 }, context = 64 },
  { "bigbird", { block = 2, global_blocks = {}, random_blocks = 2, seed = 5 }, context = 64 },
}

for i, form in ipairs(forms) do
  t.test(("the core %s is the attention of that name run causally, episode by episode (%d)"):format(form[1], i), function()
    local name, settings, T = form[1], form[2], 48
    local cfg, c = { causal = true }, small(name, settings, form.context)
    for key, value in pairs(settings) do cfg[key] = value end
    local resets, probes = { 0, 12, 16, 40 }, {}
    local done = {}
    for k, at in ipairs(resets) do done[k] = { at } end
    mn.no_grad(function()
      c(contract_rig.normal({ T, B, 5 }, 1), contract_rig.done(T, B, done), c:initial(B), function(key, p)
        if p:shape()[1] == T then probes[key:match "[^.]+$"] = mn.keep(p) end
        return p
      end)
    end)
    resets[#resets + 1] = T
    for k = 1, #resets - 1 do
      local x = of_episode(probes, resets[k], resets[k + 1])
      local m = encoder_attention.new(name, cfg, { H = 2, D = 4, N = T })
      local y = mn.keep(m(x.q, x.k, x.v, x))
      t.near(contract_rig.apart(y, x.retrieved), 0, 2e-6, ("episode of %d steps"):format(resets[k + 1] - resets[k]))
    end
    mn.clear_tape()
  end)
end

t.test("an episode beyond its context: bigbird begins anew, longshort drops its oldest chunks", function()
  local T, context = 40, 8
  local function outputs(name, keys, done)
    local c = small(name, keys, context)
    return (contract_rig.run(c, contract_rig.normal({ T, B, 5 }, 1), done and contract_rig.done(T, B, done)))
  end
  local bird = { block = 4, random_blocks = 1 }
  local every = { { 8 }, { 16 }, { 24 }, { 32 } }
  t.ok(contract_rig.bytes(outputs("bigbird", bird)) == contract_rig.bytes(outputs("bigbird", bird, every)))
  local ls = { window = 2, chunk = 4, rho = 1 }
  local y, all = outputs("longshort", ls), outputs("longshort", { window = 2, chunk = 4, rho = 1, context = 40 })
  t.eq(contract_rig.apart(contract_rig.rows(y, 0, 12), contract_rig.rows(all, 0, 12)), 0)
  t.ok(contract_rig.apart(contract_rig.rows(y, 12, T), contract_rig.rows(all, 12, T)) > 1e-3)
  t.ok(contract_rig.finite(y))
  mn.clear_tape()
end)

-- ---- clocks ----

local clocks = {               -- settings, context, and what positions may go back by
  { "longformer", { window = 4, globals = 2, dilation = 2 }, nil, 6 },
  { "longshort", { window = 6, chunk = 4, rho = 2 }, 24, 24 }, { "longshort", { window = 1, chunk = 3, rho = 1 }, 9, 9 },
}

t.test("a clock that would run out of a float's digits goes back, and nobody notices", function()
  for _, case in ipairs(clocks) do
    local c, x = small(case[1], case[2], case[3]), contract_rig.normal({ 40, B, 5 }, 1)
    local _, warm = contract_rig.run(c, contract_rig.normal({ 60, B, 5 }, 9), nil, c:initial(B))
    local y, after = contract_rig.run(c, x, nil, warm)
    local high = 2 ^ 23 - 20
    warm.tick:fill(high - (high - 60) % case[4])
    local y2, after2 = contract_rig.run(c, x, nil, warm)
    t.ok(contract_rig.bytes(y) == contract_rig.bytes(y2), case[1])
    t.ok(after2.tick:data()[0] < 2 ^ 23)
    for name, s in pairs(after) do
      if name == "tick" then t.eq((after2.tick:data()[0] - s:data()[0]) % case[4], 0)
      else t.ok(contract_rig.bytes(s) == contract_rig.bytes(after2[name]), case[1] .. " " .. name) end
    end
    mn.clear_tape()
  end
end)

t.test("a clock that no episode could have gives finite numbers", function()
  for _, case in ipairs { clocks[1], clocks[2], { "bigbird", { block = 4 }, 24 } } do
    local c = small(case[1], case[2], case[3])
    local _, warm = contract_rig.run(c, contract_rig.normal({ 30, B, 5 }, 9), nil, c:initial(B))
    for _, bad in ipairs { 0 / 0, -5, 1e30, -1 / 0, 1 / 0, 2 ^ 23, 0.5 } do
      warm.tick:fill(bad)
      local y, after = contract_rig.run(c, contract_rig.normal({ 20, B, 5 }, 1), nil, warm)
      t.ok(contract_rig.finite(y) and contract_rig.finite(after.tick), case[1] .. " " .. bad)
    end
  end
  mn.clear_tape()
end)

-- ---- wrong settings ----

t.test("settings that do not fit are errors that say so", function()
  local function says(pattern, name, settings) t.raises(function() mn.core(name, settings) end, pattern) end
  says("window = 0, expected a whole number of at least 1", "longformer", { window = 0 })
  says("globals = 1.5, expected a whole number", "longformer", { globals = 1.5 })
  says("context = 100, expected a multiple of block = 16", "bigbird", { context = 100 })
  says("context = 100, expected a multiple of chunk = 16", "longshort", { context = 100 })
  says("global_blocks has 64, expected blocks 0 to 63", "bigbird", { global_blocks = { 64 } })
  says("random has lists for 1 heads, expected 4", "bigbird", { random = { {} } })
  says("unknown flow = 'prenorm'", "longshort", { flow = "prenorm" })
  says("unknown key of core longformer 'memory'", "longformer", { memory = 3 })
  says("come round together only every", "longshort", { chunk = 1, window = 2039, context = 4999 })
end)
