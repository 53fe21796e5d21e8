-- best_players.lua -- how to play with a perfect memory: for each task the best policy that is known.  Of an environment each gives
-- choose(b, obs, from, last): the action of environment b, whose observation begins at obs[from]; last: the action before, nil where an
-- episode begins.  They know observations and their own actions alone.  tests/envs/test_reference.lua holds them against what is declared.
local ffi = require "ffi"
local best_pendulum = require "tests.support.best_pendulum"
local best_cartpole = require "tests.support.best_cartpole"

local players = { position_only_pendulum = best_pendulum, noisy_position_only_pendulum = best_pendulum,
  noisy_position_only_cartpole = best_cartpole, noisy_cartpole = best_cartpole }

-- ---- battleship ----

local WATER, HIT = 1, 2

-- Chances that a ship lies on each cell that was not shot at.  Ships that must explain the hits are placed in all ways; the others anywhere
-- on free cells, as if they did not get in each other's way.
local function ship_chances(side, known)
  local chance, taken, weight_of = ffi.new("double[?]", side * side), {}, {}
  local left, free, covers = { [2] = 1, [3] = 2, [4] = 1 }, {}, {}
  local function fits(cell, size, step)
    local col = cell % side
    if step == 1 and col + size > side or step == side and math.floor(cell / side) + size > side then return false end
    for k = 0, size - 1 do
      local at = cell + k * step
      if known[at] == WATER or taken[at] then return false end
    end
    return true
  end
  for size = 2, 4 do
    local n, cover = 0, ffi.new("double[?]", side * side)
    for cell = 0, side * side - 1 do
      for way = 1, 2 do
        local step, clear = way == 1 and 1 or side, true
        if fits(cell, size, step) then
          for k = 0, size - 1 do clear = clear and known[cell + k * step] ~= HIT end
          if clear then
            n = n + 1
            for k = 0, size - 1 do cover[cell + k * step] = cover[cell + k * step] + 1 end
          end
        end
      end
    end
    free[size], covers[size] = n, cover
  end
  local function place(hit)
    while hit < side * side and (known[hit] ~= HIT or taken[hit]) do hit = hit + 1 end
    if hit == side * side then
      local weight, key = 1, left[2] + 2 * left[3] + 6 * left[4]
      for size = 2, 4 do weight = weight * free[size] ^ left[size] end
      weight_of[key] = (weight_of[key] or 0) + weight
      for at in pairs(taken) do if known[at] ~= HIT then chance[at] = chance[at] + weight end end
      return
    end
    for size = 2, 4 do
      if left[size] > 0 then
        left[size] = left[size] - 1
        for way = 1, 2 do
          local step = way == 1 and 1 or side
          for back = 0, size - 1 do
            local cell = hit - back * step
            if cell >= 0 and (way == 2 or math.floor(cell / side) == math.floor(hit / side)) and fits(cell, size, step) then
              for k = 0, size - 1 do taken[cell + k * step] = true end
              place(hit)
              for k = 0, size - 1 do taken[cell + k * step] = nil end
            end
          end
        end
        left[size] = left[size] + 1
      end
    end
  end
  place(0)
  for key, weight in pairs(weight_of) do
    local rest = { [2] = key % 2, [3] = math.floor(key / 2) % 3, [4] = math.floor(key / 6) }
    for cell = 0, side * side - 1 do
      local none = 1
      for size = 2, 4 do if free[size] > 0 then none = none * (1 - covers[size][cell] / free[size]) ^ rest[size] end end
      chance[cell] = chance[cell] + weight * (1 - none)
    end
  end
  return chance
end

function players.battleship(env)
  local side, boards = math.sqrt(env.action_space.n), {}
  return function(b, v, o, last)
    local known = last and boards[b] or {}
    boards[b] = known
    if last then known[last] = v[o] == 1 and HIT or known[last] or WATER end
    local chance, best = ship_chances(side, known), nil
    for cell = 0, side * side - 1 do
      if not known[cell] and (not best or chance[cell] > chance[best]) then best = cell end
    end
    return best
  end
end

-- ---- minesweeper ----

local function choose_of(n, k)
  local c = 1
  for i = 1, k do c = c * (n - k + i) / i end
  return k < 0 and 0 or k > n and 0 or c
end

local function around(side, cell, f)
  local row, col = math.floor(cell / side), cell % side
  for r = math.max(0, row - 1), math.min(side - 1, row + 1) do
    for c = math.max(0, col - 1), math.min(side - 1, col + 1) do f(r * side + c) end
  end
