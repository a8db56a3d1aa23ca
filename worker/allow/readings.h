/* readings.h: what this computer reports of itself, as far as a person's limits depend on it. Plain
 * values: worker/sensors/sensors.h reads them, worker/allow decides by them. Each one may be
 * unknown, as no desktop, laptop and server reports all of it (docs/limits.md). */
#ifndef RV_WORKER_ALLOW_READINGS_H
#define RV_WORKER_ALLOW_READINGS_H

#include <math.h>
#include <stdint.h>

enum allow_answer { ALLOW_UNKNOWN, ALLOW_NO, ALLOW_YES };

enum { ALLOW_SOURCE_BYTES = 48 };

struct allow_readings {
	int64_t read_us;                      /* rv_clock_monotonic_us() when they were read; 0: never yet */
	enum allow_answer on_battery;         /* the computer runs from its battery, or an UPS from its */
	double battery_percent;               /* charge of the emptiest battery, 0..100; NaN: unknown, or none */
	enum allow_answer on_metered;         /* the line that the system uses costs by the byte */
	int64_t idle_s;                       /* seconds since somebody used the computer, at least 0; -1: unknown */
	char idle_source[ALLOW_SOURCE_BYTES]; /* who reports it: "X11", "logind"; "": nobody */
	double cpu_celsius;                   /* hottest sensor of the processors, in degrees; NaN: unknown */
	double gpu_celsius;                   /* hottest NVIDIA GPU, in degrees; NaN: unknown, or none */
	double others_percent;                /* of all processors' time, used by other programs in the last
	                                        second or so, 0..100; NaN: unknown */
};

/* Returns readings of which all are unknown. */
static inline struct allow_readings allow_readings_unknown(void) {
	return (struct allow_readings){
		.battery_percent = NAN, .idle_s = -1, .cpu_celsius = NAN, .gpu_celsius = NAN, .others_percent = NAN};
}

#endif
