-- test_field_words.lua -- words of other programs are answered with what they mean here, and letters alone with the same word or none.
local t = require "tests.harness"
local catalogue = require "mneme.base.catalogue"
local config = require "mneme.runs.config"
local files = require "mneme.base.files"
local learner_settings = require "mneme.runs.learner_settings"
local envs = require "mneme.envs"
local errors = require "mneme.base.errors"
local help = require "mneme.commands.help"
local did_you_mean = require "mneme.base.did_you_mean"
local options = require "mneme.commands.options"
local mn = require "mneme"
local registry = require "mneme.base.registry"
local names_elsewhere = require "mneme.base.names_elsewhere"
local commands = require("mneme.commands.options").commands

local function set_of(list)
  local set = {}
  for _, name in ipairs(list) do set[(name:gsub("%-v%d+$", ""))] = true end
  return set
end

local known = { core = set_of(registry.names "cores"), environment = set_of(catalogue.names "envs"), learner = set_of(catalogue.names "learners"),
  setting = set_of { "core", "learner", "num_envs", "hidden", "corridor", "seeds", "jobs", "env", "minibatches" }, command = {},
  ["kind of thing"] = set_of { "runs", unpack(catalogue.kinds) } }
for _, s in ipairs(config.standard) do known.setting[s[1]] = true end
for key in pairs(learner_settings.keys) do known.setting[key] = true end
known.argument = { time_limit = true, key = true }           -- every environment has it; key=value
for _, c in ipairs(commands.all()) do
  known.command[c.name] = true
  for _, option in ipairs(options.of(c)) do known.argument[option[1]] = true end
end
local core_setting_docs = require "mneme.models.core_setting_docs"

t.test("what was to be switched off is not switched on", function()
  local unknown_settings = require "mneme.runs.unknown_settings"
  local schema = { device = { default = "cpu" }, norm_reward = { default = 0 }, normalise_advantages = { default = 1 },
    lr_schedule = { default = "constant" }, precision = { default = "fp32" }, core = { default = { "agalite" } } }
  for key, answer in pairs { ["cuda=0"] = "write device=cpu", ["no_cuda=1"] = "write device=cpu", ["normalize_reward=False"] = "write norm_reward=0",
    ["normalize_advantage=0"] = "write normalise_advantages=0", ["anneal_lr=no"] = "write lr_schedule=constant", ["fp16=off"] = "write precision=fp32" } do
    t.eq(unknown_settings.of_key(key:match "^[^=]*", key:match "=(.*)", schema), answer)
  end
  for key in pairs { ["use_lstm=0"] = 1, ["net_arch=64,64"] = 1 } do
    local said = unknown_settings.of_key(key:match "^[^=]*", key:match "=(.*)", schema)
    t.ok(not said:find("=0", 1, true) and not said:find("64", 1, true), said)
  end
end)

t.test("every answer names what exists", function()
  for _, row in ipairs(names_elsewhere) do
    local kind, answer = row[1], row[3]
    local where = ("%s %s: %s"):format(kind, row[2]:match "%S+", answer)
    for name in answer:gmatch "core=(%l[%w_]*)" do t.ok(known.core[name], where .. ": core " .. name) end
    for name in answer:gmatch "learner=(%l[%w_]*)" do t.ok(known.learner[name], where .. ": learner " .. name) end
    for key in answer:gmatch "core%.([%a_][%w_]*)=" do t.ok(core_setting_docs[key], where .. ": core." .. key) end
    for path in answer:gmatch "docs/[%w-]+%.md" do t.ok(files.is_file(registry.root .. path), where .. ": " .. path) end
    local bare = answer:gsub("%f[%a]mneme (%l+)([^,;)]*)", function(name, words)
      local c = t.ok(commands.find(name), where .. ": mneme " .. name)
      for key in words:gmatch " ([%l_]+)=" do t.ok(c.others or name == "bench" or options.by_name(c)[key], ("%s: %s= of mneme %s"):format(where, key, name)) end
      return ""
    end)
    t.ok(kind ~= "argument" or not bare:find "^not here" or not bare:gsub("such as %l+=", ""):find "%w=", where .. ": of which command?")
    if kind == "setting" or kind == "argument" then
      for key in (" " .. answer):gmatch "[ (]([%a_][%w_]*)=" do
        t.ok(known.setting[key] or known.argument[key], where .. ": " .. key .. "=")
      end
    elseif kind == "core" or kind == "environment" or kind == "learner" then
      local any
      for name in (answer:match "nearest:? (.*)" or answer):gmatch "[%l][%w_]+" do any = any or known[kind][name] end
      t.ok(any or answer:find "docs/", where .. ": names none")
    end
  end
end)

