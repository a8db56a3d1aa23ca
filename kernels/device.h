/* device.h: what `--device` says, and the backend that it stands for here.
 *
 *   auto        the first GPU, where the plugin, a driver and a GPU are there; else the CPU
 *   cpu         this computer's processors
 *   cpu:N       N replicas of the model on parts of them, kept equal as N GPUs would be; for trying it out
 *   cuda        the first GPU
 *   cuda:0,1    these GPUs, together one replica
 *   ref         the reference backend: slow, readable loops
 */
#ifndef RV_KERNELS_DEVICE_H
#define RV_KERNELS_DEVICE_H

#include "kernels/backend.h"

enum { DEVICE_MAX = 16, DEVICE_TEXT_BYTES = 64 };

/* For options named "device". */
#define DEVICE_HELP                                                                                                    \
	"What computes: auto (a GPU when there is one), cpu, cuda, or cuda:0,1 for these GPUs together; cpu:2 splits the " \
	"processors into two devices."

struct device_choice {
	const char *backend; /* as backend_open wants it: "cpu", "cuda", "ref" */
	int n;               /* 1..DEVICE_MAX */
	int index[DEVICE_MAX];
	bool automatic;                     /* it was not asked for by name */
	char why_not_gpu[RV_ERRTEXT_BYTES]; /* automatic, and no GPU: the reason, for one line; else "" */
};

/* Only the words. RV_E_INVALID says what may stand there, RV_E_RANGE which number cannot be. `auto` gives automatic. */
enum rv_err device_parse(const char *text, struct device_choice *out, struct rv_errtext *et);
/* Writes the words for as many devices of that kind, whichever they were: what a replica's bits depend on. */
void device_kind(const struct device_choice *c, char out[DEVICE_TEXT_BYTES]);
/* The same as device_parse, and looks at what there is. A device that was asked for by name and cannot be had is a fault, whose text
 * says what is missing and what to do: RV_E_NOTFOUND, RV_E_UNSUPPORTED, RV_E_RANGE. */
enum rv_err device_choose(const char *text, struct device_choice *out, struct rv_errtext *et);
/* Backend i of [0, n). Threads of the CPU (options->threads, 0: all) are divided among n. What backend_open
 * refuses. */
enum rv_err device_open(const struct device_choice *c, int i, const struct backend_options *options,
						struct backend **out, struct rv_errtext *et);
/* Whether a GPU is there; unlike device_choose nothing of it is taken by asking. */
bool device_has_gpu(void);
/* Returns one line about the libraries that a GPU is used with (kernels/plugin.h), for the log; NULL where `c` has none.
 */
const char *device_libraries(const struct device_choice *c);
/* Free memory of the device that has least, in bytes; SIZE_MAX where the host's memory is meant. */
size_t device_free_bytes(const struct device_choice *c);

#endif
