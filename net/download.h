/* download.h: one file from the web, once: resumed, verified, cached by its hash.
 *
 *     https://host/path#sha256=HEX    fetched into the cache directory unless it is there already
 *     https://host/path               the same without the check of its content: TLS and the host's name must do
 *     http://host/path#sha256=HEX     refused without a hash
 *     file:///abs/path, path          not copied: the path is given back
 *
 * While it runs the cache holds NAME.part; a later call goes on from there (HTTP Range, RFC 9110 section 14). The whole
 * file is hashed before it gets its name, so what has a name is right. Blocks; used before training starts.
 * Certificates and proxies are the system's, as for any download.
 */
#ifndef RV_NET_DOWNLOAD_H
#define RV_NET_DOWNLOAD_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DOWNLOAD_PATH_BYTES = 512 };

struct download_config {
	const char *cache_dir; /* made when missing */
	uint64_t max_bytes;    /* a longer file is refused; 0: 64 GiB */
	int64_t stall_ms;      /* less than 1 KiB/s for so long is a timeout; 0: 30 s */
	int attempts;          /* how often a cut transfer is resumed, at once; 0: 5 */
	/* Called every so often; total 0: unknown. False: stop (RV_E_CANCELLED; the part stays). NULL: not wanted. */
	bool (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
	void *ctx;
};

/* True when `source` must be fetched (http, https): the others need no network. */
bool download_is_remote(const char *source);

/* *path: where the bytes are. RV_E_INVALID (source), RV_E_NOTFOUND, RV_E_CORRUPT (its hash is another: the text gives
 * both; nothing is kept), RV_E_RANGE (too long), RV_E_TIMEOUT, RV_E_CLOSED, RV_E_IO, RV_E_FULL, RV_E_CANCELLED. */
enum rv_err download(const struct download_config *cfg, const char *source, char path[DOWNLOAD_PATH_BYTES],
					 struct rv_errtext *et);

#endif
