/* contribution.h: what a worker gives to a round: its outer gradient, with what the encodings of earlier rounds have
 * left (error feedback), encoded.
 *
 *     a = beta e + Delta        Delta^ = decode(encode(a))        e' = a - Delta^
 *
 * (error feedback: Seide et al. 2014; Karimireddy et al., arXiv 1901.09847; with beta: SparseLoCo, arXiv 2508.15706,
 * algorithm 1, where it stands for the outer momentum.) beta = run_config.error_feedback; 0: there is no e. All in
 * fp32, single correctly rounded operations. So Delta^ + e' = a, exactly: the codecs move no value by more than its
 * magnitude and by few enough bits that a - Delta^ is exact.
 *
 * The residual becomes e' when the round is committed with this contribution in its mean: contribution_commit(). Of a
 * round that was committed without it, or never, nothing was sent: e stays, and what to do with Delta is for the
 * caller's `late` policy, as without error feedback. So nothing is lost and nothing counts twice. Where the owners
 * scale a contribution down (merge.h) e' does not change: what they took is lost.
 *
 * One thread at a time. Each fragment of the vector has its own part of e: a round touches what it exchanges only.
 */
#ifndef RV_OUTER_CONTRIBUTION_H
#define RV_OUTER_CONTRIBUTION_H

#include "outer/global.h"

struct contribution {
	float beta;
	float *residual; /* e (n); NULL: no error feedback */
	float *next;     /* e' (n), of what round `encoded` exchanges */
	bool has_next;
	uint64_t encoded;
	float *scratch; /* (chunk_elems); NULL: no error feedback */
};

/* e = 0. RV_E_NOMEM; *c is then zero, and releasing it is fine. */
enum rv_err contribution_init(struct contribution *c, const struct run_config *run, const struct global_config *g,
							  struct rv_errtext *et);
void contribution_release(struct contribution *c);

/* The contribution is the outer gradient encoded, no more: global_encode_delta, or a device's version of it, will do.
 * */
bool contribution_is_plain(const struct contribution *c);
/* The contribution to `round`, from g's theta, into `out` (global_max_sent_bytes will do). theta_local (n). e does not
 * change, whatever happens: the same call gives the same bytes. RV_E_RANGE as global_encode_delta. */
enum rv_err contribution_encode(struct contribution *c, const struct global_state *g, uint64_t round,
								const float *theta_local, uint8_t *out, struct rv_errtext *et);
/* `round` is committed with it. Where it is not the one that was encoded last (another process did that), what was left
 * is not known, and what is at hand would count twice: e = 0 where the round exchanged something. */
void contribution_commit(struct contribution *c, const struct global_config *g, uint64_t round);
/* Nothing of the residual counts any more: e = 0. */
void contribution_forget(struct contribution *c, const struct global_config *g);

#endif
