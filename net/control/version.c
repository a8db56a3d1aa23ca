/* version.c: which versions of the control plane this program speaks. A file of its own, so that a
 * test can link a program that speaks the next one. */
#include "net/control/control.h"

uint32_t control_version(void) {
	return CONTROL_VERSION;
}
