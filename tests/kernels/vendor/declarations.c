/* declarations.c: NVIDIA's header (VENDOR_HEADER) held against the list of what is called of the
 * library (VENDOR_LIST): every value, size, offset and function type. kernels/cuda/vendor/ checks
 * its own types against the same list when it is compiled, so a file that compiles here has
 * declarations that are NVIDIA's. Never linked. */
#include VENDOR_HEADER
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/vendor/check_types.h"
#define VENDOR_VALUE(name, value) _Static_assert((name) == (value), #name);
#define VENDOR_FUNCTION(result, name, parameters)                                                                      \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), result parameters), #name);
#include VENDOR_LIST
