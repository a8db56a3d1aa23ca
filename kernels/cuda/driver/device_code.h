/* device_code.h: the plugin's kernels: machine code for each kind of card, and PTX for newer ones,
 * as bytes in the plugin (made by compile.py), loaded by the driver.
 *
 * A unit is one .cu file. Its kernels have the names that C++ has for them, such as
 * `norm_forward_kernel<access<float, 4> >`, under which the host's code asks for them
 * (host_pass.cuh), and those that the machine code has. */
#ifndef RV_CUDA_DRIVER_DEVICE_CODE_H
#define RV_CUDA_DRIVER_DEVICE_CODE_H

#include "base/err.h"
#include "kernels/cuda/driver/driver.h"

#include <stdbool.h>

struct code_image {
	int capability;             /* 90: compute capability 9.0; of PTX the least */
	bool is_ptx;                /* for newer cards, compiled by their driver */
	const unsigned char *bytes; /* PTX ends with a 0 */
};

struct code_name {
	const char *asked, *lowered;
};

struct code_unit {
	const char *name;                /* "norm.cu" */
	const struct code_image *images; /* ascending capabilities, PTX last; up to one without bytes */
	const struct code_name *names;   /* up to one without `asked` */
};

/* All units, up to NULL: made by compile.py. */
extern const struct code_unit *const code_units[];
enum { CODE_UNITS_MAX = 32 };

/* Loads all units on a device: before its first launch. A second call does nothing.
 * RV_E_UNSUPPORTED: no image for this card, or the driver refuses one. Any thread. */
enum rv_err device_code_load(int device, struct rv_errtext *et);
/* Unloads them, where they are loaded: nothing is launched any longer. */
void device_code_unload(int device);

#endif
