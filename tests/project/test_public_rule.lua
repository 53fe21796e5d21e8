-- test_public_rule.lua -- outside lua/ and tests/ only require "mneme" is written, so that no move of an inner module breaks a
-- script: in scenes, panels, experiments, figures, bindings and the Lua that documents show.  And every name in mn is there.
local t = require "tests.harness"
local mn = require "mneme"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"

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

t.test("files of a user that require what documents named before still load, and print the successor", function()
  local folder = shell.folder()
  os.execute(("mkdir -p '%s/scenes' '%s/cores'"):format(folder, folder))
  files.write(folder .. "/scenes/mine.lua", { 'local scene = require "mneme.scene"\n',
    'return scene.new { task = { "tmaze" }, core = { "ungated", d_model = 8, n_layers = 1 }, draw = function(view, now)\n',
    "  scene.panels.seen(view, view.box, now, {})\nend }\n" })
  files.write(folder .. "/cores/ungated.lua", { 'return require("mneme.core").preset("galite", { gate = "none", feature = "elu1" },\n',
    '  { doc = "never forgets", source = "a test" })\n' })
  local said, status = shell.run(folder, ("'%s' view mine out=mine.png at=1 2>&1"):format(shell.program))
  t.eq(status, 0, said)
  for _, note in ipairs { "the module mneme.scene is now mn.scene", "the module mneme.core is now mn.core", "mn.scene: task is now mn.scene: env",
    "the panel seen is now explored" } do t.ok(said:find(note, 1, true), note .. " is not in " .. said) end
  os.execute("rm -r '" .. folder .. "'")
end)

t.test("mn.names lists a kind, and refuses what is none", function()
  t.ok(#mn.names "cores" > 20 and #mn.names "ops" > 50)
  t.raises(function() mn.names "bananas" end, "unknown kind of thing 'bananas'")
  t.raises(function() mn.names {} end, "unknown kind of thing")
end)
