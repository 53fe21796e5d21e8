/* op.h -- what an op file needs.  One op is one file in engine/ops: see docs/write-an-op.md.
**
** An op exports one symbol, mn_op_NAME, named after its file.  Its contract:
**   - `forward` fills every output of the rows it is given.  `backward` fills the gradient of each
**     input whose `grad` is not NULL, whole: it stores, it does not add (the tape adds).  A NULL
**     gradient of an output means no gradient came: treat it as zeros.
**   - `time` says how the op behaves along the first axis, so that a plan can compute rows t0..t1:
**       MN_WHOLE  needs all of its input at once (sum, transpose)
**       MN_PER_ROW   every row of the first axis stands alone: the engine hands over a shifted call, and
**                 the op never notices
**       MN_SCAN   walks time: it sees the whole buffers, computes rows c->t0 .. c->t1-1, and goes on
**                 from the running state that it left in its own outputs when c->t0 > 0
**       MN_FIRST  looks at row 0 of its sequence alone: by rows it runs once, when rows begin at 0
**       MN_FINAL   makes a final state from rows 0 .. c->t1-1, which is work that most rows need not pay
**                 for: by rows it runs when somebody reads its outputs
**       MN_ON_DEMAND  tells of row c->t1-1 what only people look at: by rows it runs when somebody reads
**                 outputs of such ops, and not with the final states
**     The sequence of the last three is their first input; their outputs carry no time.
**   - A failure that is the user's: return mn_fail(c->ctx, "...") from `shape`; forward never fails.
**
** The signature  "x[T,B,D] w[E,D] b?[E] done?[T,B]:bit -> y[T,B,E] ~saved[T,B] | eps=1e-5 act=none|relu"
**   letters bind to a size at first use, inputs left to right; `...` stands for any further axes;
**   `*` for any axes at all, which `shape` checks;
**   `1`..`9` are fixed sizes; `?` optional; after `]` a type or domain used by the debug checks and the
**   test generator:  :i32  :u8  :bit (u8, 0 or 1)  :01 (float in [0,1])  :pos (> 0)
**   :<V (i32 in 0..V-1);  `~` an output without gradient;  ' marks a final state.
**   options are numbers, or words a|b|c of which the first is the default (OPT gives its index).
**   Where letters cannot say an output's size, `shape` sets c->out[i].ndim/.shape for that output and
**   checks what letters cannot check; write the axis as `?` in the signature.
*/
#ifndef MN_OP_H
#define MN_OP_H
#include "mneme.h"

typedef enum mn_time { MN_WHOLE, MN_PER_ROW, MN_SCAN, MN_FIRST, MN_FINAL, MN_ON_DEMAND } mn_time;

typedef struct mn_arg {        /* an input or output as one call sees it */
  union { float *data; int32_t *i32; uint8_t *u8; };   /* NULL: an absent optional input */
  float *grad;                 /* backward; of an input: where to store (NULL: not wanted); of an output: what came */
  int    dtype, ndim, shape[MN_AXES];
  long   n;                    /* number of elements */
  bool   timed;                /* its first axis is time */
} mn_arg;

typedef struct mn_call {       /* one use of an op */
  const struct mn_op *op;
  const struct mn_kernel *kernel;  /* the op, as the context's device does it: see device.h */
  mn_ctx *ctx;
  int     n_in, n_out;         /* of the signature, absent ones included */
  mn_arg  in[MN_INPUTS], out[MN_OUTPUTS];
  double  option[MN_OPTIONS];
  int     dim[26];             /* sizes bound by the letters A..Z of the signature */
  int     t0, t1;              /* rows t0 .. t1-1 of time are asked for; 0..T for everything */
  int     b0, b1;              /* of an op that walks time and has `batch_parallel`: copies b0 .. b1-1 are; b1 = 0: all */
  mn_time time;                /* the op's; `shape` makes it MN_WHOLE where options or shapes mix rows */
  bool    by_rows;             /* part of a run by rows: more rows will follow or came before */
  unsigned adding;             /* bit i: see mn_accumulates */
} mn_call;

typedef struct mn_op {
  const char *sig, *doc;       /* doc: one line, with the equation and its source */
  mn_time time;
  void (*forward)(mn_call *c);
  void (*backward)(mn_call *c);            /* NULL: refused where a gradient is wanted (unless off_tape) */
  int  (*fuse)(mn_call *const *calls, int n, bool back);   /* the first so many of n calls that follow each other
                                  in a plan, at once, forward or back; 0: one by one.  NULL: always that */
  double (*batch_parallel)(const mn_call *c);       /* copies of a call for one row can be computed apart from each other, by
                                  several threads at once, with neither scratch nor threads of the op's own: how many
                                  multiplications that is; 0: not these.  NULL: never */
  int  (*shape)(mn_call *c);               /* NULL unless letters do not suffice; 0, or mn_fail() */
  bool off_tape;               /* acts in place on leaves (adam, softmax_sample); in[i].grad is the leaf's gradient */
  bool alias;                  /* output 0 is input 0's numbers under another shape: shared where both are computed */
  bool accumulates;                   /* backward can add: it asks mn_accumulates(c, i) for each input */
} mn_op;

