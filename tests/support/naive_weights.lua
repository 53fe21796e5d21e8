-- naive_weights.lua -- what softmax memories give to each past step, from their definitions and in doubles: for every core
-- that attends, f(run, t, b, layer, head) -> keys { back, steps, score }, whose softmax are the weights.  `run` is what
-- test_implicit_attention.lua saw of a life: run.steps[t] (from 0) = { probes = name -> copy -> [H][n], row, start = by copy,
-- mem = by copy }, run.cfg, run.p = parameters as lists.
local naive = {}

local function dot(a, b)
  local sum = 0
  for i = 1, #b do sum = sum + a[i] * b[i] end
  return sum
end

local function plus(a, b)
  local sum = {}
  for i = 1, #a do sum[i] = a[i] + b[i] end
  return sum
end

-- What was probed in a layer at a step, of a head.
local function at(run, t, b, layer, kind, head) return run.steps[t].probes["layers." .. layer .. "." .. kind][b][head + 1] end

-- Rows from, from+1, ... of a parameter [rows,cols] times x.
local function product(p, cols, x, from, rows)
  local y = {}
  for r = 0, rows - 1 do
    local sum = 0
    for i = 1, cols do sum = sum + p[(from + r) * cols + i] * x[i] end
    y[r + 1] = sum
  end
  return y
end

local function normalised(x, weight, bias, eps)
  local mean, var, y = 0, 0, {}
  for i = 1, #x do mean = mean + x[i] / #x end
  for i = 1, #x do var = var + (x[i] - mean) ^ 2 / #x end
  for i = 1, #x do y[i] = (x[i] - mean) / math.sqrt(var + eps) * weight[i] + bias[i] end
  return y
end

