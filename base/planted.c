/* planted.c: no bug is planted in a program that does not say otherwise. The simulator's own definition takes
 * precedence over this weak one. */
#include "base/planted.h"

#ifdef RV_PLANTED_BUGS
__attribute__((weak)) bool rv_planted_bug(const char *name) {
	(void)name;
	return false;
}
#endif
