/* step_peer.h: one contestant of the step benchmark: a process that holds a model and does steps
 * when asked.
 *
 * It prints "ready" when the model stands, and behind it what it is: a version, for instance. Then
 * for every line "N" on its stdin it does N steps and prints "MEDIAN_MS MEDIAN_CPU_MS
 * PEAK_RSS_MIB", where CPU_MS is the processor time of all its threads; it ends when its stdin
 * does. */
#ifndef RV_BENCH_STEP_PEER_H
#define RV_BENCH_STEP_PEER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { STEP_PEER_MAX_ROUNDS = 64, STEP_PEER_ABOUT_BYTES = 120 };

/* Measures of a round. Processor time hardly grows because others use the machine too; but of more
 * than one thread it contains their waits for each other. */
enum step_clock { STEP_WALL, STEP_CPU, N_STEP_CLOCKS };

struct step_peer {
	pid_t pid;
	FILE *to, *from;
	double ms[N_STEP_CLOCKS][STEP_PEER_MAX_ROUNDS]; /* of each round */
	int n_rounds;
	double rss_mib;
	char about[STEP_PEER_ABOUT_BYTES]; /* what it said behind "ready" */
};

struct step_env {
	const char *name, *value; /* value NULL: unset. The list ends with name == NULL. */
};

/* Starts argv with the changed environment and waits until it is ready. Returns false if it is
 * missing; then nothing is left behind. */
bool step_peer_start(struct step_peer *p, char *const argv[], const struct step_env *env);
/* Runs one round of n steps; returns false if the process died. */
bool step_peer_round(struct step_peer *p, int n);
void step_peer_stop(struct step_peer *p);
/* Returns the median over the rounds. */
double step_peer_ms(const struct step_peer *p, enum step_clock clock);
/* Returns how many times as fast as `peer` p is: the median of the ratios of each round, so that
 * what slows both for a while changes nothing. Both have done as many rounds. */
double step_peer_ratio(const struct step_peer *p, const struct step_peer *peer, enum step_clock clock);

double step_median(double *x, int n);
/* Answers the protocol on stdin and `out`, calling step(ctx) for every step. Returns main's exit
 * status. */
int step_serve(FILE *out, void (*step)(void *ctx), void *ctx);

#endif
