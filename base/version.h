/* version.h: which program this is: the release, and the git commit that it was built from. */
#ifndef RV_BASE_VERSION_H
#define RV_BASE_VERSION_H

/* Returns "0.1.0+f8c6bb4a1b2c" in the three programs, "0.1.0+f8c6bb4a1b2c-dirty" where tracked files were changed, and
 * "0.1.0" where no commit is known (a tarball without git) and in tests: only programs link base/commit/commit.c, so
 * that a commit rebuilds one file and links three programs. A static string. */
const char *rv_version(void);

#endif
