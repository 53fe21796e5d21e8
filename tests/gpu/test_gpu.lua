-- test_gpu.lua -- the seam of the GPU: kernels run on the host under emulation and must equal the
-- CPU's ops; a device that is not there is an error that says what is missing; nvcc compiles them.
local ffi = require "ffi"
local t = require "tests.harness"

local build = os.getenv "MNEME_BUILD" or os.getenv "B" or "build"

---Run a shell command; its output, and whether it succeeded.  A sanitizer that is preloaded into this
---process is none of the compiler's business.
local function sh(command)
  local pipe = assert(io.popen("unset LD_PRELOAD; (" .. command .. ") 2>&1; echo $?"))
  local out = pipe:read "*a"
  pipe:close()
  local text, status = out:match "^(.*)(%d+)\n$"
  return text, status == "0"
end

---Make, but leave the engine as it is: this very process has loaded it.
local function make(target)
  return sh(("env -u MAKEFLAGS make --no-print-directory -s -j\"$(nproc)\" -o '%s/libmneme.so' B='%s' %s"):format(build, build, target))
end

---A test program prints "ok NAME" or "FAIL NAME: why" for each of its cases.
local function cases_of(program)
  local out, ok = sh(build .. "/" .. program)
  local failed = 0
  for line in out:gmatch "[^\n]+" do
    local name, why = line:match "^ok (.*)$", nil
    if not name then name, why = line:match "^FAIL (.-): (.*)$" end
    if name then
      failed = failed + (why and 1 or 0)
      t.test("gpu: " .. name, function() t.ok(not why, why) end)
    end
  end
  t.test("gpu: " .. program .. " ends well", function()
    t.ok(ok or failed > 0, "it stopped early; it said:\n" .. out)
    t.ok(out:find "ok ", "it tested nothing")
  end)
end

if not select(2, sh "command -v g++") then t.skip "there is no C++ compiler (Debian: g++)" end
local built, ready = make "test-gpu-programs"
t.test("gpu: the plugin and its tests compile for the host", function() t.ok(ready, built) end)
if ready then
  cases_of "test_gpu_emu"
  cases_of "test_gpu_host"
  cases_of "test_gpu_kernels emu"
end

-- Devices are looked for beside libmneme.so, so a copy of it in an empty folder finds none.
ffi.cdef [[
const char *mn_error(struct mn_ctx *mn);
int mn_device_open(struct mn_ctx *mn, const char *name, void **out);
]]

local function open_in(folder, device)
  local engine = ffi.load(folder .. "/libmneme.so")
  local out = ffi.new "void *[1]"
  local status = engine.mn_device_open(nil, device, out)
  return status, ffi.string(engine.mn_error(nil)), out[0]
end

local function folder_with(plugin)
  local folder = sh "mktemp -d":gsub("\n", "")
  sh(("cp %s/libmneme.so %s"):format(build, folder))
  if plugin then sh(("cp %s %s/libmneme_cuda.so"):format(plugin, folder)) end
  return folder
end

t.test("gpu: the cpu needs no plugin", function()
  t.eq(open_in(build, "cpu"), 0)
end)

t.test("gpu: an unknown device names the known ones", function()
  local status, why = open_in(build, "gpu")
  t.eq(status, -1)
  t.eq(why, "device=gpu is unknown, expected cpu or cuda")
end)

t.test("gpu: a plugin that is missing, damaged or old says so", function()
  local cases = {
    { nil, "libmneme_cuda.so not found next to libmneme.so; build it with `make gpu`" },
    { "Makefile", ".*libmneme_cuda.so: .+" },
    { build .. "/libmneme_emu.so", "libmneme_cuda.so is of another version; rebuild it with" },
    { build .. "/libmneme.so", "libmneme_cuda.so is of another version; rebuild it with" },
  }
  for i = 1, #cases do
    local folder = folder_with(cases[i][1])
    local status, why = open_in(folder, "cuda")
    sh("rm -r " .. folder)
    t.eq(status, -1)
    t.ok(why:find("^device=cuda: .*" .. cases[i][2]), "got: " .. why)
  end
end)

t.test("gpu: kernel files keep their types to themselves", function()
  local where = {}
  for path in sh "ls gpu/*/*.cu":gmatch "[^\n]+" do
    local hidden = false
    for line in io.lines(path) do
      hidden = hidden or line == "namespace {"
      local name = not hidden and line:match "^struct ([%w_]+)"
      if name then
        t.ok(not where[name], ("struct %s of %s is also in %s: put both into `namespace {`"):format(name, path, where[name]))
        where[name] = path
      end
    end
  end
end)

t.test("gpu: kernels are launched in one place, where each waits for the one before it", function()
  local out = sh "grep -lE '<<<|__global__' -r gpu"
  t.eq(out, "gpu/runtime/launch.cuh\n")
end)

-- Neither optimised nor made into machine code, which takes three times as long; one file is.
t.test("gpu: nvcc compiles the plugin, and says what kernels use", function()
  if not select(2, sh "command -v nvcc") then t.skip "nvcc is not installed" end
  local out, ok = make "gpu-quick"
  t.ok(ok, out)
  out, ok = make(("SASS=sm_90 CUDA=%s/gpu-one %s/gpu-one/ops/agalite.o"):format(build, build))
  t.ok(ok, out)
  out = sh(("c++filt < '%s/gpu-one/ops/agalite.used'"):format(build))
  t.ok(out:find "agalite.cu: [^\n]-agalite_steps[^\n]- sm_%d+: %d+ registers, %d+ bytes spilled", out)
end)

-- nvcc gives the host `exit(1)` as the body of a function that is for the device alone: a call of it would end the process.
t.test("gpu: no function of the host calls one of the device", function()
  if not select(2, sh "command -v nvcc") then t.skip "nvcc is not installed" end
  local each = "for o in '%s'/gpu-quick/ops/*.o '%s'/gpu-quick/runtime/*.o; do " ..
    'echo "$o"; objdump -dr --no-show-raw-insn "$o" | c++filt; done'
  local out, ok = sh(each:format(build, build))
  t.ok(ok, "objdump cannot read the objects")
  local file, name, exits, calls, read, wrong = nil, nil, 0, 0, 0, {}
  local function ended()                       -- of a function for the device alone nothing else is left
    if exits > 0 and calls > exits and not name:find "RegisterAll" then wrong[#wrong + 1] = file .. ": " .. name end
    exits, calls = 0, 0
  end
  for line in out:gmatch "[^\n]+" do
    local object, begun = line:match "^(%S+%.o)$", line:match "^%x+ <(.*)>:$"
    if object then file, read = object, read + 1 end
    if begun then
      ended()
      name = begun
    end
    local called = line:match "R_X86_64_PLT32%s+(%S+)"
    if called then calls, exits = calls + 1, exits + (called:find "^exit" and 1 or 0) end
  end
  ended()
  t.ok(read > 40, "only " .. read .. " objects were read")
  t.eq(table.concat(wrong, "\n"), "")
end)

t.test("gpu: without a GPU, device=cuda says so; with one, its kernels equal the CPU's", function()
  if not select(2, sh "command -v nvcc") then t.skip "nvcc is not installed" end
  local folder = folder_with(build .. "/gpu-quick/libmneme_cuda.so")
  local status, why = open_in(folder, "cuda")
  sh("rm -r " .. folder)
  if status == 0 then
    local out, ok = make "gpu"
    t.ok(ok, out)
    return cases_of "test_gpu_kernels cuda"
  end
  t.ok(why:find "^device=cuda: looking for a GPU: .+" or why:find "^device=cuda: no GPU", why)
  t.skip(why)
end)
