/* movie.c -- writes animations: GIF through gif.c, MP4 by piping raw frames to ffmpeg if it is
** installed.  ffmpeg is a separate program on purpose: training an agent does not need 500 MB of codecs. */
#define _GNU_SOURCE
#include "base/open_file.h"
#include "gif.h"
#include "op.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct mn_movie {
  mn_ctx *ctx;
  char *path;                  /* where it goes, */
  char draft[4096];            /* and where it is written meanwhile, */
  int held;                    /* locked: mn_drop_drafts */
  int width, height;
  mn_gif *gif;                 /* or */
  pid_t ffmpeg;                /* the process, 0: none, */
  int feed;                    /* and where its frames go in */
};

/* Start ffmpeg with its input on a socket: unlike a pipe, a socket can report that ffmpeg has died
** without a signal that would end this program. */
static int start_ffmpeg(mn_movie *m, int fps) {
  int ends[2];
  char size[32], rate[16], out[sizeof m->draft + 5];
  snprintf(out, sizeof out, "file:%s", m->draft);     /* a name may begin with - or with a protocol */
  snprintf(size, sizeof size, "%dx%d", m->width, m->height);
  snprintf(rate, sizeof rate, "%d", fps);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
    return mn_fail(m->ctx, "ffmpeg: %s", strerror(errno));
  char *const argv[] = {
    "ffmpeg", "-y", "-nostdin", "-xerror", "-loglevel", "error",   /* -xerror: a file that it could not finish is a failure */
    "-f", "rawvideo", "-pix_fmt", "rgba", "-s", size, "-r", rate, "-i", "pipe:0",
    "-an", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-c:v", "libx264", "-crf", "18",
    "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", out, NULL };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawnattr_t own_group;                        /* Ctrl-C is for this program, which then ends the film */
  posix_spawnattr_init(&own_group);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  int error = posix_spawnp(&m->ffmpeg, "ffmpeg", &actions, &own_group, argv, environ);
  posix_spawnattr_destroy(&own_group);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  m->feed = ends[0];
  if (!error) return 0;
  m->ffmpeg = 0;
  if (error != ENOENT) return mn_fail(m->ctx, "ffmpeg does not start: %s", strerror(error));
  return mn_fail(m->ctx, "%s: MP4 needs ffmpeg (apt-get install ffmpeg); a name ending in .gif needs none",
                 m->path);
}

/* Begin a moving picture; the file's ending, .gif or .mp4, says which kind. */
mn_movie *mn_movie_new(mn_ctx *mn, const char *path, int width, int height, int fps) {
  const char *dot = strrchr(path, '.');
  bool gif = dot && !strcasecmp(dot, ".gif"), mp4 = dot && !strcasecmp(dot, ".mp4");
  if ((!gif && !mp4) || width < 1 || height < 1 || width > 16384 || height > 16384 || fps < 1 || fps > 120) {
    mn_fail(mn, "%s at %dx%d and %d frames/s: expected a name ending in .gif or .mp4, "
            "1x1 .. 16384x16384, 1..120", path, width, height, fps);
    return NULL;
  }
  mn_movie *m = calloc(1, sizeof *m);
  if (!m) { mn_fail(mn, "%s: no memory", path); return NULL; }
  m->ctx = mn, m->width = width, m->height = height, m->feed = m->held = -1;
  size_t length = strlen(path);
  if ((m->path = malloc(length + 1))) {
    memcpy(m->path, path, length + 1);
    /* a folder that cannot be written is better found now than after a thousand frames */
    if (mn_file_draft(mn, path, m->draft)) m->draft[0] = 0;
    else {
      m->held = mn_open_read(m->draft);
      flock(m->held, LOCK_EX | LOCK_NB);
      mn_remove_if_ended(m->draft);
      if (gif && (m->gif = mn_gif_new(mn, width, height, fps))) return m;
      if (mp4 && !start_ffmpeg(m, fps)) return m;
    }
  } else {
    mn_fail(mn, "%s: no memory", path);
  }
  mn_movie_free(m);
  return NULL;
}

/* Wait for ffmpeg to finish; its exit status, 0 if all is well. */
static int end_ffmpeg(mn_movie *m) {
  int status = 0;
  if (m->feed >= 0) close(m->feed);
  m->feed = -1;
  while (m->ffmpeg && waitpid(m->ffmpeg, &status, 0) < 0 && errno == EINTR) { }
  m->ffmpeg = 0;
  return status;
}

/* Append a frame, RGBA8 rows from the top, of the movie's size. */
int mn_movie_add(mn_movie *m, const uint8_t *rgba) {
  if (m->gif) return mn_gif_add(m->gif, rgba);
  size_t left = (size_t)m->width * (size_t)m->height * 4;
  while (left) {
    ssize_t sent = send(m->feed, rgba, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return mn_fail(m->ctx, "%s: ffmpeg stopped early; its message is above", m->path);
    rgba += sent, left -= (size_t)sent;
  }
  return 0;
}

/* Finish: the file appears under its name.  -1 with the error set if it cannot; then there is no file.
** Either way the movie takes no more frames and is still to be freed. */
int mn_movie_end(mn_movie *m) {
  if (m->gif) return mn_gif_end(m->gif, m->path);
  if (end_ffmpeg(m)) return mn_fail(m->ctx, "%s: ffmpeg failed; its message is above", m->path);
  if (mn_file_move(m->ctx, m->draft, m->path)) return -1;
  mn_drop_drafts(m->path);
  return 0;
}

/* Free a movie; one that was not ended leaves no file. */
void mn_movie_free(mn_movie *m) {
  if (!m) return;
  mn_remove_if_ended(NULL);
  mn_gif_free(m->gif);
  if (m->ffmpeg) kill(m->ffmpeg, SIGKILL);                 /* what it would still write nobody gets */
  end_ffmpeg(m);
  if (m->draft[0]) unlink(m->draft);
  if (m->held >= 0) close(m->held);
  free(m->path);
  free(m);
}
