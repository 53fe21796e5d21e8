/* error.c -- the last error of each context, and of calls made before there is one. */
#include "error.h"
#include <stdarg.h>
#include <stdio.h>
#include "op.h"

static mn_error_text without_context;

static mn_error_text *error_of(mn_ctx *mn) { return mn ? (mn_error_text *)mn : &without_context; }

int mn_fail(mn_ctx *mn, const char *fmt, ...) {
  mn_error_text *e = error_of(mn);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(e->text, sizeof e->text, fmt, ap);
  va_end(ap);
  return -1;
}

const char *mn_error(mn_ctx *mn) { return error_of(mn)->text; }
