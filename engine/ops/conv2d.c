/* conv2d.c -- convolution of images [Y,X,C], in bytes or in floats, with its bias and activation.
** An image that needs padding is copied into a frame of zeros, and its patches are read there
** (conv_kernels.h).  The gradient of an input is a convolution too: pixels with the same place modulo the stride
** meet the same weights, so each such phase is one pass over the padded gradient of the output. */
#include <string.h>
#include "numerics/conv_kernels.h"
#include "numerics/simd.h"
#include "numerics/activation.h"

enum { IN_X, IN_IMAGE, IN_W, IN_B, OUT_Y = 0, OUT_PACKED };
enum { STRIDE, PADDING, ACT, DIVIDE };
enum { CHUNKS = 16, CHUNK = 8 }; /* images' weight gradients are summed in at most that many parts, of that many images or more */

/* A picture with zeros around it. */
typedef struct frame { int rows, cols, channels, top, bottom, left, right; } frame;

static long frame_line(const frame *f) { return (long)(f->left + f->cols + f->right) * f->channels; }
static long frame_size(const frame *f) { return (f->top + f->rows + f->bottom) * frame_line(f); }
static float *frame_row(const frame *f, float *at, int y) {
  return at + (f->top + y) * frame_line(f) + (long)f->left * f->channels;
}

static void clear_border(const frame *f, float *at) {
  long line = frame_line(f), left = (long)f->left * f->channels, right = (long)f->right * f->channels;
  memset(at, 0, sizeof(float) * (size_t)(f->top * line));
  memset(at + (f->top + f->rows) * line, 0, sizeof(float) * (size_t)(f->bottom * line));
  for (float *row = at + f->top * line, *end = row + f->rows * line; row < end; row += line) {
    memset(row, 0, sizeof(float) * (size_t)left);
    memset(row + line - right, 0, sizeof(float) * (size_t)right);
  }
}

/* The sizes of one call, and the frames of an image and of an output's gradient. */
typedef struct conv {
  const mn_call *c;
  int Y, X, C, O, KY, KX, stride, padding, out_y, out_x;
  long images;
  frame image, dz;
} conv;

static int most(int a, int b) { return a > b ? a : b; }
static int least(int a, int b) { return a < b ? a : b; }

static conv open_call(const mn_call *c) {
  conv g = { .c = c, .Y = DIM(c, 'Y'), .X = DIM(c, 'X'), .C = DIM(c, 'C'), .O = DIM(c, 'O'), .KY = DIM(c, 'K'), .KX = DIM(c, 'L'),
             .stride = (int)OPT(c, STRIDE), .padding = (int)OPT(c, PADDING), .out_y = c->out[OUT_Y].shape[2],
             .out_x = c->out[OUT_Y].shape[3], .images = (long)c->out[OUT_Y].shape[0] * c->out[OUT_Y].shape[1] };
  int p = g.padding, before_y = (g.KY - 1) / g.stride, before_x = (g.KX - 1) / g.stride;
  g.image = (frame){ g.Y, g.X, g.C, p, p, p, p };
  g.dz = (frame){ g.out_y, g.out_x, g.O, before_y, most(0, (g.Y - 1 + p) / g.stride + 1 - g.out_y),
                  before_x, most(0, (g.X - 1 + p) / g.stride + 1 - g.out_x) };
  return g;
}

static int whole(mn_call *c, const char *name, double v, int from) {
  enum { MOST = 1 << 20 };
  if (v >= from && v <= MOST && v == (int)v) return 0;
  return mn_fail(c->ctx, "conv2d: %s is %g, expected a whole number from %d to %d", name, v, from, MOST);
}

static int shape(mn_call *c) {
  static const char *const axis[] = { "Y", "X" };
  const mn_arg *x = &c->in[IN_X], *w = &c->in[IN_W];
  if (!x->data == !c->in[IN_IMAGE].data) return mn_fail(c->ctx, "conv2d: expected either x (float32) or image (uint8)");
  if (whole(c, "stride", OPT(c, STRIDE), 1) || whole(c, "padding", OPT(c, PADDING), 0)) return -1;
  if (!(OPT(c, DIVIDE) > 0)) return mn_fail(c->ctx, "conv2d: divide is %g, expected more than 0", OPT(c, DIVIDE));
  if (!x->data) x = &c->in[IN_IMAGE];
  for (int i = 0; i < 2; i++) {
    long room = x->shape[2 + i] + 2 * (long)OPT(c, PADDING);
    if (w->shape[2 + i] > room)
      return mn_fail(c->ctx, "conv2d: axis %d of w is %d, but axis %d (%s) of the images has %ld pixels, padding included",
                     2 + i, w->shape[2 + i], 2 + i, axis[i], room);
    c->out[OUT_Y].shape[2 + i] = (int)((room - w->shape[2 + i]) / (long)OPT(c, STRIDE)) + 1;
  }
  const double patch = (double)DIM(c, 'K') * DIM(c, 'L') * DIM(c, 'C');
  if (patch > 1e9) return mn_fail(c->ctx, "conv2d: a window of w has %g values, expected at most 1e9", patch);
  mn_arg *packed = &c->out[OUT_PACKED];
  packed->shape[0] = mn_patch_panels(DIM(c, 'O'));
  packed->shape[1] = 1 + (int)patch;
  packed->shape[2] = mn_patch_width(DIM(c, 'O'));
  return 0;
}

