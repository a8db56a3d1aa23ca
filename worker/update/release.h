/* release.h: whether a newer release of Rivulet is there.
 *
 * A feed is a folder on the web, or on a disk, with the files of the newest release, SHA256SUMS
 * over them, and SHA256SUMS.minisig, whose trusted comment is "rivulet VERSION". Only what the
 * release key signed is believed; a server that keeps an old release can hide a new one, no
 * more. */
#ifndef RV_WORKER_UPDATE_RELEASE_H
#define RV_WORKER_UPDATE_RELEASE_H

#include "base/minisign.h"

#include <stdbool.h>
#include <stddef.h>

enum { RELEASE_NAME_BYTES = 200 };

struct release_version {
	int major, minor, patch;
};

/* A release, checked. release_free() frees it. */
struct release {
	char comment[RV_MINISIGN_COMMENT_BYTES]; /* "rivulet 0.2.0+0123456789ab"; safe to show */
	struct release_version version;
	char *sums; /* the lines of SHA256SUMS */
};

/* A file of a release. */
struct release_file {
	char sha256[65];
	char name[RELEASE_NAME_BYTES];
};

/* Reads "0.2.0", "0.2.0+COMMIT" or either behind "rivulet ". Returns false for another text. */
bool release_version_parse(const char *text, struct release_version *out);
/* Returns a negative number if a is older than b, 0 if they are the same: the commit does not
 * count. */
int release_version_compare(const struct release_version *a, const struct release_version *b);

/* Fetches the newest release of a feed (https://HOST/FOLDER, a folder's path) into a temporary
 * directory, checks it, and removes the files. Blocks, at most 30 s a file without progress.
 * RV_E_INVALID: the feed's address; RV_E_AUTH: not signed by `key`; RV_E_CORRUPT: signed, but
 * without a version; the faults of download() and rv_minisign_verify(). */
enum rv_err release_fetch(const char *feed, const struct rv_minisign_public *key, struct release *out,
						  struct rv_errtext *et);
void release_free(struct release *r);

/* Takes the next file of the release whose name begins with `prefix`; *at is r->sums before the
 * first. Returns false at the end. */
bool release_next_file(const char **at, const char *prefix, struct release_file *out);

#endif
