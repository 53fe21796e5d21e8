-- encoder_attention.lua -- attention over a whole sequence at once, for encoders: y = attention(q, k, v), built by name from
-- lua/mneme/attentions/NAME.lua (then ./attentions).  Such a file returns
--   doc, source   one line, and where it is from
--   config        its settings and their defaults; with `causal` among them where it has a causal form;  about  what they mean, as for mn.config
--   causal        if it has none: the reason, as the end of a sentence
--   extras        function(cfg) -> { { name, elements per head } ... }: inputs besides q, k, v that come from the tokens
--   build         function(cfg, sizes) -> a module called as m(q, k, v, extras), all [B,H,N,dh] -> y [B,H,N,dh];
--                 sizes = { H = heads, D = elements per head, N = most tokens }
-- The names of settings, parameters and extras are those of the fixtures.
local errors = require "mneme.base.errors"
local contract_rig = require("mneme.base.lazy") "mneme.models.contract_rig"
local registry = require "mneme.base.registry"
local setting_types = require "mneme.base.setting_types"
local tables = require "mneme.base.tables"
local module = require "mneme.tensor.module"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local attention = {}

local definitions = {}

---The definition of an attention by name.
function attention.definition(name)
  definitions[name] = definitions[name] or registry.definition("attentions", name, "an attention", "causal:string extras:function check:function")
  return definitions[name]
end

-- Whole numbers of at least 1, and of at least 0.
local counts = { k = 1, landmarks = 1, iterations = 1, conv_kernel = 0, window = 1, globals = 0, dilation = 1, block = 1,
                 random_blocks = 0, chunk = 1, rho = 1, m = 1 }

---All settings of an attention: its defaults and what was given.
---@param given table?
---@param ignore_unknown boolean? for files that list keys which do not apply
function attention.configure(name, given, ignore_unknown)
  local d = attention.definition(name)
  local cfg = tables.merged(d.config)
  for key, value in pairs(given or {}) do
    local default, least = d.config[key], counts[key]
    if key == "causal" and default == nil and value == true then
      errors.raise(("attention %s has no causal form%s"):format(name, d.causal and ": " .. d.causal or ""), { status = 2 })
    elseif default == nil then
      if not (ignore_unknown or key == "causal") then errors.unknown("key of attention " .. name, key, tables.keys(d.config)) end
    elseif type(value) ~= type(default) then
      errors.raise(("attention %s: %s = %s, expected a %s"):format(name, key, tostring(value), type(default)), { status = 2 })
    else cfg[key] = least and errors.whole("attention " .. name, key .. " =", value, least) or value end
    setting_types.check(("attention %s: %s"):format(name, key), value, d.about[key] or {})
  end
  if d.check then d.check(cfg) end
  return cfg
end

---Its inputs besides q, k and v, { name, elements per head } each.
function attention.extras(name, cfg, sizes)
  local d = attention.definition(name)
  local list = d.extras and errors.call(d.extras, cfg, sizes) or {}
  for _, extra in ipairs(type(list) == "table" and list or { list }) do
    local elements = type(extra) == "table" and type(extra[1]) == "string" and extra[2]
    if type(elements) ~= "number" or elements < 1 or elements % 1 ~= 0 then
      errors.raise(("attention %s: extras gave %s, expected { { NAME, elements per head } ... }"):format(name, tables.in_words(extra)),
        { where = errors.position_of(d.extras) })
    end
  end
  return list
end

