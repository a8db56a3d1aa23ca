/* contribution.h: a worker's contribution to a round: its outer gradient, plus the remainder of the
 * encodings of earlier rounds (error feedback), encoded.
 *
 *     a = beta e + Delta        Delta^ = decode(encode(a))        e' = a - Delta^
 *
 * (outer/feedback.h; SparseLoCo, arXiv 2508.15706, algorithm 1, where it replaces the outer
 * momentum.) beta = run_config.error_feedback; 0: there is no e. Delta^ + e' = a, exactly.
 *
 * The residual e becomes e' when the round is committed with this contribution in its mean:
 * contribution_commit(). If the round is committed without it, or never, nothing was sent: e stays,
 * and the caller's `late` policy decides about Delta, as without error feedback. So nothing is lost
 * and nothing counts twice. A member with a slow line may send a coarser encoding of Delta^, or a
 * part of its chunks (base/slow_lines.h): e' is then what that left of a; without error feedback it
 * is lost. If the owners scale a contribution down (merge.h), e' does not change: what they took
 * off is lost.
 *
 * One thread at a time. Each fragment of the vector has its own part of e: a round changes only the
 * part that it exchanges. */
#ifndef RV_OUTER_CONTRIBUTION_H
#define RV_OUTER_CONTRIBUTION_H

#include "outer/global.h"

/* How a contribution was sent: zeros are as it was encoded, all of it. */
struct contribution_form {
	uint32_t member; /* its sender */
	uint8_t codec;   /* id of the codec of what was sent; 0: the run's */
	uint8_t part;    /* every k-th chunk (slow_contributes); 0: all */
};

struct contribution {
	float beta;
	float *residual; /* e (n); NULL: no error feedback */
	float *next;     /* e' (n), of the part that round `encoded` exchanges */
	bool has_next;
	uint64_t encoded;
	float *scratch; /* (chunk_elems); NULL: no error feedback */
	uint8_t *bytes; /* (chunk_elems floats); NULL: no error feedback */
};

/* Sets e = 0. RV_E_NOMEM; *c is then zero, and may be released. */
enum rv_err contribution_init(struct contribution *c, const struct run_config *run, const struct global_config *g,
							  struct rv_errtext *et);
void contribution_release(struct contribution *c);

/* Returns true if the contribution is only the encoded outer gradient, which global_encode_delta,
 * or a device's version of it, can make. */
bool contribution_is_plain(const struct contribution *c);
/* Encodes the contribution to `round`, from g's theta and theta_local (n), into `out` (of at most
 * global_max_sent_bytes). e never changes: the same call gives the same bytes. RV_E_RANGE as
 * global_encode_delta. */
enum rv_err contribution_encode(struct contribution *c, const struct global_state *g, uint64_t round,
								const float *theta_local, uint8_t *out, struct rv_errtext *et);
/* Replaces e by e': `round` is committed with the contribution, `encoded`, sent in that form. If it
 * is not the round encoded last (another process encoded it), the remainder is unknown, and the old
 * e would count twice: e = 0 for the part that the round exchanged. */
void contribution_commit(struct contribution *c, const struct global_config *g, uint64_t round, const uint8_t *encoded,
						 const struct contribution_form *form);
/* Discards the residual: e = 0. */
void contribution_forget(struct contribution *c, const struct global_config *g);

#endif
