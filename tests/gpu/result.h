/* result.h -- results of the test programs of gpu/, as lines that tests/gpu/test_gpu.lua reads. */
#pragma once
#include <cstdio>
#include <string>

static int failures;

static inline void expect(const std::string &name, bool ok, const std::string &why = "wrong result") {
  if (ok) printf("ok %s\n", name.c_str());
  else printf("FAIL %s: %s\n", name.c_str(), why.c_str());
  fflush(stdout);
  failures += !ok;
}

static inline int finish() { return failures != 0; }
