-- harness.lua -- what a test file needs: t.test(name, f), t.skip, t.fails, and t.eq, t.near, t.ok, t.raises of models/expect.lua.
local golden_errors = require "tests.support.golden_errors"
local processor_time = require "tests.support.processor_time"
_G.pairs = require("mneme.base.luajit").pairs      -- as users' files have it
local t = { passed = 0, failed = 0, skipped = 0, failures = {} }
local SKIP = {}

local only = os.getenv "MNEME_ONLY"          -- parts of names, with | between them: other tests are left out
local function left_out(name)
  for part in only:gmatch "[^|]+" do if name:find(part, 1, true) then return false end end
  return only ~= "" and not name:find "%.lua$"
end

local slow = tonumber(os.getenv "MNEME_SLOW")          -- tests that took more seconds of processor time than this are named

---Run one test now; a failure is printed with its place and counted.
function t.test(name, f)
  if only and left_out(name) then return end
  local before = slow and processor_time()
  golden_errors.enter(name)
  local ok, err = xpcall(f, function(e)
    if type(e) == "table" and e.skip == SKIP then return e end
    return debug.traceback(tostring(e), 2)
  end)
  if ok then
    t.passed = t.passed + 1
    golden_errors.passed(name)
  elseif type(err) == "table" then
    t.skipped = t.skipped + 1
    print(("  skipped  %s: %s"):format(name, err.reason))
  else
    t.failed = t.failed + 1
    print(("  FAILED   %s\n           %s"):format(name, err:gsub("\n", "\n           ")))
  end
  if slow and processor_time() - before > slow then print(("  %6.2f s  %s"):format(processor_time() - before, name)) end
end

---Leave a test, saying why it cannot run here.
function t.skip(reason) error({ skip = SKIP, reason = reason }, 0) end

---A Lua module of a Debian package; where it is missing the test, or the rest of the file, is skipped.
function t.need(module, package)
  local found, result = pcall(require, module)
  return found and result or t.skip(("the package %s is not installed"):format(package))
end

---Likewise a file of the build folder that not every machine can make.
function t.need_built(name, package)
  local f = io.open(require("mneme.base.engine").build .. "/" .. name)
  if not f then t.skip(("%s is not built (make test-gpu-programs, with the package %s)"):format(name, package)) end
  f:close()
end

---f must raise the error that tests/golden/errors.txt has for this test: its status, place, message and hint.
---@return string text of the error
function t.fails(f, ...)
  local ok, err = pcall(f, ...)
  if ok then error("expected an error, but nothing was raised", 2) end
  local got, want = golden_errors.next(err)
  if got ~= want then
    error(("expected the error '%s', got: %s\n(MNEME_GOLDEN=keep luajit tests/run.lua FILE keeps what errors say now)"):format(tostring(want), got), 2)
  end
  return tostring(err)
end

for name, f in pairs(require "mneme.models.expect") do t[name] = f end

return t
