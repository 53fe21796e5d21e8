-- test_modules.lua -- modules as torch users write them: sequential, classes, state dicts, save and load, print, a training loop.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local mn = require "mneme"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local nn = mn.nn

local function bits(x) return ffi.string(x:data(), x:size() * 4) end
local function names(dict)
  local list = {}
  for name in pairs(dict) do list[#list + 1] = tostring(name) end
  table.sort(list)
  return table.concat(list, " ")
end

-- ---- modules ----

t.test("sequential takes modules, functions or a list, and numbers them as torch does", function()
  mn.manual_seed(1)
  local net = nn.sequential(nn.linear(4, 8), nn.tanh(), nn.linear(8, 2))
  mn.manual_seed(1)
  local list = nn.sequential { nn.linear(4, 8), mn.tanh, nn.linear(8, 2) }
  local x = mn.tensor { { 1, 2, 3, 4 } }
  t.eq(bits(net(x)), bits(list(x)))
  t.eq(names(net:state_dict()), "0.bias 0.weight 2.bias 2.weight")
  t.eq(names(list:state_dict()), names(net:state_dict()))
  t.fails(function() nn.sequential(nn.linear(2, 2), 3) end)
  t.fails(function() nn.sequential() end)
  mn.clear_tape()
end)

t.test("a class finds modules, lists of them, parameters and buffers in its fields, also later ones, and each leaf once", function()
  local shared = nn.linear(3, 3)
  local net = nn.module {
    first = shared, layers = { nn.linear(3, 3), shared }, gain = mn.tensor { data = { 2 }, grad = true },
    shift = mn.tensor { 1, 1, 1 }, note = "mine",
    forward = function(self, x, more)
      x = self.first(x)
      for _, layer in ipairs(self.layers) do x = layer(x) end
      return x * self.gain + self.shift + more
    end,
  }
  t.eq(names(net:state_dict()), "first.bias first.weight gain layers.0.bias layers.0.weight layers.1.bias layers.1.weight shift")
  t.eq(#net:parameters(), 5, "what is shared once, no buffer")
  t.eq(#net:parts(), 5)
  t.eq(net:count(), 3 * 4 * 2 + 1)
  t.eq(names(net:named_parameters()):find "shift", nil)
  net.head = nn.linear(3, 1)
  t.eq(#net:parameters(), 7)
  local y = net(mn.tensor { { 1, 2, 3 } }, 5)
  t.eq(table.concat(y:shape(), ","), "1,3")
  y:sum():backward()
  t.ok(net.gain:grad():item() ~= 0)
  net:zero_grad()
  t.eq(net.gain:grad():item(), 0)
  t.fails(function() nn.module { count = 3, forward = function() end } end)
  t.fails(function() nn.module { children = {}, forward = function() end } end)
  t.fails(function() nn.module { forward = 3 } end)
  mn.clear_tape()
end)

t.test("train and eval reach every module", function()
  local seen = {}
  local probe = nn.module({}, function(_, x) return x end)
  probe.switched = function(on) seen[#seen + 1] = on end
  local net = nn.module { inner = nn.sequential(probe, nn.dropout(0.5)), forward = function(self, x) return self.inner(x) end }
  t.eq(net:eval(), net)
  t.eq(seen[1], false)
  t.eq(net.inner.children[2][2].training, false)
  net:train()
  t.eq(seen[2], true)
  t.fails(function() net:train(1) end)
end)

t.test("a class finds cores, and modules in tables by name and in lists of lists", function()
  local core = mn.core("gru", { d_in = 4, d_model = 3 })
  local net = nn.module { core = core, blocks = { a = nn.linear(3, 2), deep = { nn.linear(2, 2), { nn.linear(2, 1) } } },
    forward = function(self, x) return (self.core(x)) end }
  local found = {}
  net:each(function(name) found[name] = true end)
  for _, name in ipairs { "core.layers.0.ir.weight", "blocks.a.weight", "blocks.deep.0.bias", "blocks.deep.1.0.weight" } do
    t.ok(found[name], name .. " is missing")
  end
  t.eq(net:count(), core.module:count() + 8 + 6 + 3)
  t.eq(#net:parameters(), #core:parameters() + 6)
end)

t.test("a layer that torch has and Mneme has not says what there is instead", function()
  for name, hint in pairs { BatchNorm1d = "write mn.nn.layer_norm",
    batch_norm = "depend on how a batch is divided", LSTM = "mn.core",
    Linear = "did you mean 'mn.nn.linear'",
    LayerNorm = "did you mean 'mn.nn.layer_norm'", MSELoss = "mn.mse_loss", Dropuot = "did you mean 'mn.nn.dropout'" } do
    t.raises(function() return nn[name] end, hint)
  end
end)

t.test("conv1d over time: causal runs row by row, stops at episodes, and goes on from its past", function()
  mn.manual_seed(2)
  local conv = nn.conv1d(2, 3, 3, { padding = "causal" })
  local x, done = mn.sequence { shape = { 6, 2, 2 } }, mn.sequence { shape = { 6, 2 }, dtype = "u8" }
  for i = 0, 23 do x:data()[i] = math.cos(i) end
  done:data()[3 * 2] = 1
  local plan = mn.plan(function(v, d) return (conv(v, d)) end)
  local y = plan(x, done)
  local whole = bits(y)
  y:fill(7)
  for row = 0, 5 do plan:rows(row, row + 1) end
  local p = y:data()
  t.eq(#whole, y:size() * 4)
  for i = 0, y:size() - 1 do t.near(p[i], ffi.cast("const float *", whole)[i], 1e-6) end
  local early, past = conv(x:slice { to = 2 }, done:to_table() and nil)
  local late = conv(x:slice { from = 2, to = 4 }, nil, past)
  local all = conv(x:slice { to = 4 })
  for i = 0, 11 do t.near(early:data()[i], all:data()[i], 1e-6) end
  for i = 0, 11 do t.near(late:data()[i], all:data()[12 + i], 1e-6) end
  t.fails(function() conv(mn.tensor { 1 }) end)
  t.fails(function() nn.conv1d(2, 3, 3, { padding = 3 }) end)
  t.fails(function() nn.conv1d(2, 3, 4, { padding = "same" }) end)
  t.fails(function() nn.conv1d(2, 3, 5)(x:slice { to = 4 }) end)
  mn.clear_tape()
end)

-- ---- as text ----

t.test("print(net) shows the tree, sizes and the number of parameters", function()
  local net = nn.module { body = nn.sequential(nn.linear(1000, 1000), nn.relu(), nn.dropout(0.1)), scale = mn.tensor { data = { 1 }, grad = true },
    forward = function(self, x) return self.body(x) * self.scale end }
  t.eq(tostring(net), table.concat({ "module(", "  (scale): parameter [1]", "  (body): sequential(", "    (0): linear(1000 -> 1000)", "    (1): relu()",
    "    (2): dropout(0.1)", "  )", ")", "1,001,001 parameters" }, "\n"))
  t.eq(tostring(nn.linear(3, 2, { bias = false, act = "relu" })), "linear(3 -> 2, bias = false, act = relu)\n6 parameters")
  for _, core in ipairs { "gru", "agalite", "rwkv7" } do
    local c = mn.core(core, { d_in = 4 })
    t.ok(tostring(c):find("parameters$") and not tostring(c):find "table: ", core .. ": " .. tostring(c):sub(1, 200))
  end
end)

t.test("a tensor prints its shape, its type and its values in rows, abbreviated where there are many", function()
  t.eq(tostring(mn.tensor { 1, 2.5 }), "tensor [2] f32 [1.0000, 2.5000]")
  t.eq(tostring(mn.tensor { data = { { 1, 20 }, { -3, 4 } }, dtype = "i32" }), "tensor [2,2] i32\n[[ 1, 20],\n [-3,  4]]")
  t.eq(tostring(mn.tensor { 0 / 0, 1 / 0, 1e-9 }), "tensor [3] f32 [       nan,        inf, 1.0000e-09]")
  local cube = tostring(mn.tensor { shape = { 2, 2, 2 } }:fill(0.5))
  t.eq(cube, "tensor [2,2,2] f32\n[[[0.5000, 0.5000],\n  [0.5000, 0.5000]],\n\n [[0.5000, 0.5000],\n  [0.5000, 0.5000]]]")
  local large = tostring(mn.tensor { shape = { 100, 200 }, dtype = "u8" })
  t.eq(#large:gsub("[^\n]", ""), 7)
  t.ok(large:find("[[0, 0, 0, ..., 0, 0, 0],", 1, true) and large:find("\n ...,\n", 1, true), large)
  local y = mn.tensor { 1 }:square()
  mn.clear_tape()
  t.eq(tostring(y), "tensor (gone)")
end)

-- ---- saved ----

local folder = shell.folder()

t.test("save and load: a tensor, tables in tables, state dicts; the file of a state dict is like any other", function()
  local path = folder .. "/a.safetensors"
  local x = mn.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
  mn.save(path, x * 2)
  t.eq(bits(mn.load(path)), bits(x * 2))
  local indices = mn.tensor { data = { 3, 1 }, dtype = "i32" }
  local all = { list = { x, { deep = indices } }, [7] = true, off = false, best = -1 / 0, none = 0 / 0, step = 12345678901, name = "ä\n\"", empty = {} }
  mn.save(path, all)
  local got = mn.load(path)
  t.eq(bits(got.list[1]), bits(x))
  t.eq(got.list[2].deep:dtype(), "i32")
  t.eq(got.list[2].deep:data()[0], 3)
  t.eq(got[7], true)
  t.eq(got.off, false)
  t.eq(got.best, -1 / 0)
  t.ok(got.none ~= got.none)
  t.eq(got.step, all.step)
  t.eq(got.name, all.name)
  t.eq(next(got.empty), nil)
  t.eq(names(got), names(all))

  mn.manual_seed(3)
  local net, other = nn.sequential(nn.linear(3, 4), nn.linear(4, 2)), nn.sequential(nn.linear(3, 4), nn.linear(4, 2))
  mn.save(path, net:state_dict())
  other:load_state_dict(mn.load(path))
  t.eq(bits(other(x)), bits(net(x)))
  t.eq(names(safetensors.read(path).tensors), names(net:state_dict()))
  mn.clear_tape()
end)

t.test("save refuses what it cannot keep; nothing of it is left on the disk", function()
  local x, ring = mn.tensor { 1 }, {}
  ring.ring, ring.x = ring, x
  local path = folder .. "/none.safetensors"
  for what, case in pairs { object = { nn.linear(2, 2), "it is an object.*x:state_dict%(%)" }, ring = { ring, "ring holds itself" },
    closure = { { x, f = print }, "f is a function" }, keys = { { x, [1.5] = x }, "has the key 1.5" },
    twice = { { ["a.b"] = x, a = { b = x } }, "two tensors are named 'a.b'" },
    optimiser = { { m = mn.adam { mn.tensor { data = { 1 }, grad = true } } }, "m is an object" } } do
    t.raises(function() mn.save(path, case[1]) end, case[2])
    t.ok(not files.is_file(path), what)
  end
  t.fails(function() mn.save(3, x) end)
  t.fails(function() mn.save(folder .. "/no/such/folder", x) end)
end)

t.test("load refuses damaged files, and a tree that does not fit", function()
  local path, x = folder .. "/bad.safetensors", mn.tensor { 1, 2 }
  t.fails(function() mn.load(folder .. "/none") end)
  mn.save(path, { x = x })
  local whole = files.read(path)
  for cut = 1, #whole - 1, 7 do
    files.write(path, { whole:sub(1, cut) })
    t.raises(function() mn.load(path) end, "bad.safetensors: ")
  end
  for tree, problem in pairs { ['["tensor","y"]'] = "damaged", ['["table",[[1]]]'] = "damaged", ['["table",[["a",["string",3]]]]'] = "damaged",
    ['["code","os.exit()"]'] = "damaged", ["3"] = "damaged", ["["] = "bad.safetensors: tree" } do
    safetensors.write(path, { { "x", x } }, { format = "mneme-saved-1", tree = tree })
    t.raises(function() mn.load(path) end, problem)
  end
  safetensors.write(path, { { "x", x } }, { format = "pt" })
  t.eq(bits(mn.load(path).x), bits(x))
end)

t.test("load_state_dict is strict unless told otherwise", function()
  local net = nn.sequential(nn.linear(3, 4), nn.linear(4, 2))
  local part = { ["0.weight"] = mn.tensor { shape = { 4, 3 } }:fill(5), extra = mn.tensor { 1 } }
  t.fails(function() net:load_state_dict(part) end)
  t.ok(net:state_dict()["0.weight"]:data()[0] ~= 5)
  local missing, unexpected = net:load_state_dict(part, { strict = false })
  t.eq(table.concat(missing, " "), "0.bias 1.bias 1.weight")
  t.eq(table.concat(unexpected, " "), "extra")
  t.eq(net:state_dict()["0.weight"]:data()[0], 5)
  t.fails(function() net:load_state_dict({ ["0.weight"] = mn.tensor { shape = { 3, 4 } } }, { strict = false }) end)
  t.fails(function() net:load_state_dict({ ["0.bias"] = mn.tensor { shape = { 4 }, dtype = "i32" } }, { strict = false }) end)
  t.fails(function() net:load_state_dict(part, { strickt = false }) end)
end)
os.execute("rm -r '" .. folder .. "'")

-- ---- a loop ----

t.test("a loop as in torch learns, and costs at its end what it cost at its beginning", function()
  mn.manual_seed(4)
  local net = nn.sequential(nn.linear(4, 16), nn.tanh(), nn.dropout(0.1), nn.linear(16, 3))
  local opt = mn.adam(net:parameters(), { lr = 1e-3 })
  local x, target = mn.tensor { shape = { 8, 4 } }, mn.tensor { shape = { 8, 3 } }
  for i = 0, 31 do x:data()[i] = math.sin(i) end
  for i = 0, 23 do target:data()[i] = math.cos(i) end
  local function measured()
    mn.clear_tape()
    collectgarbage()
    collectgarbage()
    local all = collectgarbage "count" * 1024
    for _, what in ipairs { "arena_peak", "leaf", "plan" } do all = all + engine.C.mn_bytes(engine.ctx, what) end
    return all
  end
  local marks, first = {}, nil
  for i = 1, 20000 do
    local y = net(x)
    local d = mn.categorical(y)
    local loss = mn.huber_loss(y, target) - d:log_prob(d:sample()):mean() * 1e-3 - d:entropy():mean() * 1e-4
    opt:zero_grad()
    loss:backward()
    opt:step()
    first = first or loss:item()
    if i % 5000 == 0 then marks[#marks + 1] = measured() end
  end
  t.ok(marks[4] < 1.05 * marks[2] + 1e5, table.concat(marks, " "))
  net:eval()
  t.ok(mn.huber_loss(net(x), target):item() < 0.5 * first)
  mn.clear_tape()
end)
