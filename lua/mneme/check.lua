-- check.lua -- `mneme check FILE.safetensors ...`: is a port right?  Builds what a fixture's metadata names,
-- loads its parameters, runs forward and backward, and compares every number with those in the file.
-- Error of a tensor = max |got - expected| / max(max |expected|, 1e-3 x the largest of its group), where the
-- groups are output.*, final.* and grad.*.
local ffi = require "ffi"
local core = require "mneme.core"
local errors = require "mneme.errors"
local json = require "mneme.json"
local nn = require "mneme.nn"
local optim = require "mneme.optim"
local safetensors = require "mneme.safetensors"
local states = require "mneme.states"
local tensor = require "mneme.tensor"
local ops = tensor.ops

local FAR = 1e37           -- beyond it a number stands for infinity

-- ---- results: name -> { shape, values } ----

local function numbers(pointer, shape)
  local n, list = 1, {}
  for _, size in ipairs(shape) do n = n * size end
  for i = 0, n - 1 do list[i + 1] = tonumber(pointer[i]) end
  return { shape = shape, values = list }
end
local function value_of(t) return numbers(t:data(), t:shape()) end
local function grad_of(t) return numbers(t:grad_data(), t:shape()) end

local function largest(values)
  local top = 0
  for _, v in ipairs(values) do if math.abs(v) < FAR and math.abs(v) > top then top = math.abs(v) end end
  return top
end

local function difference(got, want)
  if table.concat(got.shape, ",") ~= table.concat(want.shape, ",") then return math.huge end
  local worst = 0
  for i, w in ipairs(want.values) do
    local g = got.values[i]
    if g ~= g or w ~= w then return math.huge end
    if math.abs(w) >= FAR then
      if not (g <= -FAR) then return math.huge end
    elseif math.abs(g - w) > worst then worst = math.abs(g - w) end
  end
  return worst
end

