-- python.lua -- a Python with gymnasium and pytest, in an environment of the build's: MNEME_PYTHON names another, MNEME_OLDEST_PYTHON one with the
-- oldest Gymnasium that the wheel asks for.
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local known = {}

---@param oldest boolean? with the oldest Gymnasium that the wheel asks for; else the newest
---@return string? python nil: there is none
---@return string? why
---@return string version of Gymnasium that was asked for: "1.1" or "newest"
return function(oldest)
  local least = files.read(shell.root .. "bindings/python/wheel_builder.py"):match "gymnasium>=([%d.]+)"
  local version = oldest and least or "newest"
  local k = known[version] or { found = os.getenv(oldest and "MNEME_OLDEST_PYTHON" or "MNEME_PYTHON") }
  known[version] = k
  if not k.found and not k.why then
    local venv = shell.build .. (oldest and "/python-oldest" or "/python")
    local wanted = oldest and ("'gymnasium==%s.0'"):format(least) or ("'gymnasium>=%s'"):format(least)
    local said, status = shell.run(shell.root, ([[flock '%s.lock' sh -c "'%s/bin/python' -c 'import gymnasium, pytest' 2>/dev/null || ]]
      .. [[{ python3 -m venv '%s' && '%s/bin/pip' -q install %s pytest; }"]]):format(venv, venv, venv, venv, wanted))
    if status == 0 then k.found = venv .. "/bin/python" else k.why = "no gymnasium and pytest: " .. (said:match "[^\n]+" or "") end
  end
  return k.found, k.why, version
end
