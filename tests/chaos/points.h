/* points.h: what is done with one failpoint in a running cluster, and what must be true
 * afterwards. */
#ifndef TESTS_CHAOS_POINTS_H
#define TESTS_CHAOS_POINTS_H

#include "base/failpoint.h"
#include "base/rng.h"
#include "tests/chaos/cluster.h"

/* How a process is brought to a point. */
enum point_way {
	WAY_ROUND,    /* it gets there by itself, round after round */
	WAY_JOIN,     /* somebody new joins */
	WAY_LOG,      /* a worker comes back after some rounds */
	WAY_SNAPSHOT, /* a worker comes back without its state */
	WAY_LEAVE,    /* a worker gets SIGTERM */
	WAY_RESUME,   /* another worker dies in the middle of the same all-reduce */
	WAY_END,      /* the run ends */
	WAY_INVITE,   /* the operator makes an invite */
	WAY_BACKUP,   /* the operator makes a backup */
};

enum point_loss {
	LOSS_KILL, /* SIGKILL, and a fresh start when the others have gone on */
	LOSS_STOP, /* SIGSTOP, and SIGCONT then */
	LOSS_FULL, /* its disk is full this once; it stays */
	LOSS_IO    /* the same: its disk fails (EIO) */
};

/* One thing to try: a point, and what happens there. */
struct point_job {
	const struct rv_failpoint_info *point;
	enum point_way way;
	int hit; /* which time it is reached */
	enum point_loss loss;
};

struct point_result {
	double seconds;     /* in all */
	double recovered_s; /* from the point to the next commit that all others have seen */
};

/* Kill jobs for all points in the order of the table, then others for some; returns how many. */
int points_all(struct point_job *out, int cap);

/* The process is lost there, the others go on, it comes back, takes part again. All but WAY_END.
 * Faults end the process. */
void point_run(struct cluster *c, const struct point_job *job, struct rv_rng *rng, struct point_result *out);
/* WAY_END: the same in the last round; cluster_finish comes next. */
void point_run_end(struct cluster *c, const struct point_job *job, struct rv_rng *rng, struct point_result *out);

#endif
