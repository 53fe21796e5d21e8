-- memories.lua -- the pictures of docs/how-memory-works.md, measured from the program: what every memory reads, before it
-- has learnt anything, of each step of one stream of letters.   build/mneme run docs/figures/memories.lua
-- Two measures.  Of a memory whose reading is linear in the values: step j's value is 1 and all others 0 (a probe puts
-- them there), one copy for each j, and what step t reads is the weight of j; the mean of a head's channels.  Of softmax:
-- the weights that it used (mneme.recall).  Of a vector, and of what is left in a state: how much the state differs from
-- what it would be, had step j been another letter.
local mn = require "mneme"
local ffi = require "ffi"
local figures, svg = mn.figures, mn.svg

local cfg = mn.config {
  out = "docs/figures", only = "", about = { out = { "folder of the pictures" }, only = { "one of them, by its name" } },
}

local T, LETTERS, D = 56, 6, 16
local RESET = 40                     -- where a second episode begins
local LOST = 8                       -- the step whose trace in the state is followed

-- One layer of each, and windows that fit the picture; all else as published.
local small = {
  n_layers = 1, memory = 12, window = 8, globals = 2, block = 4, random_blocks = 1, context = 64, chunk = 8, rho = 1, segment = 12,
}

local pictures = {
  { "vectors", "What is left in the state", how = "left", { "feedforward" }, { "framestack" }, { "rnn" }, { "gru" }, { "lstm" },
    { "slstm" }, { "slstm_block" }, { "ntm" }, { "mingru" }, { "minlstm" }, { "lru" }, { "s5" }, { "rtu" }, { "hgrn" }, { "ffm" }, { "shm" } },
  { "softmax", "What softmax reads", how = "attention",
    { "transformer" }, { "gtrxl" }, { "longformer" }, { "bigbird" }, { "longshort" }, { "rmt" } },
  { "sums", "What a sum reads", how = "values", { "linear_transformer" }, { "performer" }, { "performer_relu" }, { "rfa" }, { "dpfp" } },
  { "gates", "What a sum with gates reads", how = "values", { "galite" }, { "galite_released" }, { "gated_linear" }, { "rfa_gate" },
    { "mlstm" }, { "gla" }, { "retnet" }, { "hgrn2" }, { "mamba2" } },
  { "approximations", "What is read where vectors stand for galite's matrix", how = "values", { "galite" }, { "agalite" },
    { "agalite_long" }, { "agalite_paper" }, { "agalite_cossin" }, { "galite", approximation = "random_sign", as = "random_sign, r=2" } },
  { "delta", "What is read where a key overwrites", how = "values", { as = "a sum, one-hot keys" },
    { as = "delta, one-hot keys, b = 0.9", write = 0.9 }, { "delta" }, { "delta_released" }, { "gated_deltanet" },
    { "gated_deltaproduct" }, { "deltaproduct" }, { "kda" } },
  { "rwkv", "What RWKV reads", how = "values", { "rwkv4" }, { "rwkv6" }, { "rwkv7" } },
}
local followed = { "linear_transformer", "delta", "rwkv4", "gated_deltanet", "galite_released", "gru", "transformer", "galite" }

-- ---- the stream ----

local letters = mn.tensor { shape = { LETTERS, D } }
mn.manual_seed(5)
mn.nn.init.normal()(letters:data(), LETTERS, D)

-- The letter of each step, from 0.
local said, s = {}, 1
for t = 0, T - 1 do
  s = s * 16807 % 2147483647
  said[t] = math.floor(s / 2147483647 * LETTERS)
end

-- The same stream for B environments, but that environment b hears another letter at step other[b].
local function stream(B, other)
  local x, done = mn.sequence { shape = { T, B, D } }, mn.sequence { shape = { T, B }, dtype = "u8" }
  for t = 0, T - 1 do
    for b = 0, B - 1 do
      local letter = other and other[b] == t and (said[t] + 1) % LETTERS or said[t]
      ffi.copy(x:data() + (t * B + b) * D, letters:data() + letter * D, 4 * D)
      done:data()[t * B + b] = (t == 0 or t == RESET) and 1 or 0
    end
  end
  return x, done
end

local function build(spec)
  local config, known = {}, mn.core(spec[1]).config
  for _, list in ipairs { small, spec } do
    for key, value in pairs(list) do if known[key] ~= nil then config[key] = value end end
  end
  mn.manual_seed(2)
  return mn.core(spec[1], config)
end

-- Live the stream step by step, `rows` of them as one sequence: f(t, probes, row in them, state).
local function live(core, rows, B, other, f)
  local x, done = stream(B, other)
  local part, flags = mn.sequence { shape = { rows, B, D } }, mn.sequence { shape = { rows, B }, dtype = "u8" }
  local state, probes = core:initial(B), {}
  local plan = mn.plan(function(...)
    local given, after = { ... }, nil
    mn.no_grad(function() after = select(2, core(given[1], given[2], given[3], function(name, p) probes[name] = p return p end)) end)
    return after
  end)
  local after = plan(part, flags, state)
  for t = 0, T - 1 do
    local row = t % rows
    ffi.copy(part:data() + row * B * D, x:data() + t * B * D, 4 * B * D)
    ffi.copy(flags:data() + row * B, done:data() + t * B, B)
    plan:rows(row, row + 1)
    f(t, probes, row, after)
    if row == rows - 1 then mn.keep(after, state) end
  end
