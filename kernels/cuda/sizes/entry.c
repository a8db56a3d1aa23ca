/* entry.c: what programs know of this plugin before they load it. */
#include "kernels/cuda/sizes/step_sizes.h"
#include "kernels/plugins.h"

static void count_step_memory(enum dtype act, const struct step_bounds *s, struct step_memory *out) {
	cuda_count_step_memory(act, s, GEMM_WORKSPACE_BYTES, out);
}

/* As vendor/places.h looks for libraries. */
static const char *const reads[] = {"CUDA_HOME", "CUDA_PATH", "RIVULET_CUDA_PLUGIN", NULL};

const struct plugin_entry cuda_entry = {
	.name = "cuda",
	.file = "librivulet_cuda.so",
	.environment = "RIVULET_CUDA_PLUGIN",
	.driver = "libcuda.so.1",
	.maker = "NVIDIA",
	.reads = reads,
	.count_step_memory = count_step_memory,
};
