-- meant.lua -- what was probably meant by a word of the command line that is no setting of the script.
local core_settings = require "mneme.models.core_settings"
local registry = require "mneme.base.registry"

local meant = {}

-- Other programs' words: what to write here.
local other_words = {
  gpu = "device=cuda", cuda = "device=cuda", model = "core=NAME", memory = "core=NAME", algorithm = "learner=a2c or learner=ppo",
  algo = "learner=a2c or learner=ppo", n_steps = "num_steps=N", rollout = "num_steps=N", timesteps = "steps=N", total_steps = "steps=N",
  frames = "steps=N", n_envs = "num_envs=N", copies = "num_envs=N", batch_size = "num_envs=N and num_steps=N", discount = "gamma=X",
  clip_range = "clip=X", entropy = "entropy_coef=X", n_epochs = "epochs=N", hidden_size = "hidden=N, or core.d_model=N", dim = "core.d_model=N",
  layers = "core.n_layers=N", heads = "core.n_heads=N", out = "run=FOLDER", output = "run=FOLDER", output_dir = "run=FOLDER", exp_name = "run=FOLDER",
  name = "run=FOLDER", checkpoint = "resume=FOLDER", workers = "threads=N, or seeds=N with jobs=N", jobs = "jobs=N with seeds=N, or mneme sweep",
  log_dir = "run=FOLDER", render = "view=1", window = "view=1",
}
local environments = { env = true, environment = true, task = true, game = true, env_id = true, dataset = true }

---A setting that is not known: what to write instead, as a hint; nil: nothing is known about it.
---@param key string
---@param text string? its value
---@param schema table the script's settings
---@return string?
function meant.of_key(key, text, schema)
  if environments[key] then
    return ("the script chooses it; mneme run train %s=%s"):format(key == "dataset" and "dataset" or "env", text or "NAME")
  end
  local write = other_words[key]
  if write and (schema[write:match "^[%w_]+"] or write:find "jobs") then
    return "write " .. (text and write:gsub("%f[%w][NX]%f[%W]", (text:gsub("%%", "%%%%"))) or write)
  end
  if core_settings[key] and schema.core then return ("it is a setting of the core: core.%s=%s"):format(key, text or "VALUE") end
end

---What other programs call a setting: what to write here, such as "num_envs=N"; nil: no word of theirs is known.
---@param key string
---@return string?
function meant.of_other_programs(key) return other_words[key] end

---A word without a value: what to write instead.
---@param word string
---@param after string[] the words that follow it
---@param schema table
---@return string? problem
---@return string? hint
function meant.of_word(word, after, schema)
  local key = word:gsub("-", "_"):match "^_*([%a_][%w_.]*)$"
  local entry = key and schema[key:match "^[^.]+"]
  if word == "=" or word:find "^=" then return "'=' stands alone", "write key=value without blanks" end
  if entry then
    local value = after[1] == "=" and after[2] or after[1] and not after[1]:find "=" and after[1]
    if type(entry.default) == "boolean" and not value then value = "1" end
    return ("'%s' has no value"):format(word), ("write %s=%s, without blanks"):format(key, value or "VALUE")
  end
  for _, name in ipairs(registry.names "cores") do
    if name == word and schema.core then return ("'%s' is not a setting"):format(word), "write core=" .. word end
  end
end

return meant