t.test("no word of the table is a name here, and none is answered by letters", function()
  local words = 0
  for _, row in ipairs(names_elsewhere) do
    for word in row[2]:gmatch "%S+" do
      words = words + 1
      t.eq(did_you_mean.of_field(row[1], word), row[3], row[1] .. " " .. word)
      local its = row[1] ~= "topic" and row[1] ~= "argument" and known[row[1]]
      t.ok(not (its and its[word] and row[1] ~= "setting"), row[1] .. " " .. word .. " is a name")
      t.ok(not (row[1] == "setting" and learner_settings.keys[word]), word .. " is a setting of learners")
    end
  end
  t.ok(words > 150, words)
end)

-- Layers and models of flash-linear-attention by file and by class (fla/layers), memories of Memorax (networks/sequence_models) and of memax
-- (semigroups, set_actions).
local of_field = [[
  abc attn based bitattn comba delta_net deltaformer forgetting_attn gated_deltanet gated_deltaproduct gdn2 gla gsa hgrn hgrn2 kda lightnet linear_attn
  log_linear_mamba2 mamba mamba2 mamba3 mesa_net mla moba mom multiscale_retention nsa path_attn raven rebased rodimus rwkv6 rwkv7 simple_gla
  stickbreaking_attn wall_attn
  delta_net delta_product ffm gated_delta_net gpt2 gtrxl kalman_net linear_attention linear_transformer lru mamba min_gru mlstm retention rnn rtrl rtu s5
  segment_recurrence self_attention shm slstm td_delta_net td_gated_delta_net xlstm
  attn delta deltap fart ffm fwp gdn identity lrnn lru nmax s6 spherical stack ttt elman gru indrnn lstm mgu
  ABCAttention Attention Attention-ALiBi Attention-RoPE BasedLinearAttention BitAttention Comba CyclicFlowAttention DeltaFormerAttention DeltaNet
  DeltaProduct Elman ElmanReLU FART FFM FFMCell FWP ForgettingAttention GDN GRU GatedDeltaNet GatedDeltaNet2 GatedDeltaProduct GatedLinearAttention
  GatedSlotAttention HGRN2Attention HGRNAttention KimiDeltaAttention LRU LRUCell LSTM LightNetAttention LinearAttention LinearAttentionCell LinearRNN
  LogLinearMamba2 MGU MLP Mamba Mamba2 Mamba3 MambaCell MesaNet MinGRUCell MoBA MomAttention MomentumDeltaNet MultiScaleRetention
  MultiheadLatentAttention NMax NativeSparseAttention PSpherical PaTHAttention Parallax PrecondGatedDeltaNet PrecondKDA RWKV6Attention RWKV7Attention
  Raven ReBasedLinearAttention RodimusAttention S5Cell S6 SHMCell SelfAttention SlidingWindowSharedKeyAttention Spherical Stack StickBreakingAttention
  WallAttention YOCOCrossAttention YOCOGatedRetention YOCOSharedKVBuilder bitnet cyfa dlse mLSTMCell parallax sLSTMCell samba wall_transformer
  AttentionSemigroup DLSESemigroup DeltaNetSemigroup DeltaProductSemigroup ElmanSetAction FARTSemigroup FFMSemigroup FWPSemigroup GDNSemigroup GRUMagma
  GRUSetAction LRUSemigroup LSTMMagma LinearRNNSemigroup MGUSetAction MLPSemigroup NMaxSemigroup PSphericalSemigroup S6Semigroup SphericalMagma
  StackSemigroup]]
