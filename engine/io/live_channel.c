/* live_channel.c -- a trainer publishes snapshots to a viewer in another process and never waits for it:
** a file with two slots and two counters (a sequence lock).  Snapshot s is written into slot s % 2; `begun` is raised before,
** `done` after.  A reader copies slot done % 2 and uses the copy if the writer has not begun to overwrite that slot meanwhile.
** So a slow, stopped or crashed viewer costs the trainer nothing, and a trainer killed while writing leaves the previous
** snapshot intact.
**
** Both ends use pread and pwrite, not a mapping: a file cut short under a mapping would kill the process. */
#include "base/open_file.h"
#include "op.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIVE_VERSION = 1 };
static const char magic[8] = "MNLIVE\r\n";

typedef struct live_head {
  char magic[8];
  uint32_t version, head_bytes;
  uint64_t schema_bytes, slot_bytes, total_bytes;      /* schema without its end; one snapshot; the file */
  int64_t pid;
  uint64_t begun, done;                                /* snapshots */
  int32_t ended, wanted;
} live_head;

static uint64_t up64(uint64_t n) { return (n + 63) / 64 * 64; }
static uint64_t slot_at(const live_head *h, uint64_t snapshot) {
  return up64(sizeof *h + h->schema_bytes + 1) + snapshot % 2 * up64(h->slot_bytes);
}

