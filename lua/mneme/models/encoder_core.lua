-- encoder_core.lua -- lets a sequence model use an encoder as its core.  It reads a whole sequence at once, so it has no
-- state, and no sequence continues in the next batch.  Its output for a token may depend on all others, later ones too:
-- it is for data sets that ask after the whole sequence.
local errors = require "mneme.base.errors"
local ops = require("mneme.tensor.tensor").ops

---@class Reader what Core is to a model of sequences
local Reader = { name = "encoder" }           -- as config.json calls it
Reader.__index = Reader

---@param x Tensor [T,B,d]
---@return Tensor y [T,B,d_out]
---@return table state empty
function Reader:__call(x)
  return ops.transpose(self.module(ops.transpose(x, { a = 0, b = 1 })), { a = 0, b = 1 }), {}
end

function Reader.initial() return {} end
function Reader.state_names() return {} end

---@param encoder Module of mn.encoder, without vocab: the model has an embedding of its own
---@return Reader
local function new(encoder)
  errors.need("sequence_model: encoder", encoder, "config", "mn.encoder { ... }")
  if encoder.config.vocab > 0 then
    errors.usage(("sequence_model: the encoder has vocab=%d, expected 0: the model has an embedding of its own"):format(encoder.config.vocab))
  end
  local config = encoder.config
  return setmetatable({ config = config, d_in = config.d_in > 0 and config.d_in or config.d_model, d_out = encoder.d_out, module = encoder }, Reader)
end

return { new = new, name = Reader.name }
