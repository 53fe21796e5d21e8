/* mneme.h -- the engine's public functions: everything that Lua or a C program may call.
**
** LuaJIT reads this file too (lua/mneme/base/engine.lua drops the # lines), so below the mark it holds
** plain declarations only: no macros, no inline code, no struct by value, no varargs, no callbacks.
**
** True of every function here:
**   errors     A function that fails returns NULL or -1, and mn_error() gives the reason.  No function exits,
**              aborts, longjmps, prints or calls back into Lua.
**   ownership  The caller frees what a function ending in _new returns, with _free.  Other pointers are borrowed.
**   tensors    A handle is {slot, gen}.  Leaves (slot < 0) own their values.  Computed tensors
**              (slot >= 0) are in the context's arena until mn_collect() or mn_sweep(), or in the plan
**              that recorded them.  Using a handle whose tensor was released is an error: it never crashes, and never
**              reads another tensor's values.  The handle {0, 0} means "no tensor".
**   layout     Row-major and contiguous; sequences are time-major, [T,B,...].
**   threads    One mn_ctx per thread of control.  Global state: the loaded BLAS, the
**              signal flag of mn_interrupted(), this process's rank, and mn_memory_starved() of each thread.
*/
#ifndef MN_MNEME_H
#define MN_MNEME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- ffi from here ---- */

typedef struct mn_ctx mn_ctx;          /* arena, tape, threads, the last error */
typedef struct mn_plan mn_plan;        /* recorded op calls on their own buffers */
typedef struct mn_vec mn_vec;          /* environments that are stepped together */
typedef struct mn_canvas mn_canvas;    /* a list of shapes to draw */
typedef struct mn_tensor { int32_t slot; uint32_t gen; } mn_tensor;

enum { MN_AXES = 6, MN_INPUTS = 20, MN_OUTPUTS = 6, MN_OPTIONS = 12 };
enum { MN_F32, MN_I32, MN_U8 };        /* element types */

/* contexts.  device: "cpu", or "cuda" if the plugin is found ("emu": for tests).  threads 0: one per processor. */
mn_ctx     *mn_ctx_new(const char *device, int threads);
void        mn_ctx_free(mn_ctx *mn);
const char *mn_error(mn_ctx *mn);                  /* mn NULL: why mn_ctx_new failed */
int         mn_threads(mn_ctx *mn);
int         mn_set_threads(mn_ctx *mn, int threads);
/* Matrix products take "fp32", "bf16", or on a GPU "tf32".  emulate: "0", or bf16 on a CPU that has no instruction for it: "1" in slow
** code with the bits of AVX512-BF16, "amx" with those of AMX-BF16. */
int         mn_set_precision(mn_ctx *mn, const char *word, const char *emulate);
const char *mn_bf16_name(const char *emulate);     /* what computes it here: "AVX512-BF16", "AMX-BF16", "emulated ..."; "": nothing */
int         mn_wait(mn_ctx *mn);                   /* waits for the device; call it before using pointers obtained earlier; -1: some work failed */
const char *mn_blas(void);                         /* "OpenBLAS 0.3.21 SkylakeX", or "built-in" */
int         mn_gemm_once(mn_ctx *mn, bool blas, int n, const float *a, const float *b, float *c);  /* one n x n product, to be timed */
const char *mn_simd(void);                         /* "avx512", "avx2", "sse2", "neon", "scalar": what this build uses */
void        mn_set_place(mn_ctx *mn, int place);   /* marks the ops that follow with a number of the caller's, such as a source line */
void        mn_set_debug(mn_ctx *mn, bool on);     /* check every input's range and every output for NaN */
double      mn_bytes(mn_ctx *mn, const char *what);/* "leaf", "arena", "arena_peak", "plan", "resident" */

/* signals: after mn_watch_signals() SIGINT, TERM, HUP, USR1, USR2, XCPU, PWR only set a flag, however often they come; a second SIGINT, or
   any signal after five seconds, ends the process, and so does a minute (and ten times the longest span so far) without a call of
   mn_interrupted; after mn_lose_nothing(true) 0.7 seconds without one do, until mn_watch_signals */
void        mn_watch_signals(bool on);
void        mn_lose_nothing(bool on);
void        mn_remove_if_ended(const char *path);  /* a file, not whole yet, to be removed where a signal ends the process so; NULL: none; kept */
void        mn_forked_signals(void);               /* in a child just forked */
int         mn_interrupted(void);                  /* the signal's number, or 0 */

