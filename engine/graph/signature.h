/* signature.h -- an op's signature, read once: "x[T,B,D] w[E,D] -> y[T,B,E] | eps=1e-5". */
#ifndef MN_SIGNATURE_H
#define MN_SIGNATURE_H
#include "base/device.h"

#define MN_NUMBERS (1L << 40)    /* more of them no tensor has: products of sizes stay far below what a long holds */

enum { MN_REST = '.', MN_ANY = '?', MN_FREE = '*' };   /* axis symbols besides 'A'..'Z' and '1'..'9' */
enum { MN_ANY_TYPE = -1 };       /* dtype of an argument marked :any */

typedef struct mn_arg_sig {
  char name[24];
  char axis[MN_AXES + 2];                        /* one symbol an axis, 0 at the end */
  char domain[8];                                /* "", "bit", "01", "pos", "<V", "<axis", "i32", "u8", "any" */
  int  dtype;                                    /* or MN_ANY_TYPE */
  bool optional, no_grad, work_space;            /* work_space: an output that the op alone reads, and fills where it needs it */
} mn_arg_sig;

typedef struct mn_option_sig {
  char name[24], words[96];                      /* words: "a|b|c", or "" for a number */
  double value;                                  /* the default */
} mn_option_sig;

typedef struct mn_signature {
  int n_in, n_out, n_options;
  mn_arg_sig in[MN_INPUTS], out[MN_OUTPUTS];
  mn_option_sig option[MN_OPTIONS];
} mn_signature;

typedef struct mn_op_entry {
  const char *name;
  const struct mn_op *op;
  mn_kernel kernel;                              /* the CPU's */
  mn_signature sig;
  const char *input_name[MN_INPUTS];             /* of the signature */
} mn_op_entry;

/* Read a signature as op.h describes it into *g, which is all zeros; NULL, or where it is malformed. */
const char *mn_read_signature(const char *s, mn_signature *g);

mn_op_entry *mn_ops_all(int *n);                 /* every op with its signature read */
const mn_op_entry *mn_entry_of(const mn_op *op); /* one of them */
const mn_op_entry *mn_op_at(int op);             /* by number; NULL: no such op */

/* Bind the letters of a call's inputs and give its outputs their shapes; 0, or -1 with the error. */
int mn_bind(mn_ctx *mn, const mn_op_entry *e, mn_call *c);

/* What every index of input i is below, by its domain `<V` or `<axis`; 0: it holds no indices. */
int mn_index_bound(const mn_op_entry *e, const mn_call *c, int i);

/* Check that every input keeps to its domain; 0, or -1 with the error.  Slow: for mn_set_debug. */
int mn_check_domains(mn_ctx *mn, const mn_op_entry *e, const mn_call *c);

#endif
