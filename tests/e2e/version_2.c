/* version_2.c: linked into a worker and a coordinator for tests: they also speak version 2 of the
 * control plane, as a later release will. (-Wl,--wrap=control_version) */
#include <stdint.h>

uint32_t __wrap_control_version(void);
uint32_t __wrap_control_version(void) {
	return 2;
}
