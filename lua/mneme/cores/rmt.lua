-- rmt.lua -- the recurrent memory transformer: it reads a few memory tokens before a segment and rewrites them after it.
-- A segment begins with the call, at every reset, and after `segment` tokens.  Its rows are
--   [mem_slots read rows = mem; tokens; mem_slots write rows = mem]
-- Read rows attend to the read rows, a token to the read rows and the tokens up to itself, write rows to everything; then
--   mem = the write rows of the top layer;   a reset sets mem = mem0, which is learned
-- A segment ends where a call ends, so a sequence equals its parts if it is cut between segments.  An agent acts by calls of one step,
-- each a segment of its own; the update runs the sequence in segments.  With sees=rollout it acts as a sequence, and the segment
-- continues from row to row.
local nn = require "mneme.tensor.nn"
local parameter = require("mneme.tensor.random").parameters.new
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- The parameters of all layers lie in one leaf [L,P], in the order of struct mn_layer_place (engine/attention/transformer_layers.h):
-- name, shape and how it starts; nil: zeros, a number: that.
local function places(cfg)
  local d, A, f, list = cfg.d_model, cfg.n_heads * cfg.d_head, cfg.d_ffn, {}
  local orthogonal = nn.init.orthogonal(math.sqrt(2))
  local function add(name, shape, start) list[#list + 1] = { name, shape, start } end
  for _, which in ipairs { "q", "k", "v" } do add("attn." .. which .. ".weight", { A, d }, orthogonal) end
  for _, which in ipairs { "q", "k", "v" } do add("attn." .. which .. ".bias", { A }) end
  add("attn.out.weight", { d, A }, orthogonal)
  add("attn.out.bias", { d })
  for _, norm in ipairs { "norm1", "norm2" } do
    add(norm .. ".weight", { d }, 1)
    add(norm .. ".bias", { d })
  end
  add("ffn.0.weight", { f, d }, orthogonal)
  add("ffn.0.bias", { f })
  add("ffn.1.weight", { d, f }, orthogonal)
  add("ffn.1.bias", { d })
  for _, gate in ipairs(cfg.flow == "gtrxl" and { "gate1", "gate2" } or {}) do
    for _, side in ipairs { "w_", "u_" } do
      for _, which in ipairs { "r", "z", "g" } do add(gate .. "." .. side .. which .. ".weight", { d, d }, orthogonal) end
    end
    add(gate .. ".bias", { d }, 2)
  end
  return list
end

-- All layers as one module, whose names are windows on its leaf; and how many weights a row meets.
local function layers(cfg)
  local list, P, weights, named, at = places(cfg), 0, 0, {}, 0
  for _, place in ipairs(list) do
    P = P + place[2][1] * (place[2][2] or 1)
    weights = weights + place[2][1] * (place[2][2] or 0)
  end
  local params = tensor.new { shape = { cfg.n_layers, P }, grad = true }
  for n = 0, cfg.n_layers - 1 do
    for _, place in ipairs(list) do
      local shape, start = place[2], place[3]
      local window = tensor.view(params, at, shape)
      if type(start) == "function" then start(window:data(), shape[1], shape[2]) elseif start then window:fill(start) end
      named[#named + 1] = { n .. "." .. place[1], window }
      at = at + window:size()
    end
  end
  return nn.module { leaves = { params }, named = named }, params, cfg.n_layers * weights
end

-- Scores and mixing over the read rows and half of a segment's tokens, and a token's share of the memory's own
-- rows, which meet the W weights of the layers as well; of a step that is a segment of its own, all of them.
local per_token = "2*L*H*V*(M + (S+1)/2 + M*(3*M + S)/S) + 2*M*W/S"
local single_step = "2*L*H*V*(M + 1 + M*(3*M + 1)) + 2*M*W"

return {
  doc = "recurrent memory transformer: memory tokens, read before a segment and rewritten after it (RMT)",
  source = "Bulatov, Kuratov, Burtsev 2022, Recurrent Memory Transformer, arXiv 2207.06881, section 3.2",
  checked = "an independent program",
  config = {
    d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_head = 64, d_ffn = 128, mem_slots = 4, segment = 16, sees = "memory",
    flow = "gtrxl", embed_act = "relu", ln_eps = 1e-6, reset = true,
  },
  choices = { sees = { memory = true, rollout = true } }, counts = { mem_slots = 1, segment = 1 },
  build = function(cfg)
    local embed = nn.linear(cfg.d_in, cfg.d_model, { act = cfg.embed_act })
    local stack, params, weights = layers(cfg)
    local mem0 = parameter({ cfg.mem_slots, cfg.d_model }, nn.init.lecun_normal())
    return {
      module = nn.module { named = { { "mem0", mem0 } }, children = { { "embed", embed }, { "layers", stack } } },
      d_out = cfg.d_model, states = { mem = "[B,M,D]" },
      sizes = { M = cfg.mem_slots, D = cfg.d_model, H = cfg.n_heads, V = cfg.d_head, S = cfg.segment, W = weights },
      start = { mem = function(mem)
        for b = 0, mem:shape()[1] - 1 do tensor.view(mem, b * mem0:size(), mem0:shape()):copy(mem0) end
      end },
      claims = { steps = "between segment ends" }, reads = "softmax",
      no_sensitivities = "its tokens are rewritten from each other", acts = cfg.sees == "memory" and "steps" or nil,
      complexity = { step = cfg.sees == "memory" and single_step or per_token, sequence = "N*(" .. per_token .. ")", update = per_token },
      forward = function(x, done, state, probe, fresh, acting)
        local args = { params = params, mem0 = mem0, done = cfg.reset and done or nil, heads = cfg.n_heads, d_head = cfg.d_head,
          d_ffn = cfg.d_ffn, segment = acting and 1 or cfg.segment, flow = cfg.flow, eps = cfg.ln_eps }
        args.e, args.mem = embed(x), not fresh and state.mem or nil      -- without: mem0, and its gradient
        if probe then args.e = probe("embed", args.e) end
        local y, kept = ops.rmt(args)
        args.mem, args.kept = nil, kept
        if probe then probe("attention", (ops.rmt_weights(args))) end
        args.e, args.y = nil, y
        local mem = ops.rmt_memory(args)
        if probe then y = probe("y", y) end
        return y, { mem = mem }
      end,
    }
  end,
}
