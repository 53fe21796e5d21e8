-- gemm.lua -- `mneme bench gemm`.
local lazy = require "mneme.base.lazy"
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local published_agents = lazy "mneme.commands.bench.parts.published_agents"

local gemm = { name = "bench gemm", doc = "the rate of a large matrix product on one thread, ours and OpenBLAS's: the bound of most other benchmarks" }

function gemm.run()
  local own, blas = published_agents.gemm_rates()
  print(("sgemm 1024^3, one thread: ours %.0f GFLOP/s, %s %.0f GFLOP/s; vectors: %s"):format(own,
    ffi.string(C.mn_blas()), blas, ffi.string(C.mn_simd())))
  return 0
end

return gemm
