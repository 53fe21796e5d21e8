-- test_without_root.lua -- Mneme where nobody is root: what `make deps`, `demo` and `test` do with a sudo that fails or none, the tarball
-- and the wheel in a folder far from the tree, with nothing of this machine but glibc.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local root, build = shell.root, shell.build
local dir = shell.folder()
local function sh(line) return shell.run(dir, line) end
local home = shell.run(root, "pwd -P"):gsub("\n", "")
local B = shell.make_build()

-- ---- packages ----

-- Every row of bindings/packages.txt, and the names of some groups.
local rows = {}
for line in files.read(root .. "bindings/packages.txt"):gmatch "[^\n]+" do
  local name, group, conda, kind, what = line:match "^([^#%s]%S*)%s+(%S+)%s+(%S+)%s+(%S+)%s+(%S+)$"
  if name then rows[#rows + 1] = { name = name, group = group, conda = conda, kind = kind, what = what } end
end
local function names(groups, field)
  local list = {}
  for _, row in ipairs(rows) do if groups:find(row.group) then list[#list + 1] = row[field or "name"] end end
  return list
end

-- A machine in a folder of PATH: the tools that the script is written with, and what fakes are given; what is called is in `called`.
local function machine(fakes)
  sh "rm -rf bin called && mkdir bin && for p in sh awk sed grep cut xargs cat dirname env; do ln -s $(command -v $p) bin/; done"
  for name, body in pairs(fakes) do
    files.write(("%s/bin/%s"):format(dir, name), { ("#!/bin/sh\necho \"%s $*\" >> '%s/called'\n%s\n"):format(name, dir, body) })
  end
  sh "chmod +x bin/*"
  return function(words)
    local said, status = sh(("rm -f called; PATH='%s/bin' '%s/bin/sh' '%sbindings/packages.sh' %s"):format(dir, dir, root, words))
    local called = files.is_file(dir .. "/called") and files.read(dir .. "/called") or ""
    return said, status, called
  end
end
local student, admin = "echo 1000", "echo 0"
local none = "exit 1"
-- A dpkg-query by which the packages of some groups are installed.
local function has(groups) return "printf '%s installed\\n' " .. table.concat(names(groups), " ") end

local function asks(said, groups, conda)
  for _, name in ipairs(names(groups)) do
    local there = name == "fonts-dejavu-core" or name == "fortunes"         -- files of this machine, fakes or not
    t.ok(there or said:find("apt%-get install[^\n]* " .. name:gsub("%p", "%%%0") .. "%f[ \n]"), name .. " is not asked for:\n" .. said)
  end
  t.eq(said:find "conda create %-n mneme %-c conda%-forge make c%-compiler pkg%-config luajit " ~= nil, conda, said)
  t.ok(not said:find("conda[^\n]* %- "), said)
end

t.test("packages.txt: every row has a group, a way to see it, and one name", function()
  local seen = {}
  t.ok(#rows > 25)
  for _, row in ipairs(rows) do
    t.ok(("build run font show test"):find(row.group) and not seen[row.name], row.name)
    t.ok(("program header pkgconfig module python library font file nothing"):find(row.kind), row.name .. ": " .. row.kind)
    seen[row.name] = true
  end
end)

t.test("packages.txt: what this machine has is seen without dpkg, too", function()
  local installed = sh("dpkg-query -W -f '${Package} ${db:Status-Status}\\n' " .. table.concat(names "build run font show test", " "))
  if not installed:find " installed\n" then t.skip "there is no dpkg" end
  sh "mkdir -p nodpkg && printf '#!/bin/sh\\nexit 1\\n' > nodpkg/dpkg-query && printf '#!/bin/sh\\necho 1000\\n' > nodpkg/id && chmod +x nodpkg/*"
  local said = sh(("PATH=%s/nodpkg:$PATH '%sbindings/packages.sh' test"):format(dir, root))
  local wanted = (said:match "missing %b():([^\n]*)" or "") .. " "
  for _, row in ipairs(rows) do
    local there = ("\n" .. installed):find("\n" .. row.name .. " installed", 1, true) and row.kind ~= "nothing"
    t.ok(not (there and wanted:find(" " .. row.name .. " ", 1, true)), row.name .. " is installed, and was not seen")
  end
end)

t.test("packages: a sudo that fails, or none, prints whom to ask for what", function()
  local fakes = { id = student, ["dpkg-query"] = none, ["apt-get"] = none, sudo = "echo 'sudo: a password is required' >&2; exit 1" }
  for _, target in ipairs { "deps", "demo" } do
    local said, status, called = machine(fakes)(target)
    t.eq(status, 1)
    t.ok(called:find "sudo env [^\n]*apt%-get [^\n]*update\n" and not called:find "\napt%-get", called)
    t.ok(said:find "missing %(sudo failed%)", said)
    asks(said, target == "deps" and "build run font show test" or "build run font show", true)
  end
  fakes.sudo = nil
  local said, status = machine(fakes) "deps"
  t.ok(status == 1 and said:find "there is no sudo here", said)
  asks(said, "build run font show test", true)
  fakes["apt-get"] = nil
  said, status = machine(fakes) "deps"
  t.ok(status == 1 and said:find "there is no apt%-get here", said)
end)

t.test("packages: make test asks nobody for a password, uses what is there, and says what it goes on without", function()
  local fakes = { id = student, ["dpkg-query"] = has "build run font show", ["apt-get"] = none, sudo = none }
  local said, status, called = machine(fakes) "test"
  t.eq(status, 0, said)
  t.ok(not called:find "sudo" and not called:find "apt", called)
  t.ok(said:find "tests that need them are skipped" and said:find "make deps", said)
  asks(said, "test", false)
  fakes["dpkg-query"] = has "run font show test"
  said, status, called = machine(fakes) "test"
  t.eq(status, 1, said)
  t.ok(not called:find "sudo" and not called:find "apt", called)
  asks(said, "build", true)
  fakes["dpkg-query"] = has "build run font"
  t.eq(table.concat({ machine(fakes) "build" }, "", 1, 2), "0", "some tests need no more than the program")
end)

t.test("packages: root installs, what nothing works without first; where the rest fails it goes on", function()
  local fakes = { id = admin, ["dpkg-query"] = none, ["apt-get"] = "" }
  local said, status, called = machine(fakes) "test"
  t.eq(status, 0, said)
  local installs = {}
  for list in called:gmatch "install ([^\n]*)" do installs[#installs + 1] = list end
  t.eq(installs[1], table.concat(names "build run font", " "))
  t.ok(installs[2]:find "xvfb" and called:find "%-%-no%-install%-recommends", called)
  fakes["dpkg-query"], fakes["apt-get"] = has "build run font", "exit 100"
  said, status = machine(fakes) "test"
  t.ok(status == 0 and said:find "apt%-get failed" and said:find "going on", said)
  said, status = machine(fakes) "deps"
  t.ok(status == 1, said)
end)

t.test("packages: where all is there nothing is said or called", function()
  local said, status, called = machine({ id = student, ["dpkg-query"] = has "build run font show test", sudo = none }) "deps"
  t.ok(said == "" and status == 0 and not called:find "sudo", said .. called)
end)

t.test("make test: all tests want all packages, one test the program's", function()
  local function asked(words)
    return (sh(("env -u MAKEFLAGS -u MAKELEVEL make -n -C '%s' B='%s' %s"):format(root, B, words))):match "packages%.sh (%a+)"
  end
  t.eq(asked "deps-test", "test")
  t.eq(asked "deps-test TESTS=tests/envs", "build")
  t.eq(asked "deps", "deps")
  t.eq(asked "deps-demo", "demo")
end)

t.test("Dockerfile: what its steps call is there", function()
  local text, n = files.read(root .. "Dockerfile"), 0
  for target in text:gmatch "RUN make (%S+)" do
    n = n + 1
    t.eq(select(2, sh(("make -n -C '%s' B='%s' FOR=native %s"):format(root, B, target))), 0, target)
  end
  for mode in text:gmatch "packages%.sh (%S+)" do
    n = n + 1
    t.eq(select(2, machine({ id = student, ["dpkg-query"] = has "build run font show test" })(mode)), 0, mode)
  end
  t.eq(n, 2)
end)

-- ---- tarball and wheel ----

local plain = build:find "/build$" ~= nil           -- other builds have other flags, and would be built again
local nobody = "env -i HOME='" .. dir .. "' PATH=/usr/bin:/bin "

-- Which files of /proc/self/maps are neither in a folder nor every system's.
local function foreign(maps, folder)
  local list = {}
  for path in maps:gmatch "(/%S+%.so[%d.]*)" do
    local name = path:match "[^/]*$"
    local everywhere = name:find "^ld%-linux" or name:find "^lib[cm]%.so" or name:find "^libdl%." or name:find "^libpthread%." or name:find "^libgcc_s%."
    if path:sub(1, #folder) ~= folder and not everywhere then list[path] = true end
  end
  return next(list)
end

files.write(dir .. "/maps.lua", { [[
local mn = require "mneme"
require("mneme.insight.view.scene").painter()
print(mn.tensor { 1, 2 }:sum():item())
local f = io.open "/proc/self/maps" print(f:read "*a") f:close()
]] })

t.test("make dist: a tarball runs where it is unpacked, with its own libraries, and knows nothing of this tree", function()
  if not plain then t.skip "would build anew what has other flags" end
  local said, status = sh(("env -u MAKEFLAGS -u MAKELEVEL make -s -C '%s' B='%s' FOR=native DIST_AT='%s/dist' DIST='%s/m.tar.gz' dist"):format(root,
    B, dir, dir))
  t.eq(status, 0, said)
  t.eq(select(2, sh "rm -r dist && mkdir -p far && tar -C far -xzf m.tar.gz && rm m.tar.gz && mv far/mneme-* far/here"), 0)
  local there = dir .. "/far/here"
  t.eq(sh(("grep -rlF -e '%s' -e '%s/dist' '%s'"):format(home, dir, there)), "", "paths of the machine that built it")
  said, status = sh(nobody .. there .. "/bin/mneme run maps.lua")
  t.eq(status, 0, said)
  for _, name in ipairs { "libluajit", "lfs%.so", "libmneme%.so", "libmneme_view", "libfreetype", "libpng", "DejaVuSans" } do
    t.ok(said:find(there:gsub("%p", "%%%0") .. "/lib/[^\n]*" .. name), name .. " is not the tarball's")
  end
  t.eq(foreign(said, there), nil, "of this machine")
  local function works(words)
    said, status = sh(nobody .. there .. "/bin/mneme " .. words)
    t.eq(status, 0, words .. "\n" .. said)
    return said
  end
  works "run demo steps=2048 where=0 run=mine core=gru core.d_model=16"
  t.eq(works "view mine out=mine.png wait=600", "mine.png\n")
  works(("sweep fig13a_gating quick=1 import=%s/share/doc/mneme/docs/results/fig13a_gating_quick.jsonl jobs=0 run=study"):format(there))
  t.ok(works "report study":find "report%.html")
  t.ok(works "doctor":find "everything required is installed")
  t.ok(files.read(there .. "/README.txt"):find "glibc 2%.%d+ or newer")
  for _, name in ipairs(files.list(there .. "/lib/bundled")) do
    t.ok(name == "licences" or name:find "%.so" or name == "DejaVuSans.ttf", name)
  end
  t.ok(#files.list(there .. "/lib/bundled/licences") > 8)
end)

t.test("the wheel: built without a network, its RECORD and tag are true, its engine and its program need nothing of this machine", function()
  if not plain then t.skip "a wheel is of build/" end
  if not shell.has "python3" then t.skip "there is no python3" end
  files.write(dir .. "/wheel.py", { [[
import base64, hashlib, os, re, sys, zipfile
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import wheel_builder
name = wheel_builder.build_wheel(".")
z = zipfile.ZipFile(name)
record = z.read([n for n in z.namelist() if n.endswith("RECORD")][0]).decode().splitlines()
assert sorted(r.split(",")[0] for r in record) == sorted(z.namelist())
for file, digest, size in (r.rsplit(",", 2) for r in record):
    data = z.read(file)
    if size:
        assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() and len(data) == int(size)
    assert sys.argv[2].encode() not in data, file
tag = re.search(r"Tag: (\S+)", z.read([n for n in z.namelist() if n.endswith("/WHEEL")][0]).decode())[1]
assert name.endswith(f"-{tag}.whl") and tag.startswith("py3-none-linux_"), name      # built for this CPU: for no other machine
z.extractall("wheel")
programs = [i.filename for i in z.infolist() if i.external_attr >> 16 & 0o111]
assert sorted(p.split("/", 1)[1] for p in programs) == ["program/bin/mneme", "scripts/mneme"], programs
for program in programs:
    os.chmod("wheel/" + program, 0o755)
assert sum(i.compress_size for i in z.infolist()) < 25e6 and not [n for n in z.namelist() if n.endswith(".png")]
os.rename("wheel/" + programs[1], "mneme.py") if programs[1].endswith("scripts/mneme") else os.rename("wheel/" + programs[0], "mneme.py")
sys.path.insert(0, "wheel/mneme")
import engine
assert engine.font() and engine.view().mn_raster_new(engine.new_ctx(), engine.font())
print("environments:", len(engine.names()), open("/proc/self/maps").read())
]] })
  local said, status = sh(("env -u MNEME_DIST -u MNEME_LIBRARY MNEME_BUILD='%s' python3 wheel.py '%s/bindings/python' '%s'"):format(build, home, home))
  t.eq(status, 0, said)
  t.eq(tonumber(said:match "environments: (%d+)"), #require("mneme.envs").list())
  local maps = ""
  for line in said:gmatch "[^\n]+" do
    if line:find "mneme" or line:find "lib[pg][nio][gfm]" or line:find "freetype" or line:find "brotli" then maps = maps .. line .. "\n" end
  end
  t.ok(maps:find "bundled/libpng", said)
  t.eq(foreign(maps, dir .. "/wheel/"), nil, "of this machine")
  said, status = sh(nobody .. "PYTHONPATH='" .. dir .. "/wheel' python3 mneme.py run maps.lua")           -- as pip puts it, but for its first line
  t.eq(status, 0, said)
  t.ok(said:find(dir .. "/wheel/mneme/program/lib/libmneme.so", 1, true), said)
  t.eq(foreign(said, dir .. "/wheel/"), nil, "of this machine")
end)

os.execute("rm -rf '" .. dir .. "'")
