-- ntm.lua -- a small Neural Turing Machine, written with mn.recur: a matrix of slots, read and written by content and by place.
--   h = tanh(W x + U r);  each head: k, beta, g, s, gamma from h
--   content: softmax over slots of beta cos(k, M);  then g content + (1-g) w;  shifted by s;  sharpened to the power gamma
--   M = M (1 - w e) + w a  with the write head's w, e, a;   r = sum of w M with the read head's w;   y = [h; r] V
local nn = require "mneme.tensor.nn"
local recur = require "mneme.tensor.recur"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"

local SMALL = 1e-6                       -- of a slot before anything was written (Collier and Beel 2018), and below divisors
local SHIFTS = 3                         -- back, stay, on

-- Where a head looks next: p [B, W + 6] are its parameters, w [B,N] where it looked, M [B,N,W].
local function address(p, w, M, B, W)
  local k = p:slice(-1, 0, W):reshape(B, 1, W)
  local beta, g = p:slice(-1, W, W + 1):softplus(), p:slice(-1, W + 1, W + 2):sigmoid()
  local shift, gamma = p:slice(-1, W + 2, W + 2 + SHIFTS):softmax(), p:slice(-1, W + 5, W + 6):softplus() + 1
  local dot = (M * k):sum(-1)
  local norms = (M:square():sum(-1) + SMALL):sqrt() * (k:square():sum(-1) + SMALL):sqrt()
  local content = (beta * (dot / norms)):softmax()
  local at = g * content + (1 - g) * w
  local s = at:roll(-1) * shift:slice(-1, 0, 1) + at * shift:slice(-1, 1, 2) + at:roll(1) * shift:slice(-1, 2, 3)
  local sharp = (gamma * (s + SMALL):log()):exp()
  return sharp / sharp:sum(-1, 1)
end

-- One layer: a controller with a memory of its own.
local function layer(d_in, D, cfg)
  local N, W, starts = cfg.slots, cfg.width, {}          -- starts: by number of environments
  local controller, read_in = nn.linear(d_in, D), nn.linear(W, D, { bias = false })
  local heads, out = nn.linear(D, 2 * (W + 6) + 2 * W), nn.linear(D + W, D)
  local function body(i, s)
    local B = i:shape()[1]
    local h = (i + read_in(s.r)):tanh()
    local p, M = heads(h), s.M
    local w = address(p:slice(-1, W + 6, 2 * (W + 6)), s.write, M, B, W)
    local erase, add = p:slice(-1, 2 * W + 12, 3 * W + 12):sigmoid(), p:slice(-1, 3 * W + 12, 4 * W + 12)
    local where = w:reshape(B, N, 1)
    M = M * (1 - where * erase:reshape(B, 1, W)) + where * add:reshape(B, 1, W)
    local read = address(p:slice(-1, 0, W + 6), s.read, M, B, W)
    local r = (M * read:reshape(B, N, 1)):sum(1)
    return out(h:concat(r)), { M = M, r = r, read = read, write = w }
  end
  local function start_of(B)
    starts[B] = starts[B] or { M = tensor.new { shape = { B, N, W } }:fill(SMALL), r = tensor.new { shape = { B, W } },
      read = tensor.new { shape = { B, N } }:fill(1 / N), write = tensor.new { shape = { B, N } }:fill(1 / N) }
    return starts[B]
  end
  return nn.module({ children = { { "controller", controller }, { "read_in", read_in }, { "heads", heads }, { "out", out } } },
    function(_, x, done, M, r, read, write)
      local y, s = recur(body, { x = controller(x), state = { M = M, r = r, read = read, write = write }, done = done,
        start = done and start_of(x:shape()[2]) or nil })
      return y, s.M, s.r, s.read, s.write
    end)
end

return {
  doc = "Neural Turing Machine: slots read and written by content and by place, one head for each (NTM)",
  source = "Graves et al. 2014, equations 1 to 9; controller: one tanh layer; initial slots: Collier and Beel 2018",
  config = { d_in = 16, d_model = 64, n_layers = 1, slots = 16, width = 16, reset = true },
  counts = { slots = 3, width = 1 },
  build = function(cfg)
    return recurrent.build(cfg, layer, { "M", "r", "read", "write" }, { axes = { M = "[B,S,W]", r = "[B,W]", read = "[B,S]", write = "[B,S]" },
      shows = "y", sizes = { D = cfg.d_model, S = cfg.slots, W = cfg.width }, complexity = { step = "9*L*S*W" },
      start = { M = SMALL, read = 1 / cfg.slots, write = 1 / cfg.slots } })
  end,
}
