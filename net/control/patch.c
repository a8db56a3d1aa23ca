/* patch.c: see patch.h. */
#include "net/control/patch.h"

#include "base/assert.h"
#include "net/control/control.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
	LEVEL = 3,
	WINDOW_LOG = 20, /* the longest base and the longest document, within a window */
	PHASE_AT = 8 + NET_RUN_ID_BYTES + 8
};
_Static_assert(3 * NET_MAX_DOCUMENT_BYTES <= 1 << WINDOW_LOG, "base and document fit into the window");

void patch_base_release(struct patch_base *b) {
	free(b->bytes);
	*b = (struct patch_base){0};
}

static bool is_roster(const uint8_t *document, size_t n) {
	return n > PHASE_AT && document[PHASE_AT] == RUN_REDUCE;
}

/* Sets the base to its first `before` bytes and the document. */
static enum rv_err put_last(struct patch_base *b, size_t before, const uint8_t *document, size_t n,
							struct rv_errtext *et) {
	if (before + n > b->cap) {
		uint8_t *bytes = realloc(b->bytes, before + n);
		if (bytes == NULL) {
			patch_base_release(b);
			return rv_fail(et, RV_E_NOMEM, "no memory for the document that patches refer to");
		}
		b->bytes = bytes;
		b->cap = before + n;
	}
	memcpy(b->bytes + before, document, n);
	b->before = before;
	b->last = n;
	return RV_OK;
}

enum rv_err patch_base_begin(struct patch_base *b, const uint8_t *document, size_t n, struct rv_errtext *et) {
	RV_ASSERT(n <= NET_MAX_DOCUMENT_BYTES);
	return put_last(b, 0, document, n, et);
}

enum rv_err patch_base_follow(struct patch_base *b, const uint8_t *document, size_t n, struct rv_errtext *et) {
	RV_ASSERT(n <= NET_MAX_DOCUMENT_BYTES);
	if (is_roster(document, n))
		return put_last(b, 0, document, n, et);
	if (!is_roster(b->bytes + b->before, b->last))
		return put_last(b, b->before, document, n, et);
	memmove(b->bytes, b->bytes + b->before, b->last);
	return put_last(b, b->last, document, n, et);
}

void patch_tools_release(struct patch_tools *t) {
	(void)ZSTD_freeCCtx(t->maker);
	(void)ZSTD_freeDCtx(t->taker);
	*t = (struct patch_tools){0};
}

static bool prepare_maker(struct patch_tools *t) {
	if (t->maker == NULL && (t->maker = ZSTD_createCCtx()) != NULL)
		(void)ZSTD_CCtx_setParameter(t->maker, ZSTD_c_compressionLevel, LEVEL);
	return t->maker != NULL;
}

enum rv_err patch_make(struct patch_tools *t, const struct patch_base *b, const uint8_t *document, size_t n,
					   uint8_t *out, size_t cap, size_t *n_out, struct rv_errtext *et) {
	if (b->last == 0)
		return rv_fail(et, RV_E_RANGE, "patch: there is no document to refer to");
	if (!prepare_maker(t) || ZSTD_isError(ZSTD_CCtx_refPrefix(t->maker, b->bytes, b->before + b->last)))
		return rv_fail(et, RV_E_NOMEM, "no memory for a patch of a document");
	size_t made = ZSTD_compress2(t->maker, out, cap, document, n);
	if (ZSTD_isError(made))
		return rv_fail(et, RV_E_RANGE, "patch: more than %zu bytes", cap);
	*n_out = made;
	return RV_OK;
}

/* Returns NULL, or the violated condition. */
static const char *patch_invalid(const struct patch_base *b, const uint8_t *patch, size_t n, size_t cap) {
	if (b->last == 0)
		return "there is no document that it refers to";
	unsigned long long whole = ZSTD_getFrameContentSize(patch, n);
	if (whole == ZSTD_CONTENTSIZE_ERROR || whole == ZSTD_CONTENTSIZE_UNKNOWN)
		return "not a Zstandard frame with a content size";
	return whole > cap ? "the document is too long" : NULL;
}

enum rv_err patch_apply(struct patch_tools *t, const struct patch_base *b, const uint8_t *patch, size_t n, uint8_t *out,
						size_t cap, size_t *n_out, struct rv_errtext *et) {
	const char *why = patch_invalid(b, patch, n, cap);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "patch: %s", why);
	if (t->taker == NULL && (t->taker = ZSTD_createDCtx()) == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a patch of a document");
	(void)ZSTD_DCtx_setParameter(t->taker, ZSTD_d_windowLogMax, WINDOW_LOG);
	(void)ZSTD_DCtx_refPrefix(t->taker, b->bytes, b->before + b->last);
	size_t made = ZSTD_decompressDCtx(t->taker, out, cap, patch, n);
	if (ZSTD_isError(made))
		return rv_fail(et, RV_E_INVALID, "patch: %s", ZSTD_getErrorName(made));
	*n_out = made;
	return RV_OK;
}
