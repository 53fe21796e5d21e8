/* fatal.h -- mistakes that end the process, for test programs. */
#pragma once
#include <sys/wait.h>
#include <unistd.h>
#include "result.h"

/* Run them in a child and read its last words. */
template <class F> void fatal(const char *name, F f, const char *report) {
  int pipe_ends[2];
  if (pipe(pipe_ends)) return expect(name, false, "no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], 2);
    f();
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string got;
  char buffer[512];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0; )
    got.append(buffer, (size_t)n);
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  expect(name, status != 0 && got.find(report) != std::string::npos, "the child said: " + got);
}
