/* mneme.h -- everything a user of the engine may call, and nothing else.
**
** LuaJIT reads this same file (lua/mneme/base/engine.lua drops the # lines), so below the mark it holds
** plain declarations only: no macros, no inline code, no struct by value, no varargs, no callbacks.
**
** True of every function here:
**   errors     NULL or -1 on failure, and mn_error() says why.  Nothing exits, aborts, longjmps,
**              prints or calls back into Lua.
**   ownership  A name ending in _new gives you something to _free.  Any other pointer is borrowed.
**   tensors    A handle is {slot, gen}.  Leaves (slot < 0) own their numbers.  Computed tensors
**              (slot >= 0) live in the context's arena until mn_sweep(), or in the plan that
**              recorded them.  A handle whose tensor is gone is an error, never a crash, and never
**              another tensor's numbers.  The handle {0, 0} is "no tensor".
**   layout     Row-major and contiguous; sequences are time-major, [T,B,...].
**   threads    One mn_ctx per thread of control.  Other state: the BLAS that is loaded once, the
**              signal flag of mn_interrupted(), this process's rank, and mn_memory_starved() of each thread.
*/
#ifndef MNEME_H
#define MNEME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- ffi from here ---- */

typedef struct mn_ctx mn_ctx;          /* arena, tape, threads, the last error */
typedef struct mn_plan mn_plan;        /* recorded op calls on their own buffers */
typedef struct mn_vec mn_vec;          /* many copies of one environment */
typedef struct mn_canvas mn_canvas;    /* a list of shapes to draw */
typedef struct mn_tensor { int32_t slot; uint32_t gen; } mn_tensor;

enum { MN_AXES = 6, MN_INPUTS = 15, MN_OUTPUTS = 6, MN_OPTIONS = 12 };
enum { MN_F32, MN_I32, MN_U8 };        /* element types */

/* contexts.  device: "cpu", or "cuda" where the plugin is found ("emu": for tests).  threads 0: what the machine has. */
mn_ctx     *mn_ctx_new(const char *device, int threads);
void        mn_ctx_free(mn_ctx *mn);
const char *mn_error(mn_ctx *mn);                  /* mn NULL: why mn_ctx_new failed */
int         mn_threads(mn_ctx *mn);
int         mn_set_threads(mn_ctx *mn, int threads);
int         mn_set_precision(mn_ctx *mn, const char *word);   /* products on a GPU: "fp32", or inputs as "tf32", "bf16" */
int         mn_wait(mn_ctx *mn);                   /* before pointers kept from before are used; -1: some work failed */
const char *mn_blas(void);                         /* "OpenBLAS 0.3.21 SkylakeX", or "built-in" */
int         mn_gemm_rate(mn_ctx *mn, bool blas, int n, const float *a, const float *b, float *c);  /* one n x n product, to be timed */
const char *mn_simd(void);                         /* "avx512", "avx2", "scalar": what this build uses */
void        mn_set_place(mn_ctx *mn, int place);   /* a number of the caller's: where in its program the ops that follow stand */
void        mn_set_debug(mn_ctx *mn, bool on);     /* check every input's range and every output for NaN */
double      mn_bytes(mn_ctx *mn, const char *what);/* "leaf", "arena", "arena_peak", "plan", "resident" */

/* signals: after mn_watch_signals() the first SIGINT/SIGTERM/USR1 only sets a flag; the second kills */
void        mn_watch_signals(bool on);
int         mn_interrupted(void);                  /* the signal's number, or 0 */

/* tensors */
int         mn_leaf_new(mn_ctx *mn, int dtype, int ndim, const int *shape, bool wants_grad, mn_tensor *out);
int         mn_leaf_like(mn_ctx *mn, const mn_tensor *of, mn_tensor *out);   /* same type, shape and time; wants no gradient */
int         mn_leaf_view(mn_ctx *mn, const mn_tensor *of, double offset, int ndim, const int *shape, mn_tensor *out);
int         mn_leaf_time(mn_ctx *mn, const mn_tensor *t, bool timed);   /* first axis is time: see mn_plan_run */
void        mn_leaf_free(mn_ctx *mn, const mn_tensor *t);
int         mn_tensor_info(mn_ctx *mn, const mn_tensor *t, int *dtype, int *shape);   /* ndim */
void       *mn_tensor_data(mn_ctx *mn, const mn_tensor *t);
float      *mn_tensor_grad(mn_ctx *mn, const mn_tensor *t);             /* leaves only; zeros if none came */
bool        mn_tensor_wants_grad(mn_ctx *mn, const mn_tensor *t);
int         mn_zero_grad(mn_ctx *mn, const mn_tensor *t);
int         mn_copy(mn_ctx *mn, const mn_tensor *from, const mn_tensor *to);  /* recorded by a plan; no gradient */

