/* internal.h -- the inside of a context: records of tensors, arenas, tapes and plans.
** Only the engine's own files include this; ops see op.h. */
#ifndef MN_INTERNAL_H
#define MN_INTERNAL_H
#include <string.h>
#include "base/workspace.h"
#include "numerics/bf16_gemm.h"
#include "op.h"
#include "signature.h"

typedef struct mn_stretch { char *base; size_t start, bytes; } mn_stretch;

typedef struct mn_arena {        /* memory of a device, handed out from its start: see arena.c */
  mn_device *on;
  size_t used, peak;             /* places: bytes from the start */
  mn_stretch *stretch;
  int n, at;                     /* how many; the one that is handed out now */
  char *base;                    /* of that one: its first byte, and its places */
  size_t start, end;
} mn_arena;

typedef struct mn_block { float *at; long n; } mn_block;

typedef struct mn_memory {       /* memory of computed tensors: the context's, or a plan's */
  mn_arena numbers;              /* on the context's device */
  mn_arena records;              /* nodes and calls, which are the host's */
  mn_block *pool;                /* gradient buffers to use again, by exact size */
  int n_pool, cap_pool;
} mn_memory;

struct mn_node;

typedef struct mn_record {       /* one tensor */
  uint32_t gen;                  /* 0: free */
  int    slot;
  int    dtype, ndim, shape[MN_AXES];
  long   n;
  void  *data;
  float *grad;                   /* leaf: its own buffer; computed: set while backward runs */
  bool   wants_grad, timed, lent; /* lent: grad is not the walk's to use again */
  mn_time late;                  /* by rows, made only when read: MN_FINAL, MN_ON_DEMAND; else 0 */
  bool   fresh;                  /* leaf: the next gradient stores instead of adding */
  uint32_t emptied_in;           /* leaf: version of the plan that recorded when zero_grad was called last; 0: none did */
  uint64_t changed;              /* leaf that owns its values: ctx->changes when they changed in place last */
  bool   dead;                   /* leaf: freed by its owner, kept while pinned */
  bool   read;                   /* leaf, in mn_collect: a node that stays reads it */
  bool   sought;                 /* in mn_grad: its gradient is wanted */
  bool   leads;                  /* of a plan that records, in mn_grad: it was computed from one whose gradient is wanted */
  mn_tensor keeps;               /* computed: the leaf that backward copies its gradient into, if there still is one */
  int    pins;                   /* leaf: plans and views that use it */
  struct mn_record *of;          /* leaf view, or computed by an alias: whose numbers these are */
  struct mn_node *maker;         /* computed outside plans: its node on the tape; NULL: none, or backward took it off */
  struct mn_plan *plan;          /* recorded by it */
} mn_record;

typedef struct mn_node {         /* one call on a tape */
  struct mn_node *older, *newer;
  mn_call call;
  mn_record *in[MN_INPUTS], *out[MN_OUTPUTS];
  unsigned lends;                /* bit i: backward may fill the gradient of input i */
  uint32_t walk;                 /* ctx->walks when a backward pass ran it last */
  uint64_t made;                 /* ctx->changes when it was applied: leaves that changed later have other values than it used */
  int place;                     /* as mn_set_place said */
} mn_node;

typedef struct mn_link {         /* a plan whose tensors were used; asked: also such as are MN_ON_DEMAND */
  int plan;
  uint32_t version;
  bool asked;
} mn_link;

/* A learner that cuts its rollout into pieces depends on a plan for each. */
enum { MN_LINKS = 64 };

typedef struct mn_tape {
  mn_node *newest;
  mn_link link[MN_LINKS];
  int n_links;
} mn_tape;

typedef enum { MN_FORWARD, MN_BACKWARD, MN_ADD, MN_COPY } mn_kind;

typedef struct mn_graph {        /* a run of a plan, in one piece: see device_graphs.c */
  int   t0, t1;
  void *at;                      /* the device's; NULL: it ran once */
} mn_graph;

