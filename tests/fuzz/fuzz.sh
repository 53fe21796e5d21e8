#!/bin/sh
# fuzz.sh -- fuzz.sh BUILD SECONDS TARGET...: each target for so long, from its seeds and what was found before.  Says how
# many inputs each has had; stops at the first that is not taken well, which stays as BUILD/TARGET-crash-...
build=$1 seconds=$2
shift 2
# A short memory of what was freed, and where: 1.2 to 1.5 times as fast where much is allocated.
export MNEME_FUZZ UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=8:thread_local_quarantine_size_kb=64:malloc_context_size=4
luajit tests/fuzz/seeds.lua "$build/seeds" || exit 1
export MNEME_BUILD="$build"
for MNEME_FUZZ in "$@"; do
  mkdir -p "$build/corpus/$MNEME_FUZZ"
  "$build/fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_len=4096 \
    -print_final_stats=1 -artifact_prefix="$build/$MNEME_FUZZ-" "$build/corpus/$MNEME_FUZZ" "$build/seeds/$MNEME_FUZZ" \
    > "$build/$MNEME_FUZZ.log" 2>&1 || { grep -v "^#" "$build/$MNEME_FUZZ.log" | tail -60; echo "$MNEME_FUZZ: FAILED"; exit 1; }
  echo "$MNEME_FUZZ: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$MNEME_FUZZ.log") inputs, none taken badly"
done
