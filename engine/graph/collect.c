/* collect.c -- frees computed tensors that nobody needs any more, so that a loop may run for ever without mn_sweep().
** Lua knows which handles are still alive.  They stay, and of the tape the nodes behind them, with all that those nodes read
** and made.  What stays moves into spare arenas, in its order, and the arenas change places. */
#include <stdlib.h>
#include "internal.h"

enum { NUMBERS_DUE = 64 << 20, RECORDS_DUE = 32 << 20, SLOTS_DUE = 1 << 17 };     /* bytes, bytes, tensors */

static size_t bytes_of(const mn_record *r) { return (size_t)r->n * mn_item(r->dtype); }

bool mn_collect_due(mn_ctx *mn) {
  if (mn->recording) return false;
  return mn->memory.numbers.used > (mn->numbers_due ? mn->numbers_due : NUMBERS_DUE)
         || mn->memory.records.used > (mn->records_due ? mn->records_due : RECORDS_DUE)
         || mn->n_computed > (mn->slots_due ? mn->slots_due : SLOTS_DUE);
}

void mn_collect_close(mn_ctx *mn) {
  mn_arena_close(&mn->spare_numbers);
  mn_arena_close(&mn->spare_records);
}

/* Mark what the nodes need whose results are needed; the others come off the tape.  `kept` has a byte for each slot. */
static int mark_nodes(mn_ctx *mn, char *kept) {
  int n = 0;
  for (mn_node *node = mn->tape.newest; node; node = node->older) {
    bool needed = false;
    for (int i = 0; i < node->call.n_out; i++) needed |= kept[node->out[i]->slot] != 0;
    node->walk = !needed;
    n += needed;
    if (!needed) continue;
    for (int i = 0; i < node->call.n_out; i++) kept[node->out[i]->slot] = 1;
    for (int i = 0; i < node->call.n_in; i++) if (node->in[i] && node->in[i]->slot >= 0) kept[node->in[i]->slot] = 1;
  }
  return n;
}

/* Copy the numbers of what stays, in the order of slots; at[slot] is where they are now. */
static int move_numbers(mn_ctx *mn, const char *kept, void **at, mn_mark *mark, mn_arena *to) {
  int next = 0, stay = 0;
  for (int i = 0; i <= mn->n_computed; i++) {
    for (; next < mn->no_grad && mn->mark[next].n_computed <= i; next++) mark[next] = (mn_mark){ to->used, 0, stay };
    if (i == mn->n_computed || !kept[i]) continue;
    mn_record *r = mn->computed[i];
    stay++;
    if (r->of && kept[r->of->slot] && at[r->of->slot]) {             /* an alias, whose numbers have moved */
      at[i] = at[r->of->slot];
      continue;
    }
    if (!(at[i] = mn_take(mn, to, bytes_of(r), "collect"))) return -1;
    if (mn_check_device(mn, mn->work.device->copy(at[i], r->data, bytes_of(r)))) return -1;
  }
  return mn_wait(mn);
}

/* Copy the nodes that stay, oldest first, and let their calls read the new places. */
static int move_nodes(mn_ctx *mn, int n, mn_node **list, mn_arena *to) {
  int i = n;
  for (mn_node *node = mn->tape.newest; node; node = node->older) if (!node->walk) list[--i] = node;
  for (i = 0; i < n; i++) {
    mn_node *copy = mn_take(mn, to, sizeof *copy, "collect");
    if (!copy) return -1;
    *copy = *list[i];
    list[i] = copy;
  }
  return 0;
}

static void link_nodes(mn_ctx *mn, int n, mn_node **list) {
  mn->tape.newest = n ? list[n - 1] : NULL;
  for (int i = 0; i < n; i++) {
    mn_node *node = list[i];
    mn_call *c = &node->call;
    node->older = i ? list[i - 1] : NULL;
    node->newer = i + 1 < n ? list[i + 1] : NULL;
    for (int k = 0; k < c->n_in; k++) if (node->in[k]) c->in[k].data = node->in[k]->data;
    for (int k = 0; k < c->n_out; k++) c->out[k].data = node->out[k]->data, node->out[k]->maker = node;
  }
  if (!n) mn->tape.n_links = 0;
}