typedef struct mn_command {      /* one thing a plan does again */
  mn_kind  kind;
  mn_call *call;                 /* forward, backward */
  mn_call *rows;                 /* the same, bent to some rows of time; made at the first run by rows */
  char     time_letter;          /* of the op's signature, or 0 */
  int      batch_parallel;              /* that many commands from here on can run with a share of the environments per thread: plan_parallel.c */
  float   *to;                   /* add, copy; of a final state, while it is carried: the leaf that it is written over */
  const float *from;
  long     bytes;
  double   seconds;
  int      place;                /* as mn_set_place said when its op was applied */
} mn_command;

typedef struct mn_body mn_body;  /* see recurrence.c */
typedef struct mn_way_back mn_way_back;      /* see custom_gradient.c */

struct mn_plan {
  mn_ctx *ctx;
  int id;                        /* place in ctx->plan */
  uint32_t version;              /* raised when recorded again */
  mn_memory memory;
  mn_tape tape;
  mn_command *command;
  int n_commands, cap_commands;
  mn_record **own, **pinned;     /* tensors made here; leaves used here */
  int n_own, cap_own, n_pinned, cap_pinned;
  mn_record **graded;            /* leaves whose gradients its backward passes make */
  int n_graded, cap_graded;
  mn_record **changes;           /* leaves whose values it changes in place */
  int n_changes, cap_changes;
  bool recording, profile;
  bool later;                    /* what runs by rows is not computed while it records */
  uint64_t began, ran;           /* ctx->changes when a run from its first row began last, and when any run did: what it computed changed */
  int T, other_T;                /* length of time of its timed tensors; another that some have; 0 without any */
  bool rows_checked;             /* it can run by rows */
  int next_row;                  /* where the last run by rows ended */
  mn_graph *graph;               /* runs that came before */
  int n_graphs, cap_graphs;
  uint32_t graphs_of;            /* scratch_version of the workspace when they were captured */
  mn_body *body;                 /* it is the body of a recurrence; else NULL */
  mn_way_back *way_back;         /* it is the backward pass of a custom gradient; else NULL */
  void (*free_body)(struct mn_plan *p);
  struct mn_plan *outer;         /* of mn_plan_begin_inside: the plan that records around it */
  int outer_no_grad;             /* and the context's no_grad, meanwhile 0 */
  unsigned late;                 /* bits MN_FINAL, MN_ON_DEMAND: rows were run since those were made */
};

typedef struct mn_mark { size_t numbers, records; int n_computed; } mn_mark;

struct mn_ctx {
  mn_workspace work;             /* first: what kernels are lent */
  const mn_kernel **kernel;      /* by op: as looked up at its first use */
  bool debug;
  int place;                     /* where in the user's program ops are being applied: mn_set_place */
  mn_memory memory;
  mn_tape tape;
  mn_record **leaf;   int n_leaves, cap_leaves;       /* slot -1, -2, ...: leaves and what plans made */
  mn_record *unused;                                  /* of those, the free ones, linked by `of` */
  mn_record **computed; int n_computed, cap_computed; /* slot 0, 1, ...: until the next sweep */
  mn_record **grave;  int n_grave, cap_grave;         /* freed leaves that the tape may still need */
  uint32_t next_gen, next_version;
  uint64_t changes;                                   /* how often values were changed in place: by mn_note_change, or a plan's run */
  uint32_t walks;                                     /* how many backward passes there were */
  bool seeks;                                         /* now only leaves that are `sought` get a gradient */
  int open;                                           /* computed tensors with a gradient whose nodes backward has not run yet */
  mn_arena spare_numbers, spare_records;              /* mn_collect moves what stays into these */
  size_t numbers_due, records_due;                    /* mn_collect is due from these uses of the arenas, */
  int slots_due;                                      /* or from so many computed tensors; 0: as for a new context */
  double leaf_bytes;
  mn_plan **plan;     int n_plans, cap_plans;
  mn_plan *recording;
  mn_mark mark[16];   int no_grad;                    /* depth of mn_no_grad */
};

/* arena.c */
void *mn_take(mn_ctx *mn, mn_arena *a, size_t bytes, const char *what);  /* 64-byte aligned; NULL and error */
void  mn_rewind(mn_arena *a, size_t to);              /* what was taken from that place on is gone */
bool  mn_taken_before(const mn_arena *a, const void *p, size_t place);
bool  mn_place_of(const mn_arena *a, const void *p, size_t *place);      /* false: p is not in it */
size_t mn_room_of(size_t bytes);                      /* bytes that mn_take uses up for an array */
void  mn_arena_close(mn_arena *a);
void  mn_memory_open(mn_ctx *mn, mn_memory *m);       /* nothing is reserved before it is needed */
void  mn_memory_close(mn_memory *m);

