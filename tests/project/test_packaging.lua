-- test_packaging.lua -- what a user finds beside the program: completion in the shell, the manual page, the reference of
-- all functions (each with a comment that names its arguments), pkg-config, an installation.  Annotations: test_editors.lua.
local t = require "tests.harness"
local api = require "mneme.commands.api"
local shell = require "tests.support.shell"

local root = shell.root
local dir = shell.folder()
local function sh(line) return shell.run(dir, line) end
local function mneme(words) return (sh(shell.program .. " " .. words)) end

local function has_line(text, line) return ("\n" .. text):find("\n" .. line .. "\n", 1, true) ~= nil end

-- ---- completion ----

t.test("complete: commands, scripts, their settings, values of settings", function()
  t.ok(has_line(mneme "complete ''", "sweep") and has_line(mneme "complete ev", "eval"))
  t.eq(mneme "complete swe", "sweep\n")
  t.ok(has_line(mneme "complete run tm", "tmaze") and not has_line(mneme "complete run tm", "recall"))
  t.eq(mneme "complete run tmaze corr", "corridor=\n")
  t.eq(mneme "complete run tmaze core=gt", "core=gtrxl\n")
  t.eq(mneme "complete run tmaze quick=", "quick=0\nquick=1\n")
  t.ok(has_line(mneme "complete play mem", "memory_maze") and has_line(mneme "complete list c", "cores"))
  t.ok(has_line(mneme "complete sweep fig13a_gating ''", "jobs="))
  t.eq(mneme "complete nonsense x", "", "nothing to offer is no error")
  t.eq(mneme "complete run no_such_script x", "")
end)

