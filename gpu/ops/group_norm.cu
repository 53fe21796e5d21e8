/* group_norm.cu -- kernels of group_norm: a team of threads takes a group of a sample; the gradients of weight and bias are sums
** over samples and positions. */
#include "lib/column_sums.cuh"
#include "lib/row_teams.cuh"

namespace {

struct Norm {
  const float *x, *weight, *bias, *dy;
  float *y, *stats, *dx, *dweight, *dbias;
  long groups, size;                         /* of all samples; numbers of one */
  int P, C, G;
  cu_divisor width, of_sample;               /* channels of a group; groups of a sample */
  double eps;

  /* Where number i of a group is, and its channel. */
  __device__ __forceinline__ long at(long group, long i, int *channel) const {
    long g, within;
    const long sample = of_sample.divide(group, &g), p = width.divide(i, &within);
    *channel = (int)(g * width.by + within);
    return (sample * P + p) * C + *channel;
  }
};

CU_KERNEL norm(const Norm &a, int width) {
  const cu_team team(width);
  for (long group = team.first(); team.any(group, a.groups); group = team.next(group)) {
    const bool real = group < a.groups;
    const long n = real ? a.size : 0;
    int channel;
    double sum = 0, squares = 0;
    for (long i = team.lane; i < n; i += width) sum += (double)a.x[a.at(group, i, &channel)];
    const double mean = team.sum(sum) / (double)a.size;
    for (long i = team.lane; i < n; i += width) {
      const double d = (double)a.x[a.at(group, i, &channel)] - mean;
      squares += d * d;
    }
    const float scale = (float)(1 / sqrt(team.sum(squares) / (double)a.size + a.eps)), centre = (float)mean;
    for (long i = team.lane; i < n; i += width) {
      const long at = a.at(group, i, &channel);
      a.y[at] = (a.x[at] - centre) * scale * a.weight[channel] + a.bias[channel];
    }
    if (real && team.lane == 0) a.stats[2 * group] = centre, a.stats[2 * group + 1] = scale;
  }
}

/* With n = (x - mean) scale and g = dy weight: dx = scale (g - mean of g - n * mean of g n). */
CU_KERNEL norm_back(const Norm &a, int width) {
  const cu_team team(width);
  for (long group = team.first(); team.any(group, a.groups); group = team.next(group)) {
    const long n = group < a.groups ? a.size : 0;
    const float mean = n ? a.stats[2 * group] : 0, scale = n ? a.stats[2 * group + 1] : 0;
    int channel;
    double sum = 0, along = 0;
    for (long i = team.lane; i < n; i += width) {
      const long at = a.at(group, i, &channel);
      const double g = (double)(a.dy[at] * a.weight[channel]);
      sum += g;
      along += g * (double)((a.x[at] - mean) * scale);
    }
    const float g_mean = (float)(team.sum(sum) / (double)a.size), gn_mean = (float)(team.sum(along) / (double)a.size);
    for (long i = team.lane; i < n; i += width) {          /* of one number y is the bias, whatever x is */
      const long at = a.at(group, i, &channel);
      a.dx[at] = a.size == 1 ? 0 : scale * (a.dy[at] * a.weight[channel] - g_mean - (a.x[at] - mean) * scale * gn_mean);
    }
  }
}

/* Columns 0 .. C-1 are the weight's gradient, C .. 2C-1 the bias's; rows are positions of samples. */
struct Parameters {
  Norm a;
  cu_divisor positions, width;
  __device__ __forceinline__ float term(long row, long col) const {
    if (col >= a.C) return a.dy[row * a.C + col - a.C];
    long unused;
    const float *stats = a.stats + 2 * (positions.divide(row, &unused) * a.G + width.divide(col, &unused));
    return a.dy[row * a.C + col] * ((a.x[row * a.C + col] - stats[0]) * stats[1]);
  }
  __device__ __forceinline__ void put(long col, float sum) const {
    if (col < a.C && a.dweight) a.dweight[col] = sum;
    if (col >= a.C && a.dbias) a.dbias[col - a.C] = sum;
  }
};

static Norm open_call(const mn_call *c) {
  Norm a = {};
  a.x = c->in[0].data, a.weight = c->in[1].data, a.bias = c->in[2].data, a.dy = c->out[0].grad;
  a.y = c->out[0].data, a.stats = c->out[1].data;
  a.dx = c->in[0].grad, a.dweight = c->in[1].grad, a.dbias = c->in[2].grad;
  a.P = DIM(c, 'P'), a.C = DIM(c, 'C'), a.G = (int)OPT(c, 0), a.eps = OPT(c, 1);
  a.groups = (long)c->in[0].shape[0] * c->in[0].shape[1] * a.G;
  a.size = (long)a.P * (a.C / a.G);
  a.width = cu_divisor(a.C / a.G), a.of_sample = cu_divisor(a.G);
  return a;
}

static void forward(mn_call *c) {
  const Norm a = open_call(c);
  const int width = cu_team_width(a.size);
  CU_LAUNCH(norm, cu_team_blocks(a.groups, width), CU_THREADS, CU_TEAM_SHARED, a, width);
}

static void backward(mn_call *c) {
  const Norm a = open_call(c);
  const int width = cu_team_width(a.size);
  if (a.dx) CU_LAUNCH(norm_back, cu_team_blocks(a.groups, width), CU_THREADS, CU_TEAM_SHARED, a, width);
  if (!a.dweight && !a.dbias) return;
  const long rows = a.groups / a.G * a.P;
  cu_column_sums(c, 0, Parameters{ a, cu_divisor(a.P), a.width }, rows, 2L * a.C);
}

}  // namespace

MN_KERNEL(group_norm, forward, backward)
