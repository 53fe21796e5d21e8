-- hippo.lua -- eigenvalues -1/2 + i omega, omega > 0, of the normal part of HiPPO-LegS of order 2N, and its eigenvectors (Smith et al. 2023,
-- section B.1.1): with what S5 begins.  Off its diagonal the matrix is q_i q_j/2 above and -q_i q_j/2 below, q_i^2 = 2 a_i = 2i + 1.  So sums t_i of
-- q_j v_j over the elements after i minus those up to i obey t_i = t_(i-1) (i omega - a_i)/(i omega + a_i).  They begin and end with opposite signs:
-- the angles atan(omega/a_i) add up to pi/2 + k pi.  No eigensolver is needed.
local tensor = require "mneme.tensor.tensor"

local cached = {}
---@return number[] omega
---@return Tensor re [N,2N] of the eigenvectors, a row each
---@return Tensor im [N,2N]
return function(N)
  if cached[N] then return unpack(cached[N]) end
  local omega, re, im, low = {}, tensor.new { shape = { N, 2 * N } }, tensor.new { shape = { N, 2 * N } }, 0
  local function angles(w)
    local sum = 0
    for i = 0, 2 * N - 1 do sum = sum + math.atan(w / (i + 0.5)) end
    return sum
  end
  for k = 0, N - 1 do
    local target, high = (k + 0.5) * math.pi, low + 1
    while angles(high) < target do high = 2 * high end
    for _ = 1, 60 do
      local middle = (low + high) / 2
      if angles(middle) < target then low = middle else high = middle end
    end
    omega[k + 1] = low
    local t_re, t_im, norm = 1, 0, 0
    for i = 0, 2 * N - 1 do
      local a, q, at = i + 0.5, math.sqrt(2 * i + 1), k * 2 * N + i
      local size = a * a + low * low
      local c, s = (low * low - a * a) / size, 2 * a * low / size
      local n_re, n_im = t_re * c - t_im * s, t_re * s + t_im * c
      re:data()[at], im:data()[at] = (t_re - n_re) / q, (t_im - n_im) / q
      norm = norm + ((t_re - n_re) ^ 2 + (t_im - n_im) ^ 2) / q ^ 2
      t_re, t_im = n_re, n_im
    end
    for at = k * 2 * N, (k + 1) * 2 * N - 1 do re:data()[at], im:data()[at] = re:data()[at] / math.sqrt(norm), im:data()[at] / math.sqrt(norm) end
  end
  cached[N] = { omega, re, im }
  return omega, re, im
end
