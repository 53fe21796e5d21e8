-- test_python.lua -- the environments as Gymnasium's, and what is exported for PyTorch and NumPy: the tests of
-- bindings/python and bindings/contract, run by pytest in an environment of their own.
-- MNEME_PYTHON names a Python that has what they need (PyTorch, too, which else is left out).
local t = require "tests.harness"
local shell = require "tests.support.shell"

local root, build = shell.root, shell.build

local python, why = require("tests.support.python")()
local said, status, left_out = "", 1, {}
if python then
  said, status = shell.run(root .. "bindings/python",
    ("MNEME_BUILD='%s' MNEME_LIBRARY='%s/libmneme.so' '%s' -m pytest -q -rs -p no:cacheprovider tests ../contract/tests"):format(build, build, python))
  for line in said:gmatch "SKIPPED ([^\n]*)" do left_out[line:match "sb3" or "torch"] = line end
end
t.test("python: environments pass Gymnasium's checker, and the other tests of bindings", function()
  if not python then t.skip(why) end
  t.ok(status == 0 and tonumber(said:match "(%d+) passed" or 0) > 40, said)
end)
for what, of in pairs { ["exports are loaded by PyTorch"] = "torch", ["agents of sb3-contrib are imported"] = "sb3" } do
  t.test("python: " .. what, function()
    if not python or left_out[of] then t.skip(why or left_out[of] .. " (MNEME_PYTHON names one that has it)") end
  end)
end
