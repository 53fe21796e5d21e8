# gpu.mk -- the GPU plugin, twice: by nvcc into libmneme_cuda.so, where nvcc is, and by g++ under
# gpu/emulator/emu.h into libmneme_emu.so, which runs the same kernels in the tests, everywhere.

CXX     ?= g++
NVCC    ?= nvcc
CU      := $(sort $(patsubst gpu/%.cu,%,$(wildcard gpu/ops/*.cu gpu/runtime/*.cu)))
CU_INC  := -Igpu -Iengine -I$(B)
EMU     := -std=gnu++17 -O1 -Wno-maybe-uninitialized -fPIC -march=$(ARCH) -ffp-contract=off -fopenmp-simd -Wall -Wextra -Wshadow $(ERRORS) \
           $(CU_INC) -DCU_OLDEST=80 -MMD -MP $(CFLAGS)
# nvcc's objects; those of gpu-quick lie apart, since they are not optimised.
CUDA    = $(B)/gpu
PLUGIN  = $(B)
TO_MNEME = -L$(B) -lmneme -Wl,-rpath,'$$ORIGIN'

# Environments come from engine/envs, with a file in front that makes kernels of them.  What must have the
# same bits as on the CPU is compiled without fusing what is not written so.
PARTS   := $(CU) $(ENVS:%=envs/%)
CU_ENV  := -include gpu/runtime/envs.cuh
$(CUDA)/envs/%.o: CU_MORE := -x cu $(CU_ENV) -Xcompiler -Wno-missing-field-initializers
$(CUDA)/envs/%.o $(CUDA)/runtime/rollout.o: CU_MATHS := -fmad=false

# What of these the installed nvcc knows.
SM      = $(filter sm_80 sm_90 sm_100,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
# Two translations, for the oldest and for what has Hopper's launches (gpu/runtime/launch.cuh); machine code for each of SASS,
# and what drivers translate themselves.
SASS    = $(SM)
virtual = $(if $(filter sm_8%,$(1)),compute_80,compute_90)
VIRTUAL = $(sort $(foreach a,$(or $(SASS),sm_90),$(call virtual,$(a))))
GENCODE = $(foreach a,$(SASS),-gencode arch=$(call virtual,$(a)),code=$(a)) \
          $(foreach v,$(VIRTUAL),-gencode arch=$(v),code=$(v))
CU_OLD  = -DCU_OLDEST=$(patsubst compute_%,%,$(firstword $(VIRTUAL)))

ifneq ($(shell command -v $(NVCC)),)
gpu: $(B)/libmneme_cuda.so      ## build the plugin for NVIDIA GPUs (needs nvcc)
	@cat $(PARTS:%=$(CUDA)/%.used) | c++filt
else
gpu:
	@echo "skipped: the GPU plugin needs nvcc (of a CUDA toolkit 12 or newer), which is not in PATH"
endif

# For tests: everything compiled as nvcc compiles it, but neither optimised nor made into machine code, in a third of the time.
gpu-quick: | $(B)/libmneme.so
	@$(MAKE) --no-print-directory -o $(B)/libmneme.so CUDA=$(B)/gpu-quick PLUGIN=$(B)/gpu-quick SASS= CU_OPT="-Xcicc -O0" $(B)/gpu-quick/libmneme_cuda.so

$(PLUGIN)/libmneme_cuda.so: $(PARTS:%=$(CUDA)/%.o) | $(B)/libmneme.so
	@echo "ld $@"
	@$(NVCC) -shared -o $@ $^ -L$(patsubst $(CURDIR)/%,%,$(B)) -lmneme -lcublas -Xlinker -rpath,'$$ORIGIN'

# For other GPUs everything is compiled again.
$(CUDA)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(NVCC) $(CU_OPT) $(GENCODE)' | cmp -s - $@ || echo '$(NVCC) $(CU_OPT) $(GENCODE)' > $@

# X.used says what each kernel takes of each GPU: registers, and bytes spilled to memory.
define nvcc
	@mkdir -p $(@D)
	@echo "nvcc $<"
	@$(NVCC) -std=c++17 -O3 $(CU_OPT) $(CU_MATHS) $(CU_INC) $(CU_OLD) $(GENCODE) $(if $(ERRORS),-Werror all-warnings -Xcompiler -Werror) \
	   -Xcompiler -fPIC,-fopenmp-simd,-Wall,-Wextra -Xptxas -v -MMD -MP -MF $(@:.o=.d) \
	   -c -o $@ $(CU_MORE) $< 2> $(@:.o=.log) || { cat $(@:.o=.log); exit 1; }
	@awk -v file=$< '/Compiling entry/ { k = $$7; a = $$9; gsub(/\047/, "", k); gsub(/\047/, "", a) } \
	   /spill/ { s = $$5; stack = $$1 } \
	   /Used/ { print file ": " k " " a ": " $$5 " registers, " s " bytes spilled, stack of " stack }' \
	   $(@:.o=.log) > $(@:.o=.used)
endef

define emulated
	@mkdir -p $(@D)
	@echo "c++ $< (emulated, $$(($$(find $(B)/gpu -name '*.emu.o' | wc -l) + 1)) of $(words $(PARTS)))"
	@$(CXX) $(EMU) -include $(B)/gpu/kernel.h -c -o $@ -x c++ $(1) $<
endef

$(CUDA)/%.o: gpu/%.cu gpu/gpu.mk $(CUDA)/flags
	$(nvcc)
$(B)/gpu/%.emu.o: gpu/%.cu gpu/gpu.mk $(B)/gpu/kernel.h.gch
	$(call emulated)

# What all kernels include, compiled once: half of each file's time.
$(B)/gpu/kernel.h.gch: gpu/gpu.mk
	@mkdir -p $(@D)
	@echo '#include "runtime/kernel.cuh"' > $(B)/gpu/kernel.h
	@$(CXX) $(EMU) -c -o $@ -x c++-header $(B)/gpu/kernel.h

# X.c and X/X.c alike.
define env_objects
$(CUDA)/envs/$(1).o: $(2) gpu/runtime/envs.cuh gpu/gpu.mk $(CUDA)/flags
	$$(nvcc)
$(B)/gpu/envs/$(1).emu.o: $(2) gpu/runtime/envs.cuh gpu/gpu.mk $(B)/gpu/kernel.h.gch
	$$(call emulated,-O1 $$(CU_ENV) -Wno-missing-field-initializers)
endef
$(foreach x,$(ENV_C),$(eval $(call env_objects,$(basename $(notdir $(x))),$(x))))

$(B)/gpu/emulator/machine.o: gpu/emulator/machine.cpp gpu/gpu.mk
	@mkdir -p $(@D)
	@echo "c++ $<"
	@$(CXX) $(EMU) -O2 -c -o $@ $<

$(B)/libmneme_emu.so: $(PARTS:%=$(B)/gpu/%.emu.o) $(B)/gpu/emulator/machine.o | $(B)/libmneme.so
	@echo "ld $@"
	@$(CXX) $(EMU) -shared -o $@ $^ $(TO_MNEME)

$(B)/test_gpu_%: tests/gpu/%.cpp $(B)/gpu/emulator/machine.o gpu/gpu.mk | $(B)/libmneme.so
	@echo "c++ $<"
	@$(CXX) $(EMU) -Itests/gpu -o $@ $(filter %.cpp %.o,$^) $(TO_MNEME)

test-gpu-programs: $(B)/test_gpu_emu $(B)/test_gpu_host $(B)/test_gpu_kernels $(B)/libmneme_emu.so
.PHONY: gpu gpu-quick test-gpu-programs
-include $(wildcard $(B)/gpu/*.d $(B)/gpu/*/*.d $(B)/gpu-quick/*/*.d $(B)/gpu-one/*/*.d $(B)/test_gpu_*.d)
