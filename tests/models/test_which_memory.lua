-- test_which_memory.lua -- docs/which-memory.md says of every core what the core says and the kept runs have measured.
local t = require "tests.harness"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"

t.test("docs/which-memory.md is what its program writes", function()
  local page = files.read(registry.root .. "docs/which-memory.md")
  local folder = shell.folder()
  local copy = folder .. "/page.md"
  files.write(copy, { page })
  shell.fine(folder, ("run %s/tests/support/which_memory.lua out=%s"):format(shell.root, copy))
  t.ok(files.read(copy) == page, "another table: build/mneme run tests/support/which_memory.lua")
  os.execute("rm -rf " .. folder)
end)

t.test("every core has a row of all columns; what was measured of it is there, and nothing else", function()
  local page = files.read(registry.root .. "docs/which-memory.md")
  local columns = select(2, page:match("\n(| core |[^\n]*)"):gsub("|", ""))
  local kept = {}
  for at, file in pairs { [9] = "memory_capacity_quick", [10] = "tmaze_solved_full", [11] = "tmaze_solved_quick", [12] = "recall_quick" } do
    kept[at] = files.read(registry.root .. "docs/results/" .. file .. ".jsonl")
  end
  for _, name in ipairs(registry.names "cores") do
    local row, cells = page:match("\n(| `" .. name .. "` |[^\n]*)"), {}
    t.ok(row, name .. " has no row")
    t.eq(select(2, row:gsub("|", "")), columns, name)
    for cell in row:gmatch "|([^|]*)" do cells[#cells + 1] = cell:match "^%s*(.-)%s*$" end
    for at, text in pairs(kept) do
      t.eq(cells[at] ~= "", text:find('"run": "core=' .. name .. ",", 1, true) ~= nil, name .. ", column " .. at)
    end
  end
end)
