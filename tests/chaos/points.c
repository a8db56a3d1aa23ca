/* points.c: see points.h. */
#include "tests/chaos/points.h"
#include "tests/common/check.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	ENV_BYTES = 128,
	GO_ON_ROUNDS = 2,
	AGAIN_ROUNDS = 4,
	EXITED_KILLED = 128 + SIGKILL,
	FROZEN_MS = 3000,
	NO_WORKER = -1
};

/* ---- the jobs ---- */

/* What is not WAY_ROUND, second time. A name that ends with '.' stands for all that begin with
 * it. */
static const struct {
	const char *name;
	enum point_way way;
	int hit;
} special[] = {
	{"join.", WAY_JOIN, 1},
	{"member.", WAY_JOIN, 1},
	{"member-record.", WAY_JOIN, 1},
	{"run.", WAY_JOIN, 1},
	{"recover.", WAY_ROUND, 1},
	{"document.received", WAY_ROUND, 5},
	{"train.step", WAY_ROUND, 5},
	{"reduce.chunk-reduced", WAY_ROUND, 12},
	{"reduce.resume", WAY_RESUME, 1},
	{"snapshot.", WAY_ROUND, 1},
	{"snapshot-record.", WAY_ROUND, 1},
	{"seq-record.", WAY_ROUND, 1},
	{"prune.", WAY_ROUND, 1},
	{"fetch.", WAY_LOG, 1},
	{"install.", WAY_SNAPSHOT, 1},
	{"leave.", WAY_LEAVE, 1},
	{"export.", WAY_END, 1},
	{"report.", WAY_ROUND, 30},
	{"document.before", WAY_ROUND, 20},
	{"document.after", WAY_ROUND, 20},
	{"token.", WAY_INVITE, 1},
	{"copy.", WAY_BACKUP, 1},
};

/* What is more than a kill. */
static const struct {
	const char *name;
	enum point_loss loss;
} more[] = {
	{"train.step", LOSS_STOP},
	{"reduce.scatter-mid", LOSS_STOP},
	{"reduce.gather-mid", LOSS_STOP},
	{"log.before-fsync", LOSS_STOP},
	{"vote.before", LOSS_STOP},
	{"apply.before", LOSS_STOP},
	{"commit-record.durable", LOSS_STOP},
	{"document.before", LOSS_STOP},
	{"log.begin", LOSS_FULL},
	{"log.before-fsync", LOSS_FULL},
	{"replica.before-fsync", LOSS_FULL},
	{"snapshot.before-fsync", LOSS_FULL},
	{"log.after-fsync", LOSS_IO},
	{"replica.begin", LOSS_IO},
	{"snapshot.after-fsync", LOSS_IO},
};

static bool is_named(const char *name, const char *pattern) {
	size_t n = strlen(pattern);
	return pattern[n - 1] == '.' ? strncmp(name, pattern, n) == 0 : strcmp(name, pattern) == 0;
}

static struct point_job job_of(const struct rv_failpoint_info *p, enum point_loss loss) {
	struct point_job job = {.point = p, .way = WAY_ROUND, .hit = 2, .loss = loss};
	for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
		if (is_named(p->name, special[i].name)) {
			job.way = special[i].way;
			job.hit = special[i].hit;
		}
	return job;
}

/* Rounds that are taken back are another test's (tests/e2e/test_e2e_rollback_killed.c): here every
 * round has one mean. */
static bool is_elsewhere(const struct rv_failpoint_info *p) {
	return strncmp(p->name, "rollback", strlen("rollback")) == 0;
}

int points_all(struct point_job *out, int cap) {
	int n = 0;
	for (const struct rv_failpoint_info *p = rv_failpoints; p->name != NULL && n < cap; p++)
		if (!is_elsewhere(p))
			out[n++] = job_of(p, LOSS_KILL);
	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
		for (const struct rv_failpoint_info *p = rv_failpoints; p->name != NULL && n < cap; p++)
			if (strcmp(p->name, more[i].name) == 0)
				out[n++] = job_of(p, more[i].loss);
	return n;
}

static bool is_of_worker(const struct point_job *job) {
	return strcmp(job->point->program, "worker") == 0;
}

static void plan_of(const struct point_job *job, char out[ENV_BYTES]) {
	static const char *const actions[] = {
		[LOSS_KILL] = "kill", [LOSS_STOP] = "stop", [LOSS_FULL] = "ENOSPC", [LOSS_IO] = "EIO"};
	assert_in_range(
		snprintf(out, ENV_BYTES, "RIVULET_FAILPOINT=%s@%d=%s", job->point->name, job->hit, actions[job->loss]), 1,
		ENV_BYTES - 1);
}