/* Freed leaves that no node reads any more. */
static void free_unread_leaves(mn_ctx *mn) {
  for (int i = 0; i < mn->n_grave; i++) mn->grave[i]->read = false;
  for (const mn_node *node = mn->tape.newest; node; node = node->older)
    for (int k = 0; k < node->call.n_in; k++) if (node->in[k]) node->in[k]->read = true;
  int stay = 0;
  for (int i = 0; i < mn->n_grave; i++)
    if (mn->grave[i]->read) mn->grave[stay++] = mn->grave[i];
    else mn_unpin(mn, mn->grave[i]);
  mn->n_grave = stay;
}

static void swap_arenas(mn_arena *a, mn_arena *b) {
  mn_arena was = *a;
  *a = *b;
  *b = was;
  mn_rewind(b, 0);
}

/* Give those that stay the first slots, and new places; forget the others. */
static void move_records(mn_ctx *mn, const char *kept, void *const *at) {
  int stay = 0;
  for (int i = 0; i < mn->n_computed; i++) {
    mn_record *r = mn->computed[i];
    if (!kept[i]) {
      r->gen = 0;
      continue;
    }
    if (r->of && !kept[r->of->slot]) r->of = NULL;     /* slots are the old ones until the next loop */
    r->data = at[i];
    stay++;
  }
  for (int i = 0, to = 0; i < mn->n_computed; i++) {
    if (!kept[i]) continue;
    mn_record *r = mn->computed[i];
    mn->computed[i] = mn->computed[to];
    mn->computed[r->slot = to++] = r;
  }
  mn->n_computed = stay;
}

int mn_collect(mn_ctx *mn, int n, mn_tensor *alive) {
  if (mn->recording) return mn_fail(mn, "collect: while a plan records");
  const size_t slots = (size_t)mn->n_computed + 1;
  char *kept = calloc(slots, 1);
  void **at = calloc(slots, sizeof *at);
  mn_record **handles = calloc((size_t)n + 1, sizeof *handles);
  mn_node **list = NULL;
  mn_mark mark[sizeof mn->mark / sizeof *mn->mark];
  int nodes = 0, result = -1;
  mn->spare_numbers.on = mn->memory.numbers.on, mn->spare_records.on = mn->memory.records.on;
  if (!kept || !at || !handles) {
    mn_fail(mn, "out of memory");
    goto end;
  }
  for (int i = 0; i < n; i++) {
    const mn_tensor t = alive[i];
    if (t.slot < 0 || t.slot >= mn->n_computed || !t.gen || mn->computed[t.slot]->gen != t.gen) continue;
    handles[i] = mn->computed[t.slot];
    kept[t.slot] = 1;
  }
  nodes = mark_nodes(mn, kept);
  if (!(list = calloc((size_t)nodes + 1, sizeof *list))) {
    mn_fail(mn, "out of memory");
    goto end;
  }
  if (mn_wait(mn) || move_numbers(mn, kept, at, mark, &mn->spare_numbers) || move_nodes(mn, nodes, list, &mn->spare_records)) {
    mn_rewind(&mn->spare_numbers, 0);
    mn_rewind(&mn->spare_records, 0);
    goto end;
  }
  move_records(mn, kept, at);
  link_nodes(mn, nodes, list);
  swap_arenas(&mn->memory.numbers, &mn->spare_numbers);
  swap_arenas(&mn->memory.records, &mn->spare_records);
  mn->memory.n_pool = 0;
  for (int i = 0; i < mn->no_grad; i++) mark[i].records = mn->memory.records.used, mn->mark[i] = mark[i];
  free_unread_leaves(mn);
  for (int i = 0; i < n; i++) alive[i] = handles[i] ? (mn_tensor){ handles[i]->slot, handles[i]->gen } : (mn_tensor){ 0 };
  mn->slots_due = mn->n_computed * 2 > SLOTS_DUE ? mn->n_computed * 2 : SLOTS_DUE;
  mn->numbers_due = mn->memory.numbers.used * 2 > NUMBERS_DUE ? mn->memory.numbers.used * 2 : NUMBERS_DUE;
  mn->records_due = mn->memory.records.used * 2 > RECORDS_DUE ? mn->memory.records.used * 2 : RECORDS_DUE;
  result = 0;
end:
  free(kept);
  free(at);
  free(handles);
  free(list);
  return result;
}
