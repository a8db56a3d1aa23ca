/* nvml.h: temperatures of NVIDIA's GPUs, by the driver's management library (libnvidia-ml.so.1). */
#ifndef RV_WORKER_SENSORS_NVML_H
#define RV_WORKER_SENSORS_NVML_H

struct nvml; /* used by one thread */

/* Returns a handle; the library is looked for at the first question. NULL: no memory. */
struct nvml *nvml_new(void);
void nvml_free(struct nvml *n); /* NULL is fine */
/* Returns the hottest GPU's temperature in degrees Celsius; NaN: no driver, no GPU, no answer. */
double nvml_celsius(struct nvml *n);

#endif