/* ---- a worker is brought to its point ---- */

/* Its state, but not its membership. */
static void remove_state(const struct cluster *c, int i) {
	char dir[E2E_PATH];
	e2e_worker_dir(&c->e, i, dir);
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strncmp(e->d_name, "snapshot-", 9) == 0 || strncmp(e->d_name, "log-", 4) == 0 ||
			strncmp(e->d_name, "replica", 7) == 0)
			assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
	closedir(d);
}

/* The victim runs with its plan, and what makes it go there is under way. */
static void arm_worker(struct cluster *c, const struct point_job *job, int victim, const char *plan) {
	cluster_kill_worker(c, victim);
	if (job->way == WAY_JOIN)
		e2e_renew_worker(&c->e, victim);
	if (job->way == WAY_LOG || job->way == WAY_SNAPSHOT)
		cluster_wait_round(c, cluster_round(c, victim) + GO_ON_ROUNDS, victim);
	if (job->way == WAY_SNAPSHOT)
		remove_state(c, victim);
	cluster_start_worker(c, victim, plan);
	if (job->way == WAY_LEAVE) {
		cluster_wait_takes_part(c, victim);
		process_signal(&c->e.workers[victim], SIGTERM);
	}
}

/* WAY_RESUME: a worker that dies in the all-reduce that the victim is in. */
static void lose_another(struct cluster *c, int victim, int other) {
	cluster_wait_takes_part(c, victim);
	cluster_kill_worker(c, other);
	c->may_end |= 1u << other;
	cluster_start_worker(c, other, "RIVULET_FAILPOINT=reduce.scatter-mid@2=kill");
}

static void bring_back(struct cluster *c, int i) {
	c->may_end &= ~(1u << i);
	cluster_start_worker(c, i, NULL);
	cluster_wait_takes_part(c, i);
}

static void wait_for_hit(struct cluster *c, const struct cluster_log *l, int before, const char *name) {
	char what[96];
	snprintf(what, sizeof what, "%s is reached", name);
	for (struct patience p = patience_for(c, what); l->hits == before;)
		patience_wait(&p);
}

static void wait_killed(struct process *p) {
	assert_int_equal(process_wait(p), EXITED_KILLED);
}

/* Everybody else commits: the next round, and some more. When the first of them was: since the
 * point was reached. */
static double others_go_on(struct cluster *c, int victim, double hit_s) {
	int64_t from = cluster_round(c, NO_WORKER);
	cluster_wait_round(c, from + 1, victim);
	double recovered_s = cluster_now_s() - hit_s;
	cluster_wait_round(c, from + GO_ON_ROUNDS, victim);
	return recovered_s;
}

/* It has not died: it takes part again by itself. */
static void let_go_on(struct cluster *c, const struct point_job *job, int victim) {
	c->workers[victim].took_part = false;
	c->workers[victim].attempt = -1;
	if (job->loss == LOSS_STOP)
		process_signal(&c->e.workers[victim], SIGCONT);
	cluster_wait_takes_part(c, victim);
	c->may_end &= ~(1u << victim);
	c->workers[victim].disk_fails = false;
}

static void run_worker_point(struct cluster *c, const struct point_job *job, struct rv_rng *rng,
							 struct point_result *out) {
	int victim = (int)rv_rng_below(rng, (uint64_t)c->n), other = (victim + 1) % c->n;
	struct cluster_log *l = &c->workers[victim];
	int before = l->hits;
	char plan[ENV_BYTES];
	plan_of(job, plan);
	c->may_end |= 1u << victim;
	l->disk_fails = job->loss == LOSS_FULL || job->loss == LOSS_IO;
	arm_worker(c, job, victim, plan);
	if (job->way == WAY_RESUME)
		lose_another(c, victim, other);
	wait_for_hit(c, l, before, job->point->name);
	if (job->loss == LOSS_KILL)
		wait_killed(&c->e.workers[victim]);
	if (job->way == WAY_RESUME) {
		wait_killed(&c->e.workers[other]);
		bring_back(c, other);
	}
	out->recovered_s = others_go_on(c, victim, l->hit_s);
	if (job->loss == LOSS_KILL)
		bring_back(c, victim);
	else
		let_go_on(c, job, victim);
}

/* ---- the coordinator ---- */

