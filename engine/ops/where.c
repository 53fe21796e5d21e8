/* where.c -- y = a where the mask is 1, b where it is 0, with broadcasting of all three. */
#include <string.h>
#include "numerics/broadcast.h"
#include "numerics/strided.h"

/* One bit for a whole run, as where episodes end: a copy. */
#define CHOOSE(T) do { \
    const T *a = (const T *)c->in[1].data + start[1], *b = (const T *)c->in[2].data + start[2]; \
    T *y = (T *)c->out[0].data + at; \
    if (!m && (*mask ? ka : kb)) memcpy(y, *mask ? a : b, (size_t)n * sizeof(T)); \
    else for (long i = 0; i < n; i++) y[i] = mask[i * m] ? a[i * ka] : b[i * kb]; \
  } while (0)

static void choose(mn_call *c, float *unused, long from, long end) {
  mn_layout l = mn_layout_of(c);
  int last = l.axes - 1;
  long start[MN_OPERANDS], m = l.stride[0][last], ka = l.stride[1][last], kb = l.stride[2][last];
  (void)unused;
  for (long at = from, n; at < end; at += n) {
    n = mn_run(&l, at, end, start);
    const uint8_t *mask = c->in[0].u8 + start[0];
    if (mn_item(c->out[0].dtype) == 1) CHOOSE(uint8_t);
    else CHOOSE(mn_bits);
  }
}

/* dy where the mask is `bit`, else 0. */
static void pass(mn_call *c, float *to, long from, long end, int bit) {
  mn_layout l = mn_layout_of(c);
  long start[MN_OPERANDS], m = l.stride[0][l.axes - 1];
  for (long at = from, n; at < end; at += n) {
    n = mn_run(&l, at, end, start);
    const uint8_t *mask = c->in[0].u8 + start[0];
    const float *dy = c->out[0].grad + at;
    if (m) for (long i = 0; i < n; i++) to[at + i] = (mask[i * m] != 0) == bit ? dy[i] : 0;
    else if ((*mask != 0) == bit) memcpy(to + at, dy, (size_t)n * sizeof *to);
    else memset(to + at, 0, (size_t)n * sizeof *to);
  }
}
static void pass_a(mn_call *c, float *to, long from, long end) { pass(c, to, from, end, 1); }
static void pass_b(mn_call *c, float *to, long from, long end) { pass(c, to, from, end, 0); }

static void forward(mn_call *c) { mn_in_parts(c, NULL, c->out[0].n, choose); }
static void backward(mn_call *c) {
  mn_operand_backward(c, 1, pass_a);
  mn_operand_backward(c, 2, pass_b);
}

const mn_op mn_op_where = {
  .sig = "mask[*]:bit a[*]:any b[*]:any -> y[*]:any",
  .doc = "y = mask ? a : b. Shapes broadcast from the right, as in torch. Numbers may stand for a and b",
  .time = MN_PER_ROW, .shape = mn_broadcast_shape, .forward = forward, .backward = backward,
};