end

-- Of boards with these counts: the cells in classes that the same counts mention, and the classes in groups that counts connect.
local function groups_of(side, count)
  local classes, by_key, rest, counts = {}, {}, 0, {}
  for cell = 0, side * side - 1 do
    if not count[cell] then
      local key = {}
      around(side, cell, function(at) if count[at] then key[#key + 1] = at end end)
      if #key == 0 then rest = rest + 1 end
      local name = table.concat(key, " ")
      if #key > 0 and not by_key[name] then
        by_key[name] = { counts = key, size = 0, cells = {} }
        classes[#classes + 1] = by_key[name]
        for _, at in ipairs(key) do
          counts[at] = counts[at] or {}
          table.insert(counts[at], by_key[name])
        end
      end
      if #key > 0 then table.insert(by_key[name].cells, cell) end
    end
  end
  local groups = {}
  for _, first in ipairs(classes) do
    if not first.group then
      local group = { first }
      first.group = group
      for i = 1, side * side do
        if not group[i] then break end
        for _, at in ipairs(group[i].counts) do
          for _, other in ipairs(counts[at]) do
            if not other.group then
              other.group = group
              group[#group + 1] = other
            end
          end
        end
      end
      groups[#groups + 1] = group
    end
  end
  return groups, rest
end

-- A group's boards: ways[k] with k mines, of which class c holds mines[c][k] in all.
local function solve(group, count, most)
  local need, open, ways, mines, has = {}, {}, {}, {}, {}
  for k = 0, most do ways[k] = 0 end
  for c, class in ipairs(group) do
    mines[c] = {}
    for k = 0, most do mines[c][k] = 0 end
    for _, at in ipairs(class.counts) do need[at], open[at] = count[at], (open[at] or 0) + #class.cells end
  end
  local function place(c, used, weight)
    local class = group[c]
    if not class then
      ways[used] = ways[used] + weight
      for i = 1, #group do mines[i][used] = mines[i][used] + weight * has[i] end
      return
    end
    local size = #class.cells
    for n = 0, math.min(size, most - used) do
      local fine = true
      for _, at in ipairs(class.counts) do
        local still = need[at] - n
        fine = fine and still >= 0 and still <= open[at] - size
      end
      if fine then
        for _, at in ipairs(class.counts) do need[at], open[at] = need[at] - n, open[at] - size end
        has[c] = n
        place(c + 1, used + n, weight * choose_of(size, n))
        for _, at in ipairs(class.counts) do need[at], open[at] = need[at] + n, open[at] + size end
      end
    end
  end
  place(1, 0, 1)
  return ways, mines
end

local function convolved(a, b, most)
  local c = {}
  for k = 0, most do
    c[k] = 0
    for i = 0, k do c[k] = c[k] + a[i] * b[k - i] end
  end
  return c
end

-- The chance of a mine on each cell that was not viewed.
local function mine_chances(side, total, count)
  local groups, rest = groups_of(side, count)
  local solved, chance, of_rest = {}, {}, {}
  for k = 0, total do of_rest[k] = choose_of(rest, k) end
  for g, group in ipairs(groups) do
    local ways, mines = solve(group, count, total)
    solved[g] = { ways = ways, mines = mines }
  end
  local before = { [0] = of_rest }
  for g = 1, #groups do before[g] = convolved(before[g - 1], solved[g].ways, total) end
  local all, after = before[#groups][total], { [0] = 1 }
  for k = 1, total do after[k] = 0 end
  for g = #groups, 1, -1 do
    local others = convolved(before[g - 1], after, total)
    for c, class in ipairs(groups[g]) do
      local mines = convolved(others, solved[g].mines[c], total)[total] / #class.cells / all
      for _, cell in ipairs(class.cells) do chance[cell] = mines end
    end
    after = convolved(after, solved[g].ways, total)
  end
  if rest > 0 then
    local in_rest = 0
    for k = 1, total do in_rest = in_rest + k * of_rest[k] * after[total - k] end
    for cell = 0, side * side - 1 do if not count[cell] and not chance[cell] then chance[cell] = in_rest / rest / all end end
  end
  return chance
end

function players.minesweeper(env)
  local side, boards = math.sqrt(env.action_space.n), {}
  local mines = side == 4 and 2 or side == 6 and 6 or 10
  return function(b, v, o, last)
    local count = last and boards[b] or {}
    boards[b] = count
    if last then count[last] = v[o] end
    local chance, best, least = mine_chances(side, mines, count), nil, nil
    for cell = 0, side * side - 1 do
      if chance[cell] then
        local open = 0
        around(side, cell, function(at) open = open + (count[at] and 0 or 1) end)
        local value = chance[cell] + 1e-6 * open        -- of equal ones that with the fewest closed neighbours: a corner at first
        if not best or value < least then best, least = cell, value end
      end
    end
    return best
  end
end

-- ---- labyrinth_escape ----

local step_col, step_row = { [0] = -1, 1, 0, 0 }, { [0] = 0, 0, -1, 1 }
local SPAN = 64

-- Walks to the nearest place where something is not seen yet; nearness counts, and so does how far it lies towards the side of the exit.
function players.labyrinth_escape(env, forward)
  local mazes, side = {}, env.settings.level == "easy" and 11 or env.settings.level == "medium" and 15 or 19
  forward = forward or 4
  return function(b, v, o, last)
    local m = last and mazes[b] or { cell = {}, row = SPAN / 2, col = SPAN / 2, start = SPAN / 2 * SPAN + SPAN / 2 }
    mazes[b] = m
    if last then m.row, m.col = m.row + step_row[last], m.col + step_col[last] end
    local here = m.row * SPAN + m.col
    local middle = here ~= m.start and 4 or v[o + 1] == 2 and 1 or v[o + 3] == 2 and 3 or 4
    for i = 0, 8 do
      local row, col = math.floor(i / 3) - math.floor(middle / 3), i % 3 - middle % 3
      if math.abs(row) < 2 and math.abs(col) < 2 then m.cell[here + row * SPAN + col] = v[o + i] end
    end
    if here == m.start then
      local way = middle == 1 and 3 or middle == 3 and 1 or v[o + 1] ~= 1 and 2 or 0
      m.down, m.right = step_row[way], step_col[way]
    end
    local queue, from, far, best, least = { here }, { [here] = -1 }, { [here] = 0 }, nil, nil
    for i = 1, SPAN * SPAN do
      local at = queue[i]
      if not at then break end
      local ahead = (math.floor(at / SPAN) - SPAN / 2) * m.down + (at % SPAN - SPAN / 2) * m.right
      local unseen = false
      for way = 0, 3 do
        local next = at + step_row[way] * SPAN + step_col[way]
        local cell = m.cell[next]
        if cell == nil then unseen = at ~= m.start end
        if cell and cell ~= 1 and not from[next] then
          from[next], far[next] = way, far[at] + 1
          queue[#queue + 1] = next
        end
      end
      local value = m.cell[at] == 3 and -1 or unseen and far[at] + forward * (side - 1 - ahead)
      if value and (not best or value < least) then best, least = at, value end
    end
    local at, way = best, nil
    while at ~= here do
      way = from[at]
      at = at - step_row[way] * SPAN - step_col[way]
    end
    return way
  end
end

-- ---- mystery_path_endless ----

-- Walks along what is known of the path; where that ends it tries below, above, then to the right, each once.  Cells are 12 pixels, steps 3.
function players.mystery_path_endless()
  local paths = {}
  local function center(cell) return cell % 256 * 12 + 6, math.floor(cell / 256) * 12 + 6 end
  local function put(m)
    m.at, m.goal, m.fell = 1, nil, false
    m.x, m.y = center(m.trail[1])
  end
  return function(b, v, o, last)
    local m = last and paths[b]
    if not m then
      m = { off = {}, trail = {} }
      for row = 0, 6 do if v[o + row] == 1 then m.trail[1] = row * 256 end end
      paths[b] = m
      put(m)
    elseif m.fell then
      put(m)
    else
      m.x, m.y = m.x + (last == 1 and 3 or 0), m.y + (last == 2 and -3 or last == 3 and 3 or 0)
      if v[o + 12] == 1 then
        m.off[m.goal], m.fell = true, true
        return 0
      end
    end
    local x, y = center(m.goal or 0)
    if m.goal and m.x == x and m.y == y then
      m.at = m.at + 1
      m.trail[m.at], m.goal = m.goal, nil
    end
    if not m.goal then
      local here, before = m.trail[m.at], m.trail[m.at - 1]
      m.goal = m.trail[m.at + 1] or here + 1
      if not m.trail[m.at + 1] then
        for _, to in ipairs { here + 256, here - 256 } do
          if to >= 0 and to < 7 * 256 and to ~= before and not m.off[to] then m.goal = to end
        end
      end
      x, y = center(m.goal)
    end
    return m.x < x and 1 or m.y > y and 2 or 3
  end
end

return players