static void operate(struct cluster *c, enum point_way way, int status) {
	char dir[E2E_PATH + 16], file[E2E_PATH + 16];
	snprintf(dir, sizeof dir, "%s/coordinator", c->e.dir);
	snprintf(file, sizeof file, "%s/backup", c->e.dir);
	if (way == WAY_INVITE)
		e2e_run(&c->e, "invite", (const char *[]){"rivulet-coordinator", "invite", "--dir", dir, NULL}, status);
	if (way == WAY_BACKUP)
		e2e_run(&c->e, "backup", (const char *[]){"rivulet-coordinator", "backup", "--dir", dir, file, NULL}, status);
}

static void wait_coordinator_lost(struct cluster *c, const struct point_job *job) {
	if (c->e.coordinator.pid == 0)
		return;
	if (job->loss == LOSS_KILL) {
		wait_killed(&c->e.coordinator);
		return;
	}
	nanosleep(&(struct timespec){.tv_sec = FROZEN_MS / 1000}, NULL);
	process_signal(&c->e.coordinator, SIGCONT);
}

/* Document numbers become durable when something is to be announced before anything else is: after
 * a start between two rounds, but not after one in the middle of an all-reduce. So where it goes on
 * without coming to the point, it is killed just after a commit and started again. */
static void wait_for_hit_or_start_again(struct cluster *c, const struct point_job *job, const char *plan, int before) {
	char what[96];
	snprintf(what, sizeof what, "%s is reached", job->point->name);
	int64_t from = cluster_round(c, NO_WORKER);
	for (struct patience p = patience_for(c, what); c->coordinator.hits == before; patience_wait(&p)) {
		if (job->way != WAY_ROUND || cluster_round(c, NO_WORKER) < from + AGAIN_ROUNDS)
			continue;
		cluster_wait_round(c, cluster_round(c, NO_WORKER) + 1, NO_WORKER);
		cluster_kill_coordinator(c);
		p = patience_for(c, what); /* and reads what it has said to its end */
		if (c->coordinator.hits > before)
			return;
		cluster_start_coordinator(c, plan);
		from = cluster_round(c, NO_WORKER);
	}
}

static void run_coordinator_point(struct cluster *c, const struct point_job *job, struct rv_rng *rng,
								  struct point_result *out) {
	static const int any_status = -1;
	int joiner = job->way == WAY_JOIN ? (int)rv_rng_below(rng, (uint64_t)c->n) : NO_WORKER;
	int before = c->coordinator.hits;
	char plan[ENV_BYTES];
	plan_of(job, plan);
	if (joiner != NO_WORKER) {
		cluster_kill_worker(c, joiner);
		e2e_renew_worker(&c->e, joiner);
	}
	cluster_kill_coordinator(c);
	cluster_start_coordinator(c, plan);
	if (joiner != NO_WORKER)
		cluster_start_worker(c, joiner, NULL);
	operate(c, job->way, any_status);
	wait_for_hit_or_start_again(c, job, plan, before);
	wait_coordinator_lost(c, job);
	if (job->loss == LOSS_KILL)
		cluster_start_coordinator(c, NULL);
	out->recovered_s = others_go_on(c, joiner, c->coordinator.hit_s);
	if (joiner != NO_WORKER)
		cluster_wait_takes_part(c, joiner);
	operate(c, job->way, 0);
}

/* ---- the two entrances ---- */

void point_run(struct cluster *c, const struct point_job *job, struct rv_rng *rng, struct point_result *out) {
	double start_s = cluster_now_s();
	if (is_of_worker(job))
		run_worker_point(c, job, rng, out);
	else
		run_coordinator_point(c, job, rng, out);
	out->seconds = cluster_now_s() - start_s;
}

void point_run_end(struct cluster *c, const struct point_job *job, struct rv_rng *rng, struct point_result *out) {
	double start_s = cluster_now_s();
	int victim = (int)rv_rng_below(rng, (uint64_t)c->n), before = c->workers[victim].hits;
	char plan[ENV_BYTES];
	plan_of(job, plan);
	c->may_end = UINT32_MAX;
	arm_worker(c, job, victim, plan);
	for (struct patience p = patience_for(c, "the last round"); c->workers[victim].hits == before;) {
		if (cluster_round(c, NO_WORKER) < c->rounds)
			p.until_s = cluster_now_s() + CLUSTER_PATIENCE_S;
		patience_wait(&p);
	}
	wait_killed(&c->e.workers[victim]);
	cluster_start_worker(c, victim, NULL);
	out->seconds = cluster_now_s() - start_s;
	out->recovered_s = 0;
}
