/* device.h: the values of `--device`, and the backend that each one means on this computer.
 *
 *   auto        the first GPU, if the plugin, a driver and a GPU are present; else the CPU
 *   cpu         this computer's processors
 *   cpu:N       N replicas of the model on parts of them, kept equal as N GPUs would be; for trials
 *   cuda        the first GPU
 *   cuda:0,1    these GPUs, together one replica
 *   ref         the reference backend: slow, readable loops */
#ifndef RV_KERNELS_DEVICE_H
#define RV_KERNELS_DEVICE_H

#include "kernels/backend.h"

enum { DEVICE_MAX = 16, DEVICE_TEXT_BYTES = 64 };

/* For options named "device". */
#define DEVICE_HELP                                                                                                    \
	"Device to compute on: auto (a GPU when there is one), cpu, cuda, or cuda:0,1 for these GPUs "                     \
	"together; cpu:2 splits the "                                                                                      \
	"processors into two devices."

struct device_choice {
	const char *backend; /* for backend_open: "cpu", "ref", or a plugin's (kernels/plugins.h) */
	int n;               /* 1..DEVICE_MAX */
	int index[DEVICE_MAX];
	bool automatic;                     /* chosen by `auto`, not by name */
	char why_not_gpu[RV_ERRTEXT_BYTES]; /* automatic, and no GPU: the reason, in one line; else "" */
};

/* Parses the text only. RV_E_INVALID names the valid forms, RV_E_RANGE the number out of range.
 * `auto` gives automatic. */
enum rv_err device_parse(const char *text, struct device_choice *out, struct rv_errtext *et);
/* Chooses n GPUs of the registry's first kind, for a plan: there need be none. */
void device_planned_gpus(int n, struct device_choice *out);
/* Returns true if the devices are GPUs. */
bool device_is_gpu(const struct device_choice *c);
/* Returns the maker of the GPUs, for people; NULL if they are none. */
const char *device_maker(const struct device_choice *c);
/* Writes the text for as many devices of that kind, whichever they are: a replica's bits depend on
 * it. */
void device_kind(const struct device_choice *c, char out[DEVICE_TEXT_BYTES]);
/* Parses the text and checks the computer. A device that was named and is unavailable is a fault,
 * whose text states what is missing and the remedy: RV_E_NOTFOUND, RV_E_UNSUPPORTED, RV_E_RANGE. */
enum rv_err device_choose(const char *text, struct device_choice *out, struct rv_errtext *et);
/* Opens backend i of [0, n). Threads of the CPU (options->threads, 0: all) are divided among n. The
 * faults of backend_open. */
enum rv_err device_open(const struct device_choice *c, int i, const struct backend_options *options,
						struct backend **out, struct rv_errtext *et);
/* Returns true if there is a GPU; unlike device_choose it allocates nothing on it. */
bool device_has_gpu(void);
/* Returns one line about the libraries that a GPU is used with (kernels/plugin.h), for the log;
 * NULL if `c` has none. */
const char *device_libraries(const struct device_choice *c);
/* Returns the free memory of the device that has least, in bytes; SIZE_MAX for the host's
 * memory. */
size_t device_free_bytes(const struct device_choice *c);

#endif
