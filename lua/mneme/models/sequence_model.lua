-- sequence_model.lua -- a model for data sets: embedding, a core or an encoder, logits.
local errors = require "mneme.base.errors"
local default_core_size = require "mneme.models.default_core_size"
local nn = require "mneme.tensor.nn"
local encoder_core = require "mneme.models.encoder_core"

---@class SequenceModel
---@field core table a Core, or an encoder in its place
---@field embed Module
---@field head Module
---@field module Module all parameters
---@field script_parameters integer? of the model with the script's own core, of a core of a config's settings
local Model = {}
Model.__index = Model
Model.__tostring = function(self) return tostring(self.module) end

---The core's (or the encoder's) d_in is the width of the embedding.  Names embed.weight [tokens,d_in], core.*, head.weight
---[classes,d_out], head.bias.
---@param options table { dataset = mn.dataset(...), core = mn.core(...) }, or in place of the core encoder = mn.encoder {...} for
---  a data set whose sequences do not go on from batch to batch
---@return SequenceModel
local function new(options)
  errors.need("sequence_model: what it is made of", options, nil, "{ dataset = mn.dataset(...), core = mn.core(...) }")
  errors.members("sequence_model", options, "dataset core encoder")
  local dataset, core = options.dataset, options.core
  if not dataset or (core == nil) == (options.encoder == nil) then
    errors.raise "sequence_model: expected { dataset = mn.dataset(...), core = mn.core(...) }, or encoder = mn.encoder {...} in place of the core"
  end
  errors.need("sequence_model: dataset", dataset, "buffers", "mn.dataset(...)")
  if options.encoder ~= nil then
    core = encoder_core.new(options.encoder)
    if dataset.carried then
      errors.usage(("sequence_model: an encoder sees the whole of what it reads, and %s asks for the token that comes next"):format(dataset.name),
        "mn.core(...) reads from left to right")
    end
  end
  errors.need("sequence_model: core", core, "module", "mn.core(...)")
  local embed = nn.embedding(dataset.tokens, core.d_in or core.config.d_in)
  local function head_of(c) return nn.linear(c.d_out, dataset.classes, { init = nn.init.orthogonal(1) }) end
  local head = head_of(core)
  local function like(c) return nn.container { { "embed", embed }, { "core", c.module }, { "head", head_of(c) } } end
  local module = nn.container { { "embed", embed }, { "core", core.module }, { "head", head } }
  return setmetatable({ core = core, embed = embed, head = head, module = module, script_parameters = default_core_size.of_script(module, core, like) }, Model)
end

---Pass a batch of sequences through it.
---@param token Tensor [T,B] i32
---@param done Tensor? [T,B] u8
---@param state table<string, Tensor>?
---@param probe function? see Core
---@return Tensor logits [T,B,classes]
---@return table state after the last token
function Model:__call(token, done, state, probe)
  local y, after = self.core(self.embed(token), done, state, probe)
  return self.head(y), after
end

---The leaves that an optimiser moves.
---@param into Tensor[]? a list to add to
---@return Tensor[]
function Model:parameters(into) return self.module:parameters(into) end
---Names and tensors; see Module:state_dict.
---@return table<string, Tensor>
function Model:state_dict() return self.module:state_dict() end

return { new = new }
