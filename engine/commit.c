/* commit.c -- of which commit this program is: what runs write down, and mneme doctor says. */
#include "commit.h"
#include "op.h"

/* The commit that it was built of, "-dirty" behind it if files differed, or "" where it was not built in a git repository. */
const char *mn_commit(void) { return MN_COMMIT; }
