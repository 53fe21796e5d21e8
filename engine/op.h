/* op.h -- the contract of an op.  One op is one file in engine/ops: see docs/write-an-op.md.
**
** An op exports one symbol, mn_op_NAME, named after its file.  Its contract:
**   - `forward` fills every output in the rows it is given.  `backward` fills the whole gradient of each
**     input whose `grad` is not NULL: it stores and does not add (the tape adds).  If an output's
**     gradient is NULL, no gradient arrived: treat it as zeros.
**   - `time` states how the op behaves along the first axis, so that a plan can compute rows t0..t1:
**       MN_WHOLE      needs all of its input at once (sum, transpose)
**       MN_PER_ROW    every row of the first axis is independent: the engine passes a shifted call, and the
**                     op computes it like any other
**       MN_SCAN       runs along time: it gets the whole buffers and computes rows c->t0 .. c->t1-1; if c->t0 > 0 it
**                     continues from the state that it left in its own outputs
**       MN_FIRST      reads row 0 of its sequence only: by rows it runs once, when rows begin at 0
**       MN_FINAL      computes a final state from rows 0 .. c->t1-1.  Most rows do not need it, so by rows it
**                     runs when its outputs are read
**       MN_ON_DEMAND  describes row c->t1-1 for display: by rows it runs when outputs of such ops
**                     are read, and not together with the final states
**     The sequence of the last three is their first input; their outputs have no time axis.
**   - If the user's input is invalid, return mn_fail(c->ctx, "...") from `shape`.  forward cannot fail.
**
** The signature  "x[T,B,D] w[E,D] b?[E] done?[T,B]:bit -> y[T,B,E] ~~saved[T,B] | eps=1e-5 act=none|relu"
**   A letter binds to a size where it first occurs, inputs from left to right.  `...` matches any further axes,
**   `*` any axes at all, which `shape` checks.  `1`..`9` are fixed sizes; `?` after a name means optional.  After `]` follows
**   a type or domain, which the debug checks and the test generator use:  :i32  :u8  :bit (u8, 0 or 1)
**   :01 (float in [0,1])  :pos (> 0)  :<V (i32 in 0..V-1)  :<axis (i32 below the size of input 0's axis that the option `axis` names)
**   :any (float, i32 or u8: all arguments so marked have one type, and gradients if it is float; `shape` may give an output another).
**   Without one it is float.  `~` marks an input without gradient (where one is wanted, it is refused) or an output without,
**   `~~` an output that is the op's work space, which it fills where it needs it and nobody else reads; ' marks a final state.
**   Options are numbers, or words a|b|c of which the first is the default (OPT gives the index).
**   If letters cannot express an output's size, write the axis as `?`; `shape` then sets c->out[i].ndim and
**   .shape, and checks what letters cannot check.
*/
#ifndef MN_OP_H
#define MN_OP_H
#include "mneme.h"

typedef enum mn_time { MN_WHOLE, MN_PER_ROW, MN_SCAN, MN_FIRST, MN_FINAL, MN_ON_DEMAND } mn_time;

typedef struct mn_arg {        /* an input or output as one call sees it */
  union { float *data; int32_t *i32; uint8_t *u8; };   /* NULL: an absent optional input */
  float *grad;                 /* in backward; of an input: where to store it (NULL: not wanted); of an output: the one that arrived */
  int    dtype, ndim, shape[MN_AXES];
  long   n;                    /* number of elements */
  bool   timed;                /* its first axis is time */
} mn_arg;

/* Bytes of an element of this type. */
static inline long mn_item(int dtype) { return dtype == MN_U8 ? 1 : 4; }

/* Where element i of an argument is. */
static inline char *mn_element(const mn_arg *a, long i) { return (char *)a->data + i * mn_item(a->dtype); }

/* The axis that a checked option names, from the end if negative. */
static inline int mn_axis_of(const mn_arg *x, double option) { return (int)option < 0 ? (int)option + x->ndim : (int)option; }

typedef struct mn_call {       /* one use of an op */
  const struct mn_op *op;
  const struct mn_kernel *kernel;  /* the op's functions for the context's device: see device.h */
  mn_ctx *ctx;
  const char *name, *const *input_name;
  int     n_in, n_out;         /* of the signature, absent ones included */
  mn_arg  in[MN_INPUTS], out[MN_OUTPUTS];
  double  option[MN_OPTIONS];
  int     dim[26];             /* sizes bound by the letters A..Z of the signature */
  int     t0, t1;              /* compute rows t0 .. t1-1 of time; 0..T for everything */
  int     b0, b1;              /* compute environments b0 .. b1-1, for a MN_SCAN op with `batch_parallel`; b1 = 0: all */
  mn_time time;                /* the op's; `shape` makes it MN_WHOLE where options or shapes mix rows */
  bool    by_rows;             /* part of a run by rows: other rows are computed before or after */
  bool    taped;               /* backward may follow: states that it begins from are kept on the way */
  unsigned adding;             /* bit i: backward adds to in[i].grad; see mn_accumulates */
} mn_call;

