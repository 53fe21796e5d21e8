-- obgd.lua -- overshooting-bounded gradient descent along traces (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606, algorithm 3), in place on leaves,
-- for several networks and several streams.  To learners it looks like an optimiser (tensor/optim.lua).
--   z = decay z + gradient            a trace for each stream and each parameter of a network
--   m = max(|delta|, 1) lr kappa sum |z|            over all parameters of the network
--   w = w + mean over streams of lr / max(m, 1) delta z;   z = 0 where an episode ended
local engine = require "mneme.base.engine"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- networks: { name, parameters, kappa, z = of each parameter [B,...], streams = its views, sum [B], sums = views }.
local ObGD = {}
ObGD.__index = ObGD

---@param networks table[] { name, parameters = leaves, kappa = number }: a leaf may belong to several, and then moves by the sum of their steps
---@param o table { streams = B, lr, decay = gamma lambda }
local function new(networks, o)
  local self = setmetatable({ networks = networks, lr_ = o.lr, decay = o.decay, B = o.streams, parameters = {} }, ObGD)
  self.delta, self.over = tensor.new { shape = { self.B } }, tensor.new { shape = { self.B }, dtype = "u8" }
  self.delta_data, self.over_data = self.delta:data(), self.over:data()
  self.count = tensor.new { shape = { 2 }, dtype = "i32" }             -- updates: low 31 bits, high
  self.count_data = self.count:data()
  local seen = {}
  for _, net in ipairs(networks) do
    net.z, net.streams, net.sum, net.sums = {}, {}, tensor.new { shape = { self.B } }, {}
    net.sum_data = net.sum:data()
    for b = 0, self.B - 1 do net.streams[b], net.sums[b] = {}, tensor.view(net.sum, b, { 1 }) end
    for i, p in ipairs(net.parameters) do
      local shape, n = p:shape(), p:size()
      net.z[i] = tensor.new { shape = { self.B, unpack(shape) } }
      for b = 0, self.B - 1 do net.streams[b][i] = tensor.view(net.z[i], b * n, shape) end
      if not seen[p.slot] then
        seen[p.slot] = true
        self.parameters[#self.parameters + 1] = p
      end
    end
  end
  return self
end

---Record: an objective's gradient goes into a network's trace of one stream.
---@param b integer stream
---@param objective Tensor one number, which the network's steps raise where delta > 0
---@param retain boolean does another objective need the graph?
function ObGD:trace(net, b, objective, retain)
  for _, p in ipairs(net.parameters) do p:zero_grad() end
  objective:backward { retain = retain }
  for i, p in ipairs(net.parameters) do
    ops.eligibility_trace { w = p, z = net.streams[b][i], sum = net.sums[b], decay = self.decay, first = i == 1 and 1 or 0 }
  end
end

---Record: a step of every network, by self.delta [B] and self.over [B] (1: an episode ended).
function ObGD:apply()
  for _, net in ipairs(self.networks) do
    for i, p in ipairs(net.parameters) do
      ops.obgd { w = p, z = net.z[i], delta = self.delta, sum = net.sum, over = self.over, lr = self.lr_, kappa = net.kappa }
    end
  end
end

---The trace of one stream begins again.
function ObGD:clear(b)
  for _, net in ipairs(self.networks) do for _, z in ipairs(net.streams[b]) do z:fill(0) end end
end

---An update was made.
function ObGD:tick()
  local n = self.count_data[0] + 1
  self.count_data[0] = n % 2 ^ 31
  if n >= 2 ^ 31 then self.count_data[1] = self.count_data[1] + 1 end
end

---How many updates there were.
function ObGD:updates() return self.count_data[0] + self.count_data[1] * 2 ^ 31 end

---Numbers of all traces.
function ObGD:floats()
  local n = 0
  for _, net in ipairs(self.networks) do for _, z in ipairs(net.z) do n = n + z:size() end end
  return n
end

-- The last step's factor of delta z, the mean over streams.
local function step_of(self, net)
  local total = 0
  for b = 0, self.B - 1 do
    local bound = math.max(math.abs(self.delta_data[b]), 1) * self.lr_ * net.kappa * net.sum_data[b]
    total = total + self.lr_ / math.max(bound, 1) / self.B
  end
  return total
end

---The sum of |z| of all networks, which is not finite where a gradient was not.
function ObGD:grad_norm()
  local total = 0
  for _, net in ipairs(self.networks) do for b = 0, self.B - 1 do total = total + net.sum_data[b] end end
  return total
end

---Numbers to log: the size of the traces and of the last step, of each network.
---@param m table<string, number>
function ObGD:metrics(m)
  engine.wait()
  m["charts/learning_rate"] = self.lr_
  for _, net in ipairs(self.networks) do
    local total = 0
    for b = 0, self.B - 1 do total = total + net.sum_data[b] / self.B end
    m["trace/" .. net.name], m["step/" .. net.name] = total, step_of(self, net)
  end
end

function ObGD:lr() return self.lr_ end

---What a checkpoint holds, { name, tensor, batch_axis }: obgd.NETWORK.000 ... and obgd.updates.
function ObGD:contents()
  local list = {}
  for _, net in ipairs(self.networks) do
    for i, z in ipairs(net.z) do list[#list + 1] = { ("obgd.%s.%03d"):format(net.name, i - 1), z, batch_axis = 1 } end
  end
  list[#list + 1] = { "obgd.updates", self.count }
  return list
end

return new
