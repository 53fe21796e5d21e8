/* open_file.c -- opens the files of a run.  A folder may come from a stranger: a name in it that is a link, a FIFO, a device, a socket or a
** file of the kernel (/proc, /sys) is neither written through nor waited for.  Folders on the way may be links: checkpoints can be on
** another disk. */
#include "open_file.h"
#include "mneme.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 255, SUFFIX = sizeof ".0123456789abcdef.tmp" - 1 };

static bool of_kernel(long type) {
  return type == PROC_SUPER_MAGIC || type == SYSFS_MAGIC || type == DEBUGFS_MAGIC || type == TRACEFS_MAGIC || type == SECURITYFS_MAGIC;
}

/* Is it a regular file on a disk?  It is not opened: a device may act on that. */
bool mn_file_regular(const char *path) {
  struct stat s;
  struct statfs fs;
  return !stat(path, &s) && S_ISREG(s.st_mode) && !statfs(path, &fs) && !of_kernel(fs.f_type);
}

/* The descriptor, if it is a regular file's; else -1 and errno: EISDIR, or ENOTSUP. */
static int only_regular(int fd) {
  struct stat s;
  struct statfs fs;
  if (fd < 0) return -1;
  int error = fstat(fd, &s) ? errno : S_ISDIR(s.st_mode) ? EISDIR : !S_ISREG(s.st_mode) || fstatfs(fd, &fs) || of_kernel(fs.f_type) ? ENOTSUP : 0;
  if (!error) return fd;
  close(fd);
  errno = error;
  return -1;
}

/* Open for writing; a link is ELOOP, what is no regular file is ENOTSUP. */
int mn_open_write(const char *path, int flags, int mode) {
  int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
  if (fd < 0 && errno == ENXIO) errno = ENOTSUP;      /* a FIFO that nobody reads, a socket */
  return only_regular(fd);
}

/* Does a path lead to a device, a FIFO or a socket? */
static bool is_special(const char *path) {
  struct stat s;
  return !stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

/* Open for reading, through links: what is read is not changed. */
int mn_open_read(const char *path) {
  if (is_special(path)) { errno = ENOTSUP; return -1; }
  return only_regular(open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

/* The bytes of a name that a draft's name begins with: a long one is cut, at a letter, so that the file system takes it. */
static size_t cut_name(const char *name) {
  size_t n = strlen(name);
  if (n > LONGEST - SUFFIX) for (n = LONGEST - SUFFIX; n && (name[n] & 0xc0) == 0x80;) n--;
  return n;
}

/* Create a file next to `path` under a name that nobody can foresee, PATH.RANDOM.tmp.  Refuses a device, a FIFO or a
** socket, whose place root's draft would take. */
int mn_open_draft(const char *path, char draft[4096]) {
  if (is_special(path)) { errno = ENOTSUP; return -1; }
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t n = cut_name(name);
  if (strlen(name) > LONGEST) { errno = ENAMETOOLONG; return -1; }
  for (int i = 0; i < 100; i++) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) return -1;
    if (snprintf(draft, 4096, "%.*s.%016llx.tmp", (int)(name - path + (long)n), path, (unsigned long long)random) >= 4096) {
      errno = ENAMETOOLONG;
      return -1;
    }
    int fd = open(draft, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0) flock(fd, LOCK_EX | LOCK_NB);         /* until it is closed, which is the last thing that is done to a draft: mn_drop_drafts */
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/* Remove the drafts of `path` that killed processes have left: those that nobody holds.  A new one is given the time to be locked.  To be called
** by whoever has written `path`. */
void mn_drop_drafts(const char *path) {
  enum { MOST = 100000 };
  static int seen;                                      /* a process that writes many files into a full folder looks through so many names, no more */
  char folder[4096];
  struct stat s;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t n = cut_name(name);
  if (snprintf(folder, sizeof folder, "%.*s.", (int)(name - path), path) >= (int)sizeof folder || seen >= MOST) return;
  DIR *names = opendir(folder);
  for (struct dirent *e; names && (e = readdir(names)); seen++) {
    const char *random = e->d_name + n + 1;
    if (strlen(e->d_name) != n + SUFFIX || strncmp(e->d_name, name, n) || random[-1] != '.') continue;
    if (strspn(random, "0123456789abcdef") != 16 || strcmp(random + 16, ".tmp")) continue;
    int fd = openat(dirfd(names), e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) && time(NULL) - s.st_mtime > 1 && !flock(fd, LOCK_EX | LOCK_NB))
      unlinkat(dirfd(names), e->d_name, 0);
    if (fd >= 0) close(fd);
  }
  if (names) closedir(names);
}