/* tensors */
int         mn_leaf_new(mn_ctx *mn, int dtype, int ndim, const int *shape, bool wants_grad, mn_tensor *out);
int         mn_leaf_like(mn_ctx *mn, const mn_tensor *of, mn_tensor *out);   /* same type, shape and time; wants no gradient */
int         mn_leaf_view(mn_ctx *mn, const mn_tensor *of, double offset, int ndim, const int *shape, mn_tensor *out);
int         mn_leaf_time(mn_ctx *mn, const mn_tensor *t, bool timed);   /* first axis is time: see mn_plan_run */
void        mn_leaf_free(mn_ctx *mn, const mn_tensor *t);
int         mn_leaf_freeze(mn_ctx *mn, const mn_tensor *t);             /* it wants no gradient any more */
int         mn_tensor_info(mn_ctx *mn, const mn_tensor *t, int *dtype, int *shape);   /* ndim */
void       *mn_tensor_data(mn_ctx *mn, const mn_tensor *t);             /* for reading: what is written there, no backward sees */
void       *mn_tensor_write(mn_ctx *mn, const mn_tensor *t, const char *what);   /* the same of a leaf, to write into now: a graph that used its
                                                      values refuses backward; what: who writes, for the error */
int         mn_tensor_changes(mn_ctx *mn, const mn_tensor *t, const char *what);   /* the same where the pointer is known */
double      mn_tensor_version(mn_ctx *mn, const mn_tensor *t);          /* grows whenever its values change in place; -1: an error */
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
bool        mn_op_broadcasts(int op);              /* are its inputs matched from the right, so that one may be a single value? */
int         mn_apply(mn_ctx *mn, int op, const mn_tensor *in, const double *options, mn_tensor *out);
int         mn_backward(mn_ctx *mn, const mn_tensor *loss, bool retain);   /* walks what the loss depends on, then takes it off the tape; retain: keeps it */
int         mn_backward_from(mn_ctx *mn, int n, const mn_tensor *of, const mn_tensor *grad);   /* the gradient of of[i] starts as grad[i] */
int         mn_retain_grad(mn_ctx *mn, const mn_tensor *t, const mn_tensor *into);   /* every backward copies t's gradient into that leaf; 1: t is a leaf */
int         mn_grad(mn_ctx *mn, const mn_tensor *loss, int n, const mn_tensor *of, const mn_tensor *into, bool retain);   /* into[i], leaves of zeros: the
                                                      gradient of of[i]; no other leaf's changes */
void        mn_sweep(mn_ctx *mn);                  /* releases the tape and rewinds the arena */
bool        mn_collect_due(mn_ctx *mn);            /* have computed tensors outgrown twice what the last mn_collect left? */
int         mn_collect(mn_ctx *mn, int n, mn_tensor *alive);  /* frees all computed tensors but the n given ones and their graphs; gives those new
                                                      slots, and {0,0} where a handle is of no tensor */
int         mn_no_grad(mn_ctx *mn, bool on);       /* on: stops recording; off: records again and rewinds the arena */
/* agalite stores one channel of each mirrored pair.  form: 0 code, 1 paper, 2 cossin.  Returns the
** number of stored channels.  *channels: how many the published form has.  For each of those (arrays may be NULL):
** the stored channel that it equals up to sign: 1, -1, or 0 for a channel that is always zero. */
int         mn_agalite_channels(mn_ctx *mn, int form, int r, int *channels, int *stored, int *sign);

