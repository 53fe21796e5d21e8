/* file.c -- reads files as a whole, writes them completely or not at all, appends and truncates.  Every file that
** Mneme writes goes through these functions, so "kill -9 at any moment loses nothing that was saved" is ensured
** and tested in one place. */
#define _GNU_SOURCE
#include "base/open_file.h"
#include "op.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mn_file { char *data; size_t bytes; };

static int why(mn_ctx *mn, const char *path, const char *what, int error) {
  return mn_fail(mn, "%s: cannot be %s: %s", path, what,
                 error == ELOOP ? "it is a link" : error == ENOTSUP ? "it is not a regular file" : strerror(error));
}

/* ---- the calls below ---- */

/* Write all of it; -1 and errno. */
static int put(int fd, const void *data, size_t bytes) {
  const char *p = data;
  while (bytes) {
    ssize_t n = write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    p += n;
    bytes -= (size_t)n;
  }
  return 0;
}

/* Open the folder that holds `path`. */
static int open_folder(const char *path) {
  char folder[4096];
  const char *slash = strrchr(path, '/');
  size_t n = slash ? (size_t)(slash - path) : 0;
  if (n >= sizeof folder) { errno = ENAMETOOLONG; return -1; }
  memcpy(folder, path, n);
  folder[n] = 0;
  return open(n ? folder : slash ? "/" : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum { TOGETHER = 16 };
typedef struct { int fd, error; } sync_job;

static int not_synced;                   /* 1: a file could not be synced, 2: and that was said */

static void *sync_one(void *at) {
  sync_job *j = at;
  struct stat s;
  j->error = fsync(j->fd) ? errno : 0;
  if (j->error == EINVAL) {              /* a file system without such a thing; of folders many have none */
    int none = 0;
    j->error = 0;
    if (!fstat(j->fd, &s) && S_ISREG(s.st_mode)) __atomic_compare_exchange_n(&not_synced, &none, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  return NULL;
}

/* Is this the first call after a file could not be synced? */
bool mn_file_unsynced(void) {
  int one = 1;
  return __atomic_compare_exchange_n(&not_synced, &one, 2, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Sync some files and folders and close them.  All wait at a time: a disk writes its journal once for them, and one after another each
** would wait for a journal of its own.  The error of the first that failed, or 0. */
static int sync_all(int n, const int *fd) {
  sync_job job[TOGETHER];
  pthread_t thread[TOGETHER];
  bool begun[TOGETHER];
  int error = 0;
  for (int i = 0; i < n; i++) {
    job[i] = (sync_job){ fd[i], 0 };
    begun[i] = i + 1 < n && !pthread_create(&thread[i], NULL, sync_one, &job[i]);
    if (!begun[i]) sync_one(&job[i]);
  }
  for (int i = 0; i < n; i++) {
    if (begun[i]) pthread_join(thread[i], NULL);
    close(fd[i]);
    if (!error) error = job[i].error;
  }
  return error;
}

/* Sync the folder that holds `path`: only then does a rename outlast a power cut. */
static int sync_folder(const char *path) {
  int fd = open_folder(path);
  if (fd < 0) return -1;
  errno = sync_all(1, &fd);
  return errno ? -1 : 0;
}

/* Open files or folders that are to be synced; those that are not there are left out.  How many; -1: errno, and `failed`. */
static int open_some(int n, const char *const *path, int *fd, const char **failed) {
  int m = 0;
  for (int i = 0; i < n; i++) {
    int one = open(path[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (one >= 0) fd[m++] = one;
    else if (errno != ENOENT) {
      int error = errno;
      while (m) close(fd[--m]);
      *failed = path[i];
      errno = error;
      return -1;
    }
  }
  return m;
}

/* Write the pieces one after another into a new file, make sure that they have reached the disk, and with them what is in `more`, and close it. */
static int fill(int fd, int n, const void *const *piece, const double *bytes, int m, const int *more) {
  bool failed = fd < 0;
  int error = failed ? errno : 0, all[TOGETHER + 1];
  for (int i = 0; i < n && !failed; i++) failed = put(fd, piece[i], (size_t)bytes[i]);
  if (failed) {
    if (!error) error = errno;
    if (fd >= 0) close(fd);
    for (int i = 0; i < m; i++) close(more[i]);
  } else {
    for (int i = 0; i < m; i++) all[i] = more[i];
    all[m] = fd;
    error = sync_all(m + 1, all);
  }
  errno = error;
  return error ? -1 : 0;
}

/* ---- reading ---- */

/* Read a whole file.  The bytes are the caller's until mn_file_free; a zero follows them. */
mn_file *mn_file_new(mn_ctx *mn, const char *path) {
  struct stat s;
  int fd = mn_open_read(path);
  if (fd < 0 || fstat(fd, &s)) {
    why(mn, path, "read", errno);
    if (fd >= 0) close(fd);
    return NULL;
  }
  mn_file *f = malloc(sizeof *f);
  char *data = malloc((size_t)s.st_size + 1);
  size_t have = 0;
  int error = f && data ? 0 : ENOMEM;
  while (!error && have < (size_t)s.st_size) {
    ssize_t n = read(fd, data + have, (size_t)s.st_size - have);
    if (n < 0 && errno != EINTR) error = errno;
    if (n == 0) break;                                /* it has become shorter meanwhile */
    if (n > 0) have += (size_t)n;
  }
  close(fd);
  if (error) {
    free(data);
    free(f);
    why(mn, path, "read", error);
    return NULL;
  }
  data[have] = 0;
  *f = (mn_file){ data, have };
  return f;
}

void mn_file_free(mn_file *f) {
  if (!f) return;
  free(f->data);
  free(f);
}

const void *mn_file_data(const mn_file *f) { return f->data; }
double mn_file_bytes(const mn_file *f) { return (double)f->bytes; }

/* ---- writing ---- */

/* Write n pieces as the file `path`, which appears whole or stays what it was: the bytes go to PATH.RANDOM.tmp,
** reach the disk, and only then take the name.  Two processes that write one path have two drafts; the later rename wins.
** mn_file_write_after: what was appended to m other files or is named in m folders reaches the disk before that, too. */
int mn_file_write(mn_ctx *mn, const char *path, int n, const void *const *piece, const double *bytes) {
  return mn_file_write_after(mn, path, n, piece, bytes, 0, NULL);
}

int mn_file_write_after(mn_ctx *mn, const char *path, int n, const void *const *piece, const double *bytes, int m, const char *const *others) {
  char draft[4096];
  const char *failed;
  int more[TOGETHER];
  if (m >= TOGETHER) return mn_fail(mn, "mn_file_write_after: %d files, at most %d", m, TOGETHER - 1);
  m = open_some(m, others, more, &failed);
  if (m < 0) return why(mn, failed, "written", errno);
  int fd = mn_open_draft(path, draft);
  int held = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);       /* its lock, until it has its name */
  bool done = !fill(fd, n, piece, bytes, m, more) && !rename(draft, path) && !sync_folder(path);
  int error = errno;
  if (done) mn_drop_drafts(path);
  else if (fd >= 0) unlink(draft);
  if (held >= 0) close(held);
  return done ? 0 : why(mn, path, "written", error);
}

/* Create an empty draft of `path`, whose name goes to `draft`. */
int mn_file_draft(mn_ctx *mn, const char *path, char draft[4096]) {
  int fd = mn_open_draft(path, draft);
  if (fd < 0) return why(mn, path, "written", errno);
  close(fd);
  return 0;
}

/* Append to a file, which is created if it is not there.  A failure leaves it as it was. */
int mn_file_append(mn_ctx *mn, const char *path, const void *data, double bytes) {
  int fd = mn_open_write(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return why(mn, path, "written", errno);
  off_t before = lseek(fd, 0, SEEK_END);
  int failed = put(fd, data, (size_t)bytes), error = errno;
  if (failed && ftruncate(fd, before)) error = errno;
  if (close(fd) && !failed) failed = 1, error = errno;
  return failed ? why(mn, path, "written", error) : 0;
}

/* Make a file this process's own until it ends, whatever ends it.  1; 0 where the file system has no locks; -1 where another
** process has it. */
int mn_file_lock(mn_ctx *mn, const char *path) {
  struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  int fd = mn_open_write(path, O_RDWR | O_CREAT, 0666);
  if (fd < 0) return why(mn, path, "locked", errno);
  if (!fcntl(fd, F_SETLK, &all)) return 1;               /* fd stays open: closing it would free the lock */
  int error = errno;
  bool held = (error == EACCES || error == EAGAIN) && !fcntl(fd, F_GETLK, &all) && all.l_type != F_UNLCK;
  close(fd);
  if (held) return mn_fail(mn, all.l_pid > 0 ? "%s: process %ld is at work here" : "%s: a process is at work here, in another container or on another host",
                            path, (long)all.l_pid);
  if (error == ENOSYS || error == ENOLCK || error == EOPNOTSUPP) return 0;
  return why(mn, path, "locked", error);
}

/* Has another process locked this file?  It is asked of the lock: /proc/locks leaves out other containers.  Not for a file that this process
** has locked: closing it would free the lock. */
bool mn_file_locked(const char *path) {
  struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  int fd = mn_open_read(path);
  bool held = fd >= 0 && !fcntl(fd, F_GETLK, &all) && all.l_type != F_UNLCK;
  if (fd >= 0) close(fd);
  return held;
}

/* Shorten a file to `bytes` bytes; a shorter or missing one is left alone. */
int mn_file_cut(mn_ctx *mn, const char *path, double bytes) {
  struct stat s;
  int fd = mn_open_write(path, O_WRONLY, 0);
  if (fd < 0) return errno == ENOENT ? 0 : why(mn, path, "cut", errno);
  int error = fstat(fd, &s) || ((double)s.st_size > bytes && ftruncate(fd, (off_t)bytes)) ? errno : 0;
  close(fd);
  return error ? why(mn, path, "cut", error) : 0;
}

/* Rename a file, or remove it where `to` is NULL: one that is gone already is removed. */
int mn_file_move(mn_ctx *mn, const char *path, const char *to) {
  if (to ? rename(path, to) : unlink(path) && errno != ENOENT) return why(mn, path, to ? "renamed" : "removed", errno);
  return 0;
}

/* Make a folder and the folders above it.  1: made, 0: it was there. */
int mn_folder_make(mn_ctx *mn, const char *path) {
  char part[4096];
  struct stat s;
  size_t n = strlen(path);
  int parents[TOGETHER] = {0}, made = 0;
  if (n == 0 || n >= sizeof part) return why(mn, path, "made", n ? ENAMETOOLONG : ENOENT);
  memcpy(part, path, n + 1);
  while (n > 1 && part[n - 1] == '/') part[--n] = 0;
  int error = 0;
  bool last = false;
  for (size_t i = 1; i <= n && !error; i++) {
    if (part[i] != '/' && part[i]) continue;
    char end = part[i];
    part[i] = 0;
    last = !mkdir(part, 0755);
    if (!last && errno != EEXIST) {                     /* a folder may say EROFS, and be there */
      error = errno;
      if (!stat(part, &s)) error = 0;
    }
    if (last && made == TOGETHER) error = sync_all(made, parents), made = 0;
    if (last && !error) {
      parents[made] = open_folder(part);
      if (parents[made] < 0) error = errno; else made++;
    }
    if (!error) part[i] = end;
  }
  int unsynced = sync_all(made, parents);
  if (error || unsynced) return why(mn, part, "made", error ? error : unsynced);
  if (last) return 1;
  if (stat(path, &s) || !S_ISDIR(s.st_mode)) return why(mn, path, "made", ENOTDIR);
  return 0;
}

/* ---- checksums ---- */

/* CRC-32C (Castagnoli) of more bytes; begin with 0.  For event files and the checksums of checkpoints. */
uint32_t mn_crc32c(uint32_t crc, const void *data, double bytes) {
  static uint32_t table[8][256];                      /* slicing by 8: Kounavis and Berry 2008 */
  static bool ready;
  if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {   /* two threads would write the same numbers */
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
      table[0][i] = c;
    }
    for (int t = 1; t < 8; t++)
      for (int i = 0; i < 256; i++) table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 255];
    __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
  }
  const uint8_t *p = data;
  size_t n = (size_t)bytes;
  crc = ~crc;
#ifdef __SSE4_2__                                     /* the same numbers, five times as fast */
  for (uint64_t eight; n >= 8; n -= 8, p += 8) memcpy(&eight, p, 8), crc = (uint32_t)__builtin_ia32_crc32di(crc, eight);
#endif
  for (; n >= 8; n -= 8, p += 8) {
    uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
          table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
  }
  for (; n; n--) crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
  return ~crc;
}

enum { AT_ONCE = 1 << 18, NOTES = 4096 };          /* bytes read at once; of a library, where its notes are */

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static bool ends(const char *name, const char *with) {
  size_t n = strlen(name), m = strlen(with);
  return n > m && !strcmp(name + n - m, with);
}

/* Add a file, or what mn_code_sum says of a folder; `text` has room for AT_ONCE bytes.  0: there is neither; -1: no memory, or it cannot be read. */
static int add_code(int at, const char *name, bool is_file, uint32_t *crc, char *text) {
  int fd = openat(at, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (is_file ? 0 : O_DIRECTORY)), status = 1;
  if (fd < 0) return 0;
  if (is_file) {
    ssize_t n = read(fd, text, AT_ONCE);
    const char *id = n > 2 * NOTES && !memcmp(text, "\177ELF", 4) ? memmem(text, NOTES, "\24\0\0\0\3\0\0\0GNU", 12) : NULL;
    if (id) *crc = mn_crc32c(*crc, id, 12 + 20);
    else for (; n > 0; n = n < AT_ONCE ? 0 : read(fd, text, AT_ONCE)) *crc = mn_crc32c(*crc, text, (double)n);
    close(fd);
    return n < 0 ? -1 : 1;
  }
  DIR *folder = fdopendir(fd);
  char **names = NULL;
  size_t n = 0;
  for (struct dirent *e; folder && status > 0 && (e = readdir(folder)); ) {
    if (*e->d_name == '.') continue;
    char **more = n & (n - 1) ? names : realloc(names, (n ? 2 * n : 1) * sizeof *names);
    if (more) names = more;
    if (!more || !(names[n] = strdup(e->d_name))) status = -1; else n++;
  }
  if (n) qsort(names, n, sizeof *names, by_name);
  for (size_t i = 0; i < n; i++) {
    if (status > 0 && add_code(fd, names[i], ends(names[i], ".lua") || ends(names[i], ".py"), crc, text) < 0) status = -1;
    free(names[i]);
  }
  free(names);
  if (folder) closedir(folder); else close(fd);
  return folder ? status : -1;
}

/* CRC-32C of a file, or of all .lua and .py files of a folder and of those in it, one after another in the order of their names, added to `crc`: of a
** program of many files, in a tenth of the time that Lua needs.  Of a library that the linker gave a build id (SHA-1 of what it linked) that id is
** enough.  0: there is no such file or folder; -1: it cannot be read. */
int mn_code_sum(const char *path, bool is_file, uint32_t *crc) {
  char *text = malloc(AT_ONCE);
  int status = text ? add_code(AT_FDCWD, path, is_file, crc, text) : -1;
  free(text);
  return status;
}
