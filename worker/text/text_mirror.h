/* text_mirror.h: where a copy of a published text is: an http or https URL of its directory, or
 * s3://BUCKET/PREFIX in an S3-compatible object store.
 *
 * An object store is asked at AWS_ENDPOINT_URL of the environment, or at Amazon's of AWS_REGION.
 * The keys of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN) sign
 * requests to AWS_ENDPOINT_URL only: a manifest that a stranger wrote must not make a worker show
 * its keys to a store that its owner never named. */
#ifndef RV_WORKER_TEXT_TEXT_MIRROR_H
#define RV_WORKER_TEXT_TEXT_MIRROR_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { TEXT_URL_BYTES = 1024, TEXT_KEY_BYTES = 512, TEXT_TOKEN_BYTES = 4096 };

/* Settings of object stores, from the environment; "": not set. */
struct text_keys {
	char endpoint[TEXT_URL_BYTES], region[64];
	char id[TEXT_KEY_BYTES], secret[TEXT_KEY_BYTES], token[TEXT_TOKEN_BYTES];
};
/* Reads the environment. RV_E_RANGE: a value is too long; RV_E_INVALID: AWS_ENDPOINT_URL is no http
 * or https URL. */
enum rv_err text_keys_read(struct text_keys *out, struct rv_errtext *et);

struct text_mirror {
	char url[TEXT_URL_BYTES]; /* http or https, without a slash at the end */
	bool is_signed;           /* with the keys */
	bool is_own;              /* at an address that the owner named: it may be a private one */
	bool is_store;            /* object stores are not followed elsewhere */
};
/* Reads a URL. RV_E_INVALID: neither of the three, or with a query, a fragment or bytes to be
 * quoted. RV_E_RANGE: too long. */
enum rv_err text_mirror_parse(const char *text, const struct text_keys *keys, struct text_mirror *out,
							  struct rv_errtext *et);

/* Reads the value of a Content-Range line (RFC 9110 section 14.4). Returns false if it is not one
 * of bytes. *total is UINT64_MAX for an unknown one. */
bool text_content_range(const char *value, uint64_t *first, uint64_t *last, uint64_t *total);

#endif
