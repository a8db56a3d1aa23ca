/* eager.h: outer steps that come one whole round late, and what a worker does meanwhile: the exchange of round r has
 * all inner steps of round r + 1 to hide behind (Kale, Douillard, Donchev: Eager Updates For Overlapped Communication
 * and Computation in DiLoCo, arXiv 2502.12996, algorithm 2). A worker ends the steps of round t, makes the outer step
 * of round t - 1, encodes its contribution to round t, and begins round t + 1 from
 *
 *     delayed  theta(t)                                         theta(t): after the outer steps of rounds 0 to t - 1
 *     eager    theta(t) with one outer step of its own on top: share times its own outer gradient of round t
 *
 * The paper gives each worker outer weights and momentum of its own, stepped with d = D(t-1) + share (own(t) -
 * own(t-1)), D the mean over the workers. For an outer optimizer that is linear in its outer gradients this is the
 * same: the shared chain, which D drives one round late, plus a private one that share (own(t) - own(t-1)) drives. The
 * latter is the difference of two neighbours of the chain that share own(t) drives; so what it adds to theta is just
 * that chain's latest step, and all that a worker has to remember of it is the optimizer's state: for Nesterov, with x
 * = share own(t),
 *
 *     u <- mu u + x;    start <- theta(t) - lr (x + mu u)
 *
 * In exact arithmetic; in floats the two differ by a few roundings (tests/outer/test_outer_eager.c). With shares that
 * add up to 1 the workers' steps are together the outer step of round t that is under way; one worker alone has all of
 * it, so it is DiLoCo, to the bit where the codec is fp32.
 *
 * So theta and the optimizer's state stay what all workers share, bit for bit, with one history; what is in here is a
 * worker's own. Losing it costs a round's head start: it begins anew with eager_restart().
 *
 * One thread at a time. */
#ifndef RV_OUTER_EAGER_H
#define RV_OUTER_EAGER_H

#include "outer/global.h"

enum { EAGER_MAX_VECTORS = 2 };

struct eager {
	float share; /* 0: delayed */
	float *
		start; /* (n) what the inner steps of the contribution under way began from; NULL: outer steps are waited for */
	int n_states;                    /* of the private chain: none with delayed */
	float *state[GLOBAL_MAX_STATES]; /* (n) each */
	float *scratch;                  /* (chunk_elems) */
};

/* As the run's updates and eager-share say; with updates = waited it is off, and everything below but eager_reference()
 * does nothing. start = theta0 (n). RV_E_NOMEM; *e is then zero, and releasing it is fine. */
enum rv_err eager_init(struct eager *e, const struct run_config *run, const struct global_config *g,
					   const float *theta0, struct rv_errtext *et);
void eager_release(struct eager *e);
bool eager_is_on(const struct eager *e);

/* What the outer gradient under way is measured from: `start`, or where it is off g's theta. */
const float *eager_reference(const struct eager *e, const struct global_state *g);
/* g as one who encodes should see it: theta is the reference. Only to be read. */
struct global_state eager_view(const struct eager *e, const struct global_state *g);

/* The contribution to round g->round is encoded: `start` becomes what the inner steps of the next one begin from, and
 * theta_local (n), which was the end of this one's, is to be replaced by it. Elementwise: the same bits everywhere. */
void eager_turn(struct eager *e, const struct global_state *g, const float *theta_local);
/* The shared weights moved, and progress is kept that this round has not given away: `start` moves as theta_local
 * does. */
void eager_shift(struct eager *e, const struct global_config *g, const float *from, const float *to);
/* As one who has just come: from theta (n), with nothing of its own. */
void eager_restart(struct eager *e, const struct global_config *g, const float *theta);
/* The vectors that are part of a worker's state: how many. */
int eager_vectors(const struct eager *e, float *out[EAGER_MAX_VECTORS]);

#endif
