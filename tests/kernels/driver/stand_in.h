/* stand_in.h: a libcuda.so.1 for machines that have none, which does what the documentation of the
 * driver's API says of the calls in kernels/cuda/vendor/driver.def, for one card. Device memory is
 * the host's; copies are done at once; kernels are looked for and checked, and not run.
 *
 * RIVULET_STAND_IN_CAPABILITY (default 90) is the card's compute capability,
 * RIVULET_STAND_IN_DRIVER (default 12000) what cuDriverGetVersion says. A module is refused unless
 * it is a cubin for that card or PTX that is not newer; a kernel that is not in it is not found; a
 * launch is refused whose grid, block or shared memory the card does not have. */
#ifndef RV_TESTS_KERNELS_DRIVER_STAND_IN_H
#define RV_TESTS_KERNELS_DRIVER_STAND_IN_H

struct stand_in_counts {
	int modules, ptx_modules, unloaded;
	int contexts;                 /* that are not released */
	int launches, functions;      /* functions: kernels that were looked for */
	int captured, graph_launches; /* launches in captures */
	int refusals;                 /* of modules, kernels and launches */
	int allocations;              /* that are not freed */
	int spins, sleeps;            /* waits of a thread that spins, and of one that sleeps */
};
typedef struct stand_in_counts stand_in_count_fn(void); /* the symbol stand_in_count */

#endif
