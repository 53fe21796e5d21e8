-- doctor.lua -- `mneme doctor`: which of the libraries and programs that Mneme can use are installed, and how to install the
-- others.  Exit status 0 unless something required is missing.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local layout = require "mneme.base.layout"
local luajit = require "mneme.base.luajit"
local resources = require "mneme.runs.resources"
local version = require "mneme.base.version"

local doctor = { name = "doctor", doc = "check this machine: what is installed, what is missing, how to install it" }

local function output(line) return (files.output(line .. " 2> /dev/null"):gsub("%s+$", "")) end
local function program(name) return os.execute("command -v " .. name .. " > /dev/null 2>&1") == 0 end
local function loads(name) return (pcall(ffi.load, name)) end
local function apt(package) return "apt-get install " .. package end

-- A value of /proc/meminfo, in GiB.
local function memory(key)
  local kb = output("grep '^" .. key .. ":' /proc/meminfo"):match "%d+"
  return kb and ("%.1f GiB"):format(kb / 2 ^ 20) or "?"
end

-- Programs that a command, a make target or a test can ask for: program, its package in Debian or what else brings it, what needs it.
local programs = {
  { "ffmpeg", "ffmpeg", "MP4 videos (GIF works without)" },
  { "rsvg-convert", "librsvg2-bin", "figures as PNG and PDF (SVG works without)" },
  { "mpirun", "openmpi-bin", "training one agent in several processes" },
  { "git", "git", "the commit in config.json" },
  { "luajit", "luajit", "make test, and faster starts" },
  { "nvcc", "a CUDA toolkit, 12 or newer", "make gpu" },
  { "dpkg-shlibdeps", "dpkg-dev", "make deb" },
  { "clang", "clang", "make fuzz" },
  { "luarocks", "luarocks", "the package of LuaRocks" },
  { "g++", "g++", "tests: GPU kernels, emulated" },
  { "Xvfb", "xvfb", "tests: the window" },
  { "xdotool", "xdotool", "tests: the window" },
  { "chromium", "chromium", "tests: pages in a browser" },
  { "qemu-x86_64", "qemu-user", "tests: older processors" },
  { "luacheck", "lua-check", "tests: the project's Lua" },
}

-- The parts: { name, found (a text) or nil, how to install it, what needs it }; required: nothing works without it.
local function parts()
  local C = engine.C
  local display = os.getenv "WAYLAND_DISPLAY" or os.getenv "DISPLAY"
  local view = pcall(function() return require("mneme.insight.view.scene").library() end)
  local served = view and pcall(function() return require("mneme.insight.view.scene").library().mn_web_new end)
  local painted = view and pcall(function() return require("mneme.insight.view.scene").painter() end)
  local jansson = loads "libjansson.so.4" and "found"
  local files_ok = pcall(require, "lfs") and "found"
  local free = output "df -Pk . | tail -1":match "^%S+%s+%d+%s+%d+%s+(%d+)"
  local writable = os.execute "test -w ." == 0
  local about, commit = resources.machine(), ffi.string(C.mn_commit())
  local bf16 = ffi.string(C.mn_bf16_name "0")
  local gpu = output "nvidia-smi --query-gpu=name,memory.total --format=csv,noheader"
  local list = {
    { "mneme", version .. ", " .. engine.library .. (commit ~= "" and ", commit " .. commit or "") .. ", " .. about.compiler },
    { "lua", jit.version .. " " .. jit.arch .. (jit.status() and "" or ", compiler off"), required = true },
    { "pairs", luajit.faulty() and "Mneme's: that of this LuaJIT loses keys in nested loops (its issue 744)" or "LuaJIT's own" },
    { "folders", files_ok, apt "lua-filesystem", "runs, sweeps and views", required = true },
    { "json", jansson, apt "libjansson4", "run folders", required = true },
    { "system", about.system },
    { "processor", about.processor },
    { "vectors", about.vectors },
    { "bf16", bf16 ~= "" and bf16 or nil, "a CPU with AVX512-BF16 or AMX-BF16 (emulate=1 is for tests)", "precision=bf16" },
    { "threads", ("%d of %d processors"):format(C.mn_threads(engine.ctx), about.cores) },
    { "memory", memory "MemTotal" .. ", " .. memory "MemAvailable" .. " available" },
    { "blas", about.blas ~= "built-in" and about.blas, apt "libopenblas0-pthread", "products of many small matrices" },
    { "disk", writable and free and ("%.1f GiB free here"):format(free / 2 ^ 20), "cd to a writable folder", "run folders" },
    { "open files", output "sh -c 'ulimit -n'" },
    { "gpu", gpu ~= "" and gpu or nil, "an NVIDIA GPU with its driver, and `make gpu`", "device=cuda" },
    { "nccl", loads "libnccl.so.2" and "found" or nil, "NVIDIA's libnccl2", "ranks with one GPU each" },
    { "pictures", view and "found", "make, after apt-get install libfreetype-dev", "windows, videos, pictures" },
    { "sdl", loads "libSDL2-2.0.so.0" and "found" or nil, apt "libsdl2-2.0-0", "windows" },
    { "web server", served and loads "libmicrohttpd.so.12" and "found" or nil,
      "make, after apt-get install libmicrohttpd-dev", "view web=1, play web=1" },
    { "font", painted and "found", apt "fonts-dejavu-core" .. ", or MNEME_FONT=FILE.ttf", "windows, videos, pictures" },
    { "display", display, "a desktop, ssh -X, or out=FILE", "windows" },
    { "pip", os.execute "python3 -m pip --version > /dev/null 2>&1" == 0 and "found" or nil, apt "python3-pip python3-venv", "make wheel, the Python package" },
    { "fortunes", files.is_file "/usr/share/games/fortunes/people" and "found" or nil, apt "fortunes",
      "the longer text of char_lm (a play of Shakespeare's is here)" },
  }
  for _, row in ipairs(programs) do
    list[#list + 1] = { row[1], program(row[1]) and "found" or nil, row[2]:find " " and row[2] or apt(row[2]), row[3] }
  end
  return list
end

function doctor.run()
  local rows, missing, status = {}, {}, 0
  for _, part in ipairs(parts()) do
    local name, found, fix, without = unpack(part, 1, 4)
    rows[#rows + 1] = { name, found or "none" }
    if not found then
      missing[#missing + 1] = { name, without, fix }
      if part.required then status = 1 end
    end
  end
  io.stdout:write(layout.columns(rows))
  if #missing > 0 then
    table.insert(missing, 1, { "missing", "needed for", "install with" })
    io.stdout:write("\n", layout.columns(missing))
  end
  io.stdout:write(status == 0 and "\neverything required is installed\n" or "\nsomething required is missing\n")
  require("mneme.base.terminal").next_step.say(status == 0 and "run demo" or "doctor")
  return status
end

return doctor
