# gpu.mk -- the GPU plugin, twice: by nvcc into libmneme_cuda.so, where nvcc is, and by g++ under
# gpu/emu.h into libmneme_emu.so, which runs the same kernels in the tests, everywhere.

CXX     ?= g++
NVCC    ?= nvcc
CU      := $(sort $(notdir $(basename $(wildcard gpu/*.cu))))
CU_INC  := -Igpu -Iengine -I$(B)
EMU     := -std=gnu++17 -O0 -g -fPIC -ffp-contract=off -Wall -Wextra -Wshadow -Werror $(CU_INC) \
           -MMD -MP $(CFLAGS)
TO_MNEME = -L$(B) -lmneme -Wl,-rpath,'$$ORIGIN'

# What of these the installed nvcc knows; the newest also as PTX, for GPUs to come.
SM      = $(filter sm_80 sm_90 sm_100,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
GENCODE = $(foreach a,$(SM:sm_%=%),-gencode arch=compute_$(a),code=sm_$(a)) \
          $(foreach a,$(lastword $(SM:sm_%=%)),-gencode arch=compute_$(a),code=compute_$(a))

ifneq ($(shell command -v $(NVCC)),)
gpu: $(B)/libmneme_cuda.so      ## the plugin for NVIDIA GPUs, where nvcc is
	@cat $(B)/gpu/*.used | c++filt
else
gpu:
	@echo "skipped: the GPU plugin needs nvcc (of a CUDA toolkit 12 or newer), which is not in PATH"
endif

$(B)/libmneme_cuda.so: $(CU:%=$(B)/gpu/%.o) | $(B)/libmneme.so
	@echo "ld $@"
	@$(NVCC) -shared -o $@ $^ -L$(B) -lmneme -Xlinker -rpath,'$$ORIGIN'

# X.used says what each kernel takes of each GPU: registers, and bytes spilled to memory.
$(B)/gpu/%.o: gpu/%.cu gpu/gpu.mk
	@mkdir -p $(@D)
	@echo "nvcc $<"
	@$(NVCC) -std=c++17 -O3 $(CU_INC) $(GENCODE) -Werror all-warnings \
	   -Xcompiler -fPIC,-Wall,-Wextra,-Werror -Xptxas -v -MMD -MP -MF $(@:.o=.d) \
	   -c -o $@ $< 2> $(@:.o=.log) || { cat $(@:.o=.log); exit 1; }
	@awk -v file=$< '/Compiling entry/ { k = $$7; a = $$9; gsub(/\047/, "", k); gsub(/\047/, "", a) } \
	   /spill/ { s = $$5 } \
	   /Used/ { print file ": " k " " a ": " $$5 " registers, " s " bytes spilled" }' \
	   $(@:.o=.log) > $(@:.o=.used)

$(B)/gpu/%.emu.o: gpu/%.cu gpu/gpu.mk
	@mkdir -p $(@D)
	@echo "c++ $< (emulated)"
	@$(CXX) $(EMU) -c -o $@ -x c++ $<

$(B)/libmneme_emu.so: $(CU:%=$(B)/gpu/%.emu.o) | $(B)/libmneme.so
	@echo "ld $@"
	@$(CXX) $(EMU) -shared -o $@ $^ $(TO_MNEME)

$(B)/test_gpu_emu: tests/gpu/emu.cpp gpu/gpu.mk
	@mkdir -p $(@D)
	@echo "c++ $<"
	@$(CXX) $(EMU) -Itests/gpu -o $@ $<

$(B)/test_gpu_kernels: tests/gpu/kernels.cpp gpu/gpu.mk | $(B)/libmneme.so
	@echo "c++ $<"
	@$(CXX) $(EMU) -Itests/gpu -o $@ $< $(TO_MNEME)

test-gpu-programs: $(B)/test_gpu_emu $(B)/test_gpu_kernels $(B)/libmneme_emu.so
.PHONY: gpu test-gpu-programs
-include $(wildcard $(B)/gpu/*.d $(B)/test_gpu_*.d)
