-- encoder.lua -- a stack of layers that read a whole sequence at once, with any attention of lua/mneme/attentions:
--   local enc = mn.encoder { attention = "linformer", k = 64, vocab = 16, positions = "learned", max_len = 512,
--                            d_model = 64, n_heads = 2, d_head = 32, d_ffn = 128, n_layers = 2 }
--   local y = enc(tokens)                              -- tokens [B,N] i32 -> y [B,N,d_model]
--   local logits = head(y:mean { axis = 1 })           -- to classify the sequence
-- Settings of the attention are given next to those of the encoder.  Parameters are named as in torch: embed.weight,
-- positions [max_len,d], layers.N.attn.{q,k,v,out}, what the attention adds (layers.N.attn.e, .q_global, ...), norm1, norm2, ffn.
local encoder_attention = require "mneme.models.encoder_attention"
local block = require "mneme.models.block"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local nn = require "mneme.tensor.nn"
local parameter = require("mneme.tensor.random").parameters.new
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local encoder = {}

---Settings of every encoder.  vocab > 0: x is a tensor of tokens [B,N]; d_in > 0: x is [B,N,d_in] and is
---projected; neither: x is [B,N,d_model].  max_len bounds N where positions or the attention need a bound.
encoder.config = {
  attention = "softmax", d_model = 64, n_heads = 2, d_head = 32, d_ffn = 128, n_layers = 2, max_len = 512,
  flow = "postnorm", ln_eps = 1e-5, vocab = 0, d_in = 0, positions = "none",
}

local choices = {
  flow = { gtrxl = true, residual = true, postnorm = true },
  positions = { none = true, learned = true, sinusoid = true },
}
local least = { vocab = 0, d_in = 0 }

local function bad(...) errors.raise("encoder: " .. string.format(...), { status = 2 }) end

-- The encoder's own settings, and what is left for the attention.
local function configure(given)
  if type(given) ~= "table" then bad("expected { attention = \"linformer\", d_model = 64, ... }") end
  local cfg, rest = tables.merged(encoder.config), {}
  local inner = encoder_attention.definition(given.attention or cfg.attention)
  for key, value in pairs(given) do
    local default = encoder.config[key]
    if default ~= nil then
      if type(value) ~= type(default) then bad("%s = %s, expected a %s", key, tostring(value), type(default)) end
      if type(value) == "number" and key ~= "ln_eps" then errors.whole("encoder", key .. " =", value, least[key] or 1) end
      cfg[key] = value
    elseif inner.config[key] == nil and key ~= "causal" then
      errors.unknown("key of an encoder", key, tables.keys(tables.merged(encoder.config, inner.config)))
    end
    if inner.config[key] ~= nil or key == "causal" then rest[key] = value end
  end
  for key, list in pairs(choices) do
    if not list[cfg[key]] then errors.unknown(key .. " =", cfg[key], tables.keys(list)) end
  end
  if cfg.vocab > 0 and cfg.d_in > 0 then bad("vocab = %d and d_in = %d, expected one of them", cfg.vocab, cfg.d_in) end
  return cfg, rest
end

