/* planted.h: bugs planted on purpose, so that the simulator can prove that it would find such a one.
 *
 * RV_BUG("name") is true in a build with RV_PLANTED_BUGS when that bug was chosen at run time, and the constant false
 * in every other build. Only the protocol cores and the mesh use it. */
#ifndef RV_BASE_PLANTED_H
#define RV_BASE_PLANTED_H

#ifdef RV_PLANTED_BUGS
#include <stdbool.h>
/* Defined by the simulator: is `name` the chosen bug? */
bool rv_planted_bug(const char *name);
#define RV_BUG(name) rv_planted_bug(name)
#else
#define RV_BUG(name) 0
#endif

#endif