end

-- Steps that are one sequence: all of rmt's, whose segments would end with each.
local function rows_of(core) return core.name == "rmt" and T or 1 end

-- ---- what is measured: map[t][j], how much of step j is in step t ----

local measure = {}

local function empty()
  local map = {}
  for t = 0, T - 1 do
    map[t] = {}
    for j = 0, T - 1 do map[t][j] = 0 end
  end
  return map
end

-- What head 0 of y [T,B,H,V] (or y [T,B,D]) says of each copy, whose number is the step that it tells of.
local function read_off(y)
  local map, shape, B = empty(), y:shape(), T
  local each = y:size() / T / B
  local V = shape[4] or each
  for t = 0, T - 1 do
    for j = 0, B - 1 do
      for i = 0, V - 1 do map[t][j] = map[t][j] + y:data()[(t * B + j) * each + i] / V end
    end
  end
  return map
end

-- Values that are 1 at step b of copy b, and 0 else.
local function marks(shape)
  local v = mn.tensor { shape = shape }
  local each = v:size() / T / T
  for j = 0, T - 1 do
    for i = 0, each - 1 do v:data()[(j * T + j) * each + i] = 1 end
  end
  return v
end

-- The two rules by themselves: every letter a key of its own.
local function rule(spec)
  local _, done = stream(T)
  local shape = { T, T, 1, LETTERS }
  local k, write, keep = mn.tensor { shape = shape }, mn.tensor { shape = { T, T, 1 } }, mn.tensor { shape = { T, T, 1 } }
  for t = 0, T - 1 do
    for b = 0, T - 1 do k:data()[(t * T + b) * LETTERS + said[t]] = 1 end
  end
  local args = { q = k, k = k, v = marks { T, T, 1, 1 }, done = done, normalise = 0 }
  if not spec.write then return read_off((mn.linear_attention(args))) end
  args.write, args.keep = write:fill(spec.write), keep:fill(1)
  return read_off((mn.delta_rule(args)))
end

function measure.values(spec)
  if not spec[1] then return rule(spec) end
  local core, x, done = build(spec), stream(T)
  local state, read = core:initial(T), nil
  if state.copy then state.copy:fill(0) end           -- all meet the same random signs
  mn.no_grad(function()
    core(x, done, state, function(name, p)
      if name == "layers.0.v" then return marks(p:shape()) end
      if name == "layers.0.retrieved" then read = read_off(p) end
      return p
    end)
  end)
  return read
end

function measure.attention(spec)
  local core, map = build(spec), empty()
  live(core, rows_of(core), 1, nil, function(t, probes, row)
    local now = { reads = core.reads, probes = {}, step = t, history = {} }
    for j = 0, t do now.history[j + 1] = { step = j } end
    for name, p in pairs(probes) do
      local shape = p:shape()
      local of_row = shape[1] == 1 and 0 or row * p:size() / shape[1]
      if name:find "attention" then now.probes[name] = { values = p:data() + of_row, shape = { unpack(shape, 3) } } end
    end
    local w = assert(mn.inspect.implicit_attention.weights(now, 0, 0))
    for j = 0, t do map[t][j] = w[j] end
  end)
  return map
end

-- Not told: clocks, masks, and inputs that the next step looks back at.
local beside = { tick = true, mask = true, att_x = true, ffn_x = true, conv = true }

---How far the states of environments are from that of the last one: f(t, distances).
local function distances(core, B, other, f)
  live(core, rows_of(core), B, other, function(t, _, _, state)
    local far = {}
    for b = 0, B - 2 do far[b] = 0 end
    for name, x in pairs(state) do
      local shape, axis, before, after = x:shape(), core:batch_axis(name), 1, 1
      for i, size in ipairs(shape) do
        before, after = i < axis and before * size or before, i > axis and after * size or after
      end
      for a = 0, beside[name:match "[^.]+$"] and -1 or before - 1 do
        local last = x:data() + (a * B + B - 1) * after
        for b = 0, B - 2 do
          local p = x:data() + (a * B + b) * after
          for i = 0, after - 1 do far[b] = far[b] + (p[i] - last[i]) ^ 2 end
        end
      end
    end
    for b = 0, B - 2 do far[b] = math.sqrt(far[b]) end
    f(t, far)
  end)
end

function measure.left(spec)
  local other, map = {}, empty()
  for b = 0, T - 1 do other[b] = b end
  distances(build(spec), T + 1, other, function(t, far)
    for j = 0, t do map[t][j] = far[j] end
  end)
  return map
end

-- ---- pictures ----

local SHADES = 8
local CELL, GAP, HEAD = 3, 24, 20      -- pixels of a cell, between maps, for their names
local SMALL, LARGE, WIDE = 11, 15, 6.1 -- sizes of letters; pixels that a small one takes

