/* fuzz.c -- a fuzzer (libFuzzer) for everything that reads bytes: hands them to the function of targets.lua that
** $MNEME_FUZZ names.  Most readers are Lua, which no compiler instruments: cover.lua does, so that libFuzzer learns its way
** through them as through C.
** An error in our own words is a fine answer.  A crash, a hang, and a fault of Lua itself are not. */
#define _GNU_SOURCE
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COUNTERS = 1 << 14, MOST = 1 << 20 };
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[COUNTERS];

static lua_State *L;
static uint8_t *fence;           /* what follows cannot be read: Lua reads through FFI, and no sanitizer sees that */

static int give_up(const char *why) {
  fprintf(stderr, "fuzz: %s\n", why ? why : "an error that is no text");
  abort();
}

/* Leaves targets.lua's function on the stack. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  const char *target = getenv("MNEME_FUZZ");
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  (void)argc, (void)argv;
  uint8_t *room = mmap(NULL, MOST + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED || mprotect(room + MOST + page, page, PROT_NONE)) return give_up("no memory");
  fence = room + MOST + page;
  L = luaL_newstate();
  luaL_openlibs(L);
  if (luaL_dostring(L, "package.path = './?.lua;./lua/?.lua;./lua/?/init.lua;' .. package.path "
                       "require('jit.opt').start('tryside=1', 'maxtrace=10000', 'maxmcode=32768') "   /* every input takes other ways */
                       "return require 'tests.fuzz.cover'")) give_up(lua_tostring(L, -1));
  lua_pushlightuserdata(L, counters);
  lua_pushinteger(L, COUNTERS);
  if (lua_pcall(L, 2, 0, 0)) give_up(lua_tostring(L, -1));
  lua_getglobal(L, "require");
  lua_pushstring(L, "tests.fuzz.targets");
  if (lua_pcall(L, 1, 1, 0)) give_up(lua_tostring(L, -1));
  lua_getfield(L, -1, target ? target : "");
  if (!lua_isfunction(L, -1)) give_up("MNEME_FUZZ=TARGET names none of tests/fuzz/targets.lua");
  return 0;
}

/* The target is given where the bytes lie, a zero behind them, and how many there are; it gives nothing, or what
** went wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size >= MOST) return -1;
  uint8_t *at = fence - size - 1;
  memcpy(at, data, size);
  at[size] = 0;
  lua_pushvalue(L, -1);
  lua_pushlightuserdata(L, at);
  lua_pushinteger(L, (lua_Integer)size);
  if (lua_pcall(L, 2, 1, 0) || !lua_isnil(L, -1)) give_up(lua_tostring(L, -1));
  lua_pop(L, 1);
  return 0;
}