/* ops: every file in engine/ops, in alphabetical order */
int         mn_op_count(void);
int         mn_op_find(const char *name);
const char *mn_op_name(int op);
const char *mn_op_sig(int op);
const char *mn_op_doc(int op);
bool        mn_op_differentiable(int op);
int         mn_apply(mn_ctx *mn, int op, const mn_tensor *in, const double *options, mn_tensor *out);
int         mn_backward(mn_ctx *mn, const mn_tensor *loss);
int         mn_backward_from(mn_ctx *mn, int n, const mn_tensor *of, const mn_tensor *grad);   /* of[i] begins with grad[i] */
void        mn_sweep(mn_ctx *mn);                  /* forget the tape, rewind the arena */
int         mn_no_grad(mn_ctx *mn, bool on);       /* on: no tape; off: rewinds to where it began */
/* agalite stores one of each mirrored pair of channels.  form: 0 code, 1 paper, 2 cossin.  Returns the
** number stored; *channels: of the form as published, and for each of them (arrays may be NULL) the
** stored channel it equals, times sign: 1, -1, or 0 where it is zero for ever. */
int         mn_agalite_channels(mn_ctx *mn, int form, int r, int *channels, int *stored, int *sign);

/* plans: between begin and end, ops run and are recorded */
mn_plan    *mn_plan_new(mn_ctx *mn);
void        mn_plan_free(mn_plan *p);
int         mn_plan_begin(mn_plan *p);
int         mn_plan_end(mn_plan *p);
int         mn_plan_run(mn_plan *p, int t0, int t1);   /* rows t0..t1-1 of time only; (0, -1): everything */
int         mn_plan_calls(mn_plan *p);
const char *mn_plan_find_nan(mn_plan *p, int *place);  /* "linear: output y ...; x [8,16] -1..2" of the first bad call, or NULL */
int         mn_plan_place(mn_plan *p, int call);   /* what mn_set_place said when it was recorded; of a backward pass: its forward */
void        mn_plan_set_profile(mn_plan *p, bool on);
const char *mn_plan_profile(mn_plan *p, int call, double *seconds);   /* "linear forward"; seconds so far */

/* environments: every file in engine/envs */
int         mn_env_count(void);
int         mn_env_find(const char *name);         /* "tmaze" or "tmaze-v0" */
const char *mn_env_name(int env);
int         mn_env_version(int env);
const char *mn_env_params(int env);                /* "corridor=160[2..256] map=\"\" ..." */
const char *mn_env_doc(int env);
const char *mn_env_about(int env);                 /* more lines on its settings, or NULL */
const char *mn_env_actions(int env);               /* "up down left right" */
const char *mn_env_settable(int env);              /* "cue=up|down ...": facts that mn_vec_set changes, or NULL */
mn_vec     *mn_vec_new(mn_ctx *mn, int env, int num_envs, double seed, const double *params, const char *text, int time_limit);
int         mn_vec_keep(mn_vec *v, int first, int num_envs);       /* these alone, before the first reset */
void        mn_vec_free(mn_vec *v);
int         mn_vec_space(mn_vec *v, int *dtype, int *shape);   /* ndim of one observation */
int         mn_vec_codes(mn_vec *v);               /* uint8 observations: numbers below it; 0: intensities */
int         mn_vec_actions(mn_vec *v);
int         mn_vec_time_limit(mn_vec *v);
int         mn_vec_bytes(mn_vec *v);               /* bytes that mn_vec_save writes for one copy */
int         mn_vec_reset(mn_vec *v, double seed, void *obs);   /* seed < 0: go on with the old one */
int         mn_vec_reset_each(mn_vec *v, const double *seed, void *obs);   /* seed[copies]: copy i as copy 0 of that seed */
int         mn_vec_step(mn_vec *v, const int32_t *action, void *obs, float *reward, uint8_t *terminated, uint8_t *truncated);
int         mn_vec_run(mn_vec *v, int rounds, const int32_t *action, int sets, void *obs, float *reward,
                       uint8_t *terminated, uint8_t *truncated);   /* steps with actions of [sets, copies] in turn */
