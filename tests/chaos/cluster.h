/* cluster.h: a coordinator and some workers, all with failpoints, as real processes
 * (tests/e2e/e2e.h); their logs are followed as they grow, and what must hold at any time is
 * asserted as it is read:
 *   - all workers that saw a round committed have the same chain after it;
 *   - nobody reports a state, a document or a fetch that was wrong;
 *   - no process ends but those that are expected to.
 * Faults end the process with a text (CMocka's fail_msg outside a test). */
#ifndef TESTS_CHAOS_CLUSTER_H
#define TESTS_CHAOS_CLUSTER_H

#include "tests/chaos/mean_check.h"
#include "tests/e2e/e2e.h"

/* PATIENCE_S: only a hang takes so long. */
enum { CLUSTER_MAX_WORKERS = 8, CLUSTER_MAX_ROUNDS = 1024, CLUSTER_PATIENCE_S = 180 };

/* What a process' log has told so far. */
struct cluster_log {
	long offset;            /* bytes */
	int64_t round, attempt; /* of the last such event; -1: none since it was started */
	bool took_part;         /* since it was started: in an all-reduce whose commit it saw */
	bool fetched;           /* since it was started */
	bool disk_fails;        /* so it may complain of its storage */
	int hits;               /* failpoints reached */
	double hit_s;           /* when, the last of them */
};

struct cluster {
	struct e2e e;
	int n;
	int64_t rounds;
	int64_t gate; /* no worker trains this round (e2e_gate_at) */
	struct cluster_log workers[CLUSTER_MAX_WORKERS], coordinator;
	uint32_t may_end; /* workers that are expected to: a set */
	char dumps[E2E_PATH];
	char chains[CLUSTER_MAX_ROUNDS + 1][65];
};

struct cluster_run {
	int64_t rounds;
	int64_t overlap;   /* overlap-steps; a round has 3 */
	int64_t fragments; /* 1 or 2 */
	bool eager;        /* updates = eager, without the two */
	int64_t row_size;  /* 0: one row */
};
/* Everything runs, and two rounds are committed. */
void cluster_open(struct cluster *c, int n, const struct cluster_run *run);
void cluster_close(struct cluster *c);

/* `env`: NULL or "RIVULET_FAILPOINT=..."; does not wait. */
void cluster_start_worker(struct cluster *c, int i, const char *env);
void cluster_kill_worker(struct cluster *c, int i); /* nothing when it does not run */
void cluster_start_coordinator(struct cluster *c, const char *env);
void cluster_kill_coordinator(struct cluster *c);

/* A loop that waits: for (struct patience p = patience_for(c, "what"); !condition;
 * patience_wait(&p)) ; */
struct patience {
	struct cluster *c;
	const char *what;
	double until_s;
};
struct patience patience_for(struct cluster *c, const char *what);
/* Sleeps a little and reads the logs; fails when it has lasted too long. */
void patience_wait(struct patience *p);

/* The highest round that anybody but worker `except` (-1: nobody) has seen committed. */
int64_t cluster_round(const struct cluster *c, int except);
/* All workers but `except` see this round committed. */
void cluster_wait_round(struct cluster *c, int64_t round, int except);
void cluster_wait_takes_part(struct cluster *c, int i);

/* Waits for the end of the run: every worker ended with status 0 at the same state; the coordinator
 * is stopped; every committed round was the mean of its recorded participants, what workers saw
 * committed is in the store, and what they hold on their disks is bounded. */
void cluster_finish(struct cluster *c, struct mean_check *mean);

double cluster_now_s(void); /* since 1970, as the logs */

#endif
