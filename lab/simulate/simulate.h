/* simulate.h: the share of a run's time that is computing, on a given line: data-parallel, DiLoCo,
 * Streaming DiLoCo, and sparse contributions gathered by everybody (SparseLoCo, arXiv 2508.15706).
 * Pure: no clock, no I/O, no allocation.
 *
 * The model is that of a step as a chain of layer nodes over one first-in-first-out line, as in
 * Streaming DiLoCo (arXiv 2501.18512, section 4.3 and table 4), whose simulator is unpublished;
 * tables.h compares with its figures.
 *
 *   Compute   A step of T seconds over L equal layers: L forward nodes, then for l = L..1 the
 *             backward of activations (not of layer 1) and of weights: 3 L - 1 nodes of T / (3 L -
 *             1) seconds.
 *   Payload   V = bits_per_value * n_params / L bits per layer. With N workers an all-reduce by
 *             reduce-scatter and all-gather sends 2 (N - 1) / N V from each (workers = 0: V, the
 *             papers' convention), which takes the line `overhead` times as long as that many bits
 *             alone. One half is contributions, the other means, which may have other bits per
 *             value. It receives as much as it sends: the slower direction of its line counts.
 *   Gather    Each worker sends its contribution once, to a store, and then receives those of the
 *             N - 1 others: V up, (N - 1) V down, one after the other, as nobody has a contribution
 *             before its author has sent it. That grows with N, an all-reduce does not.
 *   Line      W bits/s in each direction, one exchange after the other: an exchange of B bits that
 *             is ready at t occupies it from s = max(t + before, free) to s + B / W, and is
 *             complete at s + B / W + after. No line rate shortens before and after: see
 *             `latency_s` and `sync_s`.
 *   Schedule  A round is H steps, as in run.conf, and ends with an exchange. Data-parallel: H = 1,
 *             every layer. DiLoCo: every layer. Streaming: round r exchanges fragment r mod P,
 *             whose layers are p, p + P, p + 2 P ..., so each layer once in P rounds.
 *   Waiting   The next round takes its first `overlap` steps, then waits. Everything is complete
 *             before the next exchange begins, so the time of a round depends on its own fragment
 *             and the one before only, and the second cycle of P rounds is the steady state,
 *             exactly.
 *   Grain     Layerwise: a layer is sent as soon as its weight node is done, and waited for by its
 *             forward (the papers' simulator, and gradient buckets of data-parallel). Otherwise a
 *             fragment is one exchange, sent after the step and applied as a whole, as Rivulet
 *             does: an outer gradient does not exist before the optimizer's step.
 *
 * Utilisation is T / (mean wall time of a step). Not layerwise, a round takes (H - overlap) T +
 * max(overlap T, before + B / W + after).
 *
 * The terms of one Rivulet round beside B / W, each measured with real workers by
 * bench/utilisation.sh:
 *
 *   latency_s  one way. A round waits for 7 of them: the report that a worker is ready, the
 *              document with the roster, RESUME (what each already holds), scatter, gather, the
 *              vote, the document with the commit. Data-parallel needs only the exchange: 2. Rounds
 *              whose compute is shorter than 2 latencies wait for up to 2 more, as the report of
 *              the last one is still under way; that is not modelled, nor is TCP's slow start.
 *   sync_s     the rest, the same on every line: encoding, waiting for the slower worker, the
 *              coordinator's commit, the log's fsync, the outer step. Measured once, on an
 *              unlimited line.
 *   overhead   line time per payload byte, 1 being the bare rate: 1514 / 1448 for Ethernet, IPv4
 *              and TCP headers, 1.005 for TLS records and frames, 1.022 for the acknowledgements of
 *              data in the other direction, and the part that TCP leaves unused: 4 % between two
 *              workers; 13 to 25 % among more, where the flows of several senders meet before one
 *              receiver (plain TCP does the same there, bbr and cubic). simulate_overhead.
 *
 * Unused time of the line is not sent as bytes: a worker sends the payload and
 * SIMULATE_SENT_PER_PAYLOAD of frames, TLS records, handshakes and pings, counted at the sockets as
 * `bytes_sent` in metrics.jsonl is. */
#ifndef RV_LAB_SIMULATE_H
#define RV_LAB_SIMULATE_H

#include "base/err.h"

#include <stdbool.h>

enum simulate_method { SIMULATE_DDP, SIMULATE_DILOCO, SIMULATE_STREAMING, SIMULATE_GATHER, SIMULATE_METHODS };

enum { SIMULATE_MAX_LAYERS = 1024, SIMULATE_MAX_STEPS_PER_ROUND = 1000000, SIMULATE_MAX_WORKERS = 65536 };

struct simulate_run {
	enum simulate_method method;
	int layers;
	double n_params;
	double step_s;              /* compute of one inner step */
	int workers;                /* 0: an exchange sends the payload once; 1: nothing to send */
	int steps_per_round;        /* H; not read for data-parallel */
	int fragments;              /* P, streaming only: at most layers */
	int overlap_steps;          /* 0..H (layerwise: below H); 0 for other methods than streaming */
	double bits_per_value;      /* of a contribution */
	double mean_bits_per_value; /* 0: as bits_per_value; not for gather */
	double rate_bits_per_s;     /* of each worker's line, up, and down too unless: */
	double down_bits_per_s;     /* 0: as rate_bits_per_s. INFINITY: unlimited */
	double latency_s;           /* one way */
	double overhead;            /* >= 1 */
	double sync_s;              /* fixed part of an exchange; not for data-parallel */
	bool layerwise;
};

struct simulate_result {
	double utilisation;   /* share of the wall time that is compute, (0, 1] */
	double step_wall_s;   /* mean wall time of an inner step */
	double sent_per_step; /* mean bytes that one worker sends per inner step */
};

/* Returns "ddp", "diloco", "streaming" or "gather". */
const char *simulate_method_name(enum simulate_method m);

/* Returns the measured overhead: 1.12 for two workers, 1.25 for more. */
double simulate_overhead(int workers);

/* Bytes sent per payload byte among real workers: 1.005 to 1.013 measured
 * (tests/e2e/test_e2e_run). */
#define SIMULATE_SENT_PER_PAYLOAD 1.01

/* Checks a run's limits, in the option names of `rivulet simulate`. RV_E_RANGE. */
enum rv_err simulate_check(const struct simulate_run *r, struct rv_errtext *et);

/* Computes the result of a run that passes simulate_check. Time O(P), layerwise O(P L), whatever H
 * is. */
void simulate(const struct simulate_run *r, struct simulate_result *out);

/* Finds the lowest line rate, to a relative 1e-9, at which the utilisation is at least
 * `utilisation`, in (0, 1); the run's own rate is not read. RV_E_RANGE: not even an unlimited line
 * suffices (the text names its utilisation), or more than 1e18 bits/s. RV_E_INVALID: one worker,
 * which needs no line. */
enum rv_err simulate_solve_rate(const struct simulate_run *r, double utilisation, double *rate_bits_per_s,
								struct rv_errtext *et);

#endif
