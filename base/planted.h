/* planted.h: bugs planted on purpose, to prove that the simulator finds them.
 *
 * RV_BUG("name") is true in a build with RV_PLANTED_BUGS when that bug was chosen at run time, and
 * the constant false in every other build. Only the protocol cores and the mesh use it. */
#ifndef RV_BASE_PLANTED_H
#define RV_BASE_PLANTED_H

#ifdef RV_PLANTED_BUGS
#include <stdbool.h>
/* Returns true if `name` is the chosen bug. The simulator defines it. */
bool rv_planted_bug(const char *name);
#define RV_BUG(name) rv_planted_bug(name)
#else
#define RV_BUG(name) 0
#endif

#endif