const void    *mn_vec_final_obs(mn_vec *v);        /* [copies, ...]: the last observation where an episode ended */
const float   *mn_vec_score(mn_vec *v);            /* [copies]: 0..1 where an episode ended */
const float   *mn_vec_return(mn_vec *v);           /* [copies]: undiscounted return where an episode ended */
const int32_t *mn_vec_length(mn_vec *v);           /* [copies]: its length */
int         mn_vec_save(mn_vec *v, int index, void *bytes);
int         mn_vec_restore(mn_vec *v, int index, const void *bytes, int n, void *obs);  /* refuses another env, version, params */
int         mn_vec_set(mn_vec *v, int index, const char *fact, double value, void *obs);   /* 1: done, 0: cannot be now */
mn_canvas  *mn_vec_draw(mn_vec *v, int index);      /* borrowed until the next draw */
int         mn_vec_truth(mn_vec *v, int index, const char **names, const float **values);  /* privileged facts, for probes */

/* rollouts: T steps of B copies, as learners keep them, in memory of leaves.  On a GPU no step waits for
** the one before: the host looks at nothing until mn_vec_rolled.  Rows are of B numbers each. */
typedef struct mn_rollout {
  void    *obs;                                    /* [T+1,B,...]: before each step, and after the last */
  uint8_t *done, *resets;                          /* [T+1,B]: it begins an episode; the memory is cleared before it */
  int32_t *told_action;                            /* [T+1,B]: the step before it, -1 and 0 where there was none; */
  float   *told_reward;                            /* or NULL */
  int32_t *played;                                 /* [T,B] */
  float   *reward, *score, *ret;                   /* [T,B]: score, ret and length where an episode ended: done of the */
  int32_t *length;                                 /* row after */
  uint8_t *terminated, *cut;                       /* [B]: how the last step ended it; cut: by a time limit */
  void    *uncut_obs;                              /* [B,...]: what would have been seen next, had no time limit cut the */
  uint8_t *uncut_resets;                           /* episode off; other copies' rows mean nothing.  NULL: not wanted */
  int32_t *uncut_action;
  float   *uncut_reward;
  int32_t *seen;                                   /* [B]: observations since the memory was cleared */
  int32_t  context;                                /* which clears it after so many; 0: never */
  bool     reset_on_done;                          /* does the start of an episode clear it? */
} mn_rollout;
int         mn_rollout_begin(mn_ctx *mn, const mn_rollout *r, int num_envs, int T, size_t obs_bytes);   /* of all copies; row T is row 0 now */
int         mn_vec_roll(mn_vec *v, const mn_rollout *r, int t, const int32_t *action);   /* step t; 1: a time limit may have cut */
int         mn_vec_rolled(mn_vec *v);              /* waits for all steps; -1 if one was given a wrong action */
int         mn_rollout_noted(mn_ctx *mn, const mn_rollout *r, int num_envs, int t, const int32_t *action, int obs_bytes,
                             const void *final_obs, const float *score, const float *ret, const int32_t *length);
int         mn_rollout_uncut(mn_ctx *mn, const mn_rollout *r, int num_envs, int t, double gamma, const float *value);