---Every tensor's error, the worst first: { name, error, note }.
local function compare(got, file)
  local want, top, list = {}, {}, {}
  for name, t in pairs(file) do
    local group = name:match "^(%a+)%."
    if group == "output" or group == "final" or group == "grad" then
      want[name] = numbers(t:data(), t:shape())
      top[group] = math.max(top[group] or 0, largest(want[name].values))
    end
  end
  for name, w in pairs(want) do
    if not got[name] then list[#list + 1] = { name = name, error = math.huge, note = "missing" }
    else
      local floor = math.max(largest(w.values), 1e-3 * top[name:match "^%a+"], 1e-30)
      list[#list + 1] = { name = name, error = difference(got[name], w) / floor }
    end
  end
  for name in pairs(got) do
    if not want[name] then list[#list + 1] = { name = name, error = math.huge, note = "not in the file" } end
  end
  table.sort(list, function(a, b) return a.error > b.error or (a.error == b.error and a.name < b.name) end)
  return list
end

-- ---- what a file holds ----

-- Tensors below a prefix, as leaves.
local function below(file, prefix, grad)
  local part = {}
  for name, t in pairs(file) do
    if name:sub(1, #prefix) == prefix then
      local leaf = tensor.new { shape = t:shape(), dtype = t:dtype(), grad = grad and t:dtype() == "f32" }
      part[name:sub(#prefix + 1)] = leaf:copy(t)
    end
  end
  return part
end

local function flags(t)
  local done, from = tensor.new { shape = t:shape(), dtype = "u8" }, t:data()
  local p = done:data()
  for i = 0, done:size() - 1 do
    if from[i] ~= 0 and from[i] ~= 1 then errors.fail(("done[%d] is %g, expected 0 or 1"):format(i, from[i])) end
    p[i] = from[i]
  end
  return done
end

local function need(file, name)
  if not file[name] then errors.fail("the file has no " .. name) end
  return file[name]
end

-- A number that the config must have.
local function setting(config, key)
  if type(config[key]) ~= "number" then errors.fail(("config.%s is %s, expected a number"):format(key, json.encode(config[key] or json.null))) end
  return config[key]
end

-- ---- runners: one for each kind of file; results as name -> numbers ----

local function gradients(got, prefix, named)
  for name, t in pairs(named) do got[prefix .. name] = grad_of(t) end
end

local function run_core(name, config, file)
  local c = core.new(name, config, true)
  c:load_state_dict(below(file, "param."))
  local given = below(file, "state.")
  if states.mirrors_differ(c, given) then c.store_all_channels() end
  local state = states.fold(c, given, true)
  local x = tensor.new { shape = need(file, "input.x"):shape(), grad = true }:copy(file["input.x"])
  local y, final = c(x, flags(need(file, "input.done")), state)
  local got = { ["output.y"] = value_of(y) }
  for key, t in pairs(states.unfold(c, final, "value")) do got["final." .. key] = t end
  ops.sum { x = ops.mul(y, need(file, "cotangent.y")) }:backward()
  gradients(got, "grad.param.", c:state_dict())
  got["grad.input.x"] = grad_of(x)
  for key, t in pairs(states.unfold(c, state, "gradient")) do got["grad.state." .. key] = t end
  return got
end

local function a2c_results(config, logits, values, file, got, append)
  local returns, advantages = ops.lambda_returns { rewards = need(file, "input.rewards"), values = values,
    done = flags(need(file, "input.done")), gamma = setting(config, "gamma"), lambda = setting(config, "lambda") }
  local loss, actor, value, entropy = ops.a2c_loss { logits = logits, values = values, returns = returns,
    actions = need(file, "input.actions"), entropy_coef = setting(config, "entropy_coef"),
    value_coef = setting(config, "value_coef") }
  loss:backward()
  for name, t in pairs { loss = loss, actor_loss = actor, value_loss = value, entropy = entropy } do
    local key = "output." .. name
    got[key] = got[key] or { shape = { 0 }, values = {} }
    got[key].values[#got[key].values + 1] = t:item()
    got[key].shape[1] = got[key].shape[1] + 1
  end
  if not append then
    got["output.returns"] = value_of(returns)
    if file["output.advantages"] then got["output.advantages"] = value_of(advantages) end
  end
end

local function adam_of(list, config)
  local options = {}
  for _, key in ipairs { "lr", "beta1", "beta2", "eps", "max_norm" } do options[key] = setting(config, key) end
  return optim.adam(list, options)
end

local learn = {}

function learn.a2c(config, file)
  local got = {}
  local leaf = below(file, "input.", true)
  a2c_results(config, leaf.logits, leaf.values, file, got)
  gradients(got, "grad.input.", { logits = leaf.logits, values = leaf.values })
  return got
end

function learn.adam(config, file)
  local got, parameters, names, list = {}, below(file, "param.", true), {}, {}
  for name in pairs(parameters) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = parameters[name] end
  local adam = adam_of(list, config)
  local norms = {}
  for step = 1, setting(config, "steps") do
    for i, name in ipairs(names) do
      local g = need(file, "input.grad" .. step .. "." .. name)
      ffi.copy(list[i]:grad_data(), g:data(), g:size() * 4)
    end
    adam:step()
    norms[step] = adam:grad_norm()
    for i, name in ipairs(names) do got["output.step" .. step .. "." .. name] = value_of(list[i]) end
  end
  for i, name in ipairs(names) do got["final.m." .. name], got["final.v." .. name] = value_of(adam.m[i]), value_of(adam.v[i]) end
  got["output.norm"] = { shape = { #norms }, values = norms }
  return got
end

function learn.a2c_train(config, file)
  if type(config.core_config) ~= "table" then errors.fail "config.core_config is no object" end
  local c = core.new(config.core, config.core_config, true)
  local wide = need(file, "param.actor.0.weight"):shape()
  local heads = nn.heads(c.d_out, wide[1], need(file, "param.actor.1.weight"):shape()[1])
  local agent = nn.container { { "core", c.module }, heads.children[1], heads.children[2] }
  local named = {}
  agent:each(function(name, t) named[name:gsub("^core%.", "")] = t end)
  local given, renamed = below(file, "param."), {}
  for name, t in pairs(given) do renamed[name:match "^actor%." and name or name:match "^critic%." and name or "core." .. name] = t end
  agent:load_state_dict(renamed)
  local adam = adam_of(agent:parameters(), config)
  local got, start = {}, below(file, "state.")
  if states.mirrors_differ(c, start) then c.store_all_channels() end
  for update = 1, setting(config, "updates") do
    adam:zero_grad()
    local y, final = c(need(file, "input.x"), flags(need(file, "input.done")), states.fold(c, start))
    local logits, values = heads(y)
    a2c_results(config, logits, values, file, got, update > 1)
    if update == 1 then
      got["output.logits"], got["output.values"] = value_of(logits), value_of(values)
      gradients(got, "grad.param.", named)
      for key, t in pairs(states.unfold(c, final, "value")) do got["final." .. key] = t end
    end
    adam:step()
    if update == 1 then got["output.norm"] = { shape = { 1 }, values = { adam:grad_norm() } } end
    for name, t in pairs(named) do got["output.step" .. update .. "." .. name] = value_of(t) end
    tensor.sweep()
  end
  return got
end

-- ---- the command ----

---Compare one fixture with what this engine computes.
---@param path string
---@return table { ok, worst = { name, error, note }, tolerance, core, list }
local function check(path)
  local file = safetensors.load(path)
  local meta = file.metadata
  if meta.format ~= "mneme-fixture-1" then
    errors.fail(("%s: format '%s', expected mneme-fixture-1"):format(path, tostring(meta.format)))
  end
  local tolerance = tonumber(meta.tolerance)
  if not meta.core or not meta.config or not tolerance then errors.fail(path .. ": the metadata lacks core, config or tolerance") end
  local config, problem = json.decode(meta.config, path .. ": config")
  if problem then errors.fail(problem) end
  if type(config) ~= "table" or config == json.null or json.is_array(config) then errors.fail(path .. ": config is no JSON object") end
  tensor.sweep()
  local name = meta.core:match "^learn%.(.+)$"
  local got
  if name then
    if not learn[name] then errors.unknown("core", meta.core, { "learn.a2c", "learn.adam", "learn.a2c_train" }) end
    got = learn[name](config, file.tensors)
  else
    got = run_core(meta.core, config, file.tensors)
  end
  local list = compare(got, file.tensors)
  tensor.sweep()
  if #list == 0 then errors.fail(path .. ": there is nothing to compare") end
  return { ok = list[1].error <= tolerance, worst = list[1], tolerance = tolerance, core = meta.core, list = list }
end

---`mneme check FILE ...`: one line a file; exit status 0, 1 (wrong, damaged) or 2 (not known here).
---@param paths string[]
---@return integer status
local function main(paths)
  if #paths == 0 then errors.usage("check: which file?", "mneme check FILE.safetensors ...") end
  local status = 0
  for _, path in ipairs(paths) do
    local ok, result = xpcall(check, errors.handler, path)
    if not ok then
      io.stderr:write(("%s: error: %s%s\n"):format(path, result.message, result.hint and " (" .. result.hint .. ")" or ""))
      status = math.max(status, result.status)
    else
      print(("%-9s %s  %s: worst %.2e at %s%s, tolerance %g"):format(result.ok and "ok" or "MISMATCH", path, result.core,
        result.worst.error, result.worst.name, result.worst.note and " (" .. result.worst.note .. ")" or "", result.tolerance))
      if not result.ok then status = math.max(status, 1) end
    end
  end
  return status
end

return { check = check, main = main }
