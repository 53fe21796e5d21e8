-- python.lua -- a Python with gymnasium and pytest, in an environment of the build's: MNEME_PYTHON names another.
local shell = require "tests.support.shell"

local venv, found, why = shell.build .. "/python", nil, nil

---@return string? python nil: there is none
---@return string? why
return function()
  if found or why then return found, why end
  found = os.getenv "MNEME_PYTHON"
  if found then return found end
  local said, status = shell.run(shell.root, ([[flock '%s.lock' sh -c "'%s/bin/python' -c 'import gymnasium, pytest' 2>/dev/null || ]]
    .. [[{ python3 -m venv '%s' && '%s/bin/pip' -q install 'gymnasium>=1.1' pytest; }"]]):format(venv, venv, venv, venv))
  if status == 0 then found = venv .. "/bin/python" else why = "no gymnasium and pytest: " .. (said:match "[^\n]+" or "") end
  return found, why
end
