# make help lists what there is.  `ls` is the registry: the lists of ops and environments below are the
# lists of files in engine/ops and engine/envs.

CC      ?= cc
ARCH    ?= native
OPT     ?= -O3 -g
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
CFLAGS  ?=
B       ?= build
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX  ?= /usr/local

# Wide vectors where the CPU has them; other names of ARCH (x86-64-v3 ...) build for other machines.
TUNE    := -march=$(ARCH) -mprefer-vector-width=512
ALL_C   := -std=gnu11 $(OPT) $(TUNE) $(WARN) -fopenmp -fPIC -fno-math-errno -fno-trapping-math -Iengine -I$(B) $(CFLAGS)

OPS     := $(sort $(basename $(notdir $(wildcard engine/ops/*.c))))
ENVS    := $(sort $(basename $(notdir $(wildcard engine/envs/*.c))))
ENGINE  := $(patsubst %.c,$(B)/%.o,$(wildcard engine/*.c engine/*/*.c))
VIEW    := $(patsubst %.c,$(B)/%.o,$(wildcard scenes/view/*.c))
HEADERS := $(wildcard engine/*.h engine/*/*.h scenes/view/*.h)

.PHONY: all deps demo test gpu bench check learn format install clean help FORCE
.DEFAULT_GOAL := all

all: $(B)/libmneme.so $(B)/mneme $(B)/libmneme_view.so     ## the program, for this CPU (build/mneme)

$(B)/libmneme.so: $(ENGINE)
	@echo "ld $@"
	@$(CC) $(ALL_C) -shared -o $@ $^ -ljansson -lpng -lgif -lz -ldl -lpthread -lm

$(B)/libmneme_view.so: $(VIEW) $(B)/libmneme.so
	@echo "ld $@"
	@$(CC) $(ALL_C) -shared -o $@ $(VIEW) -L$(B) -lmneme -Wl,-rpath,'$$ORIGIN' $(shell pkg-config --libs sdl2 freetype2) -lm

$(B)/mneme: $(B)/lua/main.o $(B)/libmneme.so
	@echo "ld $@"
	@$(CC) $(ALL_C) -o $@ $< -rdynamic -L$(B) -lmneme -Wl,-rpath,'$$ORIGIN' -Wl,-rpath,'$$ORIGIN/../lib' $(shell pkg-config --libs luajit) -ldl -lm

$(B)/%.o: %.c $(HEADERS) $(B)/registry.h $(B)/flags
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(ALL_C) $($(firstword $(subst /, ,$*))_C) -c -o $@ $<

scenes_C = $(shell pkg-config --cflags sdl2 freetype2)
lua_C    = $(shell pkg-config --cflags luajit) -DMNEME_PREFIX='"$(PREFIX)"'

# The list of ops is the list of files: engine/ops/x.c defines mn_op_x, engine/envs/y.c mn_env_y.
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

# Other flags rebuild everything.
$(B)/flags: FORCE
	@mkdir -p $(B)
	@echo '$(CC) $(ALL_C)' | cmp -s - $@ || echo '$(CC) $(ALL_C)' > $@
FORCE:
