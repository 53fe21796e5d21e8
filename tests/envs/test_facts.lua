-- test_facts.lua -- facts=1, the fully observed twin of an environment: its observations end with the facts, and nothing else changes.
local t = require "tests.harness"
local envs = require "mneme.envs"
local ffi = require "ffi"

local drawn = { mystery_path = true, mystery_path_grid = true }      -- pictures, which have no such twin, unless observation=vector
local names = {}
for _, e in ipairs(envs.list()) do names[#names + 1] = e.name end

local function pair(name)
  local settings = { num_envs = 5, seed = 4 }
  if drawn[name] then settings.observation = "vector" end
  local plain = envs.new(name, settings)
  settings.facts = 1
  return plain, envs.new(name, settings)
end

-- The facts of environment i as a flat list, in the order of their names in the world's own list: compared as multisets of sums.
local function flat(truth)
  local list = {}
  for _, value in pairs(truth) do
    for _, x in ipairs(type(value) == "table" and value or { value }) do list[#list + 1] = x end
  end
  table.sort(list)
  return list
end

for _, name in ipairs(names) do
  local plain, full = pair(name)
  do
    t.test(name .. ": facts=1 appends the facts, and changes nothing else", function()
      local n, m, codes = 1, full.observation_space.shape[1], plain.observation_space.codes
      for _, size in ipairs(plain.observation_space.shape) do n = n * size end
      t.eq(#full.observation_space.shape, 1)
      local a, b = ffi.new(codes and "uint8_t[?]" or "float[?]", 5 * n), ffi.new("float[?]", 5 * m)
      local reward = { ffi.new "float[5]", ffi.new "float[5]" }
      local ends = { ffi.new "uint8_t[5]", ffi.new "uint8_t[5]", ffi.new "uint8_t[5]", ffi.new "uint8_t[5]" }
      plain:reset_raw(a)
      full:reset_raw(b)
      local function same(x, y, after)
        for i = 0, 4 do
          for j = 0, n * (codes or 1) - 1 do
            local value = codes and (x[i * n + math.floor(j / codes)] == j % codes and 1 or 0) or x[i * n + j]
            t.ok(value == y[i * m + j], ("environment %d, value %d %s"):format(i, j, after))
          end
          local shown, facts = {}, flat(full:truth(i))
          for j = n * (codes or 1), m - 1 do shown[#shown + 1] = y[i * m + j] end
          table.sort(shown)
          t.eq(#shown, #facts)
          for j = 1, #facts do t.ok(shown[j] == facts[j] or shown[j] ~= shown[j], ("fact %d of environment %d %s"):format(j, i, after)) end
        end
      end
      same(a, b, "at the start")
      local actions, random = plain.action_space:room(5), 1
      for step = 1, 300 do
        for i = 0, 4 do
          plain.action_space:any(actions, i, function()
            random = (random * 1103515245 + 12345) % 2 ^ 31
            return random / 2 ^ 31
          end)
        end
        plain:step_raw(actions, a, reward[1], ends[1], ends[2])
        full:step_raw(actions, b, reward[2], ends[3], ends[4])
        same(a, b, "after step " .. step)
        for i = 0, 4 do t.ok(reward[1][i] == reward[2][i] and ends[1][i] == ends[3][i] and ends[2][i] == ends[4][i]) end
        if ends[1][0] + ends[2][0] > 0 then
          for j = 0, n - 1 do
            local value = plain.ended.final_obs[j]
            if codes then t.eq(full.ended.final_obs[j * codes + value], 1) else t.eq(full.ended.final_obs[j], value) end
          end
        end
      end
      -- A saved environment comes back with its observation, facts included.
      local bytes, again = full:save(2), ffi.new("float[?]", m)
      full:restore(0, bytes, again)
      for j = 0, m - 1 do t.ok(again[j] == b[2 * m + j] or again[j] ~= again[j], "restored value " .. j) end
      plain:close()
      full:close()
    end)
  end
end

t.test("facts=2 is refused, and facts of pictures", function()
  t.fails(function() envs.new("tmaze", { facts = 2 }) end)
  t.fails(function() envs.new("mystery_path_grid", { observation = "pixels", facts = 1 }) end)
end)
