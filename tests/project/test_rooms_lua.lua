-- test_rooms_lua.lua -- the houses and rooms of lua/mneme: each may require only earlier ones, without circles.
local t = require "tests.harness"
local files = require "mneme.base.files"
local root = require("mneme.base.registry").root

-- The library, and the houses around it.  A room may require those before it, and itself; so no house knows a later one.
local houses = { { "", "base", "stats", "tensor", "models", "envs", "runs", "learn", "portable" }, { "insight", "figures", "episodes", "view", "measure" },
  { "lab", "search", "study", "reports" }, { "", "commands" } }
local rooms, house_of = {}, {}
for _, house in ipairs(houses) do
  for i = 2, #house do rooms[#rooms + 1], house_of[house[i]] = house[i], house[1] end
end
-- Registries stand on the surface; each counts as the room whose things it lists.
local registries = { cores = "models", attentions = "models", datasets = "envs", learners = "learn" }
local ROOM_FILES = 30
local doors = { insight = true, lab = true }         -- init.lua and rooms
local place = {}
for i, room in ipairs(rooms) do place[room] = i end

local function none(list, what) t.ok(#list == 0, what .. ":\n  " .. table.concat(list, "\n  ")) end

-- module name = { path, room }.
local modules, folders = {}, {}
local function read(folder, prefix, room)
  for _, name in ipairs(files.list(folder)) do
    local path = folder .. "/" .. name
    if files.is_folder(path) then
      read(path, prefix .. name .. ".", room or registries[name] or not doors[name] and name or nil)
    elseif name:find "%.lua$" then
      local module = name == "init.lua" and prefix:sub(1, -2) or prefix .. name:sub(1, -5)
      modules[module] = { path = path, room = room or "init" }
      folders[folder] = (folders[folder] or 0) + 1
    end
  end
end
read(root .. "lua/mneme", "mneme.", nil)

-- The modules that a file requires, at its top or within a function: { module, line }.
local function requires(path)
  local list, n = {}, 0
  for line in (files.read(path) .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    local code = line:gsub("^%s*%-%-.*", "")
    code = code:gsub("%f[%w.]lazy(%s+[\"'])", "require%1")                           -- base/lazy.lua: when it is first used
    for module in code:gmatch "require%s*%(?%s*[\"'](mneme[%w_.]*)[\"']" do
      if module:sub(-1) ~= "." then list[#list + 1] = { module, n }       -- of `"mneme.learn." .. name` the room counts
      else list[#list + 1] = { module:sub(1, -2), n, whole_room = true } end
    end
  end
  return list
end

t.test("each house holds its door and its rooms, and nothing else", function()
  local wrong = {}
  for _, house in ipairs { "", "insight", "lab" } do
    local folder = house == "" and "lua/mneme" or "lua/mneme/" .. house
    for _, name in ipairs(files.list(root .. folder)) do
      local known = house_of[name] == house or name == "init.lua" or house == "" and (registries[name] or doors[name] or name == "README.md")
      if not known then wrong[#wrong + 1] = folder .. "/" .. name end
    end
    for room, whose in pairs(house_of) do
      if whose == house and not files.is_folder(root .. folder .. "/" .. room) then wrong[#wrong + 1] = folder .. "/" .. room .. " is missing" end
    end
  end
  none(wrong, "at the doors")
end)

t.test(("at most %d files a folder, registries excepted"):format(ROOM_FILES), function()
  local wrong = {}
  for folder, n in pairs(folders) do
    if n > ROOM_FILES and not registries[folder:match "[^/]*$"] then wrong[#wrong + 1] = ("%s: %d files"):format(folder, n) end
  end
  none(wrong, "too large")
end)

-- commands/ is the last room: only it may ask for the table that scripts see.
t.test("a room requires only earlier ones", function()
  local wrong, edges = {}, 0
  for _, m in pairs(modules) do
    for _, r in ipairs(m.room == "init" and {} or requires(m.path)) do
      local to = modules[r[1]]
      local room = r.whole_room and r[1]:gsub("^mneme%.insight%.", "mneme.")
        :gsub("^mneme%.lab%.", "mneme."):match "^mneme%.(%w+)" or to and to.room or (r[1] == "mneme" and "init")
      if not room then wrong[#wrong + 1] = ("%s:%d requires %s, which is not there"):format(m.path, r[2], r[1])
      else
        if room ~= m.room then edges = edges + 1 end
        local allowed = room == "init" and m.room == "commands" or room ~= "init" and place[room] <= place[m.room]
        if not allowed then wrong[#wrong + 1] = ("%s:%d requires %s"):format(m.path:sub(#root + 1), r[2], r[1]) end
      end
    end
  end
  table.sort(wrong)
  none(wrong, "against the order of rooms")
  t.ok(edges > 500, edges .. " edges between rooms were found")
end)

t.test("no circle of modules", function()
  local state, wrong = {}, {}                    -- 1: on the way, 2: done
  local function visit(name, way)
    state[name] = 1
    way[#way + 1] = name
    for _, r in ipairs(requires(modules[name].path)) do
      local to = r[1]
      if modules[to] and modules[to].room ~= "init" and to ~= name and not r.whole_room then
        if state[to] == 1 then
          local at = #way
          while way[at] ~= to do at = at - 1 end
          wrong[#wrong + 1] = table.concat(way, " -> ", at) .. " -> " .. to
        elseif not state[to] then visit(to, way) end
      end
    end
    way[#way] = nil
    state[name] = 2
  end
  for name in pairs(modules) do if not state[name] and modules[name].room ~= "init" then visit(name, {}) end end
  table.sort(wrong)
  none(wrong, "circles")
end)

t.test("docs/design.md has a row for every room, and no other", function()
  local text = files.read(root .. "docs/design.md"):match "\n## Rooms\n(.-)\n## "
  local told, wrong = {}, {}
  for line in text:gmatch "[^\n]+" do
    if line:find "^| `" then for path in line:gmatch "`([%w_/]+)/`" do told[path] = true end end
  end
  local function walk(folder)
    for _, name in ipairs(files.list(root .. folder)) do
      local path = folder .. "/" .. name
      if files.is_folder(root .. path) and name ~= "__pycache__" and folder ~= "engine/envs" then      -- there it is an environment
        if not told[path] then wrong[#wrong + 1] = path .. " is not in the table" end
        told[path] = nil
        walk(path)
      end
    end
  end
  for _, folder in ipairs { "engine", "lua/mneme", "gpu", "tests" } do walk(folder) end
  for _, folder in ipairs { "scenes", "scenes/panels", "scenes/view" } do told[folder] = nil end
  for path in pairs(told) do wrong[#wrong + 1] = path .. " is in the table and not there" end
  table.sort(wrong)
  none(wrong, "rooms")
end)

-- One word for one thing: a local that holds a module has the name of its file, and a folder's door that of the folder.  "mn" and "t" stand for
-- what every script and every test begins with.
local SHORT = { mneme = "mn", ["tests.harness"] = "t" }
-- Where the name of the file is that of a value in it: a run, a plan, a tensor, an agent.
local OTHER = {
  ["lua/mneme/commands/export.lua"] = "modules", ["lua/mneme/learn/initial_parameters.lua"] = "modules", ["lua/mneme/learn/extra_losses.lua"] = "tensor_module",
  ["lua/mneme/insight/episodes/stepper.lua"] = "agents", ["lua/mneme/lab/study/power.lua"] = "study_claims",
  ["lua/mneme/lab/study/study.lua"] = "runs", ["lua/mneme/learn/trainer.lua"] = "runs", ["lua/mneme/models/contract.lua"] = "plans tensors",
  ["lua/mneme/models/check_own_parts.lua"] = "plans", ["tests/commands/test_export_step.lua"] = "space_kinds",
  ["tests/gpu/test_gpu_envs.lua"] = "devices", ["tests/gpu/test_gpu_ops.lua"] = "devices",
}
t.test("a local that holds a module has the name of its file", function()
  local wrong, bound = {}, 0
  local function read_folder(folder)
    for _, name in ipairs(files.list(root .. folder)) do
      local path, n = folder .. "/" .. name, 0
      if files.is_folder(root .. path) then read_folder(path)
      elseif name:find "%.lua$" then
        for line in (files.read(root .. path) .. "\n"):gmatch "(.-)\n" do
          n = n + 1
          local variable, by, module, rest = line:match "^%s*local%s+([%w_]+)%s*=%s*(%l+)%s*%(?%s*[\"']([%w_.]+)[\"'](.*)$"
          if (by == "require" or by == "lazy") and rest:find "^%s*%)?%s*%-?%-?[^.({]*$" then
            bound = bound + 1
            local right = variable == (SHORT[module] or module:match "[%w_]+$") or (" " .. (OTHER[path] or "") .. " "):find(" " .. variable .. " ", 1, true)
            if not right then wrong[#wrong + 1] = ("%s:%d binds %s as %s"):format(path, n, module, variable) end
          end
        end
      end
    end
  end
  for _, folder in ipairs { "lua", "scenes", "experiments", "tests" } do read_folder(folder) end
  none(wrong, "modules under another name")
  t.ok(bound > 2000, bound .. " requires were read")
end)

-- Lines of Lua in each room, registries counted as folders of their own: its size of 2026-11-28, rounded up to the next 50.  A larger number is
-- raised only with a reason in the commit; where a room shrinks, its number follows.
local LINES = {
  attentions = 357, base = 3814, commands = 6072, cores = 2026, datasets = 351, envs = 3094, episodes = 4877, figures = 1624, learn = 3579,
  learners = 741, measure = 2059, models = 6608, portable = 2008, reports = 1923, runs = 2798, search = 291, stats = 1291, study = 4297,
  tensor = 4794, view = 3464, scenes = 2288, experiments = 2383,
}
t.test("no room has more lines than its budget", function()
  local function lines(folder)
    local n = 0
    for _, name in ipairs(files.list(folder)) do
      local path = folder .. "/" .. name
      if files.is_folder(path) then n = n + lines(path)
      elseif name:find "%.lua$" then n = n + select(2, files.read(path):gsub("\n", "")) end
    end
    return n
  end
  local wrong, seen = {}, {}
  local function compare(name, folder)
    seen[name] = true
    local n, most = lines(folder), LINES[name]
    if not most or n > most then wrong[#wrong + 1] = ("%s has %d lines, its budget is %s"):format(name, n, tostring(most)) end
  end
  for _, house in ipairs { "lua/mneme", "lua/mneme/insight", "lua/mneme/lab" } do
    for _, name in ipairs(files.list(root .. house)) do
      local folder = root .. house .. "/" .. name
      if files.is_folder(folder) and not doors[name] then compare(name, folder) end
    end
  end
  for _, name in ipairs { "scenes", "experiments" } do compare(name, root .. name) end
  for name in pairs(LINES) do if not seen[name] then wrong[#wrong + 1] = name .. " has a budget and is not there" end end
  none(wrong, "rooms beyond their budget")
end)
