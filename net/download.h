/* download.h: fetches one file from the web, once: resumed, verified, cached by its hash.
 *
 *     https://host/path#sha256=HEX    fetched into the cache directory unless it is there already
 *     https://host/path               the same without a check of its content: only TLS and the
 *                                     host's name protect it
 *     http://host/path#sha256=HEX     refused without a hash
 *     file:///abs/path, path          not copied: download() returns the path
 *
 * A running download is NAME.part in the cache; a later call continues it (HTTP Range, RFC 9110
 * section 14). The whole file is hashed before it gets its name, so a file with a name is right.
 * Blocks; used before training starts. Certificates and proxies are the system's, as for any
 * download. */
#ifndef RV_NET_DOWNLOAD_H
#define RV_NET_DOWNLOAD_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DOWNLOAD_PATH_BYTES = 512 };

struct download_config {
	const char *cache_dir; /* created if missing */
	uint64_t max_bytes;    /* a longer file is refused; 0: 64 GiB */
	int64_t stall_ms;      /* less than 1 KiB/s during this time is a timeout; 0: 30 s */
	int attempts;          /* how often a cut transfer is resumed without a pause; 0: 5 */
	/* Reports progress, about once a second; total 0: unknown. Returning false stops
	 * (RV_E_CANCELLED; the part stays). May be NULL. */
	bool (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
	void *ctx;
};

/* Returns true if `source` must be fetched (http, https); the other forms need no network. */
bool download_is_remote(const char *source);

/* Fetches `source` and sets `path` to the file. RV_E_INVALID (source), RV_E_NOTFOUND, RV_E_CORRUPT
 * (the hash differs: the text gives both; nothing is kept), RV_E_RANGE (too long), RV_E_TIMEOUT,
 * RV_E_CLOSED, RV_E_IO, RV_E_FULL, RV_E_CANCELLED. */
enum rv_err download(const struct download_config *cfg, const char *source, char path[DOWNLOAD_PATH_BYTES],
					 struct rv_errtext *et);

#endif
