-- cholesky.lua -- Cholesky's factor of a positive definite matrix of doubles, and solutions with it.  In place, for up to some hundreds of rows;
-- l: of factor, n: rows.
local cholesky = {}

---The factor L of A = L L', in the lower half of A.
---@param a ffi.cdata* double[n * n]
---@return boolean positive false: A is not positive definite, and the factor stops there
function cholesky.factor(a, n)
  for j = 0, n - 1 do
    local row = j * n
    local d = a[row + j]
    for k = 0, j - 1 do d = d - a[row + k] * a[row + k] end
    if not (d > 0) then return false end
    d = math.sqrt(d)
    a[row + j] = d
    for i = j + 1, n - 1 do
      local other = i * n
      local s = a[other + j]
      for k = 0, j - 1 do s = s - a[other + k] * a[row + k] end
      a[other + j] = s / d
    end
  end
  return true
end

---y with L y = b, in place of b.
---@param b ffi.cdata* double[n]
function cholesky.forward(l, n, b)
  for i = 0, n - 1 do
    local s = b[i]
    for k = 0, i - 1 do s = s - l[i * n + k] * b[k] end
    b[i] = s / l[i * n + i]
  end
end

---y with L' y = b, in place of b.
---@param b ffi.cdata* double[n]
function cholesky.backward(l, n, b)
  for i = n - 1, 0, -1 do
    local s = b[i]
    for k = i + 1, n - 1 do s = s - l[k * n + i] * b[k] end
    b[i] = s / l[i * n + i]
  end
end

---x with L L' x = b, in place of b.
---@param b ffi.cdata* double[n]
function cholesky.solve(l, n, b)
  cholesky.forward(l, n, b)
  cholesky.backward(l, n, b)
end

return cholesky