/* plans: ops called between begin and end run and are recorded */
mn_plan    *mn_plan_new(mn_ctx *mn);
void        mn_plan_free(mn_plan *p);
int         mn_plan_begin(mn_plan *p);
void        mn_plan_later(mn_plan *p);             /* while it records, what runs by rows is left to the rows: until then it has no values */
int         mn_plan_end(mn_plan *p);
int         mn_plan_run(mn_plan *p, int t0, int t1);   /* rows t0..t1-1 of time only; (0, -1): everything */
/* The leaves `to` become the final states `from` of the rows that ran: written over what they were, without a copy, where an op can.
** Rows then begin again, and until they do `from` has no values. */
int         mn_plan_carry(mn_plan *p, int n, const mn_tensor *from, const mn_tensor *to);
int         mn_plan_calls(mn_plan *p);
const char *mn_plan_find_nan(mn_plan *p, int *place);  /* "linear: output y ...; x [8,16] -1..2" of the first bad call, or NULL */
/* Bodies of recurrences: see graph/recurrence.c.  Between begin and mn_plan_end: inputs are bound, the body's ops applied, outputs
** bound, then mn_backward_from records the way back. */
enum { MN_BODY_X, MN_BODY_STATE, MN_BODY_DONE, MN_BODY_START, MN_BODY_GIVEN, MN_BODY_DY, MN_BODY_DSTATE };    /* inputs of a body */
int         mn_body_begin(mn_plan *p);             /* records, inside another recording too */
int         mn_body_input(mn_plan *p, int what, const mn_tensor *leaf);                /* the next part of x, the state, ... of a row */
int         mn_body_output(mn_plan *p, bool state, const mn_tensor *t);                /* the next part of y or of the state */
int         mn_body_end(mn_plan *p, bool forward); /* forward: the body's ops are all applied, outputs bound; else: so is backward */
uint32_t    mn_plan_version(mn_plan *p, int *id);  /* what the op `recur` takes as its options */
bool        mn_plan_leaf(mn_plan *p, int i, mn_tensor *leaf);   /* the i-th leaf that it reads, some more than once; false: there are fewer */
bool        mn_plan_graded(mn_plan *p, int i, mn_tensor *leaf); /* the i-th leaf whose gradient it makes or reads; false: there are fewer */
int         mn_way_back_begin(mn_plan *p);         /* records a custom gradient's backward pass, inside another recording too; then */
int         mn_way_back_end(mn_plan *p, int n, const mn_tensor *in, const mn_tensor *out);   /* in: stand-ins for dy, n arguments, y;
                                                      out: n gradients, {0,0}: none */
int         mn_plan_place(mn_plan *p, int call);   /* the number of mn_set_place when the call was recorded; of a backward call: its forward call's */
void        mn_plan_set_profile(mn_plan *p, bool on);
const char *mn_plan_profile(mn_plan *p, int call, double *seconds);   /* "linear forward"; seconds so far */

/* environments: every file in engine/envs */
enum { MN_DISCRETE, MN_MULTI_DISCRETE, MN_BOX, MN_ACTION_SIZE = 32 };
typedef struct mn_action_space { /* what an agent may do: `size` numbers of 4 bytes, Gymnasium's spaces */
  int   kind, size;              /* MN_DISCRETE: one int32_t; MN_MULTI_DISCRETE: int32_t, number k of 0 .. n[k]-1; MN_BOX: floats */
  int   n[MN_ACTION_SIZE];       /* of MN_DISCRETE the first alone */
  float low[MN_ACTION_SIZE], high[MN_ACTION_SIZE];   /* of MN_BOX: what goes beyond is clipped; -INFINITY, INFINITY: no bound */
} mn_action_space;
int         mn_env_count(void);
int         mn_env_find(const char *name);         /* "tmaze" or "tmaze-v0" */
const char *mn_env_name(int env);
int         mn_env_version(int env);
const char *mn_env_params(int env);                /* "corridor=160[2..256] map=\"\" ..." */
const char *mn_env_doc(int env);
const char *mn_env_about(int env);                 /* more lines on its settings, or NULL */
const char *mn_env_actions(int env);               /* "up down left right" */
const char *mn_env_observes(int env);             /* "cue=down,up place[8]": the numbers of an observation, or NULL */
const char *mn_env_rules(int env);                 /* for a person who plays, one sentence; or NULL */
const char *mn_env_to_know(int env);               /* "cue=class position=number": facts that a memory may know, or NULL */
const char *mn_env_needs(int env);                 /* what of the step before an agent must be told: "action"; or NULL */
const char *mn_env_outcomes(int env);              /* "collect_wood place_table": what an episode can have reached when it ends; or NULL */
const char *mn_env_settable(int env);              /* "cue=up|down ...": facts that mn_vec_set changes, or NULL */
mn_vec     *mn_vec_new(mn_ctx *mn, int env, int num_envs, double seed, const double *params, const char *text, int time_limit);
int         mn_vec_keep(mn_vec *v, int first, int num_envs);       /* keeps these environments only (one rank's share); before the first reset */
int         mn_vec_show_facts(mn_vec *v);                         /* observations end with the facts (mn_vec_truth); before the first reset */
void        mn_vec_free(mn_vec *v);
int         mn_vec_space(mn_vec *v, int *dtype, int *shape);   /* ndim of one observation */
int         mn_vec_codes(mn_vec *v);               /* uint8 observations: elements are codes below this number; 0: intensities */
int         mn_vec_actions(mn_vec *v);             /* of a discrete space: how many; else 0 */
void        mn_vec_action_space(mn_vec *v, mn_action_space *out);
int         mn_vec_time_limit(mn_vec *v);
int         mn_vec_bytes(mn_vec *v);               /* bytes that mn_vec_save writes for one environment */
int         mn_vec_reset(mn_vec *v, double seed, void *obs);   /* seed < 0: continues the streams of the old one */
int         mn_vec_reset_each(mn_vec *v, const double *seed, void *obs);   /* seed[num_envs]: environment i runs as environment 0 of seed[i] */
int         mn_vec_step(mn_vec *v, const void *action, void *obs, float *reward, uint8_t *terminated, uint8_t *truncated);
int         mn_vec_run(mn_vec *v, int rounds, const void *action, int sets, void *obs, float *reward,
                       uint8_t *terminated, uint8_t *truncated);   /* `rounds` steps; actions [sets, num_envs] in turn */
