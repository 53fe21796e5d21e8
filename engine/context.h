/* context.h -- the inside of a context: records of tensors, arenas, tapes and plans.
** Only the engine's own files include this; ops see op.h. */
#ifndef MN_CONTEXT_H
#define MN_CONTEXT_H
#include <string.h>
#include "op.h"
#include "signature.h"

typedef struct mn_arena {        /* one reserved stretch of memory, handed out from its start */
  char *base;
  size_t used, size, peak;
} mn_arena;

typedef struct mn_block { float *at; long n; } mn_block;

typedef struct mn_memory {       /* where computed numbers live: the context's, or a plan's */
  mn_arena arena;
  mn_block *pool;                /* gradient buffers to use again, by exact size */
  int n_pool, cap_pool;
} mn_memory;

typedef struct mn_record {       /* one tensor */
  uint32_t gen;                  /* 0: free */
  int    slot;
  int    dtype, ndim, shape[MN_AXES];
  long   n;
  void  *data;
  float *grad;                   /* leaf: its own buffer; computed: set while backward runs */
  bool   wants_grad, timed;
  mn_time late;                  /* by rows, made only when read: MN_LAST, MN_ASKED; else 0 */
  bool   fresh;                  /* leaf: the next gradient stores instead of adding */
  uint32_t needed;               /* leaf: the tape that its numbers are needed for, as ctx->tape_number */
  bool   dead;                   /* leaf: freed by its owner, kept while pinned */
  int    pins;                   /* leaf: plans and views that use it */
  struct mn_record *of;          /* leaf view: whose numbers these are */
  struct mn_plan *plan;          /* recorded by it */
} mn_record;

typedef struct mn_node {         /* one call on a tape */
  struct mn_node *older;
  mn_call call;
  mn_record *in[MN_INPUTS], *out[MN_OUTPUTS];
} mn_node;

typedef struct mn_link {         /* a plan whose tensors were used; asked: also such as are MN_ASKED */
  int plan;
  uint32_t version;
  bool asked;
} mn_link;

/* A learner that cuts its rollout into pieces leans on a plan for each. */
enum { MN_LINKS = 64 };

typedef struct mn_tape {
  mn_node *newest;
  mn_link link[MN_LINKS];
  int n_links;
} mn_tape;

typedef enum { MN_FORWARD, MN_BACKWARD, MN_ADD, MN_COPY } mn_kind;

typedef struct mn_command {      /* one thing a plan does again */
  mn_kind  kind;
  mn_call *call;                 /* forward, backward */
  mn_call *rows;                 /* the same, bent to some rows of time; made at the first run by rows */
  char     time_letter;          /* of the op's signature, or 0 */
  float   *to;                   /* add, copy */
  const float *from;
  long     bytes;
  double   seconds;
} mn_command;

struct mn_plan {
  mn_ctx *ctx;
  int id;                        /* place in ctx->plan */
  uint32_t version;              /* raised when recorded anew */
  mn_memory memory;
  mn_tape tape;
  mn_command *command;
  int n_commands, cap_commands;
  mn_record **own, **pinned;     /* tensors made here; leaves used here */
  int n_own, cap_own, n_pinned, cap_pinned;
  mn_record **graded;            /* leaves whose gradients its backward passes make */
  int n_graded, cap_graded;
  bool recording, profile;
  int T;                         /* length of time of its timed tensors; 0 without any */
  int next_row;                  /* where the last run by rows ended */
  unsigned late;                 /* bits MN_LAST, MN_ASKED: rows were run since those were made */
};

typedef struct mn_team mn_team;

typedef struct mn_mark { size_t used; int n_computed; } mn_mark;

struct mn_ctx {
  char error[512];
  int threads;
  mn_team *team;                 /* NULL until small work is shared out */
  bool debug;
  mn_memory memory;
  mn_tape tape;
  mn_record **leaf;   int n_leaves, cap_leaves;       /* slot -1, -2, ...: leaves and what plans made */
  mn_record *unused;                                  /* of those, the free ones, linked by `of` */
  mn_record **computed; int n_computed, cap_computed; /* slot 0, 1, ...: until the next sweep */
  mn_record **grave;  int n_grave, cap_grave;         /* freed leaves that the tape may still need */
  uint32_t next_gen, next_version;
  uint32_t tape_number;                               /* raised by every backward pass and sweep */
  double leaf_bytes;
  mn_plan **plan;     int n_plans, cap_plans;
  mn_plan *recording;
  mn_mark mark[16];   int no_grad;                    /* depth of mn_no_grad */
  float *scratch[MN_SCRATCHES];  long scratch_n[MN_SCRATCHES];
};

/* context.c */
int   mn_arena_open(mn_arena *a);
void  mn_arena_close(mn_arena *a);
void *mn_take(mn_ctx *mn, mn_memory *m, size_t bytes, const char *what);  /* 64-byte aligned; NULL and error */
void *mn_zeroed(size_t bytes);                        /* NULL: no memory; mn_release gives it back */
void  mn_release(void *at);
int   mn_grow(mn_ctx *mn, void *array, int *cap, int need, size_t item);
mn_record *mn_find(mn_ctx *mn, const mn_tensor *t, const char *op, const char *arg);  /* NULL and error */
mn_record *mn_new_leaf(mn_ctx *mn);
void  mn_free_slot(mn_ctx *mn, mn_record *r);         /* what it held is gone */
mn_record *mn_new_record(mn_ctx *mn);                 /* computed: in the recording plan, or until the sweep */
void  mn_drop_record(mn_ctx *mn, mn_record *r);       /* a leaf or a plan's tensor: its slot is free again */
void  mn_unpin(mn_ctx *mn, mn_record *r);
void  mn_bury(mn_ctx *mn);                            /* really free what was freed; the tape is empty */

/* team.c */
void  mn_team_close(mn_ctx *mn);

/* tape.c */
static inline mn_tape *mn_current_tape(mn_ctx *mn) { return mn->recording ? &mn->recording->tape : &mn->tape; }
static inline mn_memory *mn_current_memory(mn_ctx *mn) { return mn->recording ? &mn->recording->memory : &mn->memory; }
int   mn_use(mn_ctx *mn, mn_record *r, const char *op, const char *arg);   /* pin or link what is used */
int   mn_check_links(mn_ctx *mn, const mn_tape *t);

/* plan.c */
void  mn_plan_finish(mn_plan *p, mn_time late);       /* make what nobody had read yet: MN_LAST or MN_ASKED */
mn_command *mn_record_command(mn_plan *p, mn_kind kind);
const char *mn_kind_name(mn_kind kind);

#endif
