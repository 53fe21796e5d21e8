-- test_which_memory.lua -- docs/which-memory.md says of every core what the core says and measures.
local t = require "tests.harness"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"

t.test("docs/which-memory.md is what its program writes", function()
  local page = files.read(registry.root .. "docs/which-memory.md")
  local folder = shell.folder()
  local copy = folder .. "/page.md"
  files.write(copy, { page })
  local said, status = shell.mneme(folder, ("run %sdocs/figures/which_memory.lua out=%s"):format(shell.root, copy))
  t.eq(status, 0, said)
  t.ok(files.read(copy) == page, "another table: build/mneme run docs/figures/which_memory.lua")
  os.execute("rm -rf " .. folder)
  for _, name in ipairs(registry.names "cores") do t.ok(page:find("\n| `" .. name .. "` | ", 1, true), name .. " has no row") end
end)
