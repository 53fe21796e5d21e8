-- test_encoders.lua -- attention over whole sequences: every attention found, both ways and causally, against its
-- definition; who sees whom; gradients; extremes; wrong settings.  Encoders made of them learn.
local t = require "tests.harness"
local naive_attention = require "tests.support.naive_attention"
local encoder_attention = require "mneme.models.encoder_attention"
local engine = require "mneme.base.engine"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local mn = require "mneme"
local contract_rig = require "mneme.models.contract_rig"
local C, ctx = engine.C, engine.ctx

local B, H, N, D = 2, 2, 12, 4

-- Settings small enough for the tests; a key is used where the attention has it.
local small = { k = 5, landmarks = 4, conv_kernel = 3, window = 3, globals = 2, dilation = 1, block = 3, global_blocks = {},
                chunk = 4, rho = 2, m = 7, feature_eps = 1e-3,
                random = { { {}, { 3 }, {}, { 1 } }, { { 2 }, {}, { 0 }, { 0 } } } }
local more = {                         -- further corners: name, settings
  { "longformer", dilation = 2, window = 4 }, { "longformer", globals = 0, window = 5 },
  { "bigbird", global_blocks = { 1 } }, { "linformer", share = true },
  { "nystromformer", landmarks = 12, conv_kernel = 0 }, { "nystromformer", iterations = 2 },
  { "longshort", window = 5, chunk = 5 }, { "performer", kernel = "relu" },
  { "performer", kernel = "relu", deterministic = true, stabilizer = 3 }, { "performer", stabilizer = 1 },
}

