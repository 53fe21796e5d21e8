-- When does a memory that only adds break?   mneme sweep experiments/gradient_blowup.lua quick=1
-- Models learn to say the bit of some steps before, in one endless stream (lua/mneme/insight/measure/endless_stream.lua): norms of state and
-- gradient are followed until one of them is no number.
local mn = require "mneme"

local function of(label, core, options)
  options[1], options.label = core, label
  return options
end

local positive = { 0, math.huge }

return mn.study {
  title = "State and gradient norms without and with forgetting",
  question = "Where does linear attention without a gate fail, and what does forgetting change?",
  axes = { core = { of("adds", "linear_transformer", {}), of("adds, raw", "linear_transformer", { normalise = false }),
    of("adds, raw, residual", "linear_transformer", { normalise = false, flow = "residual" }),
    of("scalar gate", "gated_linear", {}),
    of("outer gates", "galite", {}), of("outer gates, raw, residual", "galite", { normalise = false, flow = "residual" }) } },
  settings = { size = "published", core = { "linear_transformer" }, d_model = 64, back = 4, length = 64, copies = 16, steps = 2e6, lr = 1e-3,
    quick = { d_model = 32, length = 32, copies = 8, steps = 5e4 }, full = { d_model = 128, steps = 2e7 } },
  about = { copies = "streams that are read at once", back = { "steps before", range = { 0, 64 }, whole = true },
    length = { "of a part", range = { 1, 4096 }, whole = true } },
  seeds = { 5 },
  run = function(cfg)
    local options = { d_in = 2, n_layers = 2, d_model = cfg.d_model, n_heads = 2, d_head = cfg.d_model / 2, d_ffn = cfg.d_model }
    for key, value in pairs(cfg.core) do options[key] = value end
    return mn.measure.endless_stream.follow(options, cfg)
  end,
  metrics = {
    finite = { "share of the stream before a number is none", range = { 0, 1 }, goal = 1 },
    last_loss = { "squared error at the end", range = positive, goal = 0 },
    last_norm = { "norm of the state at the end", range = positive },
    last_gradient = { "norm of the gradient at the end", range = positive },
  },
  figures = {
    { "lines", y = "state_norm", x = "steps", by = "core", log = "y", statistic = "geometric", title = "norm of the state" },
    { "lines", y = "gradient_norm", x = "steps", by = "core", log = "y", statistic = "geometric", title = "norm of the gradient" },
    { "lines", y = "loss", x = "steps", by = "core", log = "y", statistic = "geometric", title = "squared error" }, { "bars", y = "finite", by = "core" },
  },
  references = { { "no memory", y = 1, of = "last_loss", source = "variance of a bit" } },
  claims = {
    { id = "grows", text = "Without a gate the state becomes at least 100 times as large as with outer gates.", source = "a reviewer's question",
      test = { "ratio", metric = "last_norm", a = { core = "adds" }, b = { core = "outer gates" }, at_least = 100 } },
    { id = "gradients", text = "Gradients of what only adds are at least 100 times as large, where no normaliser and no gate of the layer " ..
      "hides it.", source = "a reviewer's question", test = { "ratio", metric = "last_gradient", a = { core = "adds, raw, residual" },
        b = { core = "outer gates, raw, residual" }, at_least = 100 } },
    { id = "learns", text = "With outer gates the error is lower.", source = "paper, section 3",
      test = { "better", metric = "last_loss", a = { core = "adds" }, b = { core = "outer gates" } } },
    { id = "finite", text = "What only adds stays finite to the end.", source = "ours",
      test = { "at_least", metric = "finite", a = { core = "adds" }, value = 1, exact = true } },
  },
}
