/* main.c -- the program `mneme`: LuaJIT, told where Mneme's Lua files are.  Everything else is Lua
** (lua/mneme/commands/cli.lua), and the same modules work from plain `luajit`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Is there a file FOLDER/NAME?  `path` gets its name. */
static int exists(char *path, size_t room, const char *folder, const char *name) {
  int n = snprintf(path, room, "%s/%s", folder, name);
  return n > 0 && (size_t)n < room && access(path, R_OK) == 0;
}

/* The folder of this program, without links. */
static int own_folder(char *folder, size_t room) {
  ssize_t n = readlink("/proc/self/exe", folder, room - 1);
  if (n <= 0) return -1;
  folder[n] = 0;
  char *slash = strrchr(folder, '/');
  if (!slash) return -1;
  *slash = 0;
  return 0;
}

/* The folder that holds mneme/commands/cli.lua: $MNEME_HOME/lua, or of the checkout (build/mneme -> lua), or of an
** installation (PREFIX/bin/mneme -> PREFIX/share/mneme/lua). */
static int find_lua(char *lua, size_t room, const char *own) {
  const char *home = getenv("MNEME_HOME");
  const char *const place[][2] = { { home, "lua" }, { own, "../lua" }, { own, "../share/mneme/lua" },
                                   { MNEME_PREFIX, "share/mneme/lua" } };
  char file[PATH_MAX];
  for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
    if (!place[i][0] || !exists(lua, room, place[i][0], place[i][1])) continue;
    if (exists(file, sizeof file, lua, "mneme/commands/cli.lua") && realpath(lua, file)) {
      snprintf(lua, room, "%s", file);
      return 0;
    }
  }
  return -1;
}

/* package.KEY = FIRST, then its entries that are absolute: what lies in the current directory, or in a folder that only means something there,
** is no module of ours, whoever put "./" into the list (Lua itself, LUA_PATH, `luarocks path`). */
static void set_path(lua_State *L, const char *key, const char *first) {
  lua_getglobal(L, "package");
  lua_pushstring(L, first);
  lua_getfield(L, -2, key);
  for (const char *entry = lua_tostring(L, -1); entry && *entry; ) {
    size_t n = strcspn(entry, ";");
    if (*entry == '/') {
      lua_pushvalue(L, -2);
      lua_pushstring(L, *lua_tostring(L, -1) ? ";" : "");
      lua_pushlstring(L, entry, n);
      lua_concat(L, 3);
      lua_replace(L, -3);
    }
    entry += n + (entry[n] == ';');
  }
  lua_pop(L, 1);
  lua_setfield(L, -2, key);
  lua_pop(L, 1);
}

/* require("mneme.commands.cli").main(words) -> exit status.  That catches what goes wrong in commands; what reaches
** us is a broken installation. */
static int run(lua_State *L, int argc, char **argv) {
  lua_getglobal(L, "require");
  lua_pushstring(L, "mneme.commands.cli");
  if (lua_pcall(L, 1, 1, 0)) return -1;
  lua_getfield(L, -1, "main");
  lua_createtable(L, argc, 0);
  for (int i = 0; i < argc; i++) {            /* word 0: as the program was called */
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i);
  }
  if (lua_pcall(L, 1, 1, 0)) return -1;
  return (int)lua_tointeger(L, -1);
}

/* What the compiler was allowed to use and this CPU lacks; NULL: nothing.  Without this a build that was copied to an
** older machine dies of an illegal instruction, which tells nobody anything. */
static const char *lacks(void) {
#ifdef __AVX512F__
  if (!__builtin_cpu_supports("avx512f")) return "AVX-512";
#endif
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2")) return "AVX2";
#endif
  return NULL;
}

/* Streams that were closed lead nowhere: the next file that is opened would take their numbers, and get what is printed. */
static void open_streams(void) {
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) < 0) return;
}

/* OpenBLAS takes 128 MiB of addresses when it is loaded, and asks for them for ever where a limit refuses them. */
enum { LEAST_MIB = 240, LEAST_STACK_KIB = 256 };

/* A limit in KiB; LONG_MAX: there is none. */
static long limit_kib(int of) {
  struct rlimit limit;
  if (getrlimit(of, &limit) || limit.rlim_cur == RLIM_INFINITY) return LONG_MAX;
  return (long)(limit.rlim_cur >> 10);
}

int main(int argc, char **argv) {
  open_streams();
  signal(SIGXFSZ, SIG_IGN);            /* a file over its limit is an error of the write, which says so */
  if (lacks()) {
    fprintf(stderr, "mneme: this build is for CPUs with %s, which this one has not (`make clean && make` "
                    "builds for this one, with ARCH=x86-64-v3 for any with AVX2, with ARCH=x86-64 for all)\n", lacks());
    return 1;
  }
  long mib = limit_kib(RLIMIT_AS) >> 10, stack = limit_kib(RLIMIT_STACK);
  if (mib < LEAST_MIB) {
    fprintf(stderr, "mneme: the address space is limited to %ld MiB (ulimit -v), expected %d or more\n", mib, LEAST_MIB);
    return 1;
  }
  if (stack < LEAST_STACK_KIB) {
    fprintf(stderr, "mneme: the stack is limited to %ld KiB (ulimit -s), expected %d or more\n", stack, LEAST_STACK_KIB);
    return 1;
  }
  /* What is large is given back when it is freed: by default the bound rises to 32 MiB, and what lies below it stays. */
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  char own[PATH_MAX], lua[PATH_MAX], library[PATH_MAX], bundled[PATH_MAX], font[PATH_MAX];
  if (own_folder(own, sizeof own)) own[0] = 0;
  if (find_lua(lua, sizeof lua, own)) {
    fprintf(stderr, "mneme: its Lua files are missing: looked in ../lua and ../share/mneme/lua of %s"
                    " (MNEME_HOME=FOLDER names another place)\n", own);
    return 1;
  }
  if (strpbrk(lua, ";?")) {
    fprintf(stderr, "mneme: its Lua files lie in %s, and Lua finds none in a folder with ';' or '?' in its name: move it to another\n", lua);
    return 1;
  }
  if (exists(library, sizeof library, own, "libmneme.so")) setenv("MNEME_BUILD", own, 0);
  if (exists(font, sizeof font, own, "../lib/bundled/DejaVuSans.ttf")) setenv("MNEME_FONT", font, 0);      /* of a tarball */
  lua_State *L = luaL_newstate();
  if (!L) return fputs("mneme: no memory for Lua\n", stderr), 1;
  luaL_openlibs(L);
  set_path(L, "path", lua_pushfstring(L, "%s/?.lua;%s/?/init.lua", lua, lua));
  set_path(L, "cpath", exists(bundled, sizeof bundled, own, "../lib/bundled") ? lua_pushfstring(L, "%s/?.so", bundled) : "");
  int status = run(L, argc, argv);
  if (status < 0) {
    const char *why = lua_tostring(L, -1);
    fprintf(stderr, "mneme: %.*s\n", (int)strcspn(why ? why : "?", "\n"), why ? why : "?");
    status = 1;
  }
  return status;      /* the state stays open: finalizers in no particular order would have nothing to add */
}
