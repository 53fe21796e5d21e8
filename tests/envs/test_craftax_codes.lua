-- test_craftax_codes.lua -- Craftax's observation of codes says what the dense one says, number by number, and an agent that sums rows of a
-- table by it is the agent with a linear layer: values, policy and gradients.
local ffi = require "ffi"
local t = require "tests.harness"
local mn = require "mneme"
local shell = require "tests.support.shell"

local NUMBERS, CODED, ONES, OTHERS, B = 8268, 362, 8217, 51, 16

local function decoded(codes, into)
  ffi.fill(into, 4 * NUMBERS)
  for i = 0, CODED - OTHERS - 1 do
    if codes[i] >= 0 then
      t.eq(into[codes[i]], 0, "a place twice")
      into[codes[i]] = 1
    end
  end
  ffi.copy(into + ONES, codes + CODED - OTHERS, 4 * OTHERS)
end

-- The same worlds observed both ways for so many steps; each(step, dense, codes) gets every step's observations.
local function play(steps, each)
  local env = { mn.env("craftax", { num_envs = B, seed = 9 }), mn.env("craftax", { num_envs = B, seed = 9, observation = "codes" }) }
  local obs = { ffi.new("float[?]", B * NUMBERS), ffi.new("float[?]", B * CODED) }
  local action, reward, over, cut = ffi.new("int32_t[?]", B), ffi.new("float[?]", B), ffi.new("uint8_t[?]", B), ffi.new("uint8_t[?]", B)
  for k = 1, 2 do env[k]:reset_raw(obs[k], 9) end
  for step = 1, steps do
    each(step, obs[1], obs[2])
    for b = 0, B - 1 do action[b] = (step * 7 + b * 5 + math.floor(step / 3) * b) % 43 end
    for k = 1, 2 do env[k]:step_raw(action, obs[k], reward, over, cut) end
  end
  return env
end

t.test("codes are the places of the dense observation's ones, and its other numbers", function()
  local all, mobs = ffi.new("float[?]", NUMBERS), 0
  play(400, function(step, dense, codes)
    for b = 0, B - 1 do
      decoded(codes + b * CODED, all)
      if ffi.string(all, 4 * NUMBERS) ~= ffi.string(dense + b * NUMBERS, 4 * NUMBERS) then
        for i = 0, NUMBERS - 1 do t.eq(all[i], dense[b * NUMBERS + i], ("number %d of environment %d after %d steps"):format(i, b, step - 1)) end
      end
      for i = 297, CODED - OTHERS - 1 do mobs = mobs + (codes[b * CODED + i] >= 0 and 1 or 0) end
    end
  end)
  t.ok(mobs > 1000, mobs .. " mobs were seen")
end)

t.test("summed rows are the linear layer: the same agent within 2e-5, and the same gradients", function()
  local T, x = 6, { mn.tensor { shape = { 6, B, NUMBERS } }, mn.tensor { shape = { 6, B, CODED } } }
  local env = play(60, function(step, dense, codes)
    if step % 10 ~= 0 then return end
    ffi.copy(x[1]:data() + (step / 10 - 1) * B * NUMBERS, dense, 4 * B * NUMBERS)
    ffi.copy(x[2]:data() + (step / 10 - 1) * B * CODED, codes, 4 * B * CODED)
  end)
  local function agent(k, torso)
    mn.manual_seed(4)
    local a = mn.agent { env = env[k], core = { "gru", d_model = 16 }, hidden = 32, head_act = "relu", torso = torso }
    local logits, values = a(x[k])
    local loss = logits:square():mean() * 1e4 + values:square():mean()
    loss:backward()
    return a, logits, values
  end
  local a, logits_a, values_a = agent(1, { "linear", hidden = 32 })
  local b, logits_b, values_b = agent(2, { "rows", hidden = 32, ones = ONES, numbers = OTHERS })
  local function near(n, got, want, what)
    local top, apart = 0, 0
    for i = 0, n - 1 do top, apart = math.max(top, math.abs(want(i))), math.max(apart, math.abs(got(i) - want(i))) end
    t.ok(top > 0 and apart <= 2e-5 * top, ("%s: up to %g, %g apart"):format(what, top, apart))
  end
  local function at(p) return function(i) return p[i] end end
  near(T * B * 43, at(logits_b:data()), at(logits_a:data()), "logits")
  near(T * B, at(values_b:data()), at(values_a:data()), "values")
  local dense, coded = a.module:named_parameters(), b.module:named_parameters()
  for name, leaf in pairs(dense) do
    if name ~= "torso.0.weight" then near(leaf:size(), at(coded[name]:grad_data()), at(leaf:grad_data()), "gradient of " .. name) end
  end
  for _, of in ipairs { "data", "grad_data" } do
    local whole, rows, rest = dense["torso.0.weight"][of](dense["torso.0.weight"]), coded["torso.rows.weight"][of](coded["torso.rows.weight"]),
      coded["torso.0.weight"][of](coded["torso.0.weight"])
    near(32 * NUMBERS, function(i)
      local d, n = math.floor(i / NUMBERS), i % NUMBERS
      return n < ONES and rows[n * 32 + d] or rest[d * OTHERS + n - ONES]
    end, at(whole), of)
  end
  mn.clear_tape()
end)

t.test("a torso of rows says what does not fit", function()
  local env = mn.env("craftax", { num_envs = 1, observation = "codes" })
  t.fails(function() mn.torso("rows", { space = env.observation_space, numbers = 362 }) end)
end)

t.test("the experiment hands on which observation it is to have, and refuses another", function()
  local folder = shell.folder()
  local said, status = shell.mneme(folder, "run craftax quick=1 core=gru observation=sparse steps=4096 run=sparse")
  t.eq(status, 2, said)
  t.ok(said:find("unknown value of observation: 'sparse' (known: dense codes)", 1, true), said)
  shell.fine(folder, "run craftax quick=1 core=gru observation=codes num_envs=2 num_steps=8 minibatches=2 steps=32 run=codes")
  os.execute("rm -r '" .. folder .. "'")
end)
