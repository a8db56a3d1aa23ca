/* document_opener.c: see document_opener.h. */
#include "worker/join/document_opener.h"

#include <string.h>

void document_opener_release(struct document_opener *o) {
	patch_base_release(&o->base);
	patch_tools_release(&o->tools);
}

static enum rv_err open_whole(struct document_opener *o, const uint8_t *in, size_t n_in, const uint8_t **bytes,
							  size_t *n, struct rv_errtext *et) {
	RV_TRY(signed_open(o->serving_key, IDENTITY_DOCUMENT_DOMAIN, in, n_in, bytes, n, et));
	return patch_base_begin(&o->base, *bytes, *n, et);
}

static enum rv_err open_patch(struct document_opener *o, const uint8_t *in, size_t n_in, const uint8_t **bytes,
							  size_t *n, struct rv_errtext *et) {
	size_t made = 0;
	if (n_in < NET_SIG_BYTES)
		return rv_fail(et, RV_E_INVALID, "document: a patch of %zu bytes, at least %d", n_in, (int)NET_SIG_BYTES);
	memcpy(o->whole, in, NET_SIG_BYTES);
	RV_TRY(patch_apply(&o->tools, &o->base, in + NET_SIG_BYTES, n_in - NET_SIG_BYTES, o->whole + NET_SIG_BYTES,
					   sizeof o->whole - NET_SIG_BYTES, &made, et));
	RV_TRY(signed_open(o->serving_key, IDENTITY_DOCUMENT_DOMAIN, o->whole, NET_SIG_BYTES + made, bytes, n, et));
	return patch_base_follow(&o->base, *bytes, *n, et);
}

enum rv_err document_opener_open(struct document_opener *o, bool is_patch, const uint8_t *in, size_t n_in,
								 const uint8_t **bytes, size_t *n, struct rv_errtext *et) {
	enum rv_err e = (is_patch ? open_patch : open_whole)(o, in, n_in, bytes, n, et);
	if (e != RV_OK)
		patch_base_release(&o->base);
	return e;
}