-- A map as rows of cells, of each shade one path; every row by its largest number.
local function draw(paper, map, x, y)
  local paths = {}
  for t = 0, T - 1 do
    local top = 0
    for j = 0, t do top = math.max(top, math.abs(map[t][j])) end
    local j = 0
    while j <= t do
      local function shade(k) return top > 0 and (map[t][k] < 0 and -1 or 1) * math.floor(math.abs(map[t][k]) / top * SHADES + 0.5) or 0 end
      local now, from = shade(j), j
      repeat j = j + 1 until j > t or shade(j) ~= now
      if now ~= 0 then
        paths[now] = paths[now] or {}
        table.insert(paths[now], ("M%d %d.5h%d"):format(from, t, j - from))
      end
    end
  end
  paper:add('<g transform="translate(%g %g) scale(%g)" fill="none" stroke-width="1" shape-rendering="crispEdges">', x, y, CELL)
  for shade = -SHADES, SHADES do
    if paths[shade] then
      paper:add('<path class="%s" stroke-opacity="%.3g" d="%s"/>', shade > 0 and "c1" or "c2", math.abs(shade) / SHADES,
        table.concat(paths[shade]))
    end
  end
  paper:close()
  paper:add('<path class="axis" fill="none" d="M%g %gv%gh%gz"/>', x, y, T * CELL, T * CELL)
end

-- A text as lines of at most so many letters.
local function wrapped(text, most)
  local lines = { "" }
  for word in text:gmatch "%S+" do
    local longer = lines[#lines] .. (lines[#lines] == "" and "" or " ") .. word
    if #longer > most then lines[#lines + 1] = word else lines[#lines] = longer end
  end
  return lines
end

local function picture(spec)
  local n = #spec - 2
  local across, side = n <= 4 and n or 3, T * CELL
  local paper, y = svg.new(across * (side + GAP) - GAP, spec[1]), 20
  paper:text(spec[2], 0, 12, { size = LARGE, weight = "600" })
  for i = 1, n do
    local panel, x = spec[i + 2], (i - 1) % across * (side + GAP)
    paper:text(panel.as or panel[1], x, y + HEAD - 5, { size = SMALL })
    draw(paper, measure[spec.how](panel), x, y + HEAD)
    if i % across == 0 or i == n then y = y + side + HEAD + 8 end
  end
  for _, line in ipairs(wrapped("across: the step that was written; down: the step that reads; a new episode begins at " .. RESET,
    paper.width / WIDE)) do
    y = y + 14
    paper:text(line, 0, y - 4, { size = SMALL, class = "dim" })
  end
  local width, height = paper.width + 32, y + 32
  return table.concat {
    ('<svg xmlns="http://www.w3.org/2000/svg" class="mn-figure" viewBox="-16 -16 %g %g" width="%g" height="%g" role="img">\n'):format(
      width, height, width, height), ("<title>%s</title>\n<style>%s</style>\n"):format(spec[2], svg.css "light"),
    ('<rect x="-16" y="-16" width="%g" height="%g" fill="%s"/>\n'):format(width, height, svg.color "paper"),
    table.concat(paper.out, "\n"), "\n</svg>\n",
  }
end

-- What is left of one step, in the states of some.
local LEAST = 1e-4                     -- share at which a line ends

local function forgetting()
  local lines = {}
  for i, name in ipairs(followed) do
    local line, top = { name = name, x = {}, y = {} }, 0
    distances(build { name }, 2, { [0] = LOST }, function(t, far)
      top = math.max(top, far[0])
      if t >= LOST and t < RESET and far[0] > LEAST * top then
        table.insert(line.x, t - LOST)
        table.insert(line.y, far[0])
      end
    end)
    for k, y in ipairs(line.y) do line.y[k] = y / top end
    lines[i] = line
  end
  return figures.svg({ kind = "lines", title = "What is left of one step in the state",
    note = "How far a state is from what it would be, had one step been another letter, as a share of the most that it was. A line "
      .. "ends where less than 0.0001 is left. Before learning; one layer, a window of 12 steps.",
    x = { label = "steps since", range = { 0, RESET - LOST - 1 } }, y = { label = "share left", log = true, range = { LEAST, 1 } },
    lines = lines }, { alone = true, theme = "light" })
end

-- Every memory has its place in a picture.
local shown = {}
for _, spec in ipairs(pictures) do
  for i = 3, #spec do if spec[i][1] then shown[spec[i][1]] = true end end
end
for _, name in ipairs(mn.names "cores") do assert(shown[name], name .. " is in no picture") end

local made = 0
local function draw_into(name, f, spec)
  if cfg.only ~= "" and cfg.only ~= name then return end
  local file = assert(io.open(("%s/memory_%s.svg"):format(cfg.out, name), "w"))
  file:write(f(spec))
  file:close()
  made = made + 1
end
for _, spec in ipairs(pictures) do draw_into(spec[1], picture, spec) end
draw_into("forgetting", forgetting)
assert(made > 0, "there is no picture " .. cfg.only)
