/* watch.h: the emulated device as another process sees it. TEST ONLY.
 *
 * The environment variable RIVULET_EMU_WATCH names a file that the emulator makes at its first use,
 * sizeof(struct emu_watch) bytes, and keeps true while its process runs; a test maps it. Fields are
 * written one after the other: what is read of one moment may differ by one launch.
 *
 * C and C++. */
#ifndef RV_TESTS_EMU_WATCH_H
#define RV_TESTS_EMU_WATCH_H

#include <stdint.h>

#define EMU_WATCH_ENV "RIVULET_EMU_WATCH"

struct emu_watch {
	uint64_t launches;     /* of kernels, a library's included */
	uint64_t busy_ns;      /* spent in kernels, by the clock of the computer */
	uint64_t ended_ns;     /* CLOCK_MONOTONIC at the end of the last kernel */
	uint64_t device_bytes; /* allocated now */
	uint64_t pinned_bytes; /* the same of pinned memory */
	uint64_t batches;      /* micro-batches that ended: each has one launch of embed_backward */
	uint64_t read_bytes;   /* copied from the device to the host */
	uint64_t peak_bytes;   /* the most that was allocated on the device since nothing was */
};

#endif