const void    *mn_vec_final_obs(mn_vec *v);        /* [num_envs, ...]: the last observation where an episode ended */
const float   *mn_vec_score(mn_vec *v);            /* [num_envs]: 0..1 where an episode ended */
const float   *mn_vec_return(mn_vec *v);           /* [num_envs]: undiscounted return where an episode ended */
const int32_t *mn_vec_length(mn_vec *v);           /* [num_envs]: its length */
const uint8_t *mn_vec_outcomes(mn_vec *v);         /* [num_envs, outcomes]: 1 where an episode that ended had reached it, from the first call on; NULL: error */
int         mn_vec_save(mn_vec *v, int index, void *bytes);
int         mn_vec_restore(mn_vec *v, int index, const void *bytes, int n, void *obs);  /* refuses another env, version, params */
int         mn_vec_set(mn_vec *v, int index, const char *fact, double value, void *obs);   /* 1: set; 0: not possible in the present state */
mn_canvas  *mn_vec_draw(mn_vec *v, int index);      /* borrowed until the next draw */
mn_canvas  *mn_vec_see(mn_vec *v, const void *obs); /* one observation, likewise; NULL without an error: there is no picture of it */

typedef struct mn_reference {    /* mean scores 0..1 that a result is compared with; NaN: not known */
  double chance;                 /* of uniformly random actions */
  double memoryless;             /* of the best policy that knows the present observation alone (and the last action, where it needs it); by rule,
                                  * or of the best that is known */
  double best;                   /* of the best policy that remembers all observations; likewise */
  double best_return;            /* the mean return of perfect play */
  double episodes;               /* chance was measured over that many; 0: by rule, as the others are */
} mn_reference;
void        mn_vec_reference(mn_vec *v, mn_reference *out);    /* all NaN with another time limit than the environment's own */
int         mn_vec_truth(mn_vec *v, int index, const char **names, const float **values);  /* privileged facts, for probes */

/* rollouts: T steps of B environments, in the memory of leaves, as learners use them.  On a GPU the host does not wait
** between steps: it reads nothing before mn_vec_rolled.  A row has B elements.  told_* and uncut_* may be NULL: not wanted. */
typedef struct mn_rollout {
  void    *obs;                                    /* [T+1,B,...]: before each step, and after the last */
  uint8_t *done;                                   /* [T+1,B]: the row begins an episode */
  uint8_t *resets;                                 /* [T+1,B]: the core's state is reset before the row */
  void    *told_action;                            /* [T+1,B]: the action of the step before; -1 (floats: 0) where an episode begins */
  float   *told_reward;                            /* [T+1,B]: the reward of the step before; 0 where an episode begins */
  void    *played;                                 /* [T,B]: the actions, int32_t or float, as they were drawn */
  float   *reward;                                 /* [T,B] */
  float   *score, *ret;                            /* [T,B]: an episode's score and return, in the row of its last step; else undefined */
  int32_t *length;                                 /* [T,B]: its steps, likewise */
  uint8_t *terminated;                             /* [B]: the last step ended an episode by the environment's rules */
  uint8_t *cut;                                    /* [B]: it ended one by a time limit */
  void    *uncut_obs;                              /* [B,...]: where cut, the next observation, had the episode gone on; else undefined */
  uint8_t *uncut_resets;                           /* [B]: whether the state would be reset before it, likewise */
  void    *uncut_action;                           /* [B]: the action of the step before it, likewise */
  float   *uncut_reward;                           /* [B]: the reward of the step before it, likewise */
  int32_t *seen;                                   /* [B]: observations since the state was reset */
  int32_t  context;                                /* resets the state after that many observations; 0: never */
  bool     reset_on_done;                          /* does the start of an episode reset the state? */
  bool     floats;                                 /* are the numbers of an action floats? */
  int32_t  action_size;                            /* numbers of an action, of 4 bytes: played is [T,B,action_size] ...; 0 is 1 */
} mn_rollout;

