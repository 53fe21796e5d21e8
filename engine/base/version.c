/* version.c -- the commit and the compiler of this build; runs record them and `mneme doctor` prints them. */
#include "commit.h"
#include "op.h"

/* The commit that it was built of, "-dirty" behind it if files differed, or "" where it was not built in a git repository. */
const char *mn_commit(void) { return MN_COMMIT; }

/* "gcc 12.2.0", "Clang 14.0.6" and the like. */
const char *mn_compiler(void) {
#ifdef __clang__
  return __VERSION__;
#else
  return "gcc " __VERSION__;
#endif
}