static mn_patches forward_patches(const conv *g) {
  long line = frame_line(&g->image);
  return (mn_patches){ .rows = g->out_y, .cols = g->out_x, .down = g->stride * line, .across = (long)g->stride * g->C,
                       .lines = g->KY, .line = g->KX * g->C, .pitch = line, .N = g->O,
                       .out_down = (long)g->out_x * g->O, .out_across = g->O };
}

static mn_weights forward_weights(const conv *g) {
  long plane = (long)g->KY * g->KX;
  return (mn_weights){ g->KY, g->KX, g->C, g->O, g->KX, 1, plane, g->C * plane };
}

/* Image i in its frame: in `room`, or where it lies. */
static const float *framed_image(const conv *g, long i, float *room) {
  const mn_arg *x = &g->c->in[IN_X];
  long line = (long)g->X * g->C;
  if (x->data && !g->padding) return x->data + i * g->Y * line;
  clear_border(&g->image, room);
  for (int y = 0; y < g->Y; y++) {
    float *to = frame_row(&g->image, room, y);
    long from = (i * g->Y + y) * line;
    if (x->data) {
      memcpy(to, x->data + from, sizeof(float) * (size_t)line);
      continue;
    }
    const uint8_t *byte = g->c->in[IN_IMAGE].u8 + from;
    float divide = (float)OPT(g->c, DIVIDE);
    for (long k = 0; k < line; k++) to[k] = (float)byte[k] / divide;
  }
  return room;
}

typedef struct job { const conv *g; float *work, *packed, *sums; long size; int chunks; } job;

static void image_forward(void *arg, int i, int worker) {
  const job *j = arg;
  const conv *g = j->g;
  mn_patches p = forward_patches(g);
  const float *image = framed_image(g, i, j->work + worker * j->size);
  mn_patches_product(&p, image, j->packed, OPT(g->c, ACT) == MN_RELU, g->c->out[OUT_Y].data + i * g->out_y * p.out_down);
}

static void forward(mn_call *c) {
  conv g = open_call(c);
  mn_weights form = forward_weights(&g);
  float *packed = c->out[OUT_PACKED].data;
  if (c->t0 == 0) mn_pack_weights(&form, c->in[IN_W].data, c->in[IN_B].data, packed);
  long size = frame_size(&g.image);
  job j = { &g, mn_scratch(c->ctx, 0, size * mn_threads(c->ctx)), packed, NULL, size, 0 };
  mn_parallel_for(c->ctx, (int)g.images, image_forward, &j);
}

/* ---- backward ---- */

/* Pixels whose place, with the padding, is r modulo the stride: the first of n, and what they see. */
typedef struct phase {
  int taps, first, n;            /* weights r, r + stride, ...; pixels first, first + stride, ... */
  int from;                      /* place in dz's frame of the first that the first pixel sees */
} phase;

static phase phase_of(int r, int size, int kernel, int stride, int padding, int before) {
  phase p = { .taps = r < kernel ? (kernel - 1 - r) / stride + 1 : 0, .first = ((r - padding) % stride + stride) % stride };
  p.n = size > p.first ? (size - 1 - p.first) / stride + 1 : 0;
  p.from = (p.first + padding - r) / stride - (p.taps - 1) + before;
  return p;
}

/* Phases by their first pixel, of which there are no more than pixels, however large the stride. */
static int phases_down(const conv *g) { return least(g->stride, g->Y); }
static int phases_across(const conv *g) { return least(g->stride, g->X); }
static int n_phases(const conv *g) { return phases_down(g) * phases_across(g); }

/* Phase i as a walk over dz, with its weights. */
typedef struct phases { mn_patches walk; mn_weights form; long weights, from, to; } phases;

