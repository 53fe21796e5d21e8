-- How much of a gradient reaches a step N steps back, by how the gates begin?   mneme sweep experiments/gate_gradient.lua
-- Nothing is trained: one backward pass from the last output of a new core to every input, and what the half-life predicts.
local mn = require "mneme"

local starts = { "published", "3", "10", "40", "160" }
local small = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
local cores = {}
for _, about in ipairs { { "agalite", "agalite", small }, { "agalite, 4 layers", "agalite", {} }, { "gru", "gru", {} }, { "lstm", "lstm", {} } } do
  for _, start in ipairs(starts) do
    local core = { about[2], remember = start, label = about[1] .. " " .. start }
    for key, value in pairs(about[3]) do core[key] = value end
    cores[#cores + 1] = core
  end
end

-- Norm of the gradient at each step, of one output's sum over random directions.
local function norms(gradient, T, width)
  local p, list = gradient:data(), {}
  for t = 0, T - 1 do
    local sum = 0
    for i = 0, width - 1 do sum = sum + p[t * width + i] ^ 2 end
    list[t] = math.sqrt(sum)
  end
  return list
end

return mn.study {
  title = "Gradients that reach the past, by how gates begin",
  question = "What does the half-life that gates begin with leave of a gradient from a junction to its cue?",
  axes = { core = cores },
  settings = { core = { "agalite" }, back = 256, copies = 16 },
  about = { back = { "steps from the last output to the first input", range = { 2, 4096 }, whole = true },
    copies = { "sequences", range = { 1, 1024 }, whole = true } },
  seeds = { 10 },
  run = function(cfg)
    mn.manual_seed(cfg.seed)
    local T, B, options = cfg.back + 1, cfg.copies, { d_in = 16 }
    for key, value in pairs(cfg.core) do options[key] = value end
    local core = mn.core(options)
    local x = mn.randn(T, B, 16, { grad = true })
    local y = core(x, nil, core:initial(B))
    local last = y:slice(0, T - 1, T)
    local g = mn.grad((last * mn.randn(1, B, core.d_out)):sum(), { x })[1]
    local size = norms(g, T, B * 16)
    local remember = tonumber(cfg.core.remember)
    local result = { measured = { x = {}, y = {} }, predicted = remember and { x = {}, y = {} } or nil }
    for back = 0, cfg.back, 4 do
      local k = #result.measured.x + 1
      result.measured.x[k], result.measured.y[k] = back, size[cfg.back - back] / size[cfg.back]
      if remember then result.predicted.x[k], result.predicted.y[k] = back, 0.5 ^ (back / remember) end
    end
    -- The measured half-life: what a straight line through the logarithm says, from 20 steps back to the last that float32 holds.
    local n, sx, sy, sxx, sxy = 0, 0, 0, 0, 0
    for back = 20, cfg.back do
      local ratio = size[cfg.back - back] / size[cfg.back]
      if ratio > 1e-30 then
        local ly = math.log(ratio) / math.log(2)
        n, sx, sy, sxx, sxy = n + 1, sx + back, sy + ly, sxx + back * back, sxy + back * ly
      end
    end
    result.half_life = n > 2 and -1 / ((n * sxy - sx * sy) / (n * sxx - sx * sx)) or nil
    result.reaches = cfg.back >= 200 and size[cfg.back - 200] / size[cfg.back] or nil
    result.longer = result.half_life and remember and result.half_life / remember
    return result
  end,
  metrics = { reaches = { "gradient 200 steps back, relative to the last step's", range = { 0, math.huge } },
    half_life = { "steps in which a gradient halves, measured", range = { 0, math.huge } },
    longer = { "measured half-life, in half-lives that the gates begin with", range = { 0, math.huge } } },
  figures = {
    { "lines", y = "measured", x = "steps", by = "core", log = "y", statistic = "geometric", title = "gradient against steps back" },
    { "bars", y = "half_life", by = "core", title = "steps in which a gradient halves" },
  },
  claims = {
    { id = "reaches", text = "200 steps back a start of 40 steps leaves at least a million times the gradient of the published start.", source = "ours",
      test = { "ratio", metric = "reaches", a = { core = "agalite 40" }, b = { core = "agalite published" }, at_least = 1e6 } },
    { id = "layers", text = "So it does in four layers of width 128.", source = "ours", test = { "ratio", metric = "reaches",
      a = { core = "agalite, 4 layers 40" }, b = { core = "agalite, 4 layers published" }, at_least = 1e6 } },
    { id = "half-life", text = "A gradient halves no sooner than what the gates keep: its half-life is at least that of the start.", source = "ours",
      test = { "at_least", metric = "longer", a = { core = "agalite 40" }, value = 1 } },
    { id = "gru", text = "A GRU with a start of 40 steps leaves at least a thousand times the gradient of its published start.", source = "ours",
      test = { "ratio", metric = "reaches", a = { core = "gru 40" }, b = { core = "gru published" }, at_least = 1e3 } },
  },
}
