-- test_public_rule.lua -- outside lua/ and tests/ only require "mneme" is written, so that no move of an inner module breaks a
-- script: in scenes, panels, experiments, figures, bindings and the Lua that documents show.  And every name in mn is there.
local t = require "tests.harness"
local mn = require "mneme"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"

local root = registry.root
local places = { "scenes", "experiments", "docs", "bindings", "README.md", "CONTRIBUTING.md" }
local kinds = { lua = true, md = true, py = true, ["in"] = true }

-- f(path) for every file of these kinds under a path.
local function each(path, f)
  if not files.is_folder(root .. path) then return kinds[path:match "%.(%w+)$"] and f(path) end
  for _, name in ipairs(files.list(root .. path)) do each(path .. "/" .. name, f) end
end

t.test("scenes, experiments, documents and bindings require nothing but mneme", function()
  local wrong, read = {}, 0
  for _, place in ipairs(places) do
    each(place, function(path)
      read = read + 1
      for inner in files.read(root .. path):gmatch "require[%s(]*[\"'](mneme%.[%w_.]+)" do wrong[#wrong + 1] = path .. ": " .. inner end
    end)
  end
  t.ok(read > 100, read .. " files read")
  t.ok(#wrong == 0, "inner modules are named by:\n  " .. table.concat(wrong, "\n  "))
end)

t.test("every name in mn, and every field that is promised of it, is there", function()
  local seen = 0
  local function look(name, value)
    seen = seen + 1
    t.ok(value ~= nil, name)
    local meta = type(value) == "table" and getmetatable(value)
    if type(value) ~= "table" or meta and not (meta.called or meta.group or meta.guarded) then return end
    for key, inner in pairs(value) do if type(key) == "string" then look(name .. "." .. key, inner) end end
  end
  for _, name in ipairs(mn.names()) do if name ~= "Tensor" then look("mn." .. name, mn[name]) end end
  t.ok(seen > 150, seen .. " names")
  t.ok(mn.scene { draw = function() end }.draw and mn.core("gru", { d_in = 3 }).name == "gru", "what has fields is called, too")
end)

t.test("mn.names lists a kind, and refuses what is none", function()
  t.ok(#mn.names "cores" > 20 and #mn.names "ops" > 50)
  t.raises(function() mn.names "bananas" end, "unknown kind of thing 'bananas'")
  t.raises(function() mn.names {} end, "unknown kind of thing")
end)