-- Every attention, both ways and, where it can, causally: { name, settings }.
local cases = {}
local function add(name, settings)
  local d = encoder_attention.definition(name)
  for _, causal in ipairs { false, d.config.causal ~= nil and true or nil } do
    local cfg, words = { causal = causal }, {}
    for _, set in ipairs { small, settings or {} } do
      for key, value in pairs(set) do if d.config[key] ~= nil then cfg[key] = value end end
    end
    for key, value in pairs(settings or {}) do
      if key ~= 1 then words[#words + 1] = key .. "=" .. (type(value) == "table" and #value or tostring(value)) end
    end
    table.sort(words)
    cases[#cases + 1] = { name = name .. (causal and " causal " or " ") .. table.concat(words, " "), attention = name,
                          cfg = encoder_attention.configure(name, cfg) }
  end
end
for _, name in ipairs(registry.names "attentions") do add(name) end
for _, settings in ipairs(more) do add(settings[1], settings) end

local function each(what, f)
  for _, case in ipairs(cases) do
    t.test(case.name .. ": " .. what, function()
      f(case.attention, case.cfg)
      mn.clear_tape()
    end)
  end
end

-- The attention with stirred parameters, and its inputs by name: q, k, v and extras.
local function build(name, cfg, n, scale)
  mn.manual_seed(3)
  local m, x = encoder_attention.new(name, cfg, { H = H, D = D, N = N }), {}
  for i, p in ipairs(m:parameters()) do
    local noise = contract_rig.normal({ p:size() }, 40 + i):data()
    for k = 0, p:size() - 1 do p:data()[k] = p:data()[k] + 0.3 * noise[k] end
  end
  local d, names = encoder_attention.definition(name), { { "q", D }, { "k", D }, { "v", D } }
  for _, e in ipairs(d.extras and d.extras(cfg, { D = D }) or {}) do names[#names + 1] = e end
  for i, e in ipairs(names) do
    x[e[1]] = contract_rig.normal({ B, H, n or N, e[2] }, i, true)
    for k = 0, scale and x[e[1]]:size() - 1 or -1 do x[e[1]]:data()[k] = x[e[1]]:data()[k] * scale end
  end
  return m, x
end

local function run(m, x) return m(x.q, x.k, x.v, x) end
local function quiet(m, x)
  local y
  mn.no_grad(function() y = mn.keep(run(m, x)) end)
  return y
end

-- ---- values ----

local function against_definition(name, cfg, n)
  local m, x = build(name, cfg, n)
  local y, p = quiet(m, x):to_table(), {}
  for key, tensor in pairs(m:state_dict()) do p[key] = tensor:to_table() end
  for b = 1, B do
    local one = {}
    for key, tensor in pairs(x) do one[key] = tensor:to_table()[b] end
    local want = naive_attention[name](cfg, one, p)
    for h = 1, H do
      for i = 1, n or N do
        for d = 1, D do t.near(y[b][h][i][d], want[h][i][d], 2e-5 * math.max(1, math.abs(want[h][i][d])), ("row %d"):format(i - 1)) end
      end
    end
  end
end

each("its definition, pair by pair", function(name, cfg)
  t.ok(naive_attention[name], "tests/support/naive_attention.lua has no definition of it")
  against_definition(name, cfg)
end)

each("any length that it can have", function(name, cfg)
  for _, n in ipairs { 1, 4, 7 } do
    local fits = not (cfg.landmarks and n % cfg.landmarks ~= 0) and not cfg.block
    if fits then against_definition(name, cfg, n) end
  end
end)

-- ---- who sees whom ----

-- Which rows of y change (to the bit) when token j changes.
local function changed(m, x, j)
  local before, other = quiet(m, x), {}
  for key, tensor in pairs(x) do
    other[key] = mn.keep(tensor)
    local s = tensor:shape()
    for i = 0, s[1] * s[2] - 1 do
      for d = 0, s[4] - 1 do
        local at = (i * s[3] + j) * s[4] + d
        other[key]:data()[at] = other[key]:data()[at] * 0.5 + 0.7
      end
    end
  end
  local after, rows = quiet(m, other), {}
  for i = 0, N - 1 do
    rows[i] = 0
    for c = 0, B * H - 1 do
      for d = 0, D - 1 do
        local at = (c * N + i) * D + d
        rows[i] = math.max(rows[i], math.abs(after:data()[at] - before:data()[at]))
      end
    end
  end
  return rows
end

each("a later token changes what is before it, or, causally, never", function(name, cfg)
  local m, x = build(name, cfg)
  local seen = false
  for _, j in ipairs { 1, 5, N - 1 } do
    local rows = changed(m, x, j)
    t.ok(rows[j] > 1e-4, "token " .. j .. " does not change its own row")
    for i = 0, j - 1 do
      if cfg.causal then t.eq(rows[i], 0, ("row %d changed with token %d"):format(i, j)) end
      seen = seen or rows[i] > 1e-4
    end
  end
  t.eq(seen, not cfg.causal, "the past sees the future")
end)

t.test("without windows or positions, the order of tokens does not matter", function()
  for _, name in ipairs { "softmax", "linear", "performer", "rfa" } do
    local m, x = build(name, encoder_attention.configure(name, { m = encoder_attention.definition(name).config.m and 7 or nil }))
    local y, turned = quiet(m, x):to_table(), {}
    for key, tensor in pairs(x) do
      turned[key] = mn.keep(tensor)
      for c = 0, B * H - 1 do
        for i = 0, N - 1 do
          for d = 0, D - 1 do turned[key]:data()[(c * N + N - 1 - i) * D + d] = tensor:data()[(c * N + i) * D + d] end
        end
      end
    end
    local z = quiet(m, turned):to_table()
    for i = 1, N do for d = 1, D do t.near(z[1][1][N + 1 - i][d], y[1][1][i][d], 1e-5, name) end end
  end
end)

-- ---- gradients ----

local function weights(y)
  local w = mn.tensor { shape = y:shape() }
  for k = 0, w:size() - 1 do w:data()[k] = contract_rig.weight(k) end
  return w
end

-- Where a constant maximum does not cancel, no quotient equals the gradient: eps out of the way.
local function smooth(name, cfg)
  if name ~= "performer" or cfg.kernel == "relu" then return cfg end
  local other = {}
  for key, value in pairs(cfg) do other[key] = value end
  other.feature_eps = 0
  return other
end

each("gradients are those of difference quotients", function(name, cfg)
  if cfg.stabilizer and cfg.kernel == "softmax" and cfg.stabilizer >= 1 then return end     -- its maximum does not cancel
  local m, x = build(name, smooth(name, cfg))
  local y = run(m, x)
  ;(y * weights(y)):sum():backward()
  mn.clear_tape()
  local function loss()
    local out, total = quiet(m, x), 0
    for k = 0, out:size() - 1 do total = total + contract_rig.weight(k) * out:data()[k] end
    mn.clear_tape()
    return total
  end
  local leaves, wrong, tried = {}, 0, 0
  for key, tensor in pairs(x) do leaves[key] = tensor end
  for key, tensor in pairs(m:named_parameters()) do leaves[key] = tensor end
  for stream, key in ipairs(tables.keys(leaves)) do
    local leaf = leaves[key]
    local n, data, grad, rest = leaf:size(), leaf:data(), leaf:grad_data(), mn.keep(leaf)
    local noise, scale = contract_rig.normal({ n }, 60 + stream):data(), 1
    for k = 0, n - 1 do scale = math.max(scale, math.abs(grad[k])) end
    for _, only in ipairs { false, (stream * 7919) % n } do
      local function direction(k) return only and (k == only and 1 or 0) or (noise[k] > 0 and 1 or -1) / math.sqrt(n) end
      local slope = 0
      for k = 0, n - 1 do slope = slope + direction(k) * grad[k] end
      local ok, quotient = contract_rig.agrees(function(step)
        for k = 0, n - 1 do data[k] = rest:data()[k] + step * direction(k) end
        local value = loss()
        for k = 0, n - 1 do data[k] = rest:data()[k] end
        return value
      end, slope, 3e-3 * scale, 2e-6)
      tried, wrong = tried + 1, wrong + (ok and 0 or 1)
      if wrong > 1 then error(("%s: slope %.6g, by differences %.6g"):format(key, slope, quotient), 0) end
    end
  end
  t.ok(tried >= 6 and wrong <= 1)
end)

-- ---- extremes ----

local function finite(what, tensor) t.ok(contract_rig.finite(tensor), what .. " is not finite") end

each("huge, tiny and equal numbers give finite results and gradients", function(name, cfg)
  for _, scale in ipairs { 1e4, 1e-6, 0 } do
    local m, x = build(name, cfg, N, scale)
    local y = run(m, x)
    finite(("y at scale %g"):format(scale), y)
    ;(y * weights(y)):sum():backward()
    for key, tensor in pairs(x) do finite(("gradient of %s at scale %g"):format(key, scale), tensor:grad()) end
    mn.clear_tape()
  end
end)

t.test("rows that see nothing are zero and have no gradient", function()
  local q, k = contract_rig.normal({ 1, 1, 3, D }, 1, true), contract_rig.normal({ 1, 1, 3, D }, 2, true)
  local ranges = encoder_attention.ranges { { { { 0, 2 } }, {}, { { 5, 4 } } } }
  local y = mn.sparse_attention { q = q, k = k, v = k, ranges = ranges }
  y:sum():backward()
  for d = 0, 2 * D - 1 do
    t.eq(y:data()[D + d], 0)
    t.eq(q:grad_data()[D + d], 0)
  end
  t.ok(y:data()[0] ~= 0)
  mn.clear_tape()
end)

t.test("what is not seen is not computed with, whatever it holds", function()
  local q, k = contract_rig.normal({ 1, 1, 40, 20 }, 1), contract_rig.normal({ 1, 1, 40, 20 }, 2)
  local ranges = encoder_attention.ranges { { { { 0, 3 }, { 3, 7 } } } }
  local causal = { q = q, k = k, v = k, ranges = encoder_attention.ranges { { { { 0, 40 } } } }, causal = 1 }
  local before = contract_rig.bytes(mn.keep(mn.sparse_attention { q = q, k = k, v = k, ranges = ranges }))
  local early = contract_rig.bytes(mn.keep(mn.sparse_attention(causal))):sub(1, 10 * 20 * 4)
  for i = 10 * 20, 40 * 20 - 1 do k:data()[i] = 0 / 0 end
  t.ok(contract_rig.bytes(mn.keep(mn.sparse_attention { q = q, k = k, v = k, ranges = ranges })) == before)
  t.ok(contract_rig.bytes(mn.keep(mn.sparse_attention(causal))):sub(1, 10 * 20 * 4) == early)
  mn.clear_tape()
end)

t.test("sparse attention needs memory for what is there, not for pairs", function()
  local long = 8192
  local m = encoder_attention.new("longformer", { window = 16, globals = 1 }, { H = 1, D = 8, N = long })
  local x = {}
  for i, name in ipairs { "q", "k", "v", "q_global", "k_global", "v_global" } do x[name] = contract_rig.normal({ 1, 1, long, 8 }, i, true) end
  mn.clear_tape()
  local y = run(m, x)
  y:sum():backward()
  t.ok(C.mn_bytes(ctx, "arena") < 20 * long * 8 * 4, C.mn_bytes(ctx, "arena") .. " bytes")
  mn.clear_tape()
end)

-- ---- wrong settings and calls ----

t.test("wrong settings are errors that say so", function()
  local sizes = { H = H, D = D, N = N }
  local function says(pattern, name, cfg) t.raises(function() encoder_attention.new(name, cfg, sizes) end, pattern) end
  says("attention linformer has no causal form: E and F mix all positions into each key, so position t would see the future",
    "linformer", { causal = true })
  says("attention nystromformer has no causal form: a landmark is a mean over the sequence", "nystromformer", { causal = true })
  says("unknown attention 'linfomer'; did you mean 'linformer'", "linfomer", {})
  says("unknown key of attention longformer 'windw'; did you mean 'window'", "longformer", { windw = 3 })
  says("window = 0, expected a whole number of at least 1", "longformer", { window = 0 })
  says("dilation = 1.5, expected a whole number", "longformer", { dilation = 1.5 })
  says("globals = %-1, expected a whole number of at least 0", "longformer", { globals = -1 })
  says("block = true, expected a number", "bigbird", { block = true })
  says("global_blocks has x, expected numbers of blocks", "bigbird", { global_blocks = { "x" } })
  says("random%[0%] is 3, expected a list", "bigbird", { random = { 3 } })
  says("unknown kernel = 'softmx'; did you mean 'softmax'", "performer", { kernel = "softmx" })
  says("unknown pinv_scale = 'all'", "nystromformer", { pinv_scale = "all" })
  encoder_attention.new("linformer", { causal = false }, sizes)
end)

t.test("lengths that do not fit are errors that say so", function()
  local function says(pattern, name, cfg, n)
    local m, x = build(name, encoder_attention.configure(name, cfg), n)
    t.raises(function() run(m, x) end, pattern)
  end
  says("the sequence has 10 tokens, expected a multiple of landmarks = 4", "nystromformer", { landmarks = 4 }, 10)
  says("the sequence has 10 tokens, expected a multiple of block = 3", "bigbird", { block = 3 }, 10)
  says("the sequence has 13 tokens, expected at most 12", "linformer", { k = 3 }, 13)
  says("global_blocks has 9, expected blocks 0 to 3", "bigbird", { block = 3, global_blocks = { 9 } }, 12)
  says("random has lists for 1 heads, expected 2", "bigbird", { block = 3, random = { { {}, {}, {}, {} } } }, 12)
  says("random%[0%] has lists for 2 blocks, expected 4", "bigbird", { block = 3, random = { { {}, {} }, {} } }, 12)
  says("random%[0%]%[1%] has block 7, expected 0 to 3", "bigbird", { block = 3, random = { { {}, { 7 }, {}, {} }, {} } }, 12)
  local m, x = build("longformer", encoder_attention.configure("longformer", { window = 3 }))
  t.fails(function() m(x.q, x.k, x.v) end)
  t.raises(function() m(x.q, contract_rig.normal({ B, H, N, D + 1 }, 1), x.v, x) end, "k is %[2,2,12,5%], expected %[2,2,12,4%]")
  t.raises(function() m(contract_rig.normal({ B, N, D }, 1), x.k, x.v, x) end, "q is %[2,12,4%], expected %[B,2,N,4%]")
  t.fails(function() m(3) end)
end)

-- ---- encoders ----

-- Settings of an encoder for sequences of 16 tokens.
local function encoder_of(name, other)
  local cfg = { attention = name, d_model = 16, n_heads = 2, d_head = 8, d_ffn = 32, n_layers = 2, max_len = 16 }
  local tiny = { k = 5, landmarks = 4, conv_kernel = 3, window = 4, globals = 1, block = 4, random_blocks = 1, chunk = 4, rho = 2, m = 16 }
  for key, value in pairs(tiny) do if encoder_attention.definition(name).config[key] ~= nil then cfg[key] = value end end
  for key, value in pairs(other or {}) do cfg[key] = value end
  return cfg
end

-- One token of 16 is marked; what it says must be told at the first position: mean loss of the first and last steps.
local function learn(name)
  local n, long = 16, 16
  mn.manual_seed(1)
  local enc = mn.encoder(encoder_of(name, { vocab = 4, positions = "learned" }))
  local head = mn.nn.linear(16, 2)
  local adam = mn.adam(mn.nn.container({ { "encoder", enc }, { "head", head } }):parameters(), { lr = 3e-3 })
  local x, target = mn.tensor { shape = { n, long }, dtype = "i32" }, mn.tensor { shape = { n }, dtype = "i32" }
  local seed = 7
  local function random(below)
    seed = seed * 16807 % 2147483647
    return math.floor(seed / 2147483647 * below)
  end
  local plan = mn.plan(function(tokens, class)
    adam:zero_grad()
    local first = mn.slice { x = enc(tokens), axis = 1, from = 0, to = 1 }
    local loss = -mn.pick(mn.log_softmax(mn.reshape(head(first), { d0 = n, d1 = 2 })), class):mean()
    loss:backward()
    adam:apply()
    return loss
  end)
  local begin, last = 0, 0
  for step = 1, 300 do
    for b = 0, n - 1 do
      local at = 1 + random(long - 1)
      for i = 0, long - 1 do
        local bit = random(2)
        x:data()[b * long + i] = bit + (i == at and 2 or 0)
        if i == at then target:data()[b] = bit end
      end
    end
    adam:tick()
    local loss = plan(x, target):item()
    if step <= 10 then begin = begin + loss / 10 elseif step > 290 then last = last + loss / 10 end
  end
  mn.clear_tape()
  return begin, last
end

for _, name in ipairs(registry.names "attentions") do
  t.test("an encoder with attention=" .. name .. " learns", function()
    local begin, last = learn(name)
    t.ok(begin > 0.5 and last < 0.15, ("loss %.3f at first, %.3f at last"):format(begin, last))
  end)
end

t.test("encoders of every attention and flow: shapes, gradients everywhere, names as in torch", function()
  for _, name in ipairs(registry.names "attentions") do
    for _, flow in ipairs { "postnorm", "residual", "gtrxl" } do
      local enc = mn.encoder(encoder_of(name, { flow = flow, d_in = 3, positions = flow == "gtrxl" and "sinusoid" or "none" }))
      local y = enc(contract_rig.normal({ 2, 16, 3 }, 1))
      t.eq(table.concat(y:shape(), ","), "2,16,16")
      finite("y", y)
      ;(y * weights(y)):sum():backward()
      for key, p in pairs(enc:named_parameters()) do
        local most = 0
        for i = 0, p:size() - 1 do most = math.max(most, math.abs(p:grad_data()[i])) end
        t.ok(most > 0, name .. " " .. flow .. ": " .. key .. " has no gradient")
        finite(key, p:grad())
      end
      mn.clear_tape()
    end
  end
  local names = tables.keys(mn.encoder(encoder_of("longformer", { n_layers = 1, vocab = 5, positions = "learned" })):state_dict())
  t.eq(table.concat(names, " "), "embed.weight layers.0.attn.k.bias layers.0.attn.k.weight layers.0.attn.k_global.bias "
    .. "layers.0.attn.k_global.weight layers.0.attn.out.bias layers.0.attn.out.weight layers.0.attn.q.bias layers.0.attn.q.weight "
    .. "layers.0.attn.q_global.bias layers.0.attn.q_global.weight layers.0.attn.v.bias layers.0.attn.v.weight "
    .. "layers.0.attn.v_global.bias layers.0.attn.v_global.weight layers.0.ffn.0.bias layers.0.ffn.0.weight layers.0.ffn.1.bias "
    .. "layers.0.ffn.1.weight layers.0.norm1.bias layers.0.norm1.weight layers.0.norm2.bias layers.0.norm2.weight positions")
  t.ok(mn.encoder(encoder_of "linformer"):state_dict()["layers.1.attn.e"])
  t.ok(mn.encoder(encoder_of "performer"):state_dict()["layers.0.attn.features"])
  t.ok(not mn.encoder(encoder_of "performer"):named_parameters()["layers.0.attn.features"])
end)

t.test("an encoder's wrong settings and calls are errors that say so", function()
  t.fails(function() mn.encoder(3) end)
  t.fails(function() mn.encoder { attention = "lineer" } end)
  t.fails(function() mn.encoder { attention = "linear", window = 3 } end)
  t.fails(function() mn.encoder { d_model = 0 } end)
  t.fails(function() mn.encoder { flow = "prenorm" } end)
  t.fails(function() mn.encoder { vocab = 4, d_in = 4 } end)
  t.fails(function() mn.encoder { attention = "nystromformer", causal = true } end)
  local enc = mn.encoder { d_in = 3, max_len = 4, positions = "learned" }
  t.fails(function() enc(3) end)
  t.raises(function() enc(contract_rig.normal({ 1, 4, 2 }, 1)) end, "x is %[1,4,2%], expected %[B,N,3%]")
  t.fails(function() enc(contract_rig.normal({ 1, 5, 3 }, 1)) end)
end)
