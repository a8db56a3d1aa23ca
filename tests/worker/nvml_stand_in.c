/* nvml_stand_in.c: libnvidia-ml.so.1 as far as worker/sensors/nvml.h uses it, with three GPUs, of
 * which the second does not answer. Names and values as in NVIDIA's nvml.h; their own Python
 * binding (nvidia-ml-py) reads it, too. */
#include <stddef.h>

enum { SUCCESS = 0, INVALID = 2, LOST = 15, GPUS = 3 };

static unsigned temperatures[GPUS] = {40, 0, 55};
static int is_up;

/* For the test: temperature of the last GPU. */
void stand_in_set(unsigned celsius);
int stand_in_is_up(void);
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out);

void stand_in_set(unsigned celsius) {
	temperatures[GPUS - 1] = celsius;
}

int stand_in_is_up(void) {
	return is_up;
}

int nvmlInit_v2(void) {
	is_up++;
	return SUCCESS;
}

int nvmlShutdown(void) {
	is_up--;
	return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *out) {
	*out = GPUS;
	return is_up ? SUCCESS : INVALID;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
	*out = index < GPUS ? &temperatures[index] : NULL;
	return *out ? SUCCESS : INVALID;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out) {
	*out = *(unsigned *)device;
	return sensor != 0 ? INVALID : *out == 0 ? LOST : SUCCESS;
}
