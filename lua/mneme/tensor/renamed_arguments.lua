-- renamed_arguments.lua -- old names of ops' arguments: each works for one more release, and prints its successor once.
local renamed = require "mneme.base.renamed"

local M = {}

local function copy(args)
  local new = {}
  for key, value in pairs(args) do new[key] = value end
  return new
end

-- One argument of an op under its new name.
local function rename(op, old, new)
  return function(args)
    if args[old] == nil then return args end
    renamed.note(("%s { %s = }"):format(op, old), new .. " =")
    args = copy(args)
    args[new], args[old] = args[old], nil
    return args
  end
end

-- write=raw: beta and gamma only forget, and k and v are written as they come.
local function only_kept(args)
  if args.write == nil then return args end
  renamed.note("joint_gate_attention { write = }", "keep_v = 1 - beta, keep_k = 1 - gamma with write_v and write_k, or without")
  local new = copy(args)
  new.write = nil
  if args.write == "raw" then
    new.keep_v, new.keep_k = 1 - args.beta, 1 - (args.p_gamma and args.p_gamma:outer(args.gamma) or args.gamma)
    new.beta, new.gamma, new.p_gamma = nil, nil, nil
  end
  return new
end

---By op, what makes today's arguments of a table of them.
M.of = {
  delta_rule = rename("delta_rule", "beta", "write"), wkv6 = rename("wkv6", "w", "keep"), wkv7 = rename("wkv7", "w", "keep"),
  joint_gate_attention = only_kept, agalite = rename("agalite", "copy", "env"),
}

return M
