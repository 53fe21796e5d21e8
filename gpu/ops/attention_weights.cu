/* attention_weights.cu -- the weights that the last row of an attention gives to each key, for display: a warp for each
** head. */
#include "lib/attention_weights.cuh"
extern "C" {
#include "attention/causal_attention.h"
}

namespace {

struct Last {
  const float *q, *k, *mk, *mask, *u, *w, *r;
  const uint8_t *done;
  mn_weight *out;
  int B, H, K, M, N, t, window;
};

CU_KERNEL last_weights(const Last &s) {
  const int z = (int)blockIdx.x, b = z / s.H, h = z % s.H, lane = (int)threadIdx.x;
  const long HK = (long)s.H * s.K, place = ((long)b * s.H + h) * s.K, head = (long)h * s.K;
  const float *q = s.q + (long)s.t * s.B * HK + place;
  mn_weight *to = s.out + (long)z * s.N;
  int start = -1, n = 0;
  for (int t = s.t; s.done && t >= 0 && start < 0; t -= 32) {            /* the last reset up to t */
    const unsigned resets = __ballot_sync(0xffffffffu, t - lane >= 0 && s.done[(long)cu_max(t - lane, 0) * s.B + b]);
    for (int i = 31; i >= 0; i--) if (resets >> i & 1) start = t - i;
  }
  const int low = cu_max(start < 0 ? 0 : s.M + start, s.M + s.t - s.window);
  for (int j0 = low; j0 <= s.M + s.t; j0 += 32) {
    const int j = j0 + lane, back = s.M + s.t - j;
    const bool seen = back >= 0 && !(j < s.M && s.mask && s.mask[(long)j * s.B + b] != 0);
    const unsigned all = __ballot_sync(0xffffffffu, seen);
    if (seen) {
      const float *key = j < s.M ? s.mk + (long)j * s.B * HK + place : s.k + (long)(j - s.M) * s.B * HK + place;
      float sum = cu_weight_score(s.K, q, s.u ? s.u + head : NULL, key);
      if (s.r) sum += cu_weight_score(s.K, q, s.w ? s.w + head : NULL, s.r + (long)back * HK + head);
      int before = n;
      for (int i = 0; i < lane; i++) before += all >> i & 1;
      to[before] = { (float)back, 1, mn_at_most(mn_at_least(sum, -MN_SCORE_MOST), MN_SCORE_MOST) };
    }
    for (int i = 0; i < 32; i++) n += all >> i & 1;
  }
  cu_weights_finish(to, n, s.N);
}

static void forward(mn_call *c) {
  mn_softmax m;
  mn_softmax_open(&m, c, "attention_weights");
  const Last s = { c->in[SM_Q].data, c->in[SM_K].data, c->in[SM_MK].data, c->in[SM_MASK].data, c->in[SM_U].data,
                   c->in[SM_W].data, c->in[SM_R].data, c->in[SM_DONE].u8, (mn_weight *)(void *)c->out[0].data,
                   m.B, m.H, m.K, m.M, c->out[0].shape[3], c->t1 - 1, m.window };
  CU_LAUNCH(last_weights, (unsigned)(m.B * m.H), 32, 0, s);
}

}  // namespace

MN_KERNEL(attention_weights, forward, NULL)
