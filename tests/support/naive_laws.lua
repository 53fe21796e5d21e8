-- naive_laws.lua -- the laws of recurrent ops, token by token in double precision, as slow and as plain as their equations: what the tests of
-- engine/ops compare with.  A new recurrent op has its law here, or where `elsewhere` says.
local ffi = require "ffi"

local naive_laws = {}

-- op = the test file that holds its law.
naive_laws.elsewhere = {
  linear_attention = "support/gated_recurrence.lua", joint_gate_attention = "support/gated_recurrence.lua", agalite = "support/gated_recurrence.lua",
  gated_scan = "engine/test_scans.lua", complex_scan = "engine/test_scans.lua", log_scan = "engine/test_scans.lua",
  running_max = "engine/test_scans.lua", low_rank_attention = "models/test_approximations.lua", short_conv = "engine/test_delta.lua",
  token_shift = "engine/test_rwkv.lua", rmt = "reference/rmt.py",
  frame_stack = "engine/test_op_values.lua", rotary = "models/test_feature_maps.lua",
}

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
local function tanh(x) return 2 * sigmoid(2 * x) - 1 end

-- Walks time; step(pre, h, c) changes a row's state in place: pre[g*D + d] is the input's part of gate g and w_g h.
local function gated(a, gates, step)
  local T, B, D = a.i:shape()[1], a.i:shape()[2], a.w:shape()[2]
  local y, i, w, h, c, pre = ffi.new("double[?]", T * B * D), a.i:data(), a.w:data(), {}, {}, {}
  for b = 0, B - 1 do
    for d = 0, D - 1 do h[d], c[d] = a.h:data()[b * D + d], a.c and a.c:data()[b * D + d] end
    for now = 0, T - 1 do
      local row = now * B + b
      if a.done:data()[row] == 1 then for d = 0, D - 1 do h[d], c[d] = 0, 0 end end
      for g = 0, gates * D - 1 do
        pre[g] = 0
        for d = 0, D - 1 do pre[g] = pre[g] + w[g * D + d] * h[d] end
      end
      step(i + row * gates * D, pre, h, c, D)
      for d = 0, D - 1 do y[row * D + d] = h[d] end
    end
  end
  return y
end

-- r = s(i_r + w_r h), z = s(i_z + w_z h), n = tanh(i_n + r (w_n h + bias)), h' = (1 - z) n + z h
function naive_laws.gru(a)
  return gated(a, 3, function(i, pre, h, _, D)
    for d = 0, D - 1 do
      local r, z = sigmoid(i[d] + pre[d]), sigmoid(i[D + d] + pre[D + d])
      h[d] = (1 - z) * tanh(i[2 * D + d] + r * (pre[2 * D + d] + a.bias:data()[d])) + z * h[d]
    end
  end)
end

-- c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c'), each of i, f, g, o the input's part and w h
function naive_laws.lstm(a)
  return gated(a, 4, function(i, pre, h, c, D)
    for d = 0, D - 1 do
      local function at(g) return i[g * D + d] + pre[g * D + d] end
      c[d] = sigmoid(at(1)) * c[d] + sigmoid(at(0)) * tanh(at(2))
      h[d] = sigmoid(at(3)) * tanh(c[d])
    end
  end)
end