#define DIM(c, letter) ((c)->dim[(letter) - 'A'])
#define OPT(c, i) ((c)->option[i])

/* The name of a call's op, and of its input i, for errors. */
const char *mn_call_name(const mn_call *c);
const char *mn_input_name(const mn_call *c, int i);

/* Format the error of a context; returns -1. */
int mn_fail(mn_ctx *mn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True if backward of this op (.accumulates) must add to in[i].grad instead of storing. */
static inline bool mn_accumulates(const mn_call *c, int i) { return c->adding >> i & 1; }

/* Scratch floats, 64-byte aligned, valid until the op returns.  Sized at first use and kept: no
** allocation in steady state; where there is no memory the op is left at once, and so holds nothing that it would have
** to give back when it asks.  `which` 0..3 gives independent buffers (4 is mn_gemm's).  Not inside a parallel region. */
enum { MN_SCRATCH_GEMM = 4, MN_SCRATCHES };
float *mn_scratch(mn_ctx *mn, int which, long n);

/* n floats rounded up to sixteen: to whole vectors on any machine, and to cache lines. */
static inline long mn_padded(long n) { return (n + 15) & ~15L; }

/* Cut the next n floats off a work space. */
static inline float *mn_alloc_from(float **work, long n) { return (*work += n) - n; }

/* The same, so that what is cut next begins at a multiple of 16, too. */
static inline float *mn_alloc_padded_from(float **work, long n) { return mn_alloc_from(work, mn_padded(n)); }

/* `offset` numbers behind p; nothing lies behind NULL. */
#define MN_AT(p, offset) ((p) ? (p) + (offset) : NULL)

/* C[M,N] = op(A) op(B) (+ C if add), row-major, float32, op = transpose where the flag is set; the
** leading dimension is the stored row length.  Threads and chunks are chosen here, independent of the
** number of threads, so the bits are too.  mn_gemm_one is the same on the calling thread only. */
void mn_gemm(mn_ctx *mn, bool ta, bool tb, int M, int N, int K, const float *A, int lda,
             const float *B, int ldb, float *C, int ldc, bool add);
void mn_gemm_one(bool ta, bool tb, int M, int N, int K, const float *A, int lda,
                 const float *B, int ldb, float *C, int ldc, bool add);

/* How kernels of a device make products of matrices: MN_FP32, or with inputs rounded to fewer bits. */
enum { MN_FP32, MN_TF32, MN_BF16 };
int mn_precision(const mn_ctx *mn);

/* f(arg, i, worker) for i = 0 .. n-1, each once, on the context's threads, for work of a few microseconds; returns when all
** are done.  Which worker, 0 .. mn_threads-1, runs which i is left open. */
typedef void mn_job(void *arg, int i, int worker);
void mn_parallel_for(mn_ctx *mn, int n, mn_job *f, void *arg);

/* Is so much work worth OpenMP's threads?  (For less there is mn_parallel_for.) */
bool mn_parallel_pays(mn_ctx *mn, double work);

/* CALL for i = from, from+step .. < to, on all threads when the work is worth it.  Entering OpenMP costs a third
** of a microsecond even for one thread, so ops that acting uses go this way. */
#define MN_FOR(ctx, work, i, from, to, step, CALL) do { \
    if (mn_parallel_pays(ctx, work)) { \
      MN_PRAGMA(omp parallel for schedule(dynamic) num_threads(mn_threads(ctx))) \
      for (long i = (from); i < (to); i += (step)) { CALL; } \
    } else for (long i = (from); i < (to); i += (step)) { CALL; } \
  } while (0)

/* The same for a loop written out: put it before `for`. */
#define MN_PRAGMA(x) _Pragma(#x)
#define MN_PARALLEL(ctx, work) MN_PRAGMA(omp parallel for schedule(dynamic) num_threads(mn_threads(ctx)) if (mn_parallel_pays(ctx, work)))

/* The same for n equal rows: as many at a time as make a few microseconds' work, since to ask for the next costs a tenth. */
#define MN_PARALLEL_ROWS(ctx, work, n) \
  MN_PRAGMA(omp parallel for schedule(dynamic, mn_rows_at_a_time(work, n)) num_threads(mn_threads(ctx)) if (mn_parallel_pays(ctx, work)))

static inline int mn_rows_at_a_time(long work, long n) {
  enum { WORK = 8192 };
  return work > 0 && n * WORK > work ? (int)(n * WORK / work) : 1;
}

#endif