/* Row T becomes row 0; obs_bytes: of a whole row of obs.  0, or -1 with the error. */
int         mn_rollout_begin(mn_ctx *mn, const mn_rollout *r, int num_envs, int T, size_t obs_bytes);

/* Step t of the engine's environments, with action [B] or [B,size]; only r's memory is written.  1: a time limit may have cut an episode, so
** mn_rollout_uncut is wanted; 0: none did; -1: an error. */
int         mn_vec_roll(mn_vec *v, const mn_rollout *r, int t, const void *action);

/* Waits for all steps, after which the host may read r's memory.  0; -1 if an action was invalid. */
int         mn_vec_rolled(mn_vec *v);

/* Step t of other environments, whose obs, reward, terminated and cut are in r: fills the rest.  action, score, ret, length [B], final_obs
** [B, obs_bytes], of episodes that ended; all are read and not kept.  1: a time limit has cut an episode; 0: none; -1: an error. */
int         mn_rollout_noted(mn_ctx *mn, const mn_rollout *r, int num_envs, int t, const void *action, int obs_bytes,
                             const void *final_obs, const float *score, const float *ret, const int32_t *length);

/* Where step t was cut, adds gamma value [B], the critic's of uncut_obs, to the reward.  0, or -1 with the error. */
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
uint32_t        mn_map_color(int map, bool light, float share);
int             mn_canvas_image(mn_canvas *c, float x, float y, float w, float h, int rows, int cols, const uint8_t *rgb);
/* scales `from` to fit the box; texts that would be smaller than `least` are left out */
int             mn_canvas_append(mn_canvas *c, const mn_canvas *from, float x, float y, float w, float h, float least);
void            mn_canvas_bounds(const mn_canvas *c, float *box);   /* x0, y0, x1, y1 */
int             mn_canvas_count(const mn_canvas *c);
const mn_shape *mn_canvas_shapes(const mn_canvas *c);
const char     *mn_canvas_string(const mn_canvas *c, int text);
const uint8_t  *mn_canvas_pixels(const mn_canvas *c, int text, int *rows, int *cols);   /* rgb of an image, borrowed; NULL: no such image */

/* copies column from_index of a [rows, from_width, item] block to column to_index of another; an item has `bytes` bytes */
void        mn_copy_column(void *to, int to_width, int to_index, const void *from, int from_width, int from_index,
                           double rows, double bytes);

/* implicit attention: which past steps a recurrent memory reads (engine/recurrent/implicit_attention.c).  A trail points to
** a probe's values at each step; a head's are elements from .. from+n-1.
** All three functions write w [steps], the weight of each step, and use up the query u [K]; everything is the caller's.  They return how many
** steps at the beginning are not known, because the head was not probed there. */
typedef struct mn_trail { const float **steps; int from, n; } mn_trail;
typedef struct mn_recall_gates {     /* of a gated memory; what is NULL was not probed */
  const mn_trail *write_v, *write_k, *p_write_k;     /* gates of what is written; p_write_k: its second factor */
  const mn_trail *keep_v, *keep_k;   /* what is kept, if apart: NULL all, one value that of the head; else what the gates leave */
  bool apart;
} mn_recall_gates;

/* A gated memory, whose keys are k, or products of p_k and k.  shrink: what u is multiplied by after each step, or NULL; channel: of the
** values, -1: the mean over all V; reach [V]: scratch; a query of which less than `gone` is left reads nothing more. */
int         mn_recall_gated(int steps, const mn_trail *k, const mn_trail *p_k, const mn_recall_gates *gates, const mn_trail *shrink,
                            int channel, float *u, int K, float *reach, double gone, float *w);

