/* faults.c -- the world as an attacker: one call of the operating system fails.  LD_PRELOADed into the program by
** tests/engine/test_faults.lua, it lets MNEME_FAULT="KIND N" choose: the N-th call of that kind fails as a full disk, a
** broken one or a machine without memory would let it fail; "kill N" ends the process in the midst of its N-th change
** of a file.  MNEME_FAULT_COUNT names a file that gets how many calls of
** the kind there were; of kind "all" none fails, and it gets a line "KIND NUMBER" for each.
** Files are meant where they lie in the folder that the process began in: neither Lua's modules nor /proc count.
** Allocations are meant where they are asked for by a library whose name has MNEME_FAULT_FROM in it; mn_memory_new asks
** for jansson. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char kind[16], from[64], counts[PATH_MAX], here[PATH_MAX];
static long chosen, count;
enum { KINDS = 9 };
static const char *const names[KINDS] = { "write", "eio", "fill", "fsync", "rename", "open", "read", "kill", "memory" };
static long of_kind[KINDS];
static __thread int inside;                /* what dlsym and dladdr allocate is none of ours */

#define REAL(name) ({ static __typeof__(&name) real; \
  if (!real) { inside++; real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); inside--; } real; })

/* What the process starts is left alone: we are the last word of LD_PRELOAD. */
__attribute__((constructor)) static void begin(void) {
  const char *f = getenv("MNEME_FAULT"), *w = getenv("MNEME_FAULT_FROM"), *c = getenv("MNEME_FAULT_COUNT");
  if (!f || !getcwd(here, sizeof here)) return;
  sscanf(f, "%15s %ld", kind, &chosen);
  snprintf(from, sizeof from, "%s", w ? w : "");
  snprintf(counts, sizeof counts, "%s", c ? c : "");
  unsetenv("MNEME_FAULT");
  char others[PATH_MAX], *last;
  snprintf(others, sizeof others, "%s", getenv("LD_PRELOAD"));
  if ((last = strrchr(others, ' '))) *last = 0;
  setenv("LD_PRELOAD", last ? others : "", 1);
}

