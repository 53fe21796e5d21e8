# make help lists what there is.  `ls` is the registry: the lists of ops and environments below are the
# lists of files in engine/ops and engine/envs; an environment of many files is a folder X with X/X.c.

CC      ?= cc
ARCH    ?= native
OPT     ?= -O3 -g
# pass-failed: clang, unlike gcc, leaves some loops scalar, and says so.
# Warnings are errors to Debian 12's gcc and clang; what a newer one warns of stops nobody's build.
ERRORS  := $(if $(filter 12 14.0.6,$(shell $(CC) -dumpversion)),-Werror)
WARN    := -Wno-pass-failed -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(ERRORS)
CFLAGS  ?=
LDFLAGS ?=
B       ?= build
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX  ?= /usr/local
# What runs the program that is built, where this machine cannot: qemu-aarch64.
RUN     ?=

# In an environment of conda that has LuaJIT: what is there, without conda's own flags, which are for CPUs of 2004.
ifneq ($(wildcard $(CONDA_PREFIX)/include/luajit-2.1/luajit.h),)
CFLAGS  := -isystem $(CONDA_PREFIX)/include
LDFLAGS := -L$(CONDA_PREFIX)/lib -Wl,-rpath,$(CONDA_PREFIX)/lib
export PKG_CONFIG_PATH := $(CONDA_PREFIX)/lib/pkgconfig:$(CONDA_PREFIX)/share/pkgconfig
endif

# Wide vectors where the CPU has them; other names of ARCH (x86-64-v3 ...) build for other machines.
WIDE    := -mprefer-vector-width=512
WIDE    := $(shell $(CC) -Werror $(WIDE) -x c -fsyntax-only /dev/null 2> /dev/null && echo $(WIDE))
TUNE    := -march=$(ARCH) $(WIDE)
# A product that is added is always fused, so that a row has the same bits in whichever loop it is computed: tuned for
# some processors (Zen 2 and 3, Alder Lake) GCC fuses it in some loops and leaves it apart in others.
FUSE    := --param=avoid-fma-max-bits=0
FUSE    := $(shell $(CC) -Werror $(FUSE) -x c -fsyntax-only /dev/null 2> /dev/null && echo $(FUSE))
ALL_C   := -std=gnu11 -MMD -MP $(OPT) $(TUNE) $(FUSE) $(WARN) -fopenmp -fPIC -fno-math-errno -fno-trapping-math -Iengine -I$(B) $(CFLAGS)

# A tarball (`make dist`) and a wheel keep the libraries of others in a folder `bundled` next to ours; DT_RPATH, because
# that also counts for what those libraries need and for what is loaded at run time.
BUNDLED  = -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/bundled:$$ORIGIN/../../bundled:$$ORIGIN/../lib/bundled'

