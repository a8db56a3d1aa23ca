/* patch.h: a document as a patch of those that its reader has: what changed between two documents
 * of a member is a few hundred bytes of several thousand.
 *
 * Both ends keep the same bytes, the base: the latest document that the reader has, and before it
 * the latest one of phase REDUCE, where the reader had that too (a roster is much like the one
 * before). A patch is a Zstandard frame (RFC 8878) that refers to the base as a raw prefix. Nothing
 * is trusted: lengths are bounded before anything is unpacked, and the reader checks the signature
 * of the document that comes out. No I/O. */
#ifndef RV_NET_CONTROL_PATCH_H
#define RV_NET_CONTROL_PATCH_H

#include "base/err.h"
#include "net/limits.h"

#include <stddef.h>
#include <stdint.h>

/* The base; zero: nothing is kept. */
struct patch_base {
	uint8_t *bytes; /* `before` bytes of a REDUCE document, then `last` bytes of the latest one */
	size_t before, last, cap;
};

void patch_base_release(struct patch_base *b);
/* Keep the encoded `document`: alone, as one that was sent whole; and as one that was sent as a
 * patch of this base. RV_E_NOMEM: then nothing is kept. */
enum rv_err patch_base_begin(struct patch_base *b, const uint8_t *document, size_t n, struct rv_errtext *et);
enum rv_err patch_base_follow(struct patch_base *b, const uint8_t *document, size_t n, struct rv_errtext *et);

/* The working memory of either end; zero at first. */
struct patch_tools {
	struct ZSTD_CCtx_s *maker;
	struct ZSTD_DCtx_s *taker;
};
void patch_tools_release(struct patch_tools *t);

/* Writes a patch that makes `document` of the base. *n_out: its bytes, at most `cap`. RV_E_RANGE:
 * there is no base, or the patch is longer; RV_E_NOMEM. */
enum rv_err patch_make(struct patch_tools *t, const struct patch_base *b, const uint8_t *document, size_t n,
					   uint8_t *out, size_t cap, size_t *n_out, struct rv_errtext *et);
/* Writes the document that a patch makes of the base. RV_E_INVALID: it is no patch of this base, or
 * of a document of more than `cap` bytes; RV_E_NOMEM. */
enum rv_err patch_apply(struct patch_tools *t, const struct patch_base *b, const uint8_t *patch, size_t n, uint8_t *out,
						size_t cap, size_t *n_out, struct rv_errtext *et);

#endif
