/* eager.h: outer steps that come one whole round late, and what a worker does meanwhile: the
 * exchange of round r hides behind all inner steps of round r + 1 (Kale, Douillard, Donchev: Eager
 * Updates For Overlapped Communication and Computation in DiLoCo, arXiv 2502.12996, algorithm 2). A
 * worker ends the steps of round t, makes the outer step of round t - 1, encodes its contribution
 * to round t, and begins round t + 1 from
 *
 *     delayed  theta(t), theta after the outer steps of rounds 0 to t - 1
 *     eager    theta(t) and one outer step of the worker's own, with share times its own outer
 *              gradient of round t
 *
 * The paper gives each worker outer weights and momentum of its own, stepped with d = D(t-1) +
 * share (own(t) - own(t-1)), D the mean over the workers. If the outer optimizer is linear in its
 * outer gradients, this equals the shared chain, which D drives one round late, plus a private one
 * that share (own(t) - own(t-1)) drives. The private one is the difference of two neighbours of the
 * chain that share own(t) drives; so it adds to theta just that chain's latest step, and a worker
 * stores only the optimizer's state of that chain: for Nesterov, with x = share own(t),
 *
 *     u <- mu u + x;    start <- theta(t) - lr (x + mu u)
 *
 * This holds in exact arithmetic; in floats the two differ by a few roundings
 * (tests/outer/test_outer_eager.c). With shares that add up to 1 the workers' steps together are
 * the outer step of round t that is under way; a worker alone makes all of it, so it is DiLoCo, to
 * the bit if the codec is fp32.
 *
 * So all workers share theta and the optimizer's state, bit for bit, with one history; struct eager
 * is a worker's own. Losing it costs a round's head start: it begins anew with eager_restart().
 *
 * One thread at a time. */
#ifndef RV_OUTER_EAGER_H
#define RV_OUTER_EAGER_H

#include "outer/global.h"

enum { EAGER_MAX_VECTORS = 2 };

struct eager {
	float share; /* part of the worker's own outer gradient; 0: delayed */
	/* Weights (n) that the inner steps of the contribution under way began from; NULL: off. */
	float *start;
	int n_states;                    /* states of the private chain; 0 if delayed */
	float *state[GLOBAL_MAX_STATES]; /* (n) each */
	float *scratch;                  /* (chunk_elems) */
};

/* Sets up what the run's updates and eager-share require, with start = theta0 (n). With updates =
 * waited it is off: no function below changes anything. RV_E_NOMEM; *e is then zero, and may be
 * released. */
enum rv_err eager_init(struct eager *e, const struct run_config *run, const struct global_config *g,
					   const float *theta0, struct rv_errtext *et);
void eager_release(struct eager *e);
bool eager_is_on(const struct eager *e);

/* Returns the reference of the outer gradient under way: `start`, or g's theta if `e` is off. */
const float *eager_reference(const struct eager *e, const struct global_state *g);
/* Returns `g` with the reference as its theta, for an encoder. Read-only. */
struct global_state eager_view(const struct eager *e, const struct global_state *g);

/* Begins the next contribution; that to round g->round is encoded. `start` becomes the weights that
 * its inner steps begin from; the caller replaces theta_local (n), where the last ones ended, by
 * it. Elementwise: the same bits everywhere. */
void eager_turn(struct eager *e, const struct global_state *g, const float *theta_local);
/* Moves values [at, at + n) of `start` by to - from (n each), as theta_local moves: the shared
 * weights changed, and the worker keeps progress that this round has not sent. */
void eager_shift(struct eager *e, size_t at, size_t n, const float *from, const float *to);
/* Starts over like a new worker: from theta (n), with a private chain of zeros. */
void eager_restart(struct eager *e, const struct global_config *g, const float *theta);
/* Lists the vectors that are part of a worker's state in `out`, and returns how many. */
int eager_vectors(const struct eager *e, float *out[EAGER_MAX_VECTORS]);

#endif