typedef struct mn_op {
  const char *sig, *doc;       /* doc: one line, with the equation and its source */
  mn_time time;
  void (*forward)(mn_call *c);
  void (*backward)(mn_call *c);            /* NULL: wanting a gradient is an error (unless off_tape) */
  int  (*fuse)(mn_call *const *calls, int n, bool back);   /* computes the first k of n successive calls of a plan together,
                                  forward or backward, and returns k; 0: none.  NULL: never fuses */
  double (*batch_parallel)(const mn_call *c);       /* returns the number of multiplications of one row if several threads can
                                  compute different environments of it at once, without scratch or threads of the op's own;
                                  0: not this call.  NULL: never */
  int  (*shape)(mn_call *c);               /* NULL if the letters suffice; returns 0, or mn_fail() */
  bool off_tape;               /* changes leaves in place (adam, softmax_sample); in[i].grad is the leaf's gradient */
  bool alias;                  /* output 0 has input 0's values in another shape: they share memory if both are computed */
  int over;                    /* MN_FINAL: 1 + the input that output 0 is a later state of, and may be written over; 0: none */
  bool accumulates;                   /* backward can add to gradients: it calls mn_accumulates(c, i) for each input */
  bool sums_rows;              /* its gradients of inputs 1 and 2 are sums over the rows of input 0, output 0's gradient and, unless the
                                  first option is 0, output 0, of whatever number: a recurrence computes them once for all rows of time */
  bool any_device;             /* computes through other ops' kernels and the device alone, so it runs on every device */
  unsigned cpu_grads;          /* bit i: only the CPU's kernel has the gradient of input i; on a GPU it is refused where it is wanted */
  unsigned writes;             /* off_tape: bit i: it changes the values of input i */
} mn_op;

#define DIM(c, letter) ((c)->dim[(letter) - 'A'])
#define OPT(c, i) ((c)->option[i])

/* The name of a call's op, and of its input i, for errors. */
static inline const char *mn_call_name(const mn_call *c) { return c->name; }
static inline const char *mn_input_name(const mn_call *c, int i) { return c->input_name[i]; }

/* Are the context's tensors the host's? */
bool mn_on_cpu(const mn_ctx *mn);

