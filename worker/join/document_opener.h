/* document_opener.h: documents as they arrive, whole or as patches of those before
 * (net/control/patch.h): makes them whole and checks the run's signature. */
#ifndef RV_WORKER_JOIN_DOCUMENT_OPENER_H
#define RV_WORKER_JOIN_DOCUMENT_OPENER_H

#include "net/control/patch.h"
#include "net/identity.h"

#include <stdbool.h>

/* Zero but for the key at first; any thread, one at a time. */
struct document_opener {
	uint8_t serving_key[NET_KEY_BYTES]; /* must have signed what is opened; may change between two calls */
	struct patch_base base;             /* of the last document that was opened; empty: none, or the last one failed */
	struct patch_tools tools;
	uint8_t whole[IDENTITY_SIGNED_MAX_BYTES]; /* signature | document, of a patch */
};

void document_opener_release(struct document_opener *o);
/* Opens `in`: signature | document, or signature | patch. *bytes is the document, borrowed until
 * the next call. After a fault the next one must be whole. RV_E_AUTH, RV_E_INVALID, RV_E_NOMEM. */
enum rv_err document_opener_open(struct document_opener *o, bool is_patch, const uint8_t *in, size_t n_in,
								 const uint8_t **bytes, size_t *n, struct rv_errtext *et);

#endif
