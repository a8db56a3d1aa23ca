/* nvml.c: declarations as in NVIDIA's nvml.h. */
#include "worker/sensors/nvml.h"

#include "worker/sensors/dynamic.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { NVML_SUCCESS = 0, NVML_TEMPERATURE_GPU = 0, GPUS_MAX = 64 };

typedef struct nvml_device *nvml_device;

struct api {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *out);
	int (*handle)(unsigned index, nvml_device *out);
	int (*temperature)(nvml_device d, int sensor, unsigned *out);
};

struct nvml {
	struct api api;
	bool looked, up; /* for the library; it is initialised */
};

#define SYMBOL(name, field)                                                                                            \
	{ name, offsetof(struct api, field) }

static bool load(struct api *out) {
	static const char *const names[] = {"libnvidia-ml.so.1", NULL};
	static const struct dynamic_symbol symbols[] = {
		SYMBOL("nvmlInit_v2", init),
		SYMBOL("nvmlShutdown", shutdown),
		SYMBOL("nvmlDeviceGetCount_v2", count),
		SYMBOL("nvmlDeviceGetHandleByIndex_v2", handle),
		SYMBOL("nvmlDeviceGetTemperature", temperature),
		{NULL, 0},
	};
	return dynamic_open(names, symbols, out);
}

struct nvml *nvml_new(void) {
	return calloc(1, sizeof(struct nvml));
}

void nvml_free(struct nvml *n) {
	if (n && n->up)
		(void)n->api.shutdown();
	free(n);
}

double nvml_celsius(struct nvml *n) {
	unsigned gpus = 0, celsius;
	nvml_device d;
	double hottest = NAN;
	if (!n)
		return NAN;
	if (!n->looked)
		n->up = load(&n->api) && n->api.init() == NVML_SUCCESS;
	n->looked = true;
	if (!n->up || n->api.count(&gpus) != NVML_SUCCESS)
		return NAN;
	for (unsigned i = 0; i < gpus && i < GPUS_MAX; i++)
		if (n->api.handle(i, &d) == NVML_SUCCESS &&
			n->api.temperature(d, NVML_TEMPERATURE_GPU, &celsius) == NVML_SUCCESS && !((double)celsius <= hottest))
			hottest = celsius;
	return hottest;
}
