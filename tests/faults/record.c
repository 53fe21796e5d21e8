/* record.c -- a journal of what a program does to files: LD_PRELOADed, it appends every change (and every sync) below the folder that the
** process began in to the file MNEME_RECORD.  tests/support/power_loss.lua reads it.  A child that is forked records, too; a program
** that is started does not.
** A record is a line, KIND AT BYTES PATH TAB TO, then BYTES bytes of data:
**   C create, T cut to AT bytes (longer: filled with zeros), W write at AT, S sync of a file or folder, R rename, M mkdir, U unlink or rmdir. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char here[PATH_MAX];
static size_t here_bytes;
static int journal = -1;

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })
/* On 64 bits the names with 64 are the same functions, and some libraries call them by these. */
#define ALSO(name) __attribute__((alias(#name)))

__attribute__((constructor)) static void begin(void) {
  const char *to = getenv("MNEME_RECORD");
  if (!to || !getcwd(here, sizeof here)) return;
  here_bytes = strlen(here);
  journal = REAL(open)(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  unsetenv("MNEME_RECORD");
  unsetenv("LD_PRELOAD");
}

/* The part of a path below our folder ("" for the folder itself), or NULL. */
static const char *below(const char *path) {
  if (journal < 0) return NULL;
  if (*path != '/') return strncmp(path, "./", 2) ? strcmp(path, ".") ? path : "" : path + 2;
  if (strncmp(path, here, here_bytes) || (path[here_bytes] && path[here_bytes] != '/')) return NULL;
  return path[here_bytes] ? path + here_bytes + 1 : "";
}

/* The file that a descriptor means, in `path`. */
static const char *file_of(int fd, char *path) {
  char link[64];
  if (journal < 0 || fd == journal) return NULL;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, PATH_MAX - 1);
  if (n <= 0 || *path != '/') return NULL;
  path[n] = 0;
  return strstr(path, " (deleted)") ? NULL : below(path);
}

/* One call of writev: records of two processes do not mix. */
static void note(char kind, long at, const void *data, size_t bytes, const char *path, const char *to) {
  char line[2 * PATH_MAX + 64];
  int error = errno, n = snprintf(line, sizeof line, "%c %ld %zu %s\t%s\n", kind, at, bytes, path, to);
  struct iovec parts[] = { { line, (size_t)n }, { (void *)data, bytes } };
  if (writev(journal, parts, bytes ? 2 : 1) < 0) abort();
  errno = error;
}

int open(const char *path, int flags, ...) {
  va_list ap;
  va_start(ap, flags);
  int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, int) : 0;
  va_end(ap);
  const char *what = flags & (O_CREAT | O_TRUNC) ? below(path) : NULL;
  int there = what && !access(path, F_OK), fd = REAL(open)(path, flags, mode);
  if (what && fd >= 0 && (!there || flags & O_TRUNC)) note(there ? 'T' : 'C', 0, NULL, 0, what, "");
  return fd;
}
int open64(const char *path, int flags, ...) ALSO(open);

ssize_t write(int fd, const void *data, size_t bytes) {
  char path[PATH_MAX];
  const char *what = file_of(fd, path);
  off_t at = what ? lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR) : 0;
  ssize_t n = REAL(write)(fd, data, bytes);
  if (what && n > 0) note('W', at, data, (size_t)n, what, "");
  return n;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
  char path[PATH_MAX];
  const char *what = file_of(fd, path);
  ssize_t n = REAL(pwrite)(fd, data, bytes, at);
  if (what && n > 0) note('W', at, data, (size_t)n, what, "");
  return n;
}
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) ALSO(pwrite);

int fsync(int fd) {
  char path[PATH_MAX];
  const char *what = file_of(fd, path);
  int failed = REAL(fsync)(fd);
  if (what && !failed) note('S', 0, NULL, 0, what, "");
  return failed;
}
int fdatasync(int fd) ALSO(fsync);

int ftruncate(int fd, off_t bytes) {
  char path[PATH_MAX];
  const char *what = file_of(fd, path);
  int failed = REAL(ftruncate)(fd, bytes);
  if (what && !failed) note('T', bytes, NULL, 0, what, "");
  return failed;
}
int ftruncate64(int fd, off64_t bytes) ALSO(ftruncate);

/* Changes of a path, after which the call is recorded if it did not fail. */
#define CHANGE(name, arguments, call, kind, at, to) \
  int name arguments { \
    const char *what = below(path); \
    int failed = REAL(name) call; \
    if (what && !failed) note(kind, at, NULL, 0, what, to); \
    return failed; \
  }
CHANGE(truncate, (const char *path, off_t bytes), (path, bytes), 'T', bytes, "")
int truncate64(const char *path, off64_t bytes) ALSO(truncate);
CHANGE(rename, (const char *path, const char *new_path), (path, new_path), 'R', 0, below(new_path))
CHANGE(mkdir, (const char *path, mode_t mode), (path, mode), 'M', 0, "")
CHANGE(unlink, (const char *path), (path), 'U', 0, "")
CHANGE(rmdir, (const char *path), (path), 'U', 0, "")