/* handles.c */
int   mn_grow(mn_ctx *mn, void *array, int *cap, int need, size_t item);
mn_record *mn_find(mn_ctx *mn, const mn_tensor *t, const char *op, const char *arg);  /* NULL and error */
mn_record *mn_new_leaf(mn_ctx *mn);
void  mn_free_slot(mn_ctx *mn, mn_record *r);         /* what it held is gone */
mn_record *mn_new_record(mn_ctx *mn);                 /* computed: in the recording plan, or until the sweep */
void  mn_drop_record(mn_ctx *mn, mn_record *r);       /* a leaf or a plan's tensor: its slot is free again */
void  mn_unpin(mn_ctx *mn, mn_record *r);
void  mn_free_deferred(mn_ctx *mn);                            /* really free what was freed; the tape is empty */
void  mn_records_close(mn_ctx *mn);                   /* free them all */

/* device.c */
int   mn_check_device(mn_ctx *mn, int result);                 /* hands a device's 0 on, or -1 with its error */

const mn_kernel *mn_kernel_of(mn_ctx *mn, int op, bool backward);        /* NULL and error */

/* tensor.c */
int   mn_settle_grad(mn_ctx *mn, mn_record *leaf);    /* zeros, if nothing has reached it since zero_grad */
int   mn_note_change(mn_ctx *mn, mn_record *leaf);    /* its values change in place, now and in replays of the recording plan */

/* tape.c */
static inline mn_tape *mn_current_tape(mn_ctx *mn) { return mn->recording ? &mn->recording->tape : &mn->tape; }
static inline mn_memory *mn_current_memory(mn_ctx *mn) { return mn->recording ? &mn->recording->memory : &mn->memory; }
int   mn_use(mn_ctx *mn, mn_record *r, const char *op, const char *arg);   /* pin or link what is used */
int   mn_note_leaf(mn_ctx *mn, mn_record ***list, int *n, int *cap, mn_record *leaf);      /* append it, unless it is there */
int   mn_check_links(mn_ctx *mn, const mn_tape *t);

/* plan.c */
int   mn_plan_finish(mn_plan *p, mn_time late);       /* make what nobody had read yet: MN_FINAL or MN_ON_DEMAND */
mn_command *mn_record_command(mn_plan *p, mn_kind kind);
int   mn_plan_begin_inside(mn_plan *p);               /* as mn_plan_begin, also while another records, which goes on at mn_plan_end */

/* row_slice.c */
bool  mn_carries_time(const mn_call *c);              /* is one of its inputs a sequence? */
bool  mn_made_when_read(const mn_call *c);            /* its outputs are made when somebody reads them: MN_FINAL, MN_ON_DEMAND */
bool  mn_runs_by_rows(const mn_call *c);              /* does each run by rows have something to do here? */
bool  mn_runs_when_read(const mn_call *c);            /* it carries time, and only reading its outputs runs it */
void  mn_slice_rows(const mn_command *k, mn_call *c, int t0, int t1);    /* c, a copy of k->rows, for rows t0 .. t1-1 */

/* plan_parallel.c */
void  mn_find_batch_parallel(mn_plan *p);                      /* which commands can be run so, by rows */
int   mn_run_batch_parallel(mn_plan *p, int i, int t);         /* row t, from command i on: how many commands, 0: not so */

/* find_nan.c */
void  mn_describe_inputs(const mn_op_entry *e, const mn_call *c, char *text, size_t room);   /* "x [8,16] -0.5..2, ..." */

/* recurrence.c */

/* collect.c */
void  mn_collect_close(mn_ctx *mn);

/* device_graphs.c */
int   mn_graphs_run(mn_plan *p, int t0, int t1, int (*work)(mn_plan *p, int t0, int t1));
void  mn_graphs_drop(mn_plan *p);                     /* what they do is no longer what the plan does */

#endif
