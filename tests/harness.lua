-- harness.lua -- what a test file needs: t.test(name, f), t.eq, t.near, t.ok, t.raises, t.skip.
local t = { passed = 0, failed = 0, skipped = 0, failures = {} }
local SKIP = {}

---Run one test now; a failure is printed with its place and counted.
function t.test(name, f)
  local ok, err = xpcall(f, function(e)
    if type(e) == "table" and e.skip == SKIP then return e end
    return debug.traceback(tostring(e), 2)
  end)
  if ok then t.passed = t.passed + 1
  elseif type(err) == "table" then
    t.skipped = t.skipped + 1
    print(("  skipped  %s: %s"):format(name, err.reason))
  else
    t.failed = t.failed + 1
    print(("  FAILED   %s\n           %s"):format(name, err:gsub("\n", "\n           ")))
  end
end

---Leave a test, saying why it cannot run here.
function t.skip(reason) error({ skip = SKIP, reason = reason }, 0) end

function t.ok(v, msg) if not v then error(msg or "expected true", 2) end return v end

function t.eq(got, want, msg)
  if got ~= want then error(("%sgot %s, expected %s"):format(msg and msg .. ": " or "", tostring(got), tostring(want)), 2) end
end

---|got - want| <= tol; a NaN never passes.
function t.near(got, want, tol, msg)
  if not (math.abs(got - want) <= tol) then
    error(("%sgot %.9g, expected %.9g within %g"):format(msg and msg .. ": " or "", got, want, tol), 2)
  end
end

---f must raise an error whose text matches the pattern.
function t.raises(f, pattern, ...)
  local ok, err = pcall(f, ...)
  if ok then error("expected an error matching '" .. pattern .. "', but nothing was raised", 2) end
  if not tostring(err):find(pattern) then error(("expected an error matching '%s', got: %s"):format(pattern, tostring(err)), 2) end
  return tostring(err)
end

return t
