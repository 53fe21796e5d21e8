-- `luarocks --lua-version=5.1 make`: builds from this checkout, for LuaJIT.  The packages of `make deps` come from the system.
rockspec_format = "1.1"
package = "mneme"
version = "scm-1"
source = { url = "git+file://." }
description = {
  summary = "A sandbox for memory in agents",
  detailed = "Memories, autograd and environments in C, scripted from LuaJIT; trains, shows, operates and reports.",
  license = "MIT",
}
supported_platforms = { "linux" }
dependencies = { "lua == 5.1" }        -- lua-filesystem is a package of the system too: nothing is downloaded
build = {
  type = "make",
  build_target = "all",
  install_target = "install-rock",
  install_variables = { PREFIX = "$(PREFIX)/system", ROCK = "$(PREFIX)" },
  build_variables = { PREFIX = "$(PREFIX)/system" },
}
deploy = { wrap_bin_scripts = false }   -- bin/mneme is no Lua
