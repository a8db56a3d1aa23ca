/* commit.c: the version with the commit; see base/version.h. The only file that includes
 * rv_commit.h, which every build checks and rewrites when it changed (write_commit.cmake). */
#include "base/version.h"

#include "rv_commit.h"

const char *rv_version(void) {
	return RV_VERSION RV_COMMIT;
}