-- One layer's attention: projections of x [B,N,d], those of the attention's extras too, and back.
local function layer_attention(cfg, settings)
  local H, D, d = cfg.n_heads, cfg.d_head, cfg.d_model
  local sizes = { H = H, D = D, N = cfg.max_len }
  local inner = encoder_attention.new(cfg.attention, settings, sizes)
  local children, extra = {}, {}
  local function add(name, n)
    local m = nn.linear(d, H * n)
    children[#children + 1] = { name, m }
    return function(x)
      local s = x:shape()
      return ops.transpose(ops.reshape(m(x), { d0 = s[1], d1 = s[2], d2 = H, d3 = n }), { a = 1, b = 2 })
    end
  end
  local q, k, v = add("q", D), add("k", D), add("v", D)
  for _, e in ipairs(encoder_attention.extras(cfg.attention, encoder_attention.configure(cfg.attention, settings), sizes)) do
    extra[e[1]] = add(e[1], e[2])
  end
  local out = nn.linear(H * D, d, { act = block.closing(cfg.flow) })
  children[#children + 1] = { "out", out }
  for _, child in ipairs(inner.children) do children[#children + 1] = child end
  return nn.module({ leaves = inner.leaves, named = inner.named, children = children }, function(_, x)
    local s, extras = x:shape(), tables.each(extra, function(project) return project(x) end)
    local y = ops.transpose(inner(q(x), k(x), v(x), extras), { a = 1, b = 2 })
    return out(ops.reshape(y, { d0 = s[1], d1 = s[2], d2 = H * D }))
  end)
end

-- sin and cos of position * 10000^(-2i/d) (Vaswani et al. 2017, section 3.5), sines first.
local function sinusoids(N, d)
  local t = tensor.new { shape = { N, d } }
  for n = 0, N - 1 do
    for i = 0, d - 1 do
      local half = math.ceil(d / 2)
      local angle = n * 10000 ^ (-2 * (i % half) / d)
      t:data()[n * d + i] = i < half and math.sin(angle) or math.cos(angle)
    end
  end
  return t
end

local function positions(cfg)
  if cfg.positions == "sinusoid" then return sinusoids(cfg.max_len, cfg.d_model) end
  if cfg.positions == "none" then return nil end
  return parameter({ cfg.max_len, cfg.d_model }, nn.init.lecun_normal())
end

-- What x must look like.
local function check(cfg, x)
  local want = cfg.vocab > 0 and "[B,N]" or ("[B,N,%d]"):format(cfg.d_in > 0 and cfg.d_in or cfg.d_model)
  if not tensor.is(x) then errors.raise(("encoder: x is %s, expected a tensor %s"):format(tostring(x), want)) end
  local s = x:shape()
  if #s ~= (cfg.vocab > 0 and 2 or 3) or (#s == 3 and s[3] ~= (cfg.d_in > 0 and cfg.d_in or cfg.d_model)) then
    errors.raise(("encoder: x is [%s], expected %s"):format(table.concat(s, ","), want))
  end
  if cfg.positions ~= "none" and s[2] > cfg.max_len then
    errors.raise(("encoder: x has %d tokens, expected at most max_len = %d"):format(s[2], cfg.max_len))
  end
  return s[2]
end

---Build an encoder; see the top of this file, and `mneme help attentions` for the attentions and their settings.
---@param given table
---@return Module enc(x) -> y [B,N,d_model]; enc.config, enc.d_out
function encoder.new(given)
  local cfg, settings = configure(given)
  local children, named, layers, embed = {}, {}, {}, nil
  if cfg.vocab > 0 then
    embed = nn.embedding(cfg.vocab, cfg.d_model, nn.init.lecun_normal())
  elseif cfg.d_in > 0 then embed = nn.linear(cfg.d_in, cfg.d_model) end
  if embed then children[1] = { "embed", embed } end
  local table_of = positions(cfg)
  if cfg.positions == "learned" then named[1] = { "positions", table_of } end
  for n = 0, cfg.n_layers - 1 do layers[n + 1] = { tostring(n), block.new(cfg, layer_attention(cfg, settings)) } end
  children[#children + 1] = { "layers", nn.container(layers) }
  local m = nn.module({ children = children, named = named }, function(_, x)
    local N = check(cfg, x)
    local e = embed and embed(x) or x
    if table_of then e = e + (N < cfg.max_len and ops.slice { x = table_of, axis = 0, from = 0, to = N } or table_of) end
    for _, layer in ipairs(layers) do e = layer[2](e) end
    return e
  end)
  m.config, m.d_out = tables.merged(encoder_attention.configure(cfg.attention, settings), cfg), cfg.d_model
  return m
end

return encoder