/* A memory that removes what a key holds before it writes: kept, write [steps] are its factors, kept_first: in this order; unit: keys as they
** are (0), of length 1 (1), of sum 1 (2); pair [K]: scratch. */
int         mn_recall_corrected(int steps, const mn_trail *k, const mn_trail *p_k, const double *kept, const double *write,
                                bool kept_first, int unit, float *u, int K, float *pair, float *w);

/* A memory that keeps a part of each channel; back and out: what `back` reads of it is also taken out along `out`, or both NULL; first [K]:
** by which the newest step is read, and the memory as it was before that step; or NULL. */
int         mn_recall_kept(int steps, const mn_trail *key, const mn_trail *keep, const mn_trail *back, const mn_trail *out,
                           const float *first, float *u, int K, float *w);

/* random numbers: Philox4x32-10 keyed (seed, stream, purpose); fills n floats */
void        mn_random_normal(double seed, double stream, double purpose, float *out, double n);
void        mn_random_uniform(double seed, double stream, double purpose, float *out, double n);
int         mn_orthogonal(float *w, int rows, int cols, double gain);   /* w, filled with normal values, becomes orthogonal times gain; -1: no memory */

/* images: RGBA8, rows from the top.  A file appears complete under its name, or not at all. */
typedef struct mn_movie mn_movie;      /* a GIF or MP4 being written */
int         mn_image_write(mn_ctx *mn, const char *path, const uint8_t *rgba, int width, int height);   /* PNG */
int         mn_image_read(mn_ctx *mn, const char *path, uint8_t *rgba, int *width, int *height);        /* rgba NULL: its size */
mn_movie   *mn_movie_new(mn_ctx *mn, const char *path, int width, int height, int fps);   /* .gif; .mp4 if ffmpeg is installed */
void        mn_movie_free(mn_movie *m);
int         mn_movie_add(mn_movie *m, const uint8_t *rgba);
int         mn_movie_end(mn_movie *m);             /* -1: no file was written; free it either way */

/* live channel: a file through which a trainer shows one environment to a viewer without waiting for it.
** `schema` is JSON that describes the layout of a snapshot of `bytes` bytes. */
typedef struct mn_live mn_live;        /* the trainer's end */
typedef struct mn_live_reader mn_live_reader;        /* the viewer's end */
mn_live    *mn_live_new(mn_ctx *mn, const char *path, const char *schema, double bytes);
void        mn_live_free(mn_live *l);              /* marks the training as ended; the file stays */
bool        mn_live_due(mn_live *l, double per_second);   /* is it time for the next snapshot? */
void       *mn_live_begin(mn_live *l);             /* where to write the snapshot */
void        mn_live_publish(mn_live *l);           /* makes it visible to the reader */
int         mn_live_wanted(mn_live *l);            /* the environment that the viewer asks for; 0 at first */
mn_live_reader    *mn_live_reader_new(mn_ctx *mn, const char *path);
void        mn_live_reader_free(mn_live_reader *p);
const char *mn_live_reader_schema(mn_live_reader *p);
double      mn_live_reader_bytes(mn_live_reader *p);
int         mn_live_reader_read(mn_live_reader *p, void *out);   /* 1: read the newest snapshot; 0: nothing new; -1: unreadable */
const char *mn_live_reader_state(mn_live_reader *p);             /* "running", "ended", "gone" (its process died), "replaced" */
int         mn_live_reader_want(mn_live_reader *p, int index);    /* asks for another environment */

