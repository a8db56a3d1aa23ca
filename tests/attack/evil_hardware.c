/* evil_hardware.c: an honest worker on other hardware: the backend of the patched worker computes
 * with other kernels, or rounds operands to bf16. What it does: evil.h. */
#include "tests/attack/evil.h"

#include "kernels/backend.h"

typedef enum rv_err open_fn(const char *name, const struct backend_options *opt, struct backend **out,
							struct rv_errtext *et);
open_fn __real_backend_open, __wrap_backend_open;

enum rv_err __wrap_backend_open(const char *name, const struct backend_options *opt, struct backend **out,
								struct rv_errtext *et) {
	struct backend_options o = *opt;
	double value;
	if (evil("portable", &value))
		o.isa = "portable";
	if (evil("bf16", &value))
		o.compute = value > 0 ? DTYPE_BF16 : DTYPE_F32;
	return __real_backend_open(name, &o, out, et);
}