t.test("complete: bash offers what mneme complete lists, values after =, too", function()
  local function offered(line)
    return (sh(("PATH=%s:$PATH bash -c 'source %s/bindings/shell/mneme.bash; compopt() { :; }; COMP_LINE=\"%s\" COMP_POINT=%d; _mneme; "
      .. "printf \"%%s\\n\" \"${COMPREPLY[@]}\"'"):format(shell.program:match "^(.*)/" , root, line, #line)))
  end
  t.eq(offered "mneme swe", "sweep\n")
  t.eq(offered "mneme run tmaze corr", "corridor=\n")
  t.eq(offered "mneme run tmaze core=gt", "gtrxl\n")
end)

-- ---- manual page and reference ----

t.test("help man: a page that man accepts, with every command", function()
  local page = mneme "help man"
  for _, name in ipairs { "run", "eval", "view", "sweep", "report", "doctor" } do
    t.ok(page:find("\n.B " .. name .. "\\fR", 1, true), name)
  end
  t.eq(select(2, page:gsub("\n%.SH ", "")), 7)
end)

-- What a comment lacks: prose, or a line for one of the arguments.
local function lacks(name, arguments, comment)
  local prose, named, missing = false, {}, {}
  for _, line in ipairs(comment) do
    prose = prose or (line:find "%S" and not line:find "^@")
    named[line:match "^@param ([%w_.]+)" or ""] = true
  end
  for argument in arguments:gmatch "[%w_]+" do
    if not named[argument] then missing[#missing + 1] = "@param " .. argument end
  end
  if not prose then missing[#missing + 1] = "a sentence" end
  return #missing > 0 and name .. ": " .. table.concat(missing, ", ") or nil
end

t.test("every function and method that a script may call has a comment that names its arguments", function()
  local wrong, seen = {}, 0
  local function look(name, arguments, comment)
    seen = seen + 1
    wrong[#wrong + 1] = lacks(name, arguments, comment)
  end
  for _, f in ipairs(api.functions()) do look(f.name, f.arguments, f.comment) end
  for _, class in ipairs(api.classes()) do
    for _, m in ipairs(class.methods) do look(class.name .. ":" .. m.name, m.arguments, m.comment) end
    if class.call then look(class.name .. "()", class.call.arguments, class.call.comment) end
  end
  t.ok(seen > 150, seen .. " functions")
  t.ok(#wrong == 0, "without:\n  " .. table.concat(wrong, "\n  "))
end)

t.test("help api: functions, objects, ops", function()
  local page = mneme "help api"
  for _, words in ipairs { "### `mn.env(name, settings)`", "### `mn.stats.iqm", "#### `Tensor:backward(options)`", "### `mn.linear_attention`" } do
    t.ok(page:find(words, 1, true), words)
  end
end)

-- ---- installation ----

t.test("one version: of the program, its pages, the package files, the wheel and the release's heading", function()
  local read, version = require("mneme.base.files").read, require "mneme.base.version"
  local python = shell.has "python3" and sh(("python3 -c 'import sys; sys.path.insert(0, \"%sbindings/python\"); import wheel_builder; "
    .. "print(wheel_builder.METADATA)'"):format(root)):match "\nVersion: (%S+)"
  local found = { ["--version"] = mneme "--version":match "^mneme (%S+)", man = mneme "help man":match "mneme ([%d.]+)", wheel = python or version,
    CITATION = read(root .. "CITATION.cff"):match "\nversion: (%S+)", CHANGELOG = read(root .. "CHANGELOG.md"):match "\n## (%S+)\n",
    ["recipe.yaml"] = read(root .. "bindings/conda/recipe.yaml"):match '\n  version: "(%S+)"\n',
    ["package.mk"] = sh(("make -s -C '%s' --eval='said: ; @echo $(VERSION)' said"):format(root)):match "(%S+)\n$" }
  for _, place in ipairs { "--version", "man", "wheel", "CITATION", "CHANGELOG", "recipe.yaml", "package.mk" } do t.eq(found[place], version, place) end
end)

t.test("make install: runs from where it is put, from plain luajit too, and make uninstall takes it away", function()
  local function make(target)
    return sh(("env -u MAKEFLAGS -u MAKELEVEL make -s -C '%s' --no-print-directory B='%s' PREFIX=/usr/local DESTDIR='%s/there' -o all %s"):format(
      root, shell.program:match "^(.*)/", dir, target))
  end
  local text, rc = make "install"
  t.eq(rc, 0, text)
  local usr = dir .. "/there/usr/local"
  local said, status = sh(("env -u MNEME_BUILD '%s/bin/mneme' list ops"):format(usr))
  t.ok(status == 0 and said:find "linear_attention", said)
  local lua = usr .. "/share/lua/5.1/"
  said = sh(("env -u MNEME_BUILD LUA_PATH='%s?.lua;%s?/init.lua;;' luajit -e 'print(require(\"mneme\").tensor{1,2}:sum():item())'"):format(lua, lua))
  t.eq(said, "3\n")
  said = sh(("PKG_CONFIG_PATH='%s/lib/pkgconfig' pkg-config --define-variable=prefix='%s' --cflags --libs mneme"):format(usr, usr))
  t.ok(said:find("-I" .. usr .. "/include/mneme", 1, true) and said:find "%-lmneme", said)
  t.ok(sh("zcat " .. usr .. "/share/man/man1/mneme.1.gz"):find "MNEME 1")
  local readme = require("mneme.base.files").read(usr .. "/share/doc/mneme/README.md")
  for page in readme:gmatch "%]%((docs/[%w_%-]+%.%w+)" do
    t.ok(require("mneme.base.files").is_file(usr .. "/share/doc/mneme/" .. page), "the README leads to " .. page)
  end
  text, rc = make "uninstall"
  t.eq(rc, 0, text)
  t.eq(sh(("find '%s' -type f -o -type l"):format(usr)), "", "what is left")
end)

t.test("luarocks make: without a network; the module and the command work, and luarocks remove takes them away", function()
  if not shell.has "luarocks" then t.skip "LuaRocks is not installed: apt-get install luarocks" end
  local build = shell.program:match "^(.*)/"
  if not build:find "/build$" then t.skip "would build anew what has other flags" end
  local function rocks(words)
    return sh(("cd '%s' && env -u MAKEFLAGS -u MAKELEVEL B='%s' luarocks --lua-version=5.1 --tree='%s/rocks' --only-server=none %s"):format(root,
      shell.make_build(), dir, words))
  end
  local said, status = rocks "make CC=cc"              -- the Makefile's: another compiler's name would build all again
  t.eq(status, 0, said)
  local share = dir .. "/rocks/share/lua/5.1/?.lua"
  t.eq(sh(("env -u MNEME_BUILD LUA_PATH='%s;;' luajit -e 'print(require(\"mneme\").tensor{1,2}:sum():item())'"):format(share)), "3\n")
  said, status = sh(("env -u MNEME_BUILD '%s/rocks/bin/mneme' list ops"):format(dir))
  t.ok(status == 0 and said:find "linear_attention", said)
  said, status = rocks "remove mneme"
  t.eq(status, 0, said)
  t.eq(sh(("find '%s/rocks' -name '*mneme*'"):format(dir)), "", "what is left")
end)

-- ---- what it depends on ----

t.test("docs/third-party.md names every library that is linked, and counts the fixtures by their source", function()
  local files, safetensors = require "mneme.base.files", require "mneme.tensor.safetensors"
  local page, seen = files.read(root .. "docs/third-party.md"), 0
  local names = { ["libjansson.so.4"] = "Jansson", png = "libpng", gif = "giflib", z = "zlib", dl = "libc", pthread = "libc", m = "libm", cublas = "cuBLAS",
    ["libSDL2-2.0.so.0"] = "SDL 2", freetype2 = "FreeType", luajit = "LuaJIT", mneme = "Mneme", ["libmpi.so.40"] = "Open MPI",
    ["libmicrohttpd.so.12"] = "libmicrohttpd" }
  local function need(library, where)
    seen = seen + 1
    t.ok(names[library] and page:find(names[library], 1, true), where .. " links " .. library .. ", which docs/third-party.md does not name")
  end
  for _, file in ipairs { "Makefile", "gpu/gpu.mk" } do
    local text = files.read(root .. file)
    for library in text:gmatch "%s%-l([%w_]+)" do need(library, file) end
    for list in text:gmatch "pkg%-config %-%-libs ([%w ]+)%)" do for library in list:gmatch "%w+" do need(library, file) end end
  end
  for _, at in ipairs { { "engine/io/mpi.c", "libmpi.so.40" },
    { "lua/mneme/base/json.lua", "libjansson.so.4" }, { "scenes/view/window.c", "libSDL2-2.0.so.0" },
    { "scenes/view/web_server.c", "libmicrohttpd.so.12" } } do
    t.ok(files.read(root .. at[1]):find(at[2], 1, true), at[1])
    need(at[2], at[1])
  end
  t.ok(seen > 10, "nothing was found to be linked")
  local count = {}
  for _, folder in ipairs { "", "images/" } do
    for _, file in ipairs(files.list(root .. "tests/fixtures/" .. folder)) do
      local source = file:find "%.safetensors$" and safetensors.load(root .. "tests/fixtures/" .. folder .. file).metadata.source
      if source then count[source] = (count[source] or 0) + 1 end
    end
  end
  t.eq(count["jax-official"], tonumber(page:match "(%d+) files of `tests/fixtures/` whose metadata says `jax%-official`"))
  t.eq(count["torch-float64"], tonumber(page:match "(%d+) that say `torch%-float64`"))
end)

t.test("on a processor that lacks what the build needs it says so", function()
  if os.getenv "LD_PRELOAD" then t.skip "qemu kills what has a sanitizer in it" end
  if not shell.has "qemu-x86_64" then t.skip "qemu-x86_64 is not installed (Debian: qemu-user)" end
  local said, status = sh("qemu-x86_64 -cpu Nehalem " .. shell.program .. " doctor")
  if not mneme "doctor":find "avx" then return t.eq(status, 0, said) end
  t.eq(status, 1)
  t.ok(said:find "^mneme: this build is for CPUs with AVX", said)
end)

os.execute("rm -r '" .. dir .. "'")
