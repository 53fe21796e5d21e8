-- identity_core.lua -- a core that hands on what it is given: no memory and no parameters, for agents whose networks are all of the script's own.
local mn = require "mneme"

return {
  doc = "what it is given, unchanged", source = "none",
  config = { d_in = 16 },
  build = function(cfg)
    return {
      module = mn.nn.container {}, d_out = cfg.d_in, states = {}, sizes = {}, complexity = { step = "0" }, reads = "nothing",
      forward = function(x, _, _, probe)
        x = x * 1                                    -- acting records an op
        return probe and probe("given", x) or x, {}
      end,
    }
  end,
}
