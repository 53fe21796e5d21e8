-- expect.lua -- assertions of contracts and tests: ok, eq, near, raises; each raises an error if it does not hold.
local expect = {}

---@param v any must be true
function expect.ok(v, msg) if not v then error(msg or "expected true", 2) end return v end

function expect.eq(got, want, msg)
  if got ~= want then error(("%sgot %s, expected %s"):format(msg and msg .. ": " or "", tostring(got), tostring(want)), 2) end
end

---|got - want| <= tol; a NaN never passes.
function expect.near(got, want, tol, msg)
  if not (math.abs(got - want) <= tol) then
    error(("%sgot %.9g, expected %.9g within %g"):format(msg and msg .. ": " or "", got, want, tol), 2)
  end
end

---f must raise an error whose text matches the pattern.
function expect.raises(f, pattern, ...)
  local ok, err = pcall(f, ...)
  if ok then error("expected an error matching '" .. pattern .. "', but nothing was raised", 2) end
  if not tostring(err):find(pattern) then error(("expected an error matching '%s', got: %s"):format(pattern, tostring(err)), 2) end
  return tostring(err)
end

---The larger of two numbers; NaN where one of them is: math.max forgets it at the next number.
function expect.larger(a, b) return (a ~= a or b <= a) and a or b end

return expect