static phases open_phase(const conv *g, int i) {
  const int ry = (i / phases_across(g) + g->padding) % g->stride, rx = (i % phases_across(g) + g->padding) % g->stride;
  phase y = phase_of(ry, g->Y, g->KY, g->stride, g->padding, g->dz.top);
  phase x = phase_of(rx, g->X, g->KX, g->stride, g->padding, g->dz.left);
  long line = frame_line(&g->dz), plane = (long)g->KY * g->KX, s = g->stride;
  bool seen = y.taps && x.taps;
  return (phases){
    .walk = { .rows = y.n, .cols = x.n, .down = line, .across = g->O, .lines = seen ? y.taps : 0, .line = x.taps * g->O,
              .pitch = line, .N = g->C, .out_down = s * g->X * g->C, .out_across = s * g->C },
    .form = { seen ? y.taps : 0, x.taps, g->O, g->C, -s * g->KX, -s, g->C * plane, plane },
    .weights = seen ? (ry + s * (y.taps - 1)) * g->KX + rx + s * (x.taps - 1) : 0,
    .from = seen ? y.from * line + (long)x.from * g->O : 0,
    .to = ((long)y.first * g->X + x.first) * g->C,
  };
}

static long phase_packed(const phases *p) { return mn_patch_packed(p->form.N, p->walk.lines * p->walk.line); }

static void pack_phases(const conv *g, float *packed) {
  for (int i = 0; i < n_phases(g); i++) {
    phases p = open_phase(g, i);
    mn_pack_weights(&p.form, g->c->in[IN_W].data + p.weights, NULL, packed);
    packed += phase_packed(&p);
  }
}

static long all_phases_packed(const conv *g) {
  long n = 0;
  for (int i = 0; i < n_phases(g); i++) {
    phases p = open_phase(g, i);
    n += phase_packed(&p);
  }
  return n;
}

static void input_back(const conv *g, const float *dz, const float *packed, float *dx) {
  for (int i = 0; i < n_phases(g); i++) {
    phases p = open_phase(g, i);
    mn_patches_product(&p.walk, dz + p.from, packed, false, dx + p.to);
    packed += phase_packed(&p);
  }
}

/* The gradient of image i's output, back through the activation, in its frame. */
static void framed_dz(const conv *g, long i, float *room) {
  long line = (long)g->out_x * g->O;
  clear_border(&g->dz, room);
  for (int y = 0; y < g->out_y; y++) {
    long from = (i * g->out_y + y) * line;
    const float *dy = g->c->out[OUT_Y].grad + from;
    float *to = frame_row(&g->dz, room, y);
    if (OPT(g->c, ACT) == MN_RELU) mn_undo(g->c->out[OUT_Y].data + from, dy, to, line, MN_RELU);
    else memcpy(to, dy, sizeof(float) * (size_t)line);
  }
}

static void chunk_backward(void *arg, int chunk, int worker) {
  const job *j = arg;
  const conv *g = j->g;
  float *room = j->work + worker * j->size, *dz = room + frame_size(&g->image), *dx = g->c->in[IN_X].grad;
  mn_patches p = forward_patches(g);
  long sums_size = g->c->out[OUT_PACKED].n;
  float *sums = j->sums ? j->sums + chunk * sums_size : NULL;
  if (sums) memset(sums, 0, sizeof(float) * (size_t)sums_size);
  p.out_down = frame_line(&g->dz);
  for (long i = g->images * chunk / j->chunks, end = g->images * (chunk + 1) / j->chunks; i < end; i++) {
    framed_dz(g, i, dz);
    if (sums) mn_patches_weights(&p, framed_image(g, i, room), frame_row(&g->dz, dz, 0), sums);
    if (dx) input_back(g, dz, j->packed, dx + i * g->Y * g->X * g->C);
  }
}

static void backward(mn_call *c) {
  conv g = open_call(c);
  float *dw = c->in[IN_W].grad, *db = c->in[IN_B].grad;
  long sums_size = c->out[OUT_PACKED].n, size = frame_size(&g.image) + frame_size(&g.dz) + 2 * MN_LANES;
  job j = { &g, mn_scratch(c->ctx, 0, size * mn_threads(c->ctx)), NULL, NULL, size,
            g.images < CHUNK ? 1 : g.images < CHUNK * CHUNKS ? (int)(g.images / CHUNK) : CHUNKS };
  if (dw || db) j.sums = mn_scratch(c->ctx, 1, j.chunks * sums_size);
  if (c->in[IN_X].grad) pack_phases(&g, j.packed = mn_scratch(c->ctx, 2, all_phases_packed(&g)));
  mn_parallel_for(c->ctx, j.chunks, chunk_backward, &j);
  if (!j.sums) return;
  for (long chunk = 1; chunk < j.chunks; chunk++)
    for (long k = 0; k < sums_size; k++) j.sums[k] += j.sums[chunk * sums_size + k];
  mn_weights form = forward_weights(&g);
  mn_unpack_weights(&form, j.sums, dw, db);
}

const mn_op mn_op_conv2d = {
  .sig = "x?[T,B,Y,X,C] image?[T,B,Y,X,C]:u8 w[O,C,K,L] b?[O] -> y[T,B,?,?,O] ~~packed[?,?,?] "
         "| stride=1 padding=0 act=none|relu divide=255",
  .doc = "y = act(conv(x, w) + b) for images x or image/divide; torch.nn.Conv2d over pixels [Y,X,C]",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
