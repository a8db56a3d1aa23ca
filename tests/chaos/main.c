/* rivulet-chaos: kills, or freezes, a real worker or the real coordinator at every named failpoint,
 * and looks at what becomes of the run (points.h, cluster.h, mean_check.h).
 *
 * One cluster serves several points, one after the other, until its run is nearly over; then it
 * must end well, and all that was averaged in it must have been the mean. A cluster is a child
 * process: a check that fails ends it, and the next points get a new one. */
#include "base/clock.h"
#include "base/event.h"
#include "base/file.h"
#include "base/program.h"
#include "tests/chaos/points.h"
#include "tests/common/scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	JOBS_MAX = 256,
	FULL_WORKERS = 8,
	FULL_ROUNDS = 900,
	QUICK_WORKERS = 4,
	QUICK_ROUNDS = 450,
	ROUNDS_FOR_A_POINT = 250, /* a point is begun when so many are left */
	DIR_BYTES = 128,
	WHY_BYTES = 2048
};

struct chaos_options {
	char only[64];
	int64_t seed, workers, rounds, overlap, fragments;
	int64_t row_size;
	bool quick, list;
	char updates[16];
};

static const struct rv_option options[] = {
	{"only", RV_OPT_STRING, offsetof(struct chaos_options, only), 64, "", 0, 0, NULL,
	 "Only this point; one that ends with '.' or '-' stands for all that begin so.", "Chaos"},
	{"seed", RV_OPT_INT, offsetof(struct chaos_options, seed), 0, "1", 0, 1e9, NULL, "Determines who is lost.",
	 "Chaos"},
	{"workers", RV_OPT_INT, offsetof(struct chaos_options, workers), 0, "0", 0, CLUSTER_MAX_WORKERS, NULL,
	 "Workers of a run, at least 3; 0: 8, or 4 when quick.", "Chaos"},
	{"rounds", RV_OPT_INT, offsetof(struct chaos_options, rounds), 0, "0", 0, CLUSTER_MAX_ROUNDS, NULL,
	 "Rounds of a run, which serves several points, at least 65; 0: 400, or 150 when quick.", "Chaos"},
	{"overlap", RV_OPT_INT, offsetof(struct chaos_options, overlap), 0, "-1", -1, 3, NULL,
	 "Steps of the next round, of 3, that workers train while a round is averaged; -1: 2 in every second run, and "
	 "none.",
	 "Chaos"},
	{"fragments", RV_OPT_INT, offsetof(struct chaos_options, fragments), 0, "0", 0, 2, NULL,
	 "Parts of the parameters that rounds exchange in turn; 0: 2 in every second pair of runs, else 1.", "Chaos"},
	{"row-size", RV_OPT_INT, offsetof(struct chaos_options, row_size), 0, "0", 0, CLUSTER_MAX_WORKERS, NULL,
	 "Workers that average in one level, 2 or more; 0: half of them in every third run, and in those that serve points "
	 "of columns, else all.",
	 "Chaos"},
	{"updates", RV_OPT_ENUM, offsetof(struct chaos_options, updates), sizeof(((struct chaos_options *)0)->updates),
	 "auto", 0, 0, "auto|waited|eager",
	 "eager: outer steps come a whole round late, whatever overlap and fragments say; auto: in the second run of "
	 "eight.",
	 "Chaos"},
	{"quick", RV_OPT_BOOL, offsetof(struct chaos_options, quick), 0, "no", 0, 0, NULL,
	 "A few points in one small run, some seconds.", "Chaos"},
	{"list", RV_OPT_BOOL, offsetof(struct chaos_options, list), 0, "no", 0, 0, NULL, "List the points and end.",
	 "Chaos"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static const char *const quick_points[] = {"reduce.gather-mid", "log.before-fsync", "vote.after",
										   "commit-record.durable"};

enum outcome { PENDING, RUNNING, PASSED, FAILED };

struct entry {
	struct point_job job;
	enum outcome outcome;
	int cluster; /* in which it was done */
	struct point_result result;
};

/* What a cluster tells the program; written and read whole. */
struct message {
	enum { BEGUN, DONE, ENDED } kind;
	int entry;
	struct point_result result;
	uint64_t rounds, contributions, reduced, by_later_attempts, in_rows;
};

struct chaos {
	const struct chaos_options *o;
	struct rv_events *ev;
	struct entry entries[JOBS_MAX];
	int n, n_done, n_clusters;
	uint64_t rounds, contributions, by_later_attempts, in_rows;
	char dir[DIR_BYTES], said[DIR_BYTES + 16];
};

/* ---- in the child: one cluster ---- */

static void tell(int fd, const struct message *m) {
	if (write(fd, m, sizeof *m) != sizeof *m)
		_exit(1);
}

static bool needs_rows(const struct entry *e) {
	static const char columns[] = "column.";
	return strncmp(e->job.point->name, columns, strlen(columns)) == 0;
}

static int next_entry(const struct chaos *k, bool at_the_end, bool rows) {
	for (int i = 0; i < k->n; i++)
		if (k->entries[i].outcome == PENDING && (k->entries[i].job.way == WAY_END) == at_the_end &&
			(rows || !needs_rows(&k->entries[i])))
			return i;
	return -1;
}

/* Returns the row-size of the next run; 0: one row. */
static int64_t choose_rows(const struct chaos *k) {
	enum { EVERY = 3, LEAST = 2 };
	const int64_t half = k->o->workers / 2 > LEAST ? k->o->workers / 2 : LEAST;
	const bool only_columns = next_entry(k, false, false) < 0 && next_entry(k, true, false) < 0;
	if (k->o->row_size > 0)
		return k->o->row_size;
	return only_columns || k->n_clusters % EVERY == EVERY - 1 ? half : 0;
}

static void serve(struct chaos *k, struct cluster *c, struct rv_rng *rng, int i, int fd) {
	struct entry *e = &k->entries[i];
	struct message m = {.kind = BEGUN, .entry = i};
	tell(fd, &m);
	if (e->job.way == WAY_END)
		point_run_end(c, &e->job, rng, &m.result);
	else
		point_run(c, &e->job, rng, &m.result);
	e->outcome = PASSED;
	m.kind = DONE;
	tell(fd, &m);
}

static void run_cluster(struct chaos *k, int fd) {
	static struct cluster c;
	static struct mean_check mean;
	struct rv_rng rng = rv_rng_of((uint64_t)k->o->seed, (uint64_t)k->n_clusters);
	int i;
	const bool chosen = strcmp(k->o->updates, "auto") != 0 || k->o->overlap >= 0 || k->o->fragments > 0;
	const struct cluster_run run = {.rounds = k->o->rounds,
									.eager = chosen ? strcmp(k->o->updates, "eager") == 0 : k->n_clusters % 8 == 1,
									.overlap = k->o->overlap >= 0 ? k->o->overlap : k->n_clusters % 2 * 2,
									.fragments = k->o->fragments > 0 ? k->o->fragments : 1 + k->n_clusters / 2 % 2,
									.row_size = choose_rows(k)};
	cluster_open(&c, (int)k->o->workers, &run);
	while ((i = next_entry(k, false, run.row_size > 0)) >= 0 && cluster_round(&c, -1) + ROUNDS_FOR_A_POINT <= c.rounds)
		serve(k, &c, &rng, i, fd);
	if ((i = next_entry(k, true, run.row_size > 0)) >= 0)
		serve(k, &c, &rng, i, fd);
	cluster_finish(&c, &mean);
	cluster_close(&c);
	struct message m = {.kind = ENDED,
						.rounds = mean.rounds,
						.contributions = mean.contributions,
						.reduced = mean.reduced,
						.by_later_attempts = mean.by_later_attempts,
						.in_rows = mean.in_rows};
	tell(fd, &m);
}

/* What it says goes to a file, of which the end is shown when it fails. */
static _Noreturn void be_a_cluster(struct chaos *k, int fd) {
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	int out = open(k->said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 || setenv("TMPDIR", k->dir, 1) != 0)
		_exit(1);
	run_cluster(k, fd);
	_exit(0);
}

/* ---- what is shown ---- */

static const char *action_of(const struct entry *e) {
	static const char *const names[] = {
		[LOSS_KILL] = "kill", [LOSS_STOP] = "stop", [LOSS_FULL] = "full", [LOSS_IO] = "EIO"};
	return names[e->job.loss];
}

static void show_point(struct chaos *k, const struct entry *e, const char *why) {
	const struct rv_failpoint_info *p = e->job.point;
	bool ok = e->outcome == PASSED;
	rv_event(k->ev, ok ? RV_INFO : RV_ERROR, "point",
			 RV_FIELDS(rv_field_str("program", p->program), rv_field_str("name", p->name),
					   rv_field_str("action", action_of(e)), rv_field_bool("passed", ok),
					   rv_field_double("seconds", e->result.seconds),
					   rv_field_double("recovered_s", e->result.recovered_s), rv_field_str("why", why)),
			 "%-6s %-11s %-24s %s  %.1f s, all others committed after %.2f s%s%s", ok ? "ok" : "FAILED", p->program,
			 p->name, action_of(e), e->result.seconds, e->result.recovered_s, why[0] ? "\n" : "", why);
}

static void show_progress(struct chaos *k, const char *now) {
	rv_progress(k->ev, rv_clock_monotonic_us(), "chaos", (uint64_t)k->n_done, (uint64_t)k->n, "point", now);
}

static void read_what_it_said(const struct chaos *k, char why[WHY_BYTES]) {
	uint8_t *text;
	size_t n;
	why[0] = '\0';
	if (rv_file_read(k->said, 1 << 26, &text, &n, NULL) != RV_OK)
		return;
	size_t from = n >= WHY_BYTES ? n - WHY_BYTES + 1 : 0;
	memcpy(why, text + from, n - from);
	why[n - from] = '\0';
	free(text);
}

/* ---- the program: one cluster after the other ---- */

static void take(struct chaos *k, const struct message *m) {
	struct entry *e = &k->entries[m->entry];
	if (m->kind == BEGUN) {
		e->outcome = RUNNING;
		e->cluster = k->n_clusters;
		show_progress(k, e->job.point->name);
	} else if (m->kind == DONE) {
		e->outcome = PASSED;
		e->result = m->result;
		k->n_done++;
		show_point(k, e, "");
	} else {
		k->rounds += m->rounds;
		k->contributions += m->contributions;
		k->by_later_attempts += m->by_later_attempts;
		k->in_rows += m->in_rows;
		rv_event(k->ev, RV_INFO, "run",
				 RV_FIELDS(rv_field_int("rounds", (int64_t)m->rounds),
						   rv_field_int("contributions", (int64_t)m->contributions),
						   rv_field_int("reduced", (int64_t)m->reduced),
						   rv_field_int("by_later_attempts", (int64_t)m->by_later_attempts),
						   rv_field_int("in_rows", (int64_t)m->in_rows)),
				 "a run of %" PRIu64 " rounds ended alike everywhere; each was the mean of its recorded participants "
				 "(%" PRIu64 " contributions, %" PRIu64 " results compared, %" PRIu64
				 " rounds by a later attempt, %" PRIu64 " in rows)",
				 m->rounds, m->contributions, m->reduced, m->by_later_attempts, m->in_rows);
	}
}

static bool any_running(const struct chaos *k) {
	for (int i = 0; i < k->n; i++)
		if (k->entries[i].outcome == RUNNING)
			return true;
	return false;
}

static void fail_entry(struct chaos *k, struct entry *e, const char *why) {
	k->n_done += e->outcome != PASSED;
	e->outcome = FAILED;
	show_point(k, e, why);
}

/* The point that was under way; or, when the end of the run was not right, all that the run has
 * served; or, when it did not even begin, the next one. */
static void blame(struct chaos *k) {
	char why[WHY_BYTES];
	bool running = any_running(k), any = running;
	read_what_it_said(k, why);
	for (int i = 0; i < k->n; i++) {
		struct entry *e = &k->entries[i];
		bool served = e->outcome == PASSED && e->cluster == k->n_clusters;
		if (e->outcome == RUNNING || (!running && served))
			fail_entry(k, e, why);
		any = any || served;
	}
	for (int i = 0; i < k->n && !any; i++)
		if (k->entries[i].outcome == PENDING) {
			fail_entry(k, &k->entries[i], why);
			any = true;
		}
}

static enum rv_err one_cluster(struct chaos *k, struct rv_errtext *et) {
	int fds[2], status;
	struct message m;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return rv_fail(et, RV_E_IO, "no pipe");
	(void)fflush(NULL);
	pid_t pid = fork();
	if (pid < 0)
		return rv_fail(et, RV_E_IO, "no process for a cluster");
	if (pid == 0)
		be_a_cluster(k, fds[1]);
	(void)close(fds[1]);
	while (read(fds[0], &m, sizeof m) == sizeof m)
		take(k, &m);
	(void)close(fds[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		blame(k);
	k->n_clusters++;
	return RV_OK;
}

static void show_table(const struct chaos *k) {
	int passed = 0;
	(void)printf("\n%-11s %-24s %-6s %-7s %8s %12s\n", "program", "point", "action", "result", "seconds",
				 "recovered s");
	for (int i = 0; i < k->n; i++) {
		const struct entry *e = &k->entries[i];
		passed += e->outcome == PASSED;
		(void)printf("%-11s %-24s %-6s %-7s %8.1f %12.2f\n", e->job.point->program, e->job.point->name, action_of(e),
					 e->outcome == PASSED ? "passed" : "FAILED", e->result.seconds, e->result.recovered_s);
	}
	(void)printf("\n%" PRIu64 " rounds in %d runs, %" PRIu64 " contributions; every round the mean of its recorded "
				 "participants, %" PRIu64 " by a later attempt, %" PRIu64 " in rows\n%d points, %d passed\n",
				 k->rounds, k->n_clusters, k->contributions, k->by_later_attempts, k->in_rows, k->n, passed);
}

/* ---- which points ---- */

static bool is_wanted(const struct chaos_options *o, const struct point_job *job) {
	const char *name = job->point->name;
	size_t n = strlen(o->only);
	if (n > 0 && (o->only[n - 1] == '.' || o->only[n - 1] == '-'))
		return strncmp(name, o->only, n) == 0;
	if (n > 0)
		return strcmp(name, o->only) == 0;
	bool quick = false;
	for (size_t i = 0; i < sizeof quick_points / sizeof quick_points[0]; i++)
		quick = quick || strcmp(name, quick_points[i]) == 0;
	return !o->quick || (quick && job->loss == LOSS_KILL);
}

static enum rv_err choose(struct chaos *k, struct rv_errtext *et) {
	struct point_job jobs[JOBS_MAX];
	int n = points_all(jobs, JOBS_MAX);
	for (int i = 0; i < n; i++)
		if (is_wanted(k->o, &jobs[i]))
			k->entries[k->n++].job = jobs[i];
	return k->n > 0 ? RV_OK : rv_fail(et, RV_E_NOTFOUND, "--only %s: no such point; --list lists them", k->o->only);
}

static void list_points(void) {
	for (const struct rv_failpoint_info *p = rv_failpoints; p->name != NULL; p++)
		(void)printf("%-11s  %-24s  %s\n", p->program, p->name, p->what);
}

static enum rv_err run_all(struct chaos *k, struct rv_errtext *et) {
	struct rv_events_config cfg = {.out = stdout, .json = !isatty(STDOUT_FILENO), .level = RV_INFO};
	RV_TRY(choose(k, et));
	scratch_make(k->dir, sizeof k->dir);
	(void)snprintf(k->said, sizeof k->said, "%s/said", k->dir);
	RV_TRY(rv_events_new(&cfg, &k->ev, et));
	enum rv_err e = RV_OK;
	while (e == RV_OK && k->n_done < k->n)
		e = one_cluster(k, et);
	rv_progress_clear(k->ev);
	rv_events_free(k->ev);
	show_table(k);
	for (int i = 0; e == RV_OK && i < k->n; i++)
		if (k->entries[i].outcome != PASSED)
			e = rv_fail(et, RV_E_CORRUPT,
						"not every point passed; RIVULET_KEEP=1 keeps the files of a run that failed");
	return e;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	static struct chaos k;
	struct chaos_options *o = opts;
	(void)args;
	if (o->list) {
		list_points();
		return RV_OK;
	}
	o->workers = o->workers > 0 ? o->workers : o->quick ? QUICK_WORKERS : FULL_WORKERS;
	o->rounds = o->rounds > 0 ? o->rounds : o->quick ? QUICK_ROUNDS : FULL_ROUNDS;
	k = (struct chaos){.o = o};
	return run_all(&k, et);
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct chaos_options *o = opts;
	(void)args;
	if (o->workers > 0 && o->workers < 3)
		return rv_fail(et, RV_E_RANGE, "workers = %" PRId64 ": at least 3: one is lost, the others go on", o->workers);
	if (o->row_size == 1)
		return rv_fail(et, RV_E_RANGE, "row-size = 1: at least 2, or 0 to choose");
	if (o->rounds > 0 && o->rounds < ROUNDS_FOR_A_POINT + 5)
		return rv_fail(et, RV_E_RANGE, "rounds = %" PRId64 ": at least %d", o->rounds, ROUNDS_FOR_A_POINT + 5);
	return RV_OK;
}

int main(int argc, char **argv) {
	static const struct rv_command commands[] = {
		{.name = NULL,
		 .synopsis = "",
		 .help = "Loses a real process at every named failpoint.",
		 .options = options,
		 .opts_bytes = sizeof(struct chaos_options),
		 .check = check,
		 .run = run},
		{.run = NULL},
	};
	static const struct rv_program program = {
		.name = "rivulet-chaos",
		.summary = "Kills or freezes a real process at every named failpoint, and checks that the run does not notice.",
		.commands = commands,
		.examples = "    rivulet-chaos --only reduce.\n    rivulet-chaos --quick --seed 7\n",
	};
	return rv_program_main(&program, argc, argv);
}