-- Of a user's own attention: sequences of a batch are apart, and with causal=true no token sees a later one.  One that draws is not compared.
local function check_own(m, name, cfg, sizes, wanted, where)
  local H, N, given, extras = sizes.H, sizes.N, {}, {}
  local function normal(D) given[#given + 1] = contract_rig.normal({ 2, H, N, D }, #given + 1) return given[#given] end
  local q, k, v = normal(sizes.D), normal(sizes.D), normal(sizes.D)
  for _, extra in ipairs(wanted) do extras[extra[1]] = normal(extra[2]) end
  local function run() return tensor.no_grad(function() return tensor.keep(m(q, k, v, extras)) end) end
  local function apart(a, b, rows)              -- of the first sequence
    for h = 0, H - 1 do
      for i = h * N * sizes.D, (h * N + rows) * sizes.D - 1 do if not (math.abs(a:data()[i] - b:data()[i]) < 1e-4) then return true end end
    end
  end
  local before = run()
  if apart(run(), before, N) then return end
  for _, t in ipairs(given) do for i = t:size() / 2, t:size() - 1 do t:data()[i] = 0.5 end end
  if apart(run(), before, N) then errors.raise(("attention %s: one sequence of a batch changes another"):format(name), { where = where }) end
  for _, t in ipairs(cfg.causal and given or {}) do
    local D = t:shape()[4]
    for h = 1, H do for i = (h * N - 1) * D, h * N * D - 1 do t:data()[i] = 0.5 end end
  end
  if apart(run(), before, N - 1) then errors.raise(("attention %s: causal = true, but a token changes an earlier one"):format(name), { where = where }) end
end

---Build an attention: attention.new("linformer", { k = 32 }, { H = 4, D = 64, N = 512 }).
---@param cfg table its settings
---@param sizes { H: integer, D: integer, N: integer }
---@return Module m(q, k, v, extras), all [B,H,N,dh]; extras by name
function attention.new(name, cfg, sizes, ignore_unknown)
  cfg = attention.configure(name, cfg, ignore_unknown)
  local d = attention.definition(name)
  local inner = module.need(("attention %s: what build gave"):format(name), errors.call(d.build, cfg, sizes), d.build)
  local wanted = attention.extras(name, cfg, sizes)
  local function check(what, t, shape, where)
    if not tensor.is(t) then errors.raise(("attention %s: %s is %s, expected a tensor"):format(name, what, tostring(t)), { where = where }) end
    local got = table.concat(t:shape(), ",")
    if got ~= shape then errors.raise(("attention %s: %s is [%s], expected [%s]"):format(name, what, got, shape), { where = where }) end
  end
  local leaves, named, children = module.members(inner)
  local m = nn.module({ leaves = leaves, named = named, children = children }, function(_, q, k, v, extras)
    if not tensor.is(q) then errors.raise(("attention %s: q is %s, expected a tensor [B,H,N,dh]"):format(name, tostring(q))) end
    local s = q:shape()
    if #s ~= 4 or s[2] ~= sizes.H or s[4] ~= sizes.D then
      errors.raise(("attention %s: q is [%s], expected [B,%d,N,%d]"):format(name, table.concat(s, ","), sizes.H, sizes.D))
    end
    check("k", k, table.concat(s, ","))
    check("v", v, table.concat(s, ","))
    for _, extra in ipairs(wanted) do
      check(extra[1], (extras or {})[extra[1]], ("%d,%d,%d,%d"):format(s[1], s[2], s[3], extra[2]))
    end
    local y = inner(q, k, v, extras)
    check("what it gave", y, table.concat(s, ","), errors.position_of(d.build))
    return y
  end)
  if not registry.is_ours("attentions", name) then check_own(m, name, cfg, sizes, wanted, errors.position_of(d.build)) end
  return m
end

-- ---- what several of them need ----

---A module without parameters.
function attention.plain(f) return nn.module({}, function(_, ...) return f(...) end) end

---x [B,H,N,D] with time first, [N,B,H,D], as recurrent ops want it; and back.
function attention.by_time(x) return ops.transpose(ops.transpose(x, { a = 0, b = 2 }), { a = 1, b = 2 }) end
function attention.by_copy(x) return ops.transpose(ops.transpose(x, { a = 1, b = 2 }), { a = 0, b = 2 }) end

function attention.turned(x) return ops.transpose(x, { a = -1, b = -2 }) end

---Ranges of keys for sparse_attention: rows[g][p][r] = { from, count, step }; missing ones see nothing.
---@return Tensor i32 [G,P,R,3]
function attention.ranges(rows)
  local G, P, R = #rows, #rows[1], 1
  for _, group in ipairs(rows) do for _, row in ipairs(group) do R = math.max(R, #row) end end
  local t = tensor.new { shape = { G, P, R, 3 }, dtype = "i32" }
  local p = t:data()
  for _, group in ipairs(rows) do
    for _, row in ipairs(group) do
      for r = 1, R do
        local range = row[r] or { 0, 0, 1 }
        p[0], p[1], p[2] = range[1], range[2], range[3] or 1
        p = p + 3
      end
    end
  end
  return t
end

---f(N) once for every N: what depends on the length of the sequence alone.
function attention.by_length(f)
  local made = {}
  return function(N)
    made[N] = made[N] or f(N)
    return made[N]
  end
end

---Random features [H,m,D] of each head, not trained: orthogonal in blocks of D rows, with rows of length `length`
---(Choromanski et al. 2021, section 2.4).
function attention.random_features(H, m, D, length)
  local w = tensor.new { shape = { H, m, D } }
  local fill = nn.init.orthogonal(length)
  for h = 0, H - 1 do
    for row = 0, m - 1, D do fill(w:data() + (h * m + row) * D, math.min(D, m - row), D) end
  end
  return w
end

return attention