-- delta_rule:  u = write (v - e C k),  C = keep C + u k^T,  s = keep s + write k,  y = C q / den.  Of several keys a step, sizes[6], the first
-- forgets, and y is read after the last.
function naive_laws.delta_rule(n, sizes, done, how)
  local T, B, H, K, V = unpack(sizes)
  local keys = sizes[6] or 1
  local y, C, s = {}, {}, {}
  for i = 0, B * H * V * K - 1 do C[i] = n.C[i] end
  for i = 0, B * H * K - 1 do s[i] = n.s[i] end
  for token = 0, T * B * H * keys - 1 do
    local key, step, bh = token % keys, math.floor(token / (keys * B * H)), math.floor(token / keys) % (B * H)
    local b, h = math.floor(bh / H), bh % H
    local at, of_key = step * B * H + bh, ((step * B + b) * keys + key) * H + h
    local fresh = key == 0 and done and done:data()[step * B + b] == 1
    local keep, write, z = key == 0 and n.keep[at] or 1, n.write[of_key], 0
    for j = 0, K - 1 do
      local m = bh * K + j
      s[m] = (fresh and 0 or keep * s[m]) + write * n.k[of_key * K + j]
      z = z + s[m] * n.q[at * K + j]
    end
    for i = 0, V - 1 do
      local row, old, out = (bh * V + i) * K, 0, 0
      for j = 0, K - 1 do
        if fresh then C[row + j] = 0 end
        old = old + C[row + j] * n.k[of_key * K + j]
      end
      local u = write * (n.v[of_key * V + i] - (how.erase == "after" and keep or 1) * old)
      for j = 0, K - 1 do
        C[row + j] = keep * C[row + j] + u * n.k[of_key * K + j]
        out = out + C[row + j] * n.q[at * K + j]
      end
      if key == keys - 1 then y[at * V + i] = how.normalise and out / (z + how.eps) or out end
    end
  end
  return y, C, s
end

-- wkv4 by its definition: weights of all earlier steps of the episode, relative to the largest exponent.
function naive_laws.wkv4(a, T, B, D)
  local y, k, v = ffi.new("double[?]", T * B * D), a.k:data(), a.v:data()
  for b = 0, B - 1 do
    for d = 0, D - 1 do
      local w, first, begin = -math.exp(a.decay:data()[d]), a.first:data()[d], 0
      for now = 0, T - 1 do
        if a.done and a.done:data()[now * B + b] == 1 then begin = now end
        local exponent, top = {}, -math.huge
        for i = begin, now do
          exponent[i] = k[(i * B + b) * D + d] + (i == now and first or i == now - 1 and 0 or (now - 1 - i) * w)
          top = math.max(top, exponent[i])
        end
        local num, den = 0, 0
        for i = begin, now do
          local e = math.exp(exponent[i] - top)
          num, den = num + e * v[(i * B + b) * D + d], den + e
        end
        y[(now * B + b) * D + d] = num / den
      end
    end
  end
  return y
end

-- wkv6 and wkv7: S[i,j], keys by values, is read before the step's own writing (wkv6) or after it (wkv7, which has `out`).
function naive_laws.wkv6(a, T, B, H, K, V)
  local y, S = ffi.new("double[?]", T * B * H * V), ffi.new("double[?]", B * H * K * V)
  for bh = 0, B * H - 1 do
    local M = S + bh * K * V
    for i = 0, K * V - 1 do M[i] = a.S:data()[bh * K * V + i] end
    for now = 0, T - 1 do
      local row = now * B * H + bh
      local function at(name, i) return a[name]:data()[row * (name == "v" and V or K) + i] end
      if a.done:data()[now * B + math.floor(bh / H)] == 1 then for i = 0, K * V - 1 do M[i] = 0 end end
      for j = 0, V - 1 do
        local out, sum = 0, 0
        for i = 0, K - 1 do
          if a.out then out = out + at("out", i) * M[i * V + j]
          else sum = sum + at("r", i) * (M[i * V + j] + a.first:data()[bh % H * K + i] * at("k", i) * at("v", j)) end
        end
        for i = 0, K - 1 do
          M[i * V + j] = at("keep", i) * M[i * V + j] - (a.back and at("back", i) * out or 0) + at("k", i) * at("v", j)
          if a.out then sum = sum + at("r", i) * M[i * V + j] end
        end
        y[row * V + j] = sum
      end
    end
  end
  return y, S
end

-- position: pos' = 0 where done, pos + 1 else; one that would reach `most` is most - back.
function naive_laws.position(a, T, B)
  local pos = {}
  for b = 0, B - 1 do
    local next = a.tick:data()[b]
    for now = 0, T - 1 do
      local row = now * B + b
      pos[row] = a.done:data()[row] == 1 and 0 or next
      next = pos[row] + 1 == a.most and a.most - a.back or pos[row] + 1
    end
  end
  return pos
end

naive_laws.wkv7 = naive_laws.wkv6

return naive_laws
