/* version_3.c: linked into a worker and a coordinator for tests: they speak version 3 of the control plane and no later
 * one, as an earlier release did. (-Wl,--wrap=control_version) */
#include <stdint.h>

uint32_t __wrap_control_version(void);
uint32_t __wrap_control_version(void) {
	return 3;
}