OPS     := $(sort $(basename $(notdir $(wildcard engine/ops/*.c))))
ENV_C   := $(wildcard engine/envs/*.c engine/envs/*/*.c)
ENVS    := $(sort $(basename $(notdir $(ENV_C))))
ENGINE  := $(patsubst %.c,$(B)/%.o,$(wildcard engine/*.c engine/*/*.c) $(filter-out $(wildcard engine/envs/*.c),$(ENV_C)))
# WITH: a build whose environments and files are taken, where only the rest is compiled otherwise.
ENGINE  := $(if $(WITH),$(foreach o,$(ENGINE),$(if $(filter $(B)/engine/envs/% $(B)/engine/io/%,$(o)),$(patsubst $(B)/%,$(WITH)/%,$(o)),$(o))),$(ENGINE))
# Without libmicrohttpd there is no server for browsers, and all else is there.
NO_WEB  := $(shell pkg-config --exists libmicrohttpd 2> /dev/null || echo %/web_server.c)
VIEW    := $(patsubst %.c,$(B)/%.o,$(filter-out $(NO_WEB),$(wildcard scenes/view/*.c)))

.PHONY: all deps deps-demo deps-test demo test widths emulator bench check fuzz learn pages golden lockstep format clean help FORCE
.DEFAULT_GOAL := all

# One compile a CPU, unless -jN says otherwise.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --no-print-directory -j$(JOBS)
endif

all: $(B)/libmneme.so $(B)/mneme $(B)/libmneme_view.so $(B)/bytecode     ## build the program for this CPU: build/mneme

$(B)/libmneme.so: $(ENGINE)
	@echo "ld $@"
	@$(CC) $(ALL_C) -shared -Wl,-soname,libmneme.so,-z,nodelete,--build-id $(BUNDLED) $(LDFLAGS) -o $@.new $^ -lpng -lgif -lz -ldl -lpthread -lm && mv $@.new $@

$(B)/libmneme_view.so: $(VIEW) $(B)/libmneme.so
	@echo "ld $@"
	@$(CC) $(ALL_C) -shared -Wl,-z,defs $(BUNDLED) -Wl,-rpath,'$$ORIGIN' $(LDFLAGS) -o $@ $(VIEW) \
	  -L$(B) -lmneme $(shell pkg-config --libs freetype2) -ldl -lpthread -lm
	@$(if $(NO_WEB),echo "no libmicrohttpd: built without mneme view web=1 (make deps, then make)")

# The engine is loaded from Lua, which chooses OpenMP's settings first.
$(B)/mneme: $(B)/lua/main.o
	@echo "ld $@"
	@$(CC) $(ALL_C) $(BUNDLED) $(LDFLAGS) -o $@ $< $(shell pkg-config --libs luajit) -ldl -lm

# Mneme's Lua as bytecode, by the LuaJIT that will read it; without it the program reads the text.
LUA := $(shell cd lua && find mneme -name '*.lua' | LC_ALL=C sort)
$(B)/bytecode: $(LUA:%=lua/%)
	@echo "luajit $@"
	@$(RUN) $$(command -v luajit) -e 'package.path = "lua/?.lua" require("mneme.base.luajit").compile("$@.new", "$(LUA)")' && mv $@.new $@ || \
	  echo "no bytecode: Mneme starts more slowly"

# Environments and rollouts have the same bits on a GPU: what is fused is written so.
$(B)/engine/envs/%.o $(B)/engine/sim/rollout.o: EXACT := -ffp-contract=off

# Products of bfloat16, chosen when the program runs: compiled for processors that have them.
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine 2> /dev/null)),)
BF16 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16
$(B)/engine/numerics/bf16_avx512.o: EXACT := $(BF16)
$(B)/engine/numerics/bf16_amx.o: EXACT := $(BF16) -mamx-tile -mamx-bf16
endif

# Which headers a file reads is written beside its object; ccache may bring a list that names the object of another build folder.
$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(ALL_C) $(EXACT) $($(firstword $(subst /, ,$*))_C) -c -o $@ $<
	@sed -i '1s|^[^:]*:|$@:|' $(@:.o=.d)
-include $(patsubst %.o,%.d,$(ENGINE) $(VIEW) $(B)/lua/main.o)

scenes_C = $(shell pkg-config --cflags sdl2 freetype2)
lua_C    = $(shell pkg-config --cflags luajit) -DMNEME_PREFIX='"$(PREFIX)"'

# The list of ops is the list of files: engine/ops/x.c defines mn_op_x, engine/envs/y.c
# or engine/envs/y/y.c mn_env_y.  Two files read it, so that
# one more op or environment does not compile all others again.
$(B)/engine/sim/env_registry.o $(B)/engine/graph/signature.o: $(B)/registry.h
$(B)/registry.h: FORCE
	@mkdir -p $(B)
	@{ echo '#include "op.h"'; echo '#include "env.h"'; \
	   for x in $(OPS); do echo "extern const mn_op mn_op_$$x;"; done; \
	   for x in $(ENVS); do echo "extern const mn_env mn_env_$$x;"; done; \
	   echo 'static const struct { const char *name; const mn_op *op; } mn_op_list[] __attribute__((unused)) = {'; \
	   for x in $(OPS); do echo "  { \"$$x\", &mn_op_$$x },"; done; echo '};'; \
	   echo 'static const mn_env *const mn_envs[] __attribute__((unused)) = {'; \
	   for x in $(ENVS); do echo "  &mn_env_$$x,"; done; echo '};'; \
	   echo "enum { MN_N_OPS = $(words $(OPS)), MN_N_ENVS = $(words $(ENVS)) };"; } > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The commit that is built, for what runs write down.
$(B)/engine/base/version.o: $(B)/commit.h
$(B)/commit.h: FORCE
	@mkdir -p $(B)
	@echo "#define MN_COMMIT \"$$([ ! -e .git ] || git describe --always --abbrev=40 --exclude='*' --dirty 2> /dev/null)\"" > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# Other flags rebuild everything.
$(B)/flags: FORCE
	@mkdir -p $(B)
	@echo '$(CC) $(ALL_C)' | cmp -s - $@ || echo '$(CC) $(ALL_C)' > $@
FORCE:

include gpu/gpu.mk
include bindings/package.mk

# ---- from nothing to running ----

# bindings/packages.txt lists the packages, bindings/packages.sh installs what is missing of them, or says whom to ask.
deps:           ## install every package that the project needs (Debian; as root or with sudo)
	@bindings/packages.sh deps
deps-demo:
	@bindings/packages.sh demo
deps-test:
	@bindings/packages.sh $(if $(TESTS),build,test)

# A run that is there is gone on with; one that is done is only shown.
DEMO := runs/demo
demo: deps-demo ## install, build, train an agent on the T-Maze and show it
	@$(MAKE) all
	@if [ -e $(DEMO)/config.json ]; then $(B)/mneme run resume=$(DEMO); \
	  else $(B)/mneme run experiments/demo.lua run=$(DEMO); fi
	@$(B)/mneme eval $(DEMO) episodes=500
	@echo "the agent:  $(DEMO) (rm -r $(DEMO) starts over)"
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] && echo "a window:   h lists its keys, q closes it" && $(B)/mneme view $(DEMO); then :; else \
	  $(B)/mneme view $(DEMO) out=$(DEMO)/episode.png && \
	  if command -v ffmpeg > /dev/null; then $(B)/mneme view $(DEMO) out=$(DEMO)/episode.mp4; \
	  else echo "no ffmpeg: a GIF instead of the MP4"; $(B)/mneme view $(DEMO) out=$(DEMO)/episode.gif; fi || \
	  echo "no picture: the line above says why; the agent is trained"; fi
	@echo "once more:  $(B)/mneme view $(DEMO)"
	@echo "live:       $(B)/mneme run experiments/demo.lua view=1 [core=gru] [corridor=40]"

TESTS :=
# Every vector width that this processor has is tested, since a row's bits may depend on none of them: its own by all tests, the narrower
# ones by those of the engine and of models, with the same environments.  Tuned for Zen 3, whose loops once differed (FUSE).
HAS      = $(shell grep -qw $(1) /proc/cpuinfo 2> /dev/null && echo yes)
NARROWER = $(if $(filter native,$(ARCH)),$(if $(call HAS,avx2),x86-64-v2) $(if $(call HAS,avx512f),x86-64-v3))
PATHS    = $(if $(TESTS),,$(NARROWER:%=$(abspath $(B))/width/%))
widths:
	@for p in $(PATHS); do $(MAKE) B=$$p WITH=$(abspath $(B)) ARCH=$${p##*/} CFLAGS=$$([ $${p##*/} = x86-64-v2 ] || echo -mtune=znver3) OPT=-O3 \
	  $$p/libmneme.so $$p/mneme || exit 1; done
emulator: $(if $(shell command -v $(CXX)),test-gpu-programs)

# The other widths, and the GPU's kernels for an emulator, take minutes to compile: tests/run.lua makes them where a test needs them.
test: deps-test ## build, run all tests (as root it installs; TESTS=tests/envs or TESTS="tests/envs/test_tmaze.lua ...": some)
	@$(MAKE) all
	@MNEME_MAKE='env -u MAKEFLAGS -u MAKELEVEL make $(MAKEOVERRIDES)' MNEME_PATHS="$(PATHS)" MNEME_BUILD=$(abspath $(B)) luajit tests/run.lua $(TESTS)

# ---- the workshop ----

bench: all      ## measure speed on this machine, next to bounds (WHAT="train envs ...")
	@$(B)/mneme bench $(WHAT)

learn: all      ## slow tests: train agents and check what they learn
	@MNEME_BUILD=$(abspath $(B)) luajit tests/run.lua $(or $(TESTS),$(wildcard tests/endurance/learn_*.lua))

# Leaks are not looked for: LuaJIT and the context live until the process ends.
ASAN := $(B)-asan
check: deps-test ## all tests under AddressSanitizer and UBSan, with memory that starts as NaN
	@$(MAKE) B=$(ASAN) OPT="-O1 -g -fno-omit-frame-pointer" \
	  CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -DMN_POISON" all test-gpu-programs
	@MNEME_BUILD=$(abspath $(ASAN)) ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 MNEME_TEST_LIMIT=3600 \
	  LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) luajit tests/run.lua $(TESTS)

# The engine by clang, looked at by libFuzzer and both sanitizers; what inputs it finds stay in build-fuzz/corpus.  What
# C compares is not traced: that took most of the time, and no reader in C waits for a number that is hard to guess.
FUZZ    := $(B)-fuzz
TARGET  := archive causal_map checkpoint config declaration events image json live manifest map metrics model_sizes ops outcome overrides report_words \
	   resources restore result run_info run_list safetensors signatures study text tuning
SECONDS := 60
fuzz: deps-test all ## fuzz every reader of files, a minute each (TARGET=causal_map SECONDS=3600: one of them, for an hour)
	@$(MAKE) B=$(FUZZ) CC="$(FUZZ_CC)" OPT="-O1 -g -fno-omit-frame-pointer" \
	  CFLAGS="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-coverage=trace-cmp -fno-sanitize-recover=all" $(FUZZ)/fuzz
	@MNEME_BUILD=$(abspath $(B)) tests/fuzz/fuzz.sh $(FUZZ) $(SECONDS) $(TARGET)

FUZZ_CC := clang
$(B)/fuzz: tests/fuzz/fuzz.c $(B)/libmneme.so
	@echo "ld $@"
	@$(CC) $(ALL_C) -fsanitize=fuzzer $(lua_C) -o $@ $< -L$(B) -lmneme -Wl,-rpath,'$$ORIGIN' $(shell pkg-config --libs luajit)

pages: all      ## HTML reports of docs/results, into build/pages
	@mkdir -p $(B)/pages
	@for f in docs/results/*.jsonl; do n=$(B)/pages/$$(basename $$f .jsonl); \
	  $(B)/mneme report $$f out=$$n.html figures=$$n/figures > $(B)/pages/log || exit 1; echo $$n.html; done

# Originals of environments that PYTHON has, played and compared: its package, the script and what it takes, the test.
define original
	@if $(PYTHON) -c 'import $(1)' 2>/dev/null; \
	then export MNEME_BUILD=$(abspath $(B)); \
	  $(PYTHON) tests/reference/$(2) && ORIGINALS=$(abspath $(B))/originals luajit tests/run.lua $(3); \
	else echo "not compared: $(PYTHON) has no $(1) (tests/reference/$(firstword $(2)) says how)"; fi
endef
golden: all     ## save the pictures of all scenes; with PYTHON=~/originals/bin/python, play and compare originals of environments, too
	@mkdir -p tests/golden $(B)/originals
	@MNEME_BUILD=$(abspath $(B)) MNEME_GOLDEN=keep luajit tests/run.lua tests/view/test_golden.lua
ifeq ($(origin PYTHON),command line)
	$(call original,bsuite,diagnostics.py to=$(B)/originals steps=5000,tests/envs/test_diagnostics.lua)
	$(call original,popgym,popgym_tasks.py $(B)/originals,tests/envs/test_popgym_tasks.lua)
	$(call original,memory_gym,endless.py $(B)/originals,tests/envs/test_endless.lua)
endif

# Recorded into $(B)/, then replayed: all of the state, the observation, the reward and the end of each step.
PYTHON := python3
GAMES  := 140
SEED   := 0
lockstep: all   ## play Craftax's originals in JAX, and ours step by step (PYTHON=~/craftax/bin/python GAMES=140 SEED=0)
	@$(PYTHON) tests/reference/craftax_full.py $(B)/craftax.record envs=$(GAMES) steps=1500 seed=$(SEED)
	@$(PYTHON) tests/reference/craftax_classic.py $(B)/craftax_classic.record envs=$(GAMES) steps=1500 seed=$(SEED)
	@MNEME_CRAFTAX_FULL=$(abspath $(B))/craftax.record MNEME_CRAFTAX=$(abspath $(B))/craftax_classic.record MNEME_BUILD=$(abspath $(B)) \
	  MNEME_TEST_LIMIT=3600 luajit tests/run.lua tests/envs/test_craftax.lua tests/envs/test_craftax_classic.lua

format:         ## format the lines of C that you changed
	@git clang-format --extensions c,h,cu,cuh

clean:          ## remove build/ (runs stay)
	rm -rf $(B) $(ASAN) $(FUZZ)

help:           ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10
	@echo "ARCH=x86-64-v3 builds for other machines, B=FOLDER into another folder, CC=clang with another compiler"