/* files are read as a whole, and written completely under their name or not at all.  Errors name the path and the reason. */
typedef struct mn_file mn_file;        /* the bytes of a file that was read */
mn_file    *mn_file_new(mn_ctx *mn, const char *path);
void        mn_file_free(mn_file *f);
const void *mn_file_data(const mn_file *f);        /* a zero follows the last byte */
double      mn_file_bytes(const mn_file *f);
int         mn_file_write(mn_ctx *mn, const char *path, int n, const void *const *piece, const double *bytes);
int         mn_file_append(mn_ctx *mn, const char *path, const void *data, double bytes);   /* all of it, or nothing */
int         mn_file_write_after(mn_ctx *mn, const char *path, int n, const void *const *piece, const double *bytes, int m, const char *const *others);
bool        mn_file_regular(const char *path);     /* a regular file, not of /proc or /sys; follows links, opens nothing */
int         mn_file_draft(mn_ctx *mn, const char *path, char draft[4096]);   /* creates PATH.RANDOM.tmp; draft: its name */
bool        mn_file_unsynced(void);                /* once true: a file was written where the file system cannot sync */
int         mn_file_lock(mn_ctx *mn, const char *path);                 /* held by this process until it ends; 0: there are no locks here */
bool        mn_file_locked(const char *path);     /* by another process; not for a file that this one has locked */
int         mn_file_cut(mn_ctx *mn, const char *path, double bytes);      /* truncates; leaves a shorter or missing file alone */
int         mn_file_move(mn_ctx *mn, const char *path, const char *to);   /* to NULL: removes it */
int         mn_folder_make(mn_ctx *mn, const char *path);                 /* with its parents; 1: made, 0: existed */
uint32_t    mn_crc32c(uint32_t crc, const void *data, double bytes);      /* begin with 0 */
int         mn_code_sum(const char *path, bool is_file, uint32_t *crc);   /* adds a file, or the .lua and .py files of a folder and those within */
void        mn_sha256(const void *data, double bytes, char text[65]);     /* digits of the digest */
/* an allocator for libraries that do not report failed allocations: see lua/mneme/base/json.lua */
void       *mn_memory_new(size_t bytes);
void        mn_memory_free(void *p);
bool        mn_memory_starved(void);               /* did an allocation fail since the last call? */
void        mn_sleep(double seconds);
double      mn_clock(bool wall);                   /* seconds; wall: since 1970, else monotonic */

/* child processes, forked from this one: see engine/base/process.c */
typedef struct mn_ended { int32_t pid, status, signal; double cpu, peak; } mn_ended;   /* status as in a shell; cpu in seconds, peak memory in bytes */
int         mn_process_fork(mn_ctx *mn, const char *log);                 /* 0 in the child, the child's pid here */
int         mn_process_wait(mn_ctx *mn, double seconds, mn_ended *ended); /* 1: a child ended; 0: none did */
void        mn_process_stop(int pid, bool at_once);
void        mn_process_exit(int status);
int         mn_cores(void);                        /* processors that this process may use */
/* processes of another program that share memory with this one: see engine/io/workers.c */
typedef struct mn_workers mn_workers;
mn_workers *mn_workers_new(mn_ctx *mn, int n, const char *const *argv);   /* n times argv[0] argv[1] ... NULL */
void        mn_workers_free(mn_workers *w);        /* ends them */
void       *mn_workers_memory(mn_ctx *mn, mn_workers *w, double bytes);   /* gives them shared memory of zeros, once */
int         mn_workers_tell(mn_ctx *mn, mn_workers *w, int i, const char *line, double bytes);
const char *mn_workers_hear(mn_ctx *mn, mn_workers *w, int i, double seconds);   /* the next line of worker i; NULL: it has gone, or is late */
int         mn_workers_round(mn_ctx *mn, mn_workers *w, double seconds);              /* each steps once; i+1: worker i has a line to say */
const char *mn_commit(void);                       /* the commit of the build, with "-dirty" if files differed; "": unknown */
const char *mn_compiler(void);                     /* "gcc 12.2.0" */

/* ranks: processes started by mpirun that train one agent together: see engine/io/mpi.c.  Without mpirun: rank 0 of 1. */
const char *mn_ranks_begin(void);                  /* NULL, or why MPI cannot be used */
int         mn_rank(void);
int         mn_ranks(void);                        /* how many */
void        mn_ranks_mean(float *x, double n, bool more);   /* over ranks, in place; every rank calls this and the next three */
void        mn_ranks_sum(double *x, int n);
int         mn_ranks_gather(mn_ctx *mn, const void *mine, void *all, double bytes, bool everyone);
void        mn_ranks_share(void *at, double bytes);/* every rank gets rank 0's bytes */
void        mn_ranks_end(bool fine, int status);   /* not fine: ends all other ranks too */

/* TensorBoard event files */
int         mn_events_begin(mn_ctx *mn, const char *path, const char *tag, const char *text);  /* writes two records: version and a text */
int         mn_events_add(mn_ctx *mn, const char *path, double step, int n, const char *const *tag, const float *number);
int         mn_events_cut(mn_ctx *mn, const char *path, int n);           /* keeps the first n records */

#endif
