/* version.h: the release of this program, and the git commit that it was built from. */
#ifndef RV_BASE_VERSION_H
#define RV_BASE_VERSION_H

/* Returns "0.1.0+f8c6bb4a1b2c" in the three programs, "0.1.0+f8c6bb4a1b2c-dirty" if tracked files
 * were changed, and "0.1.0" where the commit is unknown (a tarball without git) and in tests: only
 * programs link base/commit/commit.c, so that a commit rebuilds one file and links three programs.
 * A static string. */
const char *rv_version(void);

#endif