-- The keys of single steps that sees(j) lets through, from step `from` on.
local function steps_seen(run, t, b, layer, head, from, sees, suffix)
  local q, list = at(run, t, b, layer, "q" .. (suffix or ""), head), {}
  for j = from, t do
    if sees(j) then
      list[#list + 1] = { t - j, 1, dot(q, at(run, j, b, layer, "k" .. (suffix or ""), head)) / math.sqrt(#q) }
    end
  end
  return list
end

local function all() return true end

function naive.transformer(run, t, b, layer, head)
  return steps_seen(run, t, b, layer, head, math.max(run.steps[t].start[b], t - run.cfg.memory), all)
end

-- Dai et al. 2019, section 3.3: (q+u).k + (q+v).r of the distance.
function naive.gtrxl(run, t, b, layer, head)
  local cfg, step, p, list = run.cfg, run.steps[t], run.p, {}
  local K, d, q = cfg.d_head, cfg.d_model, at(run, t, b, layer, "q", head)
  local function own(name)
    local part = {}
    for i = 1, K do part[i] = p[name][head * K + i] end
    return part
  end
  local qu, qv = plus(q, own "u"), plus(q, own "v")
  for j = math.max(step.start[b], t - (cfg.sees == "rollout" and step.row or 0) - cfg.memory), t do
    local place = {}
    for i = 0, d / 2 - 1 do
      local angle = (t - j) * 10000 ^ (-2 * i / d)
      place[i + 1], place[d / 2 + i + 1] = math.sin(angle), math.cos(angle)
    end
    local r = product(p["layers." .. layer .. ".attn.pos.weight"], d, place, head * K, K)
    list[#list + 1] = { t - j, 1, (dot(qu, at(run, j, b, layer, "k", head)) + dot(qv, r)) / math.sqrt(K) }
  end
  return list
end

function naive.longformer(run, t, b, layer, head)
  local cfg, start = run.cfg, run.steps[t].start[b]
  if t - start < cfg.globals then return steps_seen(run, t, b, layer, head, start, all, "_global") end
  return steps_seen(run, t, b, layer, head, start, function(j)
    return j - start < cfg.globals or (t - j) % cfg.dilation == 0 and t - j < cfg.window * cfg.dilation
  end)
end

local function listed(list, x)
  for _, one in ipairs(list) do if one == x then return true end end
  return false
end

function naive.bigbird(run, t, b, layer, head)
  local cfg, start = run.cfg, run.steps[t].start[b]
  start = start + math.floor((t - start) / cfg.context) * cfg.context
  local function block(j) return math.floor((j - start) / cfg.block) end
  local mine = block(t)
  return steps_seen(run, t, b, layer, head, start, function(j)
    local its = block(j)
    return mine - its <= 1 or listed(cfg.global_blocks, mine) or listed(cfg.global_blocks, its)
      or listed(cfg.random[head + 1][mine + 1], its)
  end)
end

-- Key r of the chunk that begins at step `from`, over all heads: LN_s of the tokens' keys mixed by softmax of p.
local function compressed(run, from, b, layer, r)
  local cfg, mixed = run.cfg, {}
  for h = 0, cfg.n_heads - 1 do
    local sum, key = 0, {}
    for j = from, from + cfg.chunk - 1 do
      local w, k = math.exp(at(run, j, b, layer, "p", h)[r]), at(run, j, b, layer, "k", h)
      sum = sum + w
      for i = 1, #k do key[i] = (key[i] or 0) + w * k[i] end
    end
    for i = 1, #key do mixed[#mixed + 1] = key[i] / sum end
  end
  local norm = "layers." .. layer .. ".attn.ln_s."
  return normalised(mixed, run.p[norm .. "weight"], run.p[norm .. "bias"], cfg.ln_eps)
end

function naive.longshort(run, t, b, layer, head)
  local cfg, start = run.cfg, run.steps[t].start[b]
  local K, q = cfg.d_head, at(run, t, b, layer, "q", head)
  local list = steps_seen(run, t, b, layer, head, math.max(start, t - cfg.window + 1), all)
  local full = math.floor((t - start) / cfg.chunk)
  for u = math.max(0, full - cfg.context / cfg.chunk), full - 1 do
    local from = start + u * cfg.chunk
    for r = 1, cfg.rho do
      local key = { unpack(compressed(run, from, b, layer, r), head * K + 1, head * K + K) }
      list[#list + 1] = { t - from - cfg.chunk + 1, cfg.chunk, dot(q, key) / math.sqrt(K) }
    end
  end
  return list
end

-- ---- a segment of rmt, flow=residual, layer by layer ----

local function relu(x)
  for i = 1, #x do x[i] = math.max(0, x[i]) end
  return x
end

-- The weights [head][row][seen] of a layer, and its rows after it.  Row i of the M read rows sees those, others all before.
local function layer_of(run, layer, rows)
  local cfg, p, prefix = run.cfg, run.p, "layers." .. layer .. "."
  local d, K, M, A = cfg.d_model, cfg.d_head, cfg.mem_slots, cfg.n_heads * cfg.d_head
  local q, k, v, weights, after = {}, {}, {}, {}, {}
  local function dense(name, x, rows_out) return plus(product(p[prefix .. name .. ".weight"], #x, x, 0, rows_out), p[prefix .. name .. ".bias"]) end
  local function norm(which, x) return normalised(x, p[prefix .. which .. ".weight"], p[prefix .. which .. ".bias"], cfg.ln_eps) end
  for i, x in ipairs(rows) do
    local z = norm("norm1", x)
    q[i], k[i], v[i] = dense("attn.q", z, A), dense("attn.k", z, A), dense("attn.v", z, A)
  end
  for i, x in ipairs(rows) do
    local read = {}
    for h = 0, cfg.n_heads - 1 do
      local scores, sum, mine = {}, 0, { unpack(q[i], h * K + 1, h * K + K) }
      for j = 1, i <= M and M or i do
        scores[j] = dot(mine, { unpack(k[j], h * K + 1, h * K + K) }) / math.sqrt(K)
        sum = sum + math.exp(scores[j])
      end
      weights[h + 1] = weights[h + 1] or {}
      weights[h + 1][i] = scores
      for c = 1, K do
        read[h * K + c] = 0
        for j = 1, #scores do read[h * K + c] = read[h * K + c] + math.exp(scores[j]) / sum * v[j][h * K + c] end
      end
    end
    local half = plus(x, relu(dense("attn.out", read, d)))
    after[i] = plus(half, relu(dense("ffn.1", relu(dense("ffn.0", norm("norm2", half), cfg.d_ffn)), d)))
  end
  return weights, after
end

-- A segment begins with an episode, with a call (row 0), and after `segment` tokens; acting without the rollout, every step is one.
local function segment_start(run, t, b)
  if run.cfg.sees == "memory" then return t end
  local first = math.max(run.steps[t].start[b], t - run.steps[t].row)
  return first + math.floor((t - first) / run.cfg.segment) * run.cfg.segment
end

function naive.rmt(run, t, b, layer, head)
  local cfg, from, rows = run.cfg, segment_start(run, t, b), {}
  local mem = run.steps[t].start[b] == from and run.p.mem0 or run.steps[from - 1].mem[b]
  for m = 0, cfg.mem_slots - 1 do rows[m + 1] = { unpack(mem, m * cfg.d_model + 1, (m + 1) * cfg.d_model) } end
  for j = from, t do rows[#rows + 1] = run.steps[j].probes.embed[b] end
  local weights, list = nil, {}
  for n = 0, layer do weights, rows = layer_of(run, n, rows) end
  local scores = weights[head + 1][#rows]
  for j = 1, #scores do
    local memory = j <= cfg.mem_slots
    list[j] = { memory and 0 or #scores - j, memory and 0 or 1, scores[j] }
  end
  return list
end

return naive