/* canvas: shapes in the order drawn; colours 0xRRGGBBAA; see engine/canvas.h for the kinds */
typedef struct mn_shape { int32_t kind; uint32_t color; float x, y, w, h; int32_t text; float data; } mn_shape;
mn_canvas      *mn_canvas_new(mn_ctx *mn);
void            mn_canvas_free(mn_canvas *c);
void            mn_canvas_clear(mn_canvas *c);
int             mn_canvas_add(mn_canvas *c, int kind, uint32_t color, float x, float y, float w, float h);
int             mn_canvas_data(mn_canvas *c, float data);   /* of the shape added last: thickness in units, or turn in radians */
int             mn_canvas_text(mn_canvas *c, uint32_t color, float x, float y, float size, const char *utf8);
int             mn_canvas_heat(mn_canvas *c, float x, float y, float w, float h, int rows, int cols, const float *values, float lo, float hi, int map);
int             mn_canvas_image(mn_canvas *c, float x, float y, float w, float h, int rows, int cols, const uint8_t *rgb);
int             mn_canvas_append(mn_canvas *c, const mn_canvas *from, float x, float y, float w, float h);  /* fits from's bounds into the box */
int             mn_canvas_magnify(mn_canvas *c, float scale, float dx, float dy);   /* all so far: scaled about 0, 0, then moved */
void            mn_canvas_bounds(const mn_canvas *c, float *box);   /* x0, y0, x1, y1 */
int             mn_canvas_count(const mn_canvas *c);
const mn_shape *mn_canvas_shapes(const mn_canvas *c);
const char     *mn_canvas_string(const mn_canvas *c, int text);

/* column from_copy of a [rows, from_copies, item] block becomes column to_copy of another; items of so many bytes */
void        mn_copy_column(void *to, int to_width, int to_index, const void *from, int from_width, int from_index,
                           double rows, double bytes);

/* what memories read of their past (memory_read.c); a trail is where a probe lies at each step, of one head from[0 .. n-1] */
typedef struct mn_trail { const float **steps; int from, n; } mn_trail;
int         mn_recall_gated(int steps, const mn_trail *k, const mn_trail *p_k, const mn_trail *gamma, const mn_trail *p_gamma,
                            const mn_trail *beta, const mn_trail *shrink, int channel, float *u, int K, float *reach,
                            double gone, float *w);
int         mn_recall_corrected(int steps, const mn_trail *k, const mn_trail *p_k, const double *kept, const double *write,
                                bool kept_first, int unit, float *u, int K, float *pair, float *w);
int         mn_recall_kept(int steps, const mn_trail *key, const mn_trail *keep, const mn_trail *back, const mn_trail *out,
                           const float *first, float *u, int K, float *w);

/* random numbers: Philox4x32-10 keyed (seed, stream, purpose); fills n floats */
void        mn_random_normal(double seed, double stream, double purpose, float *out, double n);
void        mn_random_uniform(double seed, double stream, double purpose, float *out, double n);
int         mn_orthogonal(float *w, int rows, int cols, double gain);   /* w full of normal numbers -> orthogonal x gain; -1: no memory */

/* pictures: RGBA8 rows from the top.  Files appear whole under their name, or not at all. */
typedef struct mn_movie mn_movie;      /* a GIF or MP4 being written */
int         mn_image_write(mn_ctx *mn, const char *path, const uint8_t *rgba, int width, int height);   /* PNG */
int         mn_image_read(mn_ctx *mn, const char *path, uint8_t *rgba, int *width, int *height);        /* rgba NULL: its size */
mn_movie   *mn_movie_new(mn_ctx *mn, const char *path, int width, int height, int fps);   /* .gif; .mp4 where ffmpeg is */
void        mn_movie_free(mn_movie *m);
int         mn_movie_add(mn_movie *m, const uint8_t *rgba);
int         mn_movie_end(mn_movie *m);             /* -1: no file; free it either way */

