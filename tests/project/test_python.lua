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
t.test("python: the oldest Gymnasium that the wheel asks for, too; an older one is named", function()
  local oldest, none, version = require("tests.support.python")(true)
  if not oldest then t.skip(none) end
  local function sh(line)
    return shell.run(root .. "bindings/python", ("MNEME_LIBRARY='%s/libmneme.so' MNEME_BUILD='%s' '%s' "):format(build, build, oldest) .. line)
  end
  t.ok(sh "-c 'import gymnasium; print(gymnasium.__version__)'":find(version, 1, true) == 1)
  local text, rc = sh "-m pytest -q -p no:cacheprovider tests/test_envs.py"
  t.ok(rc == 0 and tonumber(text:match "(%d+) passed" or 0) > 40, text)
  text, rc = sh [[-c "
import gymnasium, gymnasium.vector
del gymnasium.vector.AutoresetMode
gymnasium.__version__ = '1.0.0'
import mneme
gymnasium.make('mneme/tmaze-v0')"]]
  t.ok(rc == 1 and text:find("ImportError: mneme: gymnasium 1.0.0, expected " .. version, 1, true), text)
end)
