/* scatter.c -- puts elements along one axis where their indices say.  Of equal indices the last one counts, in the gradient too. */
#include "indexed.h"
#include "numerics/strided.h"

enum { SRC = 2 };

static int shape(mn_call *c) {
  if (mn_indexed_shape(c, SRC)) return -1;
  mn_same_shape(&c->in[0], &c->out[0]);
  return 0;
}

#define PUT(T) ((T *)y)[at * s->inner + i] = ((const T *)src)[k * s->inner + i]

static void put_part(mn_call *c, const mn_indexed *s, long o, long from, long end) {
  const int32_t *index = s->index + o * s->of_outer;
  const mn_arg *whole = &c->out[0];
  char *y = mn_element(whole, o * s->size * s->inner);
  const char *src = mn_element(&c->in[SRC], o * s->K * s->inner);
  bool outside = false;
  for (long k = 0; k < s->K; k++)
    for (long i = from; i < end; i++) {
      const int32_t at = index[k * s->of_k + i];
      if (at < 0 || at >= s->size) outside = true;
      else if (mn_item(whole->dtype) == 1) PUT(uint8_t);
      else PUT(mn_bits);
    }
  for (long k = 0; outside && k < s->K; k++)
    for (long i = from; i < end; i++) {
      const int32_t at = index[k * s->of_k + i];
      if (at >= 0 && at < s->size) continue;
      if (whole->dtype == MN_F32) ((float *)y)[i] = __builtin_nanf("");
      else memset(y + i * mn_item(whole->dtype), 0, (size_t)mn_item(whole->dtype));
    }
}

static void forward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, false);
  memcpy(c->out[0].data, c->in[0].data, (size_t)(c->in[0].n * mn_item(c->in[0].dtype)));
  mn_in_columns(c, &s, put_part);
}

/* From the last k to the first: of those with equal indices the first that comes gets the gradient. */
static void share_part(mn_call *c, const mn_indexed *s, long o, long from, long end) {
  const long column = o * s->size * s->inner;
  const float *dy = c->out[0].grad + column;
  float *dsrc = c->in[SRC].grad, *dx = MN_AT(c->in[0].grad, column);
  uint8_t *taken = s->taken + column;
  for (long k = s->K - 1; k >= 0; k--)
    for (long i = from; i < end; i++) {
      const long at = s->index[o * s->of_outer + k * s->of_k + i], e = at * s->inner + i;
      const bool in = at >= 0 && at < s->size, gets = in && !taken[e];
      if (dsrc) dsrc[(o * s->K + k) * s->inner + i] = gets ? dy[e] : 0;
      if (gets) taken[e] = 1;
      if (in && dx) dx[e] = 0;
    }
}

static void backward(mn_call *c) {
  const long n = c->in[0].n;
  mn_indexed s = mn_indexed_of(c, false);
  s.taken = (uint8_t *)mn_scratch(c->ctx, 0, n / 4 + 1);
  memset(s.taken, 0, (size_t)n);
  if (c->in[0].grad) memcpy(c->in[0].grad, c->out[0].grad, (size_t)n * sizeof(float));
  mn_in_columns(c, &s, share_part);
}

const mn_op mn_op_scatter = {
  .sig = "x[*]:any index[*]:<axis src[*]:any -> y[*]:any | axis=-1",
  .doc = "y = x, then y[i,index[i,j,k],k] = src[i,j,k], for axis 1 of three; of equal indices the last one counts (torch.scatter)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
