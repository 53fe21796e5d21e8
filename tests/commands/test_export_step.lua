-- test_export_step.lua -- what `mneme export` writes of an agent's step of acting is the agent: in C always, in PyTorch, ONNX and NumPy where
-- Python has them, for every core that is registered, over resets, with the gradients of the PyTorch module.
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local mn = require "mneme"
local space_kinds = require "mneme.envs.action_spaces"
local step_files = require "mneme.portable.step_files"
local step_graph = require "mneme.portable.step_graph"
local shell = require "tests.support.shell"
local step_rig = require "tests.support.step_rig"
local t = require "tests.harness"

local dir = shell.folder()
local STEPS, NEAR = 12, 1e-5

-- ---- C ----

-- A program that takes two environments through the steps of several agents and prints how far each is off.
local function c_program(list)
  local text = { "#include <stdio.h>" }
  for _, one in ipairs(list) do text[#text + 1] = ('#include "%s.h"'):format(one.name) end
  text[#text + 1] = "static float next(FILE *in) { float x = 0.0f; return fscanf(in, \"%f\", &x) == 1 ? x : NAN; }\n"
    .. "static void read(FILE *in, long n, float *to) { for (long i = 0; i < n; i++) to[i] = next(in); }\n"
    .. "static float off(float a, float b) { const float d = fabsf(a - b); return d == d ? d : INFINITY; }"
  for _, one in ipairs(list) do
    local first, agent = one.run.steps[1], one.agent
    local n, p = #first.observation / 2, agent.actions
    local action = first.previous_action and #first.previous_action / 2
    local calls = (action and ", action + b * " .. action or "") .. (first.previous_reward and ", reward[b]" or "")
    text[#text + 1] = ([[
static void try_NAME(FILE *in) {
  static NAME_state state[2];
  static float x[2 * NX], want[2 * NP], got[NP];
  float done[2], value[2], v, worst = 0.0f;
  DECLARE
  for (int b = 0; b < 2; b++) NAME_begin(&state[b]);
  for (int t = 0; t < STEPS; t++) {
    read(in, 2 * NX, x); read(in, 2, done); READ
    read(in, 2 * NP, want); read(in, 2, value);
    for (int b = 0; b < 2; b++) {
      NAME_step(&state[b], x + b * NX, done[b] != 0.0f CALLS, got, &v);
      for (int k = 0; k < NP; k++) worst = fmaxf(worst, off(got[k], want[b * NP + k]));
      worst = fmaxf(worst, off(v, value[b]));
    }
  }
  printf("off NAME %g\n", worst);
}]]):gsub("%f[%w]N[XP]%f[%W]", { NX = n, NP = p }):gsub("NAME", one.name):gsub("STEPS", #one.run.steps):gsub(" ?CALLS", calls)
      :gsub("DECLARE", (action and ("float action[%d];"):format(2 * action) or "") .. (first.previous_reward and " float reward[2];" or ""))
      :gsub("READ", (action and ("read(in, %d, action);"):format(2 * action) or "") .. (first.previous_reward and " read(in, 2, reward);" or ""))
  end
  text[#text + 1] = "int main(void) {\n  FILE *in = fopen(\"steps.txt\", \"r\");\n  if (!in) return 1;"
  for _, one in ipairs(list) do text[#text + 1] = ("  try_%s(in);"):format(one.name) end
  text[#text + 1] = "  return 0;\n}\n"
  local numbers = {}
  for _, one in ipairs(list) do
    for _, step in ipairs(one.run.steps) do
      for _, key in ipairs { "observation", "done", "previous_action", "previous_reward", "distribution", "value" } do
        for _, x in ipairs(step[key] or {}) do numbers[#numbers + 1] = ("%.9g"):format(x) end
      end
    end
  end
  files.write(dir .. "/try.c", { table.concat(text, "\n") })
  files.write(dir .. "/steps.txt", { table.concat(numbers, "\n") .. "\n" })
end

-- An agent's exported files, and what the engine computes.
local function export(name, agent, env, endings, gradient)
  local one = { name = name, agent = agent }
  for _, ending in ipairs(endings or { "h" }) do step_files.write(("%s/%s.%s"):format(dir, name, ending), agent, env, "a test") end
  one.run = step_rig.run(agent, STEPS)
  if gradient then one.run.gradient = step_rig.run(agent, 6, step_graph.graph(agent, true)) end
  return one
end

local function in_c(list)
  if not shell.has "gcc" then t.skip "no gcc" end
  c_program(list)
  local said, status = shell.run(dir, "gcc -std=c99 -Wall -Wextra -pedantic -Werror -o try try.c -lm && ./try")
  t.eq(status, 0, said)
  local seen = 0
  for name, off in said:gmatch "off ([%w_]+) (%S+)\n" do
    seen = seen + 1
    t.near(tonumber(off), 0, NEAR, name)
  end
  t.eq(seen, #list, said)
end

-- ---- Python ----

-- The first Python that has a module.
local function python_with(module)
  for _, python in ipairs { os.getenv "MNEME_TORCH_PYTHON" or "python3", "/usr/bin/python3", shell.build .. "/python/bin/python" } do
    if select(2, shell.run(dir, ("'%s' -c 'import %s'"):format(python, module))) == 0 then return python end
  end
  t.skip(("no Python here has %s: MNEME_TORCH_PYTHON names one"):format(module))
end

local function in_python(form, module, list)
  local python, about = python_with(module), {}
  for i, one in ipairs(list) do
    local space = one.agent.observation_space
    about[i] = { name = one.name, run = one.run, shape = json.array { 2, unpack(space.shape) } }
  end
  files.write(dir .. "/about.json", { json.encode(about) })
  local said, status = shell.run(dir, ("'%s' '%s/tests/support/check_steps.py' %s"):format(python, shell.root, form))
  t.eq(status, 0, said)
  local seen = 0
  for name, off in said:gmatch "off ([%w_]+) (%S+)\n" do
    seen = seen + 1
    t.near(tonumber(off), 0, NEAR, name)
  end
  t.eq(seen, #list, said)
end

-- ---- every core ----

local all
local function every_core()
  if all then return all end
  all = {}
  for i, name in ipairs(mn.names "cores") do
    local env = mn.env("tmaze", { num_envs = 2, corridor = 5 })
    all[i] = export(name, step_rig.agent(step_rig.small(name), env), env, step_files.endings, true)
  end
  return all
end

t.test("every core: the C header is the agent, over resets, without a warning", function() in_c(every_core()) end)
t.test("every core: the plan is the agent by NumPy", function() in_python("json", "numpy", every_core()) end)
t.test("every core: the PyTorch module is the agent, step by step, as a sequence, and so are its gradients", function()
  in_python("py", "torch", every_core())
end)
t.test("every core: the ONNX model is valid and is the agent", function() in_python("onnx", "onnxruntime, onnx", every_core()) end)

-- ---- every kind of agent ----

local function discrete(n)
  local names = {}
  for i = 1, n do names[i] = "a" .. i end
  return space_kinds.discrete(names)
end
local function box(n)
  local low, high = {}, {}
  for i = 1, n do low[i], high[i] = -2, 2 end
  return mn.box { low = low, high = high }
end
-- An environment whose spaces are all that is used of it.
local function spaces(observation, action) return { id = "made", num_envs = 2, observation_space = observation, action_space = action } end

-- A user's own core in a file: a leaky sum of features in mn.recur, with `line` in its body.
local function own_core(name, line)
  files.make_folder(dir .. "/cores")
  local path = ("%s/cores/%s.lua"):format(dir, name)
  files.write(path, { (([[
local mn = require "mneme"
local nn = mn.nn
return {
  doc = "a leaky sum of features", source = "a test", equations = "h = sigma(a) h + relu(W x)",
  config = { d_in = 16, d_model = 8, reset = true },
  build = function(cfg)
    local write, leak = nn.linear(cfg.d_in, cfg.d_model), nn.linear(cfg.d_in, 1)
    return {
      module = nn.container { { "write", write }, { "leak", leak } }, d_out = cfg.d_model, states = { h = "[B,D]" }, sizes = { D = cfg.d_model },
      start = { h = 0.5 },
      forward = function(x, done, state)
        local start = state.h * 0 + 0.5
        local y, h = mn.recur(function(now, h)
          local next = h * now.leak:sigmoid() + now.write:relu()
          LINE
          return next, next
        end, { x = { write = write(x), leak = leak(x) }, state = state.h, done = cfg.reset and done or nil, start = start })
        return y, { h = h }
      end,
    }
  end,
}
]]):gsub("LINE", line)) })
  return path
end

local function kinds()
  local list = {}
  local function add(name, env, core, options, change)
    local agent = step_rig.agent(core or step_rig.small "gru", env, options)
    if change then change(agent) end
    list[#list + 1] = export(name, agent, env, step_files.endings)
  end
  local flat = { shape = { 5 }, dtype = "f32" }
  local tmaze = mn.env("tmaze", { num_envs = 2, corridor = 5 })
  add("plain", tmaze, nil, { previous = "none" })
  add("normal", spaces(flat, box(2)))
  add("several", spaces(flat, mn.multi_discrete { 3, 2, 4 }))
  add("bounded", spaces(flat, box(3)), nil, { distribution = "tanh_normal" })
  add("q_heads", tmaze, nil, { distribution = "epsilon_greedy" })
  add("codes", spaces({ shape = { 3, 2 }, dtype = "u8", codes = 4 }, discrete(3)))
  add("embedding", spaces({ shape = { 3, 2 }, dtype = "u8", codes = 4 }, discrete(3)), nil, { torso = "embedding" })
  add("linear_torso", spaces(flat, discrete(3)), nil, { torso = "linear" })
  add("impala", spaces({ shape = { 9, 8, 3 }, dtype = "u8" }, discrete(3)), nil, { torso = { "impala", hidden = 6 } })
  add("arrays", spaces({ shape = { 4 + 2 + 6 }, dtype = "f32", parts = {
    { name = "eye", kind = "floats", from = 0, n = 4, shape = { 4 } }, { name = "card", kind = "codes", codes = 5, from = 4, n = 2, shape = { 2 } },
    { name = "map", kind = "floats", from = 6, n = 6, shape = { 2, 3 } } } }, discrete(3)))
  for _, name in ipairs { "plain_norm", "clipped" } do
    add(name, tmaze, nil, nil, function(agent)
      agent.normaliser = step_rig.normaliser({ norm_obs = true, norm_reward = true, clip_obs = name == "clipped" and 0.7 or 0,
        clip_reward = name == "clipped" and 0.5 or 0, norm = name == "clipped" and "welford" or nil }, agent.observation_space)
    end)
  end
  add("own_core", tmaze, { own_core("leaky", "next = next / (1 + next:square():mean(-1, true))"), d_model = 5 })
  add("deep", tmaze, step_rig.small("agalite", { n_layers = 2, flow = "residual" }))
  add("flow", tmaze, step_rig.small("rmt", { n_layers = 2, flow = "postnorm" }))
  add("logarithms", tmaze, step_rig.small("mingru", { space = "log" }))
  add("rotated", tmaze, step_rig.small("retnet", { n_layers = 2 }))
  return list
end

local kinds_made
t.test("every kind of agent: spaces, torsos, heads, normalisers, several layers", function()
  kinds_made = kinds()
  in_c(kinds_made)
end)
for form, module in pairs { json = "numpy", py = "torch", onnx = "onnxruntime, onnx" } do
  t.test(("every kind of agent by %s"):format(module), function()
    kinds_made = kinds_made or kinds()
    in_python(form, module, kinds_made)
  end)
end

-- ---- the command ----

t.test("mneme export writes every form of a run; an op that is not known is named, with its line", function()
  local function said(words, status)
    local text, got = shell.mneme(dir, words)
    t.eq(got, status or 0, words .. ": " .. text)
    return text
  end
  own_core("leaky", "next = next * 1")
  own_core("sorted", "next = mn.sort(next)")
  said "run train env=tmaze core=leaky core.d_model=4 steps=256 num_envs=4 run=own threads=1 norm_obs=1"
  for _, ending in ipairs(step_files.endings) do
    said(("export own to=2-own.%s"):format(ending))
    t.ok(#files.read(("%s/2-own.%s"):format(dir, ending)) > 1000, ending)
  end
  shell.run(dir, [[mkdir odd; cp -r own "$(printf 'odd/u\\377*')"]])
  for _, ending in ipairs { "py", "h", "json" } do
    said(("export odd/u* to=odd.%s"):format(ending))
    t.eq(files.read(("%s/odd.%s"):format(dir, ending)):match "[\128-\255]", nil, ending .. ": bytes that no reader takes for text")
  end
  if shell.has "gcc" then
    local text, status = shell.run(dir, "gcc -std=c99 -Wall -Wextra -pedantic -Werror -x c -fsyntax-only 2-own.h")
    t.eq(status, 0, text)
    t.ok(files.read(dir .. "/2-own.h"):find("static inline void agent_2_own_step(", 1, true), "a name of C")
  end
  said "run train env=tmaze core=sorted core.d_model=4 steps=256 num_envs=4 run=sorted threads=1"
  local text = said("export sorted to=sorted.h", 1)
  t.ok(text:find "op sort" and text:find "cores/sorted.lua:%d+" and not files.is_file(dir .. "/sorted.h"), text)
  t.ok(said("export own to=own.npz", 2):find ".onnx", "what a run becomes")
end)

t.test("mneme.load acts as the program does", function()
  local python = python_with "numpy"
  local text, status = shell.mneme(dir, "run train env=tmaze env.corridor=4 core=gru core.d_model=6 steps=2048 num_envs=4 run=loaded threads=1 norm_obs=1 "
    .. "previous=action,reward")
  t.eq(status, 0, text)
  text, status = shell.mneme(dir, "eval loaded episodes=1 num_envs=1 greedy=1 record=plays internals=1")
  t.eq(status, 0, text)
  text, status = shell.run(dir, ("MNEME='%s' '%s' '%s/tests/support/check_load.py' loaded plays/episode-0.npz"):format(shell.program, python, shell.root))
  t.eq(status, 0, text)
  t.ok(tonumber(text:match "steps (%d+)") > 5 and text:find "equal", text)
end)

if os.getenv "KEEP" then print(dir) else files.remove_folder(dir) end