/* Read exactly n bytes; false if the file is shorter or cannot be read. */
static bool read_at(int fd, void *out, uint64_t n, uint64_t at) {
  char *to = out;
  while (n) {
    ssize_t got = pread(fd, to, n, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got, n -= (uint64_t)got, at += (uint64_t)got;
  }
  return true;
}

static bool write_at(int fd, const void *data, uint64_t n, uint64_t at) {
  const char *from = data;
  while (n) {
    ssize_t put = pwrite(fd, from, n, (off_t)at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put, n -= (uint64_t)put, at += (uint64_t)put;
  }
  return true;
}

/* the trainer's end */

struct mn_live {
  int fd;
  live_head head;
  char *snapshot;                                      /* the one being filled */
  double last;                                         /* when one was published */
};

/* A new file with the head and the schema; its room on the disk is taken now. */
static int fill_new(const char *path, char *temporary, const live_head *head, const char *schema, int *error) {
  int fd = mn_open_draft(path, temporary);
  if (fd < 0) { *error = errno; return -1; }
  *error = posix_fallocate(fd, 0, (off_t)head->total_bytes);
  if (!*error && !(write_at(fd, head, sizeof *head, 0) && write_at(fd, schema, head->schema_bytes, sizeof *head))) *error = errno;
  if (!*error) return fd;
  close(fd);
  unlink(temporary);
  return -1;
}

/* Create `path`, replacing what is there, for snapshots of `bytes` bytes laid out as `schema` (JSON) says. */
mn_live *mn_live_new(mn_ctx *mn, const char *path, const char *schema, double bytes) {
  if (!(bytes >= 1 && bytes <= 1e9) || strlen(schema) > 1 << 20) {
    mn_fail(mn, "%s: a snapshot of %g bytes, a schema of %zu; expected 1..1e9 and at most 1 MB", path, bytes,
            strlen(schema));
    return NULL;
  }
  live_head head = { .version = LIVE_VERSION, .head_bytes = sizeof head, .schema_bytes = strlen(schema),
                     .slot_bytes = (uint64_t)bytes, .pid = getpid() };
  memcpy(head.magic, magic, sizeof magic);
  head.total_bytes = slot_at(&head, 1) + up64(head.slot_bytes);
  mn_live *l = calloc(1, sizeof *l);
  char temporary[4096], *snapshot = calloc(1, head.slot_bytes);
  int error = ENOMEM, fd = -1;
  if (l && snapshot) fd = fill_new(path, temporary, &head, schema, &error);
  if (fd >= 0) {
    l->fd = fd, l->snapshot = snapshot, l->last = -1e9;
    memcpy(&l->head, &head, sizeof head);
    if (!rename(temporary, path)) return l;
    error = errno;
    unlink(temporary);
    close(fd);
  }
  mn_fail(mn, "%s cannot be written: %s", path, strerror(error));
  free(snapshot);
  free(l);
  return NULL;
}

/* Writes one field of the head.  A failure has no consequence but a viewer that stops: training goes on. */
#define WRITE_FIELD(l, field) write_at((l)->fd, &(l)->head.field, sizeof (l)->head.field, offsetof(live_head, field))

void mn_live_free(mn_live *l) {
  if (!l) return;
  l->head.ended = 1;
  WRITE_FIELD(l, ended);
  close(l->fd);
  free(l->snapshot);
  free(l);
}

bool mn_live_due(mn_live *l, double per_second) { return (mn_clock(false) - l->last) * per_second >= 1; }

/* The bytes of the next snapshot: fill them, then publish.  They are the caller's alone until then. */
void *mn_live_begin(mn_live *l) { return l->snapshot; }

void mn_live_publish(mn_live *l) {
  l->head.begun = l->head.done + 1;
  if (WRITE_FIELD(l, begun) && write_at(l->fd, l->snapshot, l->head.slot_bytes, slot_at(&l->head, l->head.begun))) {
    l->head.done = l->head.begun;
    WRITE_FIELD(l, done);
  }
  l->last = mn_clock(false);
}

int mn_live_wanted(mn_live *l) {
  read_at(l->fd, &l->head.wanted, sizeof l->head.wanted, offsetof(live_head, wanted));
  return l->head.wanted;
}

/* the viewer's end */

struct mn_live_reader {
  mn_ctx *ctx;
  int fd;
  char *path, *schema;
  live_head head;                                      /* as it was when opened */
  uint64_t seen;
};

/* Is this a head that mn_live_new has written, for a file of this size?  NULL, or what is wrong. */
static const char *wrong(const live_head *h, uint64_t size) {
  if (memcmp(h->magic, magic, sizeof magic)) return "it is not a live file";
  if (h->version != LIVE_VERSION || h->head_bytes != sizeof *h) return "it is of another version of Mneme";
  if (h->schema_bytes > 1 << 20 || h->slot_bytes < 1 || h->slot_bytes > 1000000000 ||
      h->total_bytes != slot_at(h, 1) + up64(h->slot_bytes)) return "its sizes contradict each other";
  if (size < h->total_bytes) return "it is cut short";
  return NULL;
}

static const char *look(int fd, live_head *head) {
  struct stat info;
  if (fstat(fd, &info) || !S_ISREG(info.st_mode)) return "it is not a regular file";
  if (!read_at(fd, head, sizeof *head, 0)) return "it is cut short";
  return wrong(head, (uint64_t)info.st_size);
}

/* Open what mn_live_new has created. */
mn_live_reader *mn_live_reader_new(mn_ctx *mn, const char *path) {
  live_head head;
  int fd = mn_open_write(path, O_RDWR, 0);
  if (fd < 0) fd = mn_open_read(path);                  /* somebody else's run: look, do not ask */
  if (fd < 0) {
    mn_fail(mn, "%s cannot be read: %s%s", path, strerror(errno),
            errno == ENOENT ? "; it exists while training with view=1" : "");
    return NULL;
  }
  const char *why = look(fd, &head);
  mn_live_reader *p = why ? NULL : calloc(1, sizeof *p);
  if (p) {
    p->path = strdup(path), p->schema = calloc(1, head.schema_bytes + 1);
    if (!p->path || !p->schema) why = "no memory";
    else if (!read_at(fd, p->schema, head.schema_bytes, sizeof head)) why = "it is cut short";
  }
  if (!p || why) {
    mn_fail(mn, "%s cannot be watched: %s", path, why ? why : "no memory");
    if (p) free(p->path), free(p->schema), free(p);
    close(fd);
    return NULL;
  }
  p->ctx = mn, p->fd = fd;
  memcpy(&p->head, &head, sizeof head);
  return p;
}

void mn_live_reader_free(mn_live_reader *p) {
  if (!p) return;
  close(p->fd);
  free(p->path), free(p->schema);
  free(p);
}

const char *mn_live_reader_schema(mn_live_reader *p) { return p->schema; }
double mn_live_reader_bytes(mn_live_reader *p) { return (double)p->head.slot_bytes; }

/* Copy the newest snapshot to `out` (mn_live_reader_bytes of them), if there is one not yet read. */
int mn_live_reader_read(mn_live_reader *p, void *out) {
  live_head before, after;
  bool sound = true;
  for (int attempt = 0; attempt < 8; attempt++) {
    const char *why = look(p->fd, &before);
    if (!why && (before.slot_bytes != p->head.slot_bytes || before.schema_bytes != p->head.schema_bytes))
      why = "its sizes have changed";
    if (why) return mn_fail(p->ctx, "%s can no longer be watched: %s", p->path, why);
    uint64_t done = before.done;
    if (done == p->seen) return 0;
    atomic_thread_fence(memory_order_seq_cst);
    bool whole = read_at(p->fd, out, p->head.slot_bytes, slot_at(&p->head, done));
    atomic_thread_fence(memory_order_seq_cst);
    if (!whole || !read_at(p->fd, &after, sizeof after, 0)) continue;
    sound = after.begun >= done;                       /* a writer raises begun first */
    if (sound && after.begun < done + 2) {             /* the slot was not touched meanwhile */
      p->seen = done;
      return 1;
    }
  }
  if (!sound) return mn_fail(p->ctx, "%s can no longer be watched: its counters are damaged", p->path);
  return 0;                                            /* outrun by the writer: next time */
}

const char *mn_live_reader_state(mn_live_reader *p) {
  struct stat mine, theirs;
  live_head head;
  if (fstat(p->fd, &mine) || stat(p->path, &theirs) || mine.st_ino != theirs.st_ino ||
      mine.st_dev != theirs.st_dev) return "replaced";
  if (read_at(p->fd, &head, sizeof head, 0) && head.ended) return "ended";
  return kill((pid_t)p->head.pid, 0) && errno == ESRCH ? "gone" : "running";
}

int mn_live_reader_want(mn_live_reader *p, int index) {
  int32_t wanted = index;
  if (pwrite(p->fd, &wanted, sizeof wanted, (off_t)offsetof(live_head, wanted)) == sizeof wanted) return 0;
  return mn_fail(p->ctx, "%s: the environment cannot be changed: %s", p->path, strerror(errno));
}
