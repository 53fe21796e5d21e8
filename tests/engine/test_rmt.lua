-- test_rmt.lua -- the recurrent memory transformer, where the contract of all memories does not look: cuts inside
-- segments, runs by rows with resets anywhere, the learned first memory.
local t = require "tests.harness"
local contract_rig = require "mneme.models.contract_rig"
local mn = require "mneme"

local T, B = 23, 3
local resets = { { 0, 1 }, { 5 }, { 6, 0 }, { 11, 2 }, { 12, 2 }, { 18, 1 } }


for _, flow in ipairs { "gtrxl", "residual", "postnorm" } do
  for _, segment in ipairs { 1, 3, 40 } do
    t.test(("by rows, with resets anywhere, it is the sequence: %s, segments of %d"):format(flow, segment), function()
      local c = contract_rig.build({ "rmt", segment = segment, flow = flow, mem_slots = 3 })
      local x, done = mn.sequence { shape = { T, B, c.config.d_in } }, mn.sequence { shape = { T, B }, dtype = "u8" }
      local start = { mem = contract_rig.normal({ B, 3, c.d_out }, 9) }
      local plan = mn.plan(function(...) return c(...) end)
      local y, after = plan(x, done, start)
      x:copy(contract_rig.normal({ T, B, c.config.d_in }, 1))
      done:copy(contract_rig.done(T, B, resets))
      local want = contract_rig.run(c, x, done, start)
      for _, step in ipairs { 1, 5 } do
        for t0 = 0, T - 1, step do
          local t1 = math.min(T, t0 + step)
          plan:rows(t0, t1)
          if t1 % 4 == 1 then                 -- the state so far is that of the shorter sequence
            local _, state = contract_rig.run(c, contract_rig.rows(x, 0, t1), contract_rig.rows(done, 0, t1), start)
            local mem = mn.tensor { shape = { B, 3, c.d_out } }:copy(after.mem)
            t.near(contract_rig.apart(mem, state.mem), 0, 2e-6, "memory at " .. t1)
          end
        end
        t.near(contract_rig.apart(y, want), 0, 2e-6, ("by %d rows"):format(step))
      end
    end)
  end
end

t.test("a call that is cut inside a segment begins another one", function()
  local c = contract_rig.build { "rmt", segment = 4 }
  local x = contract_rig.normal({ 8, B, c.config.d_in }, 1)
  local y = contract_rig.run(c, x)
  for at, same in pairs { [4] = true, [3] = false, [6] = false } do
    local _, state = contract_rig.run(c, contract_rig.rows(x, 0, at))
    local rest = contract_rig.run(c, contract_rig.rows(x, at, 8), nil, state)
    t.eq(contract_rig.apart(rest, contract_rig.rows(y, at, 8)) < 1e-6, same, "cut at " .. at)
  end
end)

-- The gradient of mem0 from a sum over y.
local function grad_of_mem0(c, x, done, state)
  local mem0 = c:state_dict().mem0
  for _, p in ipairs(c:parameters()) do p:zero_grad() end
  local y = c(x, done, state)
  ;(y * contract_rig.normal({ 5, B, c.d_out }, 2)):sum():backward()
  mn.clear_tape()
  return mem0:grad()
end

t.test("mem0 is what a fresh memory is, and learns from it", function()
  local c = contract_rig.build { "rmt", segment = 2 }
  local mem0, x = c:state_dict().mem0, contract_rig.normal({ 5, B, c.config.d_in }, 1)
  mem0:fill(0.5)
  mem0:data()[3] = -1
  local state = c:initial(B)
  for b = 0, B - 1 do
    for i = 0, mem0:size() - 1 do t.eq(state.mem:data()[b * mem0:size() + i], mem0:data()[i]) end
  end
  t.ok(contract_rig.bytes(contract_rig.run(c, x)) == contract_rig.bytes(contract_rig.run(c, x, nil, state)), "no state is the initial state")
  t.ok(contract_rig.bytes(contract_rig.run(c, x)) == contract_rig.bytes(contract_rig.run(c, x, contract_rig.done(5, B, { { 0 } }), contract_rig.warm(c,
    B))), "a reset goes there")
  local reset = grad_of_mem0(c, x, contract_rig.done(5, B, { { 0 } }), state)
  t.near(contract_rig.apart(grad_of_mem0(c, x), reset), 0, 1e-6, "the gradient of no state is that of a reset")
  t.ok(contract_rig.apart(reset, grad_of_mem0(c, x, nil, state)) > 1e-3, "a state that was handed in is no parameter")
  local given = grad_of_mem0(c, x, nil, state)
  for i = 0, given:size() - 1 do t.eq(given:data()[i], 0) end
end)

t.test("gradients go back through many segments, to the first token and the first memory", function()
  local c = contract_rig.build { "rmt", segment = 2, flow = "residual" }
  local x = contract_rig.normal({ 9, B, c.config.d_in }, 1, true)
  local state = { mem = contract_rig.normal({ B, c.config.mem_slots, c.d_out }, 3, true) }
  local y = c(x, contract_rig.done(9, B, { { 4, 1 } }), state)
  y:slice({ from = 8 }):sum():backward()
  mn.clear_tape()
  local row, memory = c.config.d_in, c.config.mem_slots * c.d_out
  for b = 0, B - 1 do
    local first, mem = 0, 0
    for i = 0, row - 1 do first = first + math.abs(x:grad_data()[b * row + i]) end
    for i = 0, memory - 1 do mem = mem + math.abs(state.mem:grad_data()[b * memory + i]) end
    t.eq(first > 0, b ~= 1, "first token of copy " .. b)
    t.eq(mem > 0, b ~= 1, "first memory of copy " .. b)
  end
end)

t.test("wrong settings are refused by name", function()
  t.fails(function() mn.core("rmt", { segment = 0 }) end)
  t.raises(function() mn.core("rmt", { mem_slots = 1.5 }) end, "mem_slots = 1.5")
  t.raises(function() mn.core("rmt", { flow = "gtrx" }) end, "gtrxl")
end)
