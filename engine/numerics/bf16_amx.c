/* bf16_amx.c -- products of bfloat16 by AMX's tiles: see bf16_gemm.h.  Compiled for AMX (Makefile). */
#include "bf16_avx512.h"

#if defined __AMX_BF16__ && defined MN_BF16_VECTORS && defined __linux__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MN_TILES(x) own_##x
#define TILE_BEGIN _tile_loadconfig(&whole_tiles);
#define TILE_END _tile_release();
#define TILE_REGISTERS
#define TILE_LOAD(i, from, bytes) _tile_loadd(i, from, bytes)
#define TILE_STORE(i, to, bytes) _tile_stored(i, to, bytes)
#define TILE_DOT(to, a, b) _tile_dpbf16ps(to, a, b)
#define TAKE mn_bf16_take_rows
#define REST mn_bf16_panel_rows

static const struct { uint8_t palette, row, none[14]; uint16_t bytes[16]; uint8_t rows[16]; } whole_tiles = {
  .palette = 1, .bytes = { 64, 64, 64, 64, 64, 64, 64, 64 }, .rows = { SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE }
};
#include "bf16_tiles.h"

/* The kernel gives a process the registers of tiles on request (arch_prctl, Linux 5.16). */
static bool permitted(void) {
  enum { REQUEST = 0x1023, TILE_DATA = 18 };
  return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

const mn_bf16 *mn_bf16_amx(void) {
  static const mn_bf16 own = { "AMX-BF16", mn_bf16_pack_vectors, own_rows, own_take, own_taken };
  enum { BF16 = 1 << 22, TILE = 1 << 24 };
  unsigned a, b, c, d;
  if (!mn_bf16_avx512() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (BF16 | TILE)) != (BF16 | TILE)) return NULL;
  return permitted() ? &own : NULL;
}
#else
const mn_bf16 *mn_bf16_amx(void) { return NULL; }
#endif
