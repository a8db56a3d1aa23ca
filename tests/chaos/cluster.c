/* cluster.c: see cluster.h. */
#include "tests/chaos/cluster.h"

#include "base/hex.h"
#include "base/rows.h"
#include "net/limits.h"
#include "tests/common/check.h"
#include "tests/e2e/ends.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define WORKER      "rivulet-worker-failpoint"
#define COORDINATOR "rivulet-coordinator-failpoint"
enum { POLL_MS = 20, EXITED_KILLED = 128 + SIGKILL, SNAPSHOT_EVERY = 4, ROUNDS_AHEAD = 60 };
/* What a worker may hold at the end: the snapshots that it keeps by default (2) and those that
 * documents named for joiners, the last one; the entries since the oldest of them, or those that
 * documents named. */
enum {
	SNAPSHOTS_MAX = 2 + NET_MAX_KEPT_SNAPSHOTS + 1,
	LOGS_MAX = NET_MAX_LOG_DIGESTS + (2 + 1) * SNAPSHOT_EVERY,
	DAMAGED_MAX = 4
};

double cluster_now_s(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- logs ---- */

static bool is_complaint(const char *event) {
	static const char *const bad[] = {"document", "old_store",   "install_failed", "apply_failed", "spoiled",
									  "failed",   "wrong_state", "unverified",     "storage"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (strcmp(event, bad[i]) == 0)
			return true;
	return false;
}

static void on_round(struct cluster *c, struct cluster_log *l, const json_t *j, const char *path) {
	int64_t round = e2e_int(j, "round");
	const char *chain = e2e_text(j, "chain");
	assert_in_range(round, 1, CLUSTER_MAX_ROUNDS);
	if (c->chains[round][0] == '\0')
		snprintf(c->chains[round], sizeof c->chains[round], "%s", chain);
	if (strcmp(c->chains[round], chain) != 0)
		fail_msg("%s: round %lld has another chain than another worker's", path, (long long)round);
	l->round = round;
	l->took_part = l->took_part || l->attempt == round - 1;
}

static void on_event(struct cluster *c, struct cluster_log *l, const json_t *j, const char *path) {
	const char *event = json_string_value(json_object_get(j, "event"));
	if (!event)
		return;
	if (is_complaint(event) && !(l->disk_fails && strcmp(event, "storage") == 0))
		fail_msg("%s: %s: %s", path, event, e2e_text(j, "text"));
	if (strcmp(event, "round") == 0 && json_object_get(j, "chain")) {
		on_round(c, l, j, path);
	} else if (strcmp(event, "attempt") == 0) {
		l->attempt = e2e_int(j, "round");
	} else if (strcmp(event, "fetch") == 0) {
		l->fetched = true;
	} else if (strcmp(event, "failpoint") == 0) {
		l->hits++;
		l->hit_s = e2e_time(j);
	}
}

/* The whole lines that are new. */
static void read_log(struct cluster *c, struct cluster_log *l, const char *path) {
	FILE *f = fopen(path, "rb");
	char *line = NULL;
	size_t cap = 0;
	if (!f)
		return;
	fseek(f, l->offset, SEEK_SET);
	for (ssize_t n; (n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n';) {
		l->offset += n;
		json_t *j = json_loads(line, 0, NULL);
		if (j)
			on_event(c, l, j, path);
		json_decref(j);
	}
	free(line);
	fclose(f);
}

/* Nobody gets far ahead of the slowest worker, dead or alive: the run is not over before it is
 * back, however long that takes, and however fast the others are. */
static void move_gate(struct cluster *c) {
	int64_t slowest = c->workers[0].round;
	for (int i = 1; i < c->n; i++)
		slowest = c->workers[i].round < slowest ? c->workers[i].round : slowest;
	if (c->gate != slowest + ROUNDS_AHEAD)
		e2e_gate_at(&c->e, c->gate = slowest + ROUNDS_AHEAD);
}

static void read_logs(struct cluster *c) {
	for (int i = 0; i < c->n; i++)
		read_log(c, &c->workers[i], c->e.workers[i].log);
	read_log(c, &c->coordinator, c->e.coordinator.log);
	move_gate(c);
}

/* ---- waiting ---- */

struct patience patience_for(struct cluster *c, const char *what) {
	read_logs(c);
	return (struct patience){c, what, cluster_now_s() + CLUSTER_PATIENCE_S};
}

/* A process that is gone, but is not expected to be. */
static void check_alive(struct cluster *c) {
	for (int i = 0; i < c->n; i++) {
		struct process *w = &c->e.workers[i];
		if (w->pid > 0 && !(c->may_end & 1u << i) && process_has_ended(w))
			fail_msg("worker %d ended unexpectedly; see %s", i, w->log);
	}
}

void patience_wait(struct patience *p) {
	nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000}, NULL);
	read_logs(p->c);
	check_alive(p->c);
	if (cluster_now_s() > p->until_s)
		fail_msg("%s: not within %d s", p->what, CLUSTER_PATIENCE_S);
}

int64_t cluster_round(const struct cluster *c, int except) {
	int64_t highest = 0;
	for (int i = 0; i < c->n; i++)
		if (i != except && c->workers[i].round > highest)
			highest = c->workers[i].round;
	return highest;
}

static bool have_seen(const struct cluster *c, int64_t round, int except) {
	for (int i = 0; i < c->n; i++)
		if (i != except && c->workers[i].round < round)
			return false;
	return true;
}

void cluster_wait_round(struct cluster *c, int64_t round, int except) {
	char what[64];
	snprintf(what, sizeof what, "round %lld committed by all others", (long long)round);
	int64_t last = 0;
	for (struct patience p = patience_for(c, what); !have_seen(c, round, except); patience_wait(&p)) {
		int64_t now = cluster_round(c, except);
		if (now > last) /* it goes on, however slow the machine is */
			p.until_s = cluster_now_s() + CLUSTER_PATIENCE_S;
		last = now;
	}
}

void cluster_wait_takes_part(struct cluster *c, int i) {
	char what[64];
	snprintf(what, sizeof what, "worker %d takes part again", i);
	for (struct patience p = patience_for(c, what); !c->workers[i].took_part;)
		patience_wait(&p);
}

/* ---- processes ---- */

void cluster_start_worker(struct cluster *c, int i, const char *env) {
	read_logs(c);
	c->workers[i].attempt = -1;
	c->workers[i].took_part = c->workers[i].fetched = false;
	e2e_launch_worker_as(&c->e, i, WORKER, env);
}

void cluster_kill_worker(struct cluster *c, int i) {
	if (c->e.workers[i].pid == 0)
		return;
	process_signal(&c->e.workers[i], SIGKILL);
	assert_int_equal(process_wait(&c->e.workers[i]), EXITED_KILLED);
}

void cluster_start_coordinator(struct cluster *c, const char *env) {
	read_logs(c);
	c->e.coordinator_program = COORDINATOR;
	c->e.coordinator_env = env;
	e2e_start_coordinator(&c->e);
}

void cluster_kill_coordinator(struct cluster *c) {
	if (c->e.coordinator.pid == 0)
		return;
	process_signal(&c->e.coordinator, SIGKILL);
	assert_int_equal(process_wait(&c->e.coordinator), EXITED_KILLED);
}

/* Some 21,000 parameters in 82 chunks: every all-reduce has a first, a middle and a last one, of
 * fragments too. Who is lost is not waited for; who is slow is, so nobody is left behind at the
 * end. */
void cluster_open(struct cluster *c, int n, const struct cluster_run *run) {
	char config[512];
	assert_in_range(n, 2, CLUSTER_MAX_WORKERS);
	assert_in_range(run->rounds, 1, CLUSTER_MAX_ROUNDS);
	memset(c, 0, sizeof *c);
	c->n = n;
	c->rounds = run->rounds;
	snprintf(config, sizeof config,
			 "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 16\nbatch = 1\ndata-shards = 8\nsteps-per-round = 3\n"
			 "snapshot-every = %d\ngrace-ms = 60000\nsilence-ms = 3000\n"
			 "min-workers = %d\nrounds = %lld\noverlap-steps = %lld\nfragments = %lld\n%s"
			 "row-size = %lld\n",
			 (int)SNAPSHOT_EVERY, n / 2 + 1, (long long)run->rounds, (long long)(run->eager ? 0 : run->overlap),
			 (long long)(run->eager ? 1 : run->fragments), run->eager ? "updates = eager\neager-share = 0.25\n" : "",
			 (long long)(run->row_size > 0 ? run->row_size : ROWS_MAX_LENGTH));
	e2e_open(&c->e, config, n);
	assert_in_range(snprintf(c->dumps, sizeof c->dumps, "%.240s/dumps", c->e.dir), 1, (int)sizeof c->dumps - 1);
	assert_int_equal(mkdir(c->dumps, 0700), 0);
	assert_int_equal(setenv("RIVULET_DUMP", c->dumps, 1), 0);
	cluster_kill_coordinator(c); /* it was the installed one */
	cluster_start_coordinator(c, NULL);
	for (int i = 0; i < n; i++)
		cluster_start_worker(c, i, NULL);
	cluster_wait_round(c, 2, -1);
}

void cluster_close(struct cluster *c) {
	e2e_close(&c->e);
}

/* ---- the end ---- */

static void compare_with_store(const struct cluster *c, const struct mean_check *mean) {
	char hex[65];
	assert_int_equal(mean->rounds, c->rounds);
	for (int64_t r = 1; r <= c->rounds; r++) {
		rv_hex_encode(mean->chain[r].b, RV_HASH_BYTES, hex);
		if (c->chains[r][0] != '\0' && strcmp(c->chains[r], hex) != 0)
			fail_msg("round %lld: workers saw another chain committed than the store has", (long long)r);
	}
}

static bool has_ending(const char *name, const char *ending) {
	size_t n = strlen(name), k = strlen(ending);
	return n > k && strcmp(name + n - k, ending) == 0;
}

/* However often it was killed, and whatever became of its files. */
static void assert_bounded_on_disk(const struct cluster *c, int i) {
	char dir[E2E_PATH];
	int snapshots = 0, logs = 0, damaged = 0;
	e2e_worker_dir(&c->e, i, dir);
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		snapshots += has_ending(e->d_name, ".rvs");
		logs += has_ending(e->d_name, ".rvl");
		damaged += has_ending(e->d_name, ".damaged");
		if (strstr(e->d_name, ".tmp-"))
			fail_msg("worker %d: %s was left behind", i, e->d_name);
	}
	closedir(d);
	if (snapshots > SNAPSHOTS_MAX || logs > LOGS_MAX || damaged > DAMAGED_MAX)
		fail_msg("worker %d holds %d snapshots (at most %d), %d log entries (%d), %d damaged files (%d)", i, snapshots,
				 (int)SNAPSHOTS_MAX, logs, (int)LOGS_MAX, damaged, (int)DAMAGED_MAX);
}

void cluster_finish(struct cluster *c, struct mean_check *mean) {
	char chain[65], state[65], store[E2E_PATH + 32];
	int all[CLUSTER_MAX_WORKERS];
	for (int i = 0; i < c->n; i++)
		all[i] = i;
	c->may_end = UINT32_MAX;
	cluster_wait_round(c, c->rounds, -1);
	e2e_assert_same_end(&c->e, all, c->n, chain, state);
	for (int i = 0; i < c->n; i++)
		assert_bounded_on_disk(c, i);
	read_logs(c);
	assert_string_equal(chain, c->chains[c->rounds]);
	process_signal(&c->e.coordinator, SIGTERM);
	assert_int_equal(process_wait(&c->e.coordinator), 0);
	snprintf(store, sizeof store, "%s/coordinator/store.db", c->e.dir);
	assert_ok(mean_check(store, c->dumps, mean, &et));
	compare_with_store(c, mean);
}