t.test("every memory of the libraries around is a core here, or the nearest is named", function()
  local words = 0
  for word in of_field:gmatch "%S+" do
    words = words + 1
    t.ok(known.core[word] or did_you_mean.of_field("core", word) or pcall(help.text, word), word .. " is unknown")
    local said = word:find "Cell$" and tostring(select(2, pcall(mn.core, word)))
    t.ok(not said or said:find "%(write " or said:find "nearest:", said)
  end
  t.ok(words > 150, words)
end)

-- Words of the field's papers and threads: none of them is an unknown topic.
t.test("a word of the field leads somewhere in help", function()
  for word in ([[mamba s5 hgrn rtrl streaming stream pqn popgym gymnasium pytorch jax onnx wheel conda aarch64 bptt truncation init pretrained
      eligibility-traces obgd probing lesion saliency vmpo r2d2 xlstm gae wandb kv-cache delta-rule linear-attention vectorised-env decision-transformer
      weight-decay learning-rate PPO GRU multi-gpu reward-shaping frame-stacking burn-in hidden-state recurrent-state attention-map activation-patching
      mechanistic-interpretability hydra pomdp embedding-size]]):gmatch "%S+" do
    local ok, text = pcall(help.text, word)
    t.ok(pcall(help.text, (word:gsub("-", " "))), word)
    t.ok(ok and #text > 20, word)
  end
end)

-- The column "other names" of docs/tasks.md, but for POPGym's own, which differ by capitals.
local elsewhere = { position_only_cartpole = "StatelessCartPole", noisy_position_only_cartpole = "NoisyStatelessCartPole",
  memory_chain = "MemoryLength memory_len bsuite:memory_size MemoryChain-bsuite MemoryChain-bsuite-v0", tmaze_passive = "TMazeClassicPassive",
  tmaze_active = "TMazeClassicActive", minigrid_memory = "MiniGrid-MemoryS7-v0 MiniGrid-MemoryS13Random-v0 MiniGrid-MemoryS17Random-v0",
  rock_sample = "RockSample", mortar_mayhem_endless = "Endless-MortarMayhem-v0 EndlessMortarMayhem",
  mystery_path_endless = "Endless-MysteryPath-v0 EndlessMysteryPath" }
t.test("what other suites call a task leads to it, in help and as env=", function()
  for ours, names in pairs(elsewhere) do
    for name in names:gmatch "%S+" do
      t.ok((did_you_mean.of_field("environment", name) or ""):find("^" .. ours), name)
      t.ok(help.text(name):find(ours, 1, true), "help " .. name)
      t.ok(tostring(select(2, pcall(envs.new, name, {}))):find("write " .. ours, 1, true), "env=" .. name)
    end
  end
  for name in ("Battleship MineSweeper RepeatPrevious NoisyPositionOnlyCartPole LabyrinthEscape"):gmatch "%S+" do
    t.ok(tostring(select(2, pcall(envs.new, name, {}))):find "did you mean", "env=" .. name)
    t.ok(help.text("popgym:" .. name .. "Hard"):find "level +hard", name)
  end
  t.ok(help.text "popgym-HigherLowerHard-v0":find "a perfect%s+memory 0.756")
end)

t.test("a name with one letter wrong is answered with that name or none", function()
  local lists = { catalogue.names "ops", registry.names "experiments", registry.names "scenes", require("mneme.base.tables").keys(core_setting_docs) }
  for _, kind in ipairs { "core", "environment", "learner", "setting", "command" } do
    lists[#lists + 1] = require("mneme.base.tables").keys(known[kind])
  end
  local right, all = 0, 0
  for _, names in ipairs(lists) do
    local set = set_of(names)
    for _, name in ipairs(names) do
      for at = 1, #name do
        for _, typo in ipairs { name:sub(1, at - 1) .. name:sub(at + 1), name:sub(1, at) .. name:sub(at), name:sub(1, at - 1) .. "z" .. name:sub(at + 1),
          name:sub(1, at - 1) .. name:sub(at + 1, at + 1) .. name:sub(at, at) .. name:sub(at + 2) } do
          if not set[typo] and typo ~= "" then
            local one = errors.nearest(typo, names)
            all, right = all + 1, right + (one == name and 1 or 0)
            -- what is the whole beginning of several other names, such as gate_x of gate and gate_rank, is none of these
            t.ok(one == nil or one == name or #typo < #name and one:lower():gsub("[-_. /]", "") == typo:lower():gsub("[-_. /]", ""),
              ("%s (for %s): %s"):format(typo, name, tostring(one)))
          end
        end
      end
    end
  end
  t.ok(right / all > 0.6, ("%d of %d"):format(right, all))
end)

t.test("another program's value is answered with a value that is taken", function()
  local taken = { device = set_of { "cpu", "cuda" }, threads = set_of { "0" }, checkpoint = set_of {}, seed = set_of {}, at = set_of {}, lr = set_of {},
    sort = set_of { "score", "core", "time" } }
  for _, s in ipairs(config.standard) do if s[3].choices then taken[s[1]] = set_of(s[3].choices) end end
  local gated_linear = require "mneme.models.gated_linear"
  for key, list in pairs { gate = gated_linear.gates, feature = gated_linear.features, decay = gated_linear.decays } do
    taken[key] = set_of(require("mneme.base.tables").keys(list))
  end
  for _, row in ipairs(names_elsewhere) do
    local key = row[1]:match "^value of (.*)$"
    local answer = key and row[3]:gsub("^not here; nearest: ", "")
    if key then
      t.ok(taken[key], row[1])
      local word = answer:match "^[%w_]+"
      t.ok(taken[key][word] or next(taken[key]) == nil or answer:find "^not here", row[1] .. ": " .. row[3])
      for each in row[2]:gmatch "%S+" do t.ok(not taken[key][each], row[1] .. ": " .. each .. " is taken") end
    end
  end
end)

t.test("an answer about an argument is one that the command takes", function()
  local function said(list, word) return tostring(select(2, pcall(errors.unknown, "setting of eval", word, list))) end
  t.ok(said({ "out" }, "output"):find "write out=FILE")
  t.ok(said({ "episodes" }, "output"):find "not here; nearest: > FILE keeps what is printed")
end)

t.test("a word for the file is answered with the option that each command writes to, and no other", function()
  local arguments, option_list, asked = require "mneme.commands.arguments", require "mneme.commands.options", 0
  for _, command in ipairs(option_list.commands.all(true)) do
    local own = option_list.by_name(command)
    local writes = own.out and "out" or own.to and "to"
    for word in ("out output output_file file save to_file format"):gmatch "%S+" do
      if not (own[word] or command.raw or command.others) then
        local _, e = pcall(arguments.read, command, { word .. "=x" })
        local text = tostring(e)
        if text:find("unknown setting", 1, true) then
          asked = asked + 1
          local answer = text:match "did you mean '(%w+)'" or text:match "write (%w+)=" or not text:find "this command prints" and "none"
          t.eq(answer, writes or "none", command.name .. " " .. word .. ": " .. text)
        end
      end
    end
  end
  t.ok(asked > 20, asked)
end)

t.test("letters alone do not send to another meaning", function()
  for word, other in pairs { max_steps = "num_steps", nsteps = "steps", save_every = "eval_every", xlstm = "lstm", deltanet = "gated_deltanet",
    env = "num_envs", sps = "eps", ["transformer-xl"] = "transformer", checkpoint = "checkpoint_every", rwkv5 = "rwkv4", a3c = "a2c", beta3 = "beta1" } do
    t.eq(errors.nearest(word, { other }), nil, word)
  end
  for word, name in pairs { num_stpes = "num_steps", coridor = "corridor", ["t-maze"] = "tmaze", gur = "gru", rnu = "run", corr = "corridor",
    numsteps = "num_steps", trian = "train", SEED = "seed", corrdior = "corridor" } do
    t.eq(errors.nearest(word, { name }), name, word)
  end
end)