__attribute__((destructor)) static void end(void) {
  char text[400];
  int n = 0;
  if (!strcmp(kind, "all")) for (int i = 0; i < KINDS; i++) n += snprintf(text + n, sizeof text - (size_t)n, "%s %ld\n", names[i], of_kind[i]);
  else n = snprintf(text, sizeof text, "%ld\n", count);
  int fd = *counts ? REAL(open)(counts, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
  if (fd >= 0 && REAL(write)(fd, text, (size_t)n) == n) close(fd);
}

/* For a program that tries several: the n-th call from here on fails; how many there were since. */
void mn_fault_at(long n) { chosen = n, count = 0; }
long mn_fault_count(void) { return count; }

static int is(const char *what) { return !strcmp(kind, what); }

/* Is this call of the kind, and the one that was chosen? */
static int now(const char *what) {
  if (is("all")) for (int i = 0; i < KINDS; i++) if (!strcmp(names[i], what)) __atomic_add_fetch(&of_kind[i], 1, __ATOMIC_RELAXED);
  return is(what) && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == chosen;
}

static int ours(const char *path) { return *path != '/' || !strncmp(path, here, strlen(here)); }

static int our_file(int fd) {
  char link[64], path[PATH_MAX];
  if (!*kind) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  return *path == '/' && ours(path);
}

/* "kill": a change of a file is the last thing that the process does. */
static void killed(int changed) { if (changed && now("kill")) raise(SIGKILL); }

static int fails(int error) { errno = error; return -1; }

/* ---- files ---- */

/* On 64 bits the names with 64 are the same functions, and some libraries call them by these. */
#define ALSO(name) __attribute__((alias(#name)))

int open(const char *path, int flags, ...) {
  va_list ap;
  va_start(ap, flags);
  int mode = flags & O_CREAT ? va_arg(ap, int) : 0;
  va_end(ap);
  if (*kind && ours(path) && now("open")) return fails(EMFILE);
  int fd = REAL(open)(path, flags, mode);
  killed(*kind && ours(path) && flags & O_CREAT);
  return fd;
}

int open64(const char *path, int flags, ...) ALSO(open);

FILE *fopen(const char *path, const char *mode) {
  if (*kind && ours(path) && now("open")) return errno = EMFILE, NULL;
  return REAL(fopen)(path, mode);
}
FILE *fopen64(const char *path, const char *mode) ALSO(fopen);

ssize_t read(int fd, void *to, size_t bytes) {
  return our_file(fd) && now("read") ? fails(EIO) : REAL(read)(fd, to, bytes);
}

/* A disk that fills up, or a power cut, takes the first half. */
ssize_t write(int fd, const void *data, size_t bytes) {
  static int full;
  if (!our_file(fd)) return REAL(write)(fd, data, bytes);
  if (full || now("write")) return fails(ENOSPC);
  if (now("eio")) return fails(EIO);
  if (now("fill")) return full = 1, REAL(write)(fd, data, bytes / 2);
  if (is("kill") && count + 1 == chosen && REAL(write)(fd, data, bytes / 2) >= 0) raise(SIGKILL);
  killed(1);
  return REAL(write)(fd, data, bytes);
}

int fsync(int fd) {
  if (our_file(fd) && is("unsynced")) return fails(EINVAL);
  if (our_file(fd) && now("fsync")) return fails(EIO);
  int result = REAL(fsync)(fd);
  killed(our_file(fd));
  return result;
}

/* Who waits a minute waits a second. */
unsigned alarm(unsigned seconds) { return REAL(alarm)(is("hurry") && seconds ? 1 : seconds); }

/* A file system without locks. */
int fcntl(int fd, int command, ...) {
  va_list ap;
  va_start(ap, command);
  void *with = va_arg(ap, void *);
  va_end(ap);
  if (is("lock") && command == F_SETLK) return fails(ENOLCK);
  return REAL(fcntl)(fd, command, with);
}
int fcntl64(int fd, int command, ...) ALSO(fcntl);

int rename(const char *path, const char *to) {
  if (*kind && ours(path) && now("rename")) return fails(EIO);
  if (is("gone") && strstr(path, "/step-") && now("gone")) unlink(path);            /* somebody removes the folder, and is not done yet */
  int result = REAL(rename)(path, to);
  killed(ours(path));
  return result;
}

/* ---- memory ---- */

/* Who asks is looked up once for each place that asks. */
static int asked_by(const void *caller) {
  static __thread struct { const void *place; int meant; } known[4096];
  if (!is("memory") || inside) return 0;
  __typeof__(known[0]) *it = &known[(size_t)caller / 4 % 4096];
  if (it->place != caller) {
    Dl_info who;
    inside++;
    it->meant = dladdr(caller, &who) && who.dli_fname
      && strstr(who.dli_sname && !strcmp(who.dli_sname, "mn_memory_new") ? "jansson" : who.dli_fname, from);
    it->place = caller;
    inside--;
  }
  return it->meant && now("memory");
}

#define REFUSE if (asked_by(__builtin_return_address(0))) return errno = ENOMEM, NULL

void *malloc(size_t n) { REFUSE; return REAL(malloc)(n); }
void *realloc(void *p, size_t n) { REFUSE; return REAL(realloc)(p, n); }
void *aligned_alloc(size_t at, size_t n) { REFUSE; return REAL(aligned_alloc)(at, n); }

/* dlsym asks for memory itself, before the real one is known. */
void *calloc(size_t n, size_t size) {
  static char first[4096];
  static size_t used;
  if (inside && n * size <= sizeof first - used) {
    void *p = first + used;
    used += (n * size + 15) & ~(size_t)15;
    return p;
  }
  REFUSE;
  return REAL(calloc)(n, size);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t from_byte) {
  if (asked_by(__builtin_return_address(0))) return errno = ENOMEM, MAP_FAILED;
  return REAL(mmap)(at, bytes, protection, flags, fd, from_byte);
}
void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t from_byte) ALSO(mmap);
