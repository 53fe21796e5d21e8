-- What does linear attention give up, and gain?   mneme sweep experiments/transformers_are_rnns.lua quick=1
-- The three comparisons of Katharopoulos et al. 2020 that need no images: time of learning from a sequence, convergence on copying, and time of
-- generating a token.  Two layers and the same size of either attention; a run times its core, then learns to copy.
local mn = require "mneme"
local timing, positive = mn.measure.timing, { 0, math.huge }

local function core(name, label, memory)
  return { name, label = label, n_layers = 2, d_model = 64, d_head = 32, n_heads = 2, d_ffn = 128, flow = "residual", memory = memory }
end

local linear, softmax, short, long = { core = "linear" }, { core = "softmax" }, { tokens = "512" }, { tokens = "2048" }
local function claim(id, text, source, test) return { id = id, text = text, source = source, test = test } end

return mn.study {
  title = "Transformers are RNNs: linear attention against softmax",
  question = "Does linear attention learn to copy as well as softmax, and what do learning and generating cost against the length?",
  jobs = 1, seeds = { 5 },
  axes = { core = { core("linear_transformer", "linear"), core("transformer", "softmax", 4096) },
    tokens = { 512, 2048, 8192, quick = { 512, 2048 } } },
  settings = { core = { "linear_transformer" }, dataset = { "copy", copied = 64 }, batch = 32, steps = 2e7, stop_score = 0.99, eval_every = 1e5,
    eval_batches = 8, lr = 1e-3, threads = 1, d_embed = 64, quick = { dataset = { "copy", copied = 32 }, steps = 4e6 } },
  about = { dataset = "what is copied", tokens = { "of the timed sequence, and before the token that is generated", range = { 64, 2 ^ 17 }, whole = true },
    stop_score = { "training ends where this share of the validation part is answered rightly", range = { 0, 1 } } },
  run = function(cfg)
    local options, name = {}, cfg.core[1]
    for key, value in pairs(cfg.core) do if key ~= 1 then options[key] = value end end
    local result = { learn_ms = 1e3 * timing.training(name, options, cfg.tokens), token_us = 1e6 * timing.step(name, options, cfg.tokens) }
    local dataset = mn.dataset(cfg.dataset, { batch = cfg.batch, seed = cfg.seed })
    mn.manual_seed(cfg.seed)
    options[1], options.d_in, options.memory = name, cfg.d_embed, options.memory and dataset.length
    local model = mn.sequence_model { dataset = dataset, core = mn.core(options) }
    for key, value in pairs(mn.supervised(cfg, dataset, model):train()) do result[key] = value end
    return result
  end,
  metrics = {
    accuracy = { "share of symbols copied", range = { 0, 1 }, goal = 1 },
    steps = { "tokens until 0.99 were right, or training ended", range = positive, goal = 0 },
    learn_ms = { "forward and backward over a sequence", unit = "ms", range = positive, goal = 0 },
    token_us = { "a token after that many others", unit = "µs", range = positive, goal = 0 },
  },
  figures = {
    { "curves", y = "eval/accuracy", by = "core", where = { tokens = "512" }, title = "copying while learning" },
    { "lines", y = "learn_ms", x = "tokens", by = "core", log = "xy", statistic = "geometric", title = "learning from a sequence" },
    { "lines", y = "token_us", x = "tokens", by = "core", log = "xy", statistic = "geometric", title = "generating a token" },
  },
  references = { { "guessing", y = 0.1, of = "accuracy", source = "ten symbols" } },
  claims = {
    claim("copy", "Linear attention learns to copy: its accuracy is within 0.05 of softmax's.", "Katharopoulos et al. 2020, section 4.1",
      { "equal", metric = "accuracy", within = 0.05, a = linear, b = softmax, where = short }),
    claim("sooner", "Linear attention needs no more tokens than softmax to copy.", "Katharopoulos et al. 2020, figure 2: as smoothly",
      { "sooner", metric = "accuracy", above = 0.99, time = "steps", a = linear, b = softmax, where = short }),
    claim("learning", "For 2048 tokens a forward and a backward pass of linear attention take at most half of softmax's.",
      "Katharopoulos et al. 2020, figure 1", { "ratio", metric = "learn_ms", a = softmax, b = linear, where = long, at_least = 2 }),
    claim("constant", "A token of linear attention costs the same after 2048 others as after 512, within a quarter.", "O(1) a token",
      { "ratio", metric = "token_us", a = { core = "linear", tokens = "512" }, b = { core = "linear", tokens = "2048" }, at_least = 0.8 }),
    claim("generation", "After 2048 others it generates a token at least three times as fast as softmax with kept keys and values.",
      "Katharopoulos et al. 2020, table 1", { "ratio", metric = "token_us", a = softmax, b = linear, where = long, at_least = 3 }),
  },
}
