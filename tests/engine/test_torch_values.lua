-- test_torch_values.lua -- losses, distributions, layers and optimisers, against torch's values and gradients in float64, which
-- tests/reference/torch_values.py writes.
local t = require "tests.harness"
local files = require "mneme.base.files"
local mn = require "mneme"
local shell = require "tests.support.shell"

local want = assert(mn.json.decode((files.read(shell.root .. "tests/fixtures/torch_values.json"))))
local nn = mn.nn

-- sin(i + phase), of any shape; with a gradient.
local function wave(phase, shape, grad)
  local x = mn.tensor { shape = shape, grad = grad or false }
  local p = x:data()
  for i = 0, x:size() - 1 do p[i] = math.sin(i + phase) end
  return x
end

local function near(name, x, list)
  local p, scale = x:data(), 1
  t.eq(x:size(), #list, name .. ": size")
  for _, v in ipairs(list) do scale = math.max(scale, math.abs(v)) end
  for i, v in ipairs(list) do t.near(p[i - 1], v, 2e-5 * scale, ("%s[%d]"):format(name, i - 1)) end
end

-- The values of y, and the gradients of the sum of y times a wave.
local function compare(group, name, y, leaves)
  local w = want[group][name]
  t.ok(w, name .. " is not in the fixture")
  near(name, y, w.y)
  local of_y = y:reshape(-1);
  (of_y * wave(0.5, of_y:shape())):sum():backward()
  t.eq(#leaves, #w.grads, name .. ": leaves")
  for i, leaf in ipairs(leaves) do near(name .. ", gradient " .. i, leaf:grad(), w.grads[i]) end
end

t.test("losses are torch's, for every reduction", function()
  local function pair() return wave(1, { 4, 5 }, true), wave(2, { 4, 5 }, true) end
  local classes = mn.tensor { data = { 0, 4, 2, 2 }, dtype = "i32" }
  local probs = wave(3, { 4, 5 }):softmax()
  local n = 0
  for _, reduction in ipairs { "mean", "sum", "none" } do
    local function o(more) more.reduction = reduction return more end
    local function check(name, f, ...)
      compare("losses", name .. " " .. reduction, f, { ... })
      n = n + 1
    end
    local x, z = pair()
    check("mse_loss", mn.mse_loss(x, z, o {}), x, z)
    x, z = pair()
    check("l1_loss", mn.l1_loss(x, z, o {}), x, z)
    x, z = pair()
    check("huber_loss", mn.huber_loss(x, z, o { delta = 0.4 }), x, z)
    x, z = pair()
    check("smooth_l1_loss", mn.smooth_l1_loss(x, z, o { beta = 0.6 }), x, z)
    x = pair()
    check("binary_cross_entropy_with_logits", mn.binary_cross_entropy_with_logits(x * 3, wave(2, { 4, 5 }):sigmoid(), o {}), x)
    x = pair()
    check("nll_loss", mn.nll_loss(x:log_softmax(), classes, o {}), x)
    x = pair()
    check("cross_entropy", mn.cross_entropy(x, classes, o {}), x)
    x = pair()
    check("cross_entropy probs", mn.cross_entropy(x, probs, o {}), x)
    x = pair()
    check("kl_div", mn.kl_div(x:log_softmax(), probs, o {}), x)
  end
  local x = pair()
  compare("losses", "kl_div batchmean", mn.kl_div(x:log_softmax(), probs, { reduction = "batchmean" }), { x })
  x = pair()
  compare("losses", "cross_entropy mean", (mn.cross_entropy(x, classes)), { x })
  local names = 0
  for _ in pairs(want.losses) do names = names + 1 end
  t.eq(n + 1, names)
  mn.clear_tape()
end)

t.test("losses refuse shapes that only broadcast, and what they do not know", function()
  local a, b = mn.tensor { shape = { 4, 1 } }, mn.tensor { shape = { 4 } }
  for _, name in ipairs { "mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "kl_div" } do
    t.fails(function() mn[name](a, b) end)
    t.fails(function() mn[name](a, a, { reduction = "avg" }) end)
    t.fails(function() mn[name](a, a, { reductoin = "sum" }) end)
    t.fails(function() mn[name](a, 3) end)
  end
  t.fails(function() mn.huber_loss(a, a, { delta = 0 }) end)
  t.fails(function() mn.binary_cross_entropy_with_logits(a, a, { pos_weight = a }) end)
end)

t.test("distributions are torch's", function()
  local d = "distributions"
  local function pair() return wave(1, { 4, 5 }, true), wave(2, { 4, 5 }, true) end
  local classes = mn.tensor { data = { 0, 4, 2, 2 }, dtype = "i32" }
  local bits = wave(3, { 4, 5 }):sign():relu()
  local x, z = pair()
  compare(d, "categorical kl", mn.kl_divergence(mn.categorical(x), mn.categorical(z)), { x, z })
  x, z = pair()
  compare(d, "categorical kl", mn.kl_divergence(x, z), { x, z })
  x = pair()
  compare(d, "categorical log_prob", mn.categorical(x):log_prob(classes), { x })
  x = pair()
  compare(d, "categorical entropy", mn.categorical { logits = x }:entropy(), { x })
  x = pair()
  local e = x:exp()
  compare(d, "categorical probs", mn.categorical { probs = e }:log_prob(classes), { x })
  x = pair()
  compare(d, "bernoulli log_prob", mn.bernoulli(x):log_prob(bits), { x })
  x = pair()
  compare(d, "bernoulli entropy", mn.bernoulli(x):entropy(), { x })
  x, z = pair()
  compare(d, "bernoulli kl", mn.kl_divergence(mn.bernoulli(x), mn.bernoulli(z)), { x, z })
  x, z = pair()
  compare(d, "normal log_prob", mn.normal(x, z:exp()):log_prob(wave(3, { 4, 5 })), { x, z })
  x, z = pair()
  compare(d, "normal entropy", mn.normal(x, z:exp()):entropy() + x * 0, { x, z })
  x, z = pair()
  compare(d, "normal kl", mn.kl_divergence(mn.normal(x, z:exp()), mn.normal(wave(3, { 4, 5 }), wave(4, { 4, 5 }):exp())), { x, z })
  mn.clear_tape()
end)

-- A layer with its parameters set to waves, as the fixture has them.
local function with_waves(layer)
  for phase, name in ipairs { "weight", "bias" } do
    local leaf = layer:state_dict()[name]
    leaf:copy(wave(phase + 1, leaf:shape()))
  end
  return layer, layer:parameters()
end

t.test("conv1d, group_norm and pooling are torch's", function()
  local paddings = { plain = {}, strided = { stride = 2, padding = 1 }, same = { padding = "same" }, wide = { padding = 2 }, causal = { padding = "causal" } }
  for name, o in pairs(paddings) do
    local conv, leaves = with_waves(nn.conv1d(3, 4, 3, o))
    local x = wave(1, { 7, 2, 3 }, true)
    compare("layers", "conv1d " .. name, (conv(x)), { x, leaves[1], leaves[2] })
  end
  for _, groups in ipairs { 1, 2, 6 } do
    local norm, leaves = with_waves(nn.group_norm(groups, 6))
    local x = wave(1, { 2, 2, 3, 2, 6 }, true)
    local y = norm(x)
    t.eq(table.concat(y:shape(), ","), "2,2,3,2,6")
    compare("layers", "group_norm " .. groups, y, { x, leaves[1], leaves[2] })
  end
  local x = wave(1, { 2, 2, 5, 6, 3 }, true)
  compare("layers", "avg_pool2d plain", nn.avg_pool2d(2)(x), { x })
  x = wave(1, { 2, 2, 5, 6, 3 }, true)
  compare("layers", "avg_pool2d padded", nn.avg_pool2d(3, { stride = 2, padding = 1 })(x), { x })
  x = wave(1, { 7, 2, 3 }, true)
  compare("layers", "avg_pool1d", nn.avg_pool1d(3)(x), { x })
  mn.clear_tape()
end)

t.test("optimisers make torch's twenty steps, eagerly and in a plan", function()
  local tried = 0
  for name, w in pairs(want.optimisers) do
    local options = {}
    for key, value in pairs(w.options) do options[key] = value end
    for _, flag in ipairs(w.flags) do options[flag] = true end
    for _, planned in ipairs { false, true } do
      local a, b = wave(1, { 3, 4 }, true), wave(2, { 5 }, true)
      local opt, seen = mn[name:match "%S+"]({ a, b }, options), 0
      local function update()
        opt:zero_grad()
        local loss = (a - wave(4, { 3, 4 })):square():square():mean() + b:square():sum()
        loss:backward()
        if planned then opt:apply() else opt:step() end
      end
      local plan = planned and mn.plan(update)
      for step = 0, 19 do
        if step == 10 then opt:settings()[0] = opt:lr() / 2 end
        if planned then opt:tick() plan() else update() end
        if step % 5 == 4 then
          seen = seen + 1
          near(("%s, step %d"):format(name, step), mn.concat(a:reshape(-1), b, { axis = 0 }), w.steps[seen])
          tried = tried + 1
        end
      end
    end
  end
  t.eq(tried, 4 * 2 * 9)
  mn.clear_tape()
end)

t.test("centred rmsprop stays finite where the variance of a gradient rounds below 0", function()
  for _, g in ipairs { 0.3333333, 3.3 } do
    local w = mn.tensor { data = { 1, 1 }, grad = true }
    local opt = mn.rmsprop({ w }, { lr = 0.1, alpha = 0.5, centered = true })
    for i = 1, 60 do
      opt:zero_grad()
      ;(w * g):sum():backward()
      opt:step()
      t.ok(w:data()[0] == w:data()[0], ("gradient %g: NaN after %d steps"):format(g, i))
    end
  end
  mn.clear_tape()
end)

t.test("an optimiser clips by the global norm, goes on from its state dict, and refuses what would train nothing", function()
  for _, name in ipairs { "adam", "adamw", "radam", "sgd", "rmsprop" } do
    local function made(w) return mn[name]({ w }, { lr = 0.1, max_norm = 0.5, [name == "sgd" and "momentum" or "lr"] = 0.1 }) end
    local function steps(w, opt, n) for _ = 1, n do opt:zero_grad() w:square():sum():backward() opt:step() end end
    local w, alone = wave(1, { 6 }, true), wave(1, { 6 }, true)
    local opt, whole = made(w), made(alone)
    steps(w, opt, 3)
    t.ok(opt:grad_norm() > 0.5, name)
    local other = wave(2, { 6 }, true):copy(w)
    local again = made(other)
    again:load_state_dict(opt:state_dict())
    steps(other, again, 2)
    steps(alone, whole, 5)
    t.eq(again:updates(), 5)
    for i = 0, 5 do t.eq(other:data()[i], alone:data()[i], name) end
    t.fails(function() again:load_state_dict {} end)
  end
  t.fails(function() mn.sgd(nn.linear(2, 2)) end)
  t.fails(function() mn.rmsprop { mn.tensor { 1 } } end)
  t.fails(function() mn.sgd({ wave(1, { 2 }, true) }, { nesterov = true }) end)
  t.fails(function() mn.sgd({ wave(1, { 2 }, true) }, { nesterov = 1 }) end)
  t.fails(function() mn.sgd({ wave(1, { 2 }, true) }, { momentum = 1 }) end)
  mn.clear_tape()
end)