/* live view: a mapped file by which a trainer shows one copy to a viewer, never waiting for it.
** `schema` is JSON that says what lies where in a snapshot's `bytes` bytes. */
typedef struct mn_live mn_live;        /* the trainer's end */
typedef struct mn_live_reader mn_live_reader;        /* the viewer's end */
mn_live    *mn_live_new(mn_ctx *mn, const char *path, const char *schema, double bytes);
void        mn_live_free(mn_live *l);              /* says that training has ended; the file stays */
bool        mn_live_due(mn_live *l, double per_second);   /* is it time for the next snapshot? */
void       *mn_live_begin(mn_live *l);             /* where to write it, */
void        mn_live_publish(mn_live *l);           /* and let it be seen */
int         mn_live_wanted(mn_live *l);            /* the copy that the viewer asks for; 0 at first */
mn_live_reader    *mn_live_reader_new(mn_ctx *mn, const char *path);
void        mn_live_reader_free(mn_live_reader *p);
const char *mn_live_reader_schema(mn_live_reader *p);
double      mn_live_reader_bytes(mn_live_reader *p);
int         mn_live_reader_read(mn_live_reader *p, void *out);   /* 1: the newest snapshot, 0: nothing new, -1: not to be read */
const char *mn_live_reader_state(mn_live_reader *p);             /* "running", "ended", "gone" (its process died), "replaced" */
int         mn_live_reader_want(mn_live_reader *p, int index);    /* ask for another copy */

/* files: read whole; written whole under their name, or not at all.  Errors name the path and say why. */
typedef struct mn_file mn_file;        /* the bytes of a file that was read */
mn_file    *mn_file_new(mn_ctx *mn, const char *path);
void        mn_file_free(mn_file *f);
const void *mn_file_data(const mn_file *f);        /* a zero follows the last byte */
double      mn_file_bytes(const mn_file *f);
int         mn_file_write(mn_ctx *mn, const char *path, int n, const void *const *piece, const double *bytes);
int         mn_file_append(mn_ctx *mn, const char *path, const void *data, double bytes);   /* all of it, or nothing */
int         mn_file_lock(mn_ctx *mn, const char *path);                 /* this process's until it ends */
int         mn_file_cut(mn_ctx *mn, const char *path, double bytes);      /* a shorter or missing file is left alone */
int         mn_file_move(mn_ctx *mn, const char *path, const char *to);   /* to NULL: remove it */
int         mn_folder_make(mn_ctx *mn, const char *path);                 /* and those above; 1: made, 0: was there */
uint32_t    mn_crc32c(uint32_t crc, const void *data, double bytes);      /* begin with 0 */
/* memory for libraries that do not say when there was none: see lua/mneme/base/json.lua */
void       *mn_memory_new(size_t bytes);
void        mn_memory_free(void *p);
bool        mn_memory_starved(void);               /* was some refused since this was asked last? */
void        mn_sleep(double seconds);
double      mn_clock(bool wall);                   /* seconds; wall: since 1970, else never turned back */

/* processes: copies of this one, see engine/base/process.c */
typedef struct mn_ended { int32_t pid, status, signal; double cpu, peak; } mn_ended;   /* status as a shell's; seconds, bytes */
int         mn_process_fork(mn_ctx *mn, const char *log);                 /* 0 in the copy, its number here */
int         mn_process_wait(mn_ctx *mn, double seconds, mn_ended *ended); /* 1: one has ended, 0: none */
void        mn_process_stop(int pid, bool at_once);
void        mn_process_exit(int status);
int         mn_cores(void);                        /* that this process may run on */
const char *mn_commit(void);                       /* that the program was built of, "-dirty" if files differed; "": unknown */
const char *mn_compiler(void);                     /* "gcc 12.2.0" */

/* ranks: processes that mpirun started and that train one agent, see engine/io/mpi.c.  Alone: rank 0 of 1. */
const char *mn_ranks_begin(void);                  /* NULL, or why the others cannot be joined */
int         mn_rank(void);
int         mn_ranks(void);                        /* how many */
void        mn_ranks_mean(float *x, double n, bool more);   /* over ranks, in place; called by all, as what follows */
void        mn_ranks_sum(double *x, int n);
int         mn_ranks_gather(mn_ctx *mn, const void *mine, void *all, double bytes, bool everyone);
void        mn_ranks_share(void *at, double bytes);/* rank 0's for all */
void        mn_ranks_end(bool fine, int status);   /* not fine: all others end, too */

/* TensorBoard event files */
int         mn_events_begin(mn_ctx *mn, const char *path, const char *tag, const char *text);  /* two records: version, a text */
int         mn_events_add(mn_ctx *mn, const char *path, double step, int n, const char *const *tag, const float *number);
int         mn_events_cut(mn_ctx *mn, const char *path, int n);           /* keep the first n records */

#endif
