-- torch_writer.lua -- the graph of an agent's step as a Python file that imports torch alone: a module with its parameters inside, by Mneme's
-- names, for one step and for sequences, and for any number of environments.
local registry = require "mneme.base.registry"
local primitives = require "mneme.portable.primitives"
local tables = require "mneme.base.tables"
local plan_writer = require "mneme.portable.plan_writer"

local writer = {}

local unary = { neg = "-%s", relu = "torch.relu(%s)", softplus = "torch.nn.functional.softplus(%s)" }
local binary = { add = "%s + %s", sub = "%s - %s", mul = "%s * %s", div = "%s / %s", pow = "%s ** %s", maximum = "torch.maximum(%s, %s)",
  minimum = "torch.minimum(%s, %s)", lt = "(%s < %s).to(one)", le = "(%s <= %s).to(one)", eq = "(%s == %s).to(one)", mod = "torch.remainder(%s, %s)" }

local function size(n) return type(n) == "table" and (n[1] == 1 and "B" or n[1] .. " * B") or tostring(n) end
local function sizes(list) return table.concat(tables.map(list, size), ", ") end

local emit = {}
function emit.unary(v, x) return (unary[v.f] or "torch." .. v.f .. "(%s)"):format(x) end
function emit.binary(v, a, b) return binary[v.f]:format(a, b) end
emit["where"] = function(_, mask, a, b) return ("torch.where(%s != 0, %s, %s)"):format(mask, a, b) end
function emit.matmul(v, a, b) return v.turned and ("%s @ %s.transpose(-1, -2)"):format(a, b) or ("%s @ %s"):format(a, b) end
function emit.reduce(v, x) return ("%s.%s(%d, keepdim=True)"):format(x, v.f == "sum" and "sum" or v.f == "max" and "amax" or "amin", v.axis) end
function emit.reshape(v, x) return ("%s.reshape(%s)"):format(x, #v.general > 0 and sizes(v.general) or "()") end
function emit.transpose(v, x) return ("%s.permute(%s)"):format(x, table.concat(v.order, ", ")) end
function emit.expand(v, x) return ("%s.expand(%s)"):format(x, sizes(v.general)) end
function emit.slice(v, x) return ("%s[%s%s:%s]"):format(x, (":, "):rep(v.axis), size(v.first_of), size(v.past_of)) end
function emit.concat(v, ...) return ("torch.cat((%s), %d)"):format(table.concat({ ... }, ", "), v.axis) end
function emit.take(v, x, index)
  return ("%s.index_select(%d, %s.reshape(-1).long()).reshape(%s)"):format(x, v.axis, index, sizes(v.general))
end
function emit.detach(_, x) return x .. ".detach()" end

-- A number as Python writes it.
local function scalar(x)
  if x == math.huge then return 'float("inf")' elseif x == -math.huge then return '-float("inf")' elseif x ~= x then return 'float("nan")' end
  return ("%.9g"):format(x)
end

local head = registry.text "portable/torch_agent.txt"           -- of the class, up to its step

-- Lines of at most that many characters of a long text, joined by Python.
local function text_of(hex)
  local lines = {}
  for i = 1, #hex, 128 do lines[#lines + 1] = '"' .. hex:sub(i, i + 127) .. '"' end
  return #lines <= 1 and (lines[1] or '""') or "(\n        " .. table.concat(lines, "\n        ") .. ")"
end

---The file.
---@param graph table of portable/step_graph.lua
---@param about string what the agent is, for the comment at the top
---@param distribution string the policy's kind
function writer.text(graph, about, distribution)
  local out, parameters, buffers, constants, states, body, of, more = {}, {}, {}, {}, {}, {}, {}, ""
  local n_constants = 0
  for _, v in ipairs(graph.nodes) do
    if v.op == "parameter" then
      local parts, into = {}, v.tensor:wants_grad() and parameters or buffers
      for i, w in ipairs(v.windows or { { name = v.name, shape = v.shape, first = 0, n = primitives.product(v.shape) } }) do
        into[#into + 1] = ("    %q: (%s, %s),"):format(w.name, text_of(plan_writer.hex(v.data + w.first, w.n)), table.concat(w.shape, ", "))
        parts[i] = ("p[%q]"):format(w.name)
      end
      of[v] = parts[1]
      if v.windows then                                    -- one leaf here; there each has its name
        of[v] = "p" .. v.id
        body[#body + 1] = ("        %s = torch.cat((%s.reshape(-1),)).reshape(%s)"):format(of[v], table.concat(parts, ".reshape(-1), "),
          table.concat(v.shape, ", "))
      end
    elseif v.op == "constant" and #v.shape > 0 then
      constants[#constants + 1] = ("    (%s, %s),"):format(text_of(plan_writer.hex(plan_writer.floats(v.list), #v.list)), table.concat(v.shape, ", "))
      of[v] = ("c[%d]"):format(n_constants)
      n_constants = n_constants + 1
      for _, n in ipairs(v.general) do
        if type(n) == "table" then of[v] = ("c[%d].reshape(-1).repeat(B).reshape(%s)"):format(n_constants - 1, sizes(v.general)) break end
      end
    elseif v.op == "constant" then of[v] = scalar(v.list[1])
    elseif v.op ~= "input" then of[v] = "v" .. v.id end
  end
  for _, one in ipairs(graph.inputs) do
    if one.state then
      local t, axis = graph.start[one.state], 0
      for i, n in ipairs(one.value.general) do if type(n) == "table" then axis = i - 1 end end
      states[#states + 1] = ("    %q: (%d, %s, %s),"):format(one.state, axis, text_of(plan_writer.hex(t:data(), t:size())), table.concat(one.value.shape, ", "))
      of[one.value] = ("state[%q]"):format(one.state)
    else
      of[one.value] = one.name
      if one.name:find "^previous" then more = more .. ", " .. one.name end
    end
  end
  -- Numbers stay numbers where Python takes them.
  local needs_tensor = { maximum = true, minimum = true, mod = true }
  for _, v in ipairs(graph.nodes) do
    if emit[v.op] then
      local from = {}
      for k, x in ipairs(v.from) do
        from[k] = of[x]
        if x.op == "constant" and #x.shape == 0 and (v.op ~= "binary" or needs_tensor[v.f] or k == 1 and v.from[2].op == "constant") then
          from[k] = ("one * %s"):format(scalar(x.list[1]))
          if v.op ~= "where" and v.op ~= "concat" and v.op ~= "binary" then from[k] = "(" .. from[k] .. ")" end
        end
      end
      body[#body + 1] = ("        %s = %s%s"):format(of[v], emit[v.op](v, unpack(from)), v.note and "  # " .. v.note or "")
    end
  end
  local shape, pieces = { unpack(graph.inputs[1].value.shape, 2) }, {}
  for name in more:gmatch "[%w_]+" do
    for _, one in ipairs(graph.inputs) do if one.name == name then pieces[#pieces + 1] = (" %s [B%s]: %s;"):format(name,
      #one.value.shape > 1 and ", " .. one.value.shape[2] or "", one.about) end end
  end
  local defaults, steps = more, more:gsub("([%w_]+)", "%1[t]")
  if more ~= "" then defaults = defaults:gsub("([%w_]+)", "%1=None") end
  out[#out + 1] = ('"""%s"""'):format((about:gsub('"""', "'''"):gsub("\\", "/")))
  out[#out + 1] = head:gsub("{{(%l+)}}", { more = more, shape = table.concat(shape, ", "), pieces = table.concat(pieces), actions = graph.actions,
    distribution = distribution, defaults = defaults, steps = steps })
  out[#out + 1] = ("    def step(self, observation, state, done%s):"):format(more)
  out[#out + 1] = "        p, c, B = {**dict(self.named_parameters()), **dict(self.named_buffers())}, self._constants, observation.shape[0]"
  out[#out + 1] = "        one = next(iter(self.parameters()), torch.zeros(())).new_ones(())"
  for name in ("observation, done" .. more):gmatch "[%w_]+" do out[#out + 1] = ("        %s = %s.to(one)"):format(name, name) end
  out[#out + 1] = table.concat(body, "\n")
  local results = tables.map(graph.outputs, function(one) return one.state and ("%q: %s"):format(one.state, of[one.value]) end)
  out[#out + 1] = ("        return %s, %s, {%s}\n\n"):format(of[graph.outputs[1].value], of[graph.outputs[2].value], table.concat(results, ", "))
  for _, list in ipairs { { "PARAMETERS", parameters, "{", "}" }, { "BUFFERS", buffers, "{", "}" }, { "CONSTANTS", constants, "[", "]" },
    { "STATES", states, "{", "}" } } do
    out[#out + 1] = ("%s = %s%s%s"):format(list[1], list[3], #list[2] > 0 and "\n" .. table.concat(list[2], "\n") .. "\n" or "", list[4])
  end
  return table.concat(out, "\n") .. "\n"
end

return writer
