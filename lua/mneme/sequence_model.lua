-- sequence_model.lua -- a core between tokens and answers: embedding, core, logits.
local errors = require "mneme.errors"
local nn = require "mneme.nn"

---@class SequenceModel
local Model = {}
Model.__index = Model

---The core's d_in is the width of the embedding.  Names embed.weight [tokens,d_in], core.*, head.weight
---[classes,d_out], head.bias.
---@param options table { task = mn.task(...), core = mn.core(...) }
---@return SequenceModel
local function new(options)
  errors.need("sequence_model: what it is made of", options, nil, "{ task = mn.task(...), core = mn.core(...) }")
  for key in pairs(options) do
    if key ~= "task" and key ~= "core" then errors.unknown("key of sequence_model", key, { "task", "core" }) end
  end
  local task, core = options.task, options.core
  if not task or not core then
    errors.raise "sequence_model: expected { task = mn.task(...), core = mn.core(...) }"
  end
  errors.need("sequence_model: task", task, "buffers", "mn.task(...)")
  errors.need("sequence_model: core", core, "module", "mn.core(...)")
  local embed = nn.embedding(task.tokens, core.config.d_in)
  local head = nn.linear(core.d_out, task.classes, { init = nn.init.orthogonal(1) })
  local module = nn.container { { "embed", embed }, { "core", core.module }, { "head", head } }
  return setmetatable({ core = core, embed = embed, head = head, module = module }, Model)
end

---@param token Tensor [T,B] i32
---@param done Tensor? [T,B] u8
---@param state table<string, Tensor>?
---@return Tensor logits [T,B,classes]
---@return table state after the last token
function Model:__call(token, done, state, probe)
  local y, after = self.core(self.embed(token), done, state, probe)
  return self.head(y), after
end

function Model:parameters() return self.module:parameters() end
function Model:state_dict() return self.module:state_dict() end

return { new = new }