/* Format the error of a context; returns -1. */
int mn_fail(mn_ctx *mn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The op `recur`, which runs a body that was recorded for one row of time, row by row, and `last_row`: graph/recurrence.c. */
int  mn_recur_shape(mn_call *c);
void mn_recur_forward(mn_call *c);
void mn_recur_backward(mn_call *c);
int  mn_last_row_shape(mn_call *c);
void mn_last_row_forward(mn_call *c);
void mn_last_row_backward(mn_call *c);

/* The op `custom_gradient`, whose backward pass was recorded from Lua: graph/custom_gradient.c. */
int  mn_custom_gradient_shape(mn_call *c);
void mn_custom_gradient_forward(mn_call *c);
void mn_custom_gradient_backward(mn_call *c);

/* True if backward of this op (.accumulates) must add to in[i].grad instead of storing. */
static inline bool mn_accumulates(const mn_call *c, int i) { return c->adding >> i & 1; }

/* Scratch floats, 64-byte aligned, valid until the op returns.  Allocated at first use and kept, so a steady
** loop does not allocate.  If memory runs out, control leaves the op at this call: the op must hold nothing
** that needs freeing.  `which` 0..3 are independent buffers (4 is mn_gemm's).  Not inside a parallel region. */
enum { MN_SCRATCH_GEMM = 4, MN_SCRATCHES };
float *mn_scratch(mn_ctx *mn, int which, long n);

/* n rounded up to a multiple of 16 floats: whole vectors on any machine, and whole cache lines. */
static inline long mn_padded(long n) { return (n + 15) & ~15L; }

/* Take the next n floats of a work space. */
static inline float *mn_alloc_from(float **work, long n) { return (*work += n) - n; }

/* The same, rounded up so that the next piece begins at a multiple of 16 floats. */
static inline float *mn_alloc_padded_from(float **work, long n) { return mn_alloc_from(work, mn_padded(n)); }

/* p + offset, or NULL if p is NULL. */
#define MN_AT(p, offset) ((p) ? (p) + (offset) : NULL)

/* Room for n floats made from a matrix that stays the same for all rows of a recurrence: NULL if B is no such matrix.  *made: they are
** there already, from an earlier row.  `how` tells several forms of one matrix apart. */
float *mn_constant_form(mn_ctx *mn, const float *B, long n, int how, bool *made);

/* C[M,N] = op(A) op(B) (+ C if add), row-major, float32, op = transpose where the flag is set; the
** leading dimension is the length of a stored row.  How work is divided does not depend on the number of
** threads, so neither do the bits.  C is neither A nor B.  mn_gemm_one does the same on the calling thread only. */
void mn_gemm(mn_ctx *mn, bool ta, bool tb, int M, int N, int K, const float *A, int lda,
             const float *B, int ldb, float *C, int ldc, bool add);
void mn_gemm_one(bool ta, bool tb, int M, int N, int K, const float *A, int lda,
                 const float *B, int ldb, float *C, int ldc, bool add);

/* The same for one B and many pieces of rows of A: B is packed once, into a scratch buffer (NULL where products go by a BLAS, which
** packs by itself, and where a piece has so few rows, M at most, that packing costs more), and each piece goes through mn_gemm_with.
** Pieces of MN_PIECE rows stay in the second-level cache between the
** passes over them, and give the bits of the whole: sums over rows are cut there, too. */
enum { MN_PIECE = 256 };
const float *mn_gemm_pack(mn_ctx *mn, int scratch, bool tb, int M, int N, int K, const float *B, int ldb);
void mn_gemm_with(mn_ctx *mn, const float *panels, bool ta, bool tb, int M, int N, int K, const float *A, int lda,
                  const float *B, int ldb, float *C, int ldc, bool add);

/* Input precision of a device's matrix products: MN_FP32, or rounded to fewer bits. */
enum { MN_FP32, MN_TF32, MN_BF16 };
int mn_precision(const mn_ctx *mn);

/* How the CPU computes products of bfloat16 (numerics/bf16_gemm.h) for a context; NULL: products are in float32. */
typedef struct mn_bf16 mn_bf16;
const mn_bf16 *mn_bf16_of(const mn_ctx *mn);

/* Calls f(arg, i, worker) once for each i = 0 .. n-1 on the context's threads, and returns when all are done.  For work of a
** few microseconds.  Which worker, 0 .. mn_threads-1, runs which i is not defined. */
typedef void mn_job(void *arg, int i, int worker);
void mn_parallel_for(mn_ctx *mn, int n, mn_job *f, void *arg);

/* Is this much work worth starting OpenMP's threads?  (For less there is mn_parallel_for.) */
bool mn_parallel_pays(mn_ctx *mn, double work);

/* Runs CALL for i = from, from+step .. < to, on all threads if the work is worth it.  Entering OpenMP costs a third
** of a microsecond even for one thread, so ops that run while acting use this macro. */
#define MN_FOR(ctx, work, i, from, to, step, CALL) do { \
    if (mn_parallel_pays(ctx, work)) { \
      MN_PRAGMA(omp parallel for schedule(dynamic) num_threads(mn_threads(ctx))) \
      for (long i = (from); i < (to); i += (step)) { CALL; } \
    } else for (long i = (from); i < (to); i += (step)) { CALL; } \
  } while (0)

/* The same for n equal rows: CALL is of rows i .. end-1, of all of them or of a portion of a few microseconds' work, since fetching the next
** portion costs a tenth of one. */
#define MN_FOR_ROWS(ctx, work, n, i, end, CALL) do { \
    const long mn_all = (n), mn_each = mn_rows_at_a_time((long)(work), mn_all); \
    if (mn_parallel_pays(ctx, work)) { \
      MN_PRAGMA(omp parallel for schedule(dynamic) num_threads(mn_threads(ctx))) \
      for (long i = 0; i < mn_all; i += mn_each) { const long end = mn_all - i < mn_each ? mn_all : i + mn_each; CALL; } \
    } else { const long i = 0, end = mn_all; CALL; } \
  } while (0)

/* The same for a loop in the source: put it before `for`.  OpenMP is entered for one thread, too. */
#define MN_PRAGMA(x) _Pragma(#x)
#define MN_PARALLEL(ctx, work) MN_PRAGMA(omp parallel for schedule(dynamic) num_threads(mn_threads(ctx)) if (mn_parallel_pays(ctx, work)))

/* The same for n equal rows, in portions of a few microseconds' work: fetching the next portion costs a tenth of one. */
#define MN_PARALLEL_ROWS(ctx, work, n) \
  MN_PRAGMA(omp parallel for schedule(dynamic, mn_rows_at_a_time(work, n)) num_threads(mn_threads(ctx)) if (mn_parallel_pays(ctx, work)))

static inline int mn_rows_at_a_time(long work, long n) {
  enum { WORK = 8192 };
  return work > 0 && n * WORK > work ? (int)(n * WORK / work) : 1;
}

#endif
