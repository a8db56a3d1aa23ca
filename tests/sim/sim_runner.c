/* sim_runner.c: seeds are dealt to processes in turn; each keeps its sums in memory that it shares
 * with its parent. */
#include "tests/sim/sim_runner.h"

#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LANES = 64, LOOK_EVERY_US = 50000, TELL_EVERY_US = 10 * RV_US_PER_S };

struct lane {
	_Atomic uint64_t seed, done; /* under way; universes that held */
	bool failed;
	char why[1024];
	struct sim_stats sum;
	struct sim_plan plan;
};

struct shared {
	_Atomic uint64_t lowest_failed; /* nothing above it needs to run */
	struct lane lanes[MAX_LANES];
};

void sim_stats_add(struct sim_stats *sum, const struct sim_stats *one) {
	sum->seeds += one->seeds;
	sum->workers += one->workers;
	sum->events += one->events;
	sum->commits += one->commits;
	sum->rosters_in_rows += one->rosters_in_rows;
	sum->commits_in_rows += one->commits_in_rows;
	sum->rows_left_out += one->rows_left_out;
	sum->later_attempts += one->later_attempts;
	sum->refused_reports += one->refused_reports;
	sum->lost_attempts += one->lost_attempts;
	sum->fetched_logs += one->fetched_logs;
	sum->fetched_snapshots += one->fetched_snapshots;
	sum->own_files += one->own_files;
	sum->older_snapshots += one->older_snapshots;
	sum->kept_progress += one->kept_progress;
	sum->overlapped += one->overlapped;
	sum->given_away += one->given_away;
	sum->residuals += one->residuals;
	sum->mean_residuals += one->mean_residuals;
	sum->sequences += one->sequences;
	sum->text_shards += one->text_shards;
	sum->text_lies += one->text_lies;
	sum->text_waits += one->text_waits;
	sum->text_of_members += one->text_of_members;
	sum->clipped += one->clipped;
	sum->left_out += one->left_out;
	sum->convicted += one->convicted;
	sum->stranded += one->stranded;
	sum->row_audits += one->row_audits;
	sum->row_lies += one->row_lies;
	sum->struck += one->struck;
	sum->repeats += one->repeats;
	sum->cleared += one->cleared;
	sum->sent_less += one->sent_less;
	sum->calls += one->calls;
	sum->openings += one->openings;
	sum->strange_dials += one->strange_dials;
	sum->met_relayed += one->met_relayed;
	sum->met_punched += one->met_punched;
	sum->slowest_ms = one->slowest_ms > sum->slowest_ms ? one->slowest_ms : sum->slowest_ms;
	sum->relayed_bytes += one->relayed_bytes;
	sum->rollbacks += one->rollbacks;
	sum->standstills += one->standstills;
	sum->torn_writes += one->torn_writes;
	sum->named += one->named;
	sum->resynced += one->resynced;
	sum->faded += one->faded;
	sum->false_means += one->false_means;
	sum->wrongly_suspected += one->wrongly_suspected;
	sum->virtual_us += one->virtual_us;
	sum->recovery_us = one->recovery_us > sum->recovery_us ? one->recovery_us : sum->recovery_us;
	sum->trace += one->trace;
	for (int i = 0; i < SIM_FAULT_KINDS; i++)
		sum->faults[i] += one->faults[i];
}

static void *share(size_t n, struct rv_errtext *et) {
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED)
		return p;
	(void)rv_fail(et, RV_E_NOMEM, "cannot share %zu bytes with a process: %s", n, strerror(errno));
	return NULL;
}

static void note_failed(struct shared *sh, uint64_t seed) {
	uint64_t lowest = atomic_load(&sh->lowest_failed);
	while (seed < lowest && !atomic_compare_exchange_weak(&sh->lowest_failed, &lowest, seed))
		;
}

/* ---- in a child ---- */

static void run_lane(const struct runner_job *job, struct shared *sh, struct lane *lane, int number) {
	for (uint64_t i = (uint64_t)number; i < job->seeds; i += (uint64_t)job->processes) {
		uint64_t seed = job->first_seed + i;
		if (seed > atomic_load(&sh->lowest_failed))
			return;
		struct sim_options opt;
		struct sim_stats one;
		const struct sim_choice choice = {.seed = seed,
										  .workers = job->workers,
										  .leases = job->leases,
										  .liars = job->liars,
										  .twenty = job->twenty,
										  .plots = job->plots,
										  .audits = job->audits,
										  .scores = job->scores};
		sim_universe_of(&choice, &opt, &lane->plan);
		atomic_store(&lane->seed, seed);
		if (!sim_run(&opt, &lane->plan, false, &one, lane->why)) {
			lane->failed = true;
			note_failed(sh, seed);
			return;
		}
		sim_stats_add(&lane->sum, &one);
		atomic_fetch_add(&lane->done, 1);
	}
}

/* ---- in the parent ---- */

static enum rv_err start_lanes(const struct runner_job *job, struct shared *sh, pid_t pids[MAX_LANES],
							   struct rv_errtext *et) {
	(void)fflush(NULL);
	for (int i = 0; i < job->processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return rv_fail(et, RV_E_IO, "cannot start process %d: %s", i + 1, strerror(errno));
		if (pids[i] == 0) {
			run_lane(job, sh, &sh->lanes[i], i);
			exit(0);
		}
	}
	return RV_OK;
}

static void describe_end(int status, char why[1024]) {
	if (WIFSIGNALED(status))
		(void)snprintf(why, 1024, "its process ended by signal %d (%s): an assertion?", WTERMSIG(status),
					   strsignal(WTERMSIG(status)));
	else
		(void)snprintf(why, 1024, "its process ended with status %d", WEXITSTATUS(status));
}

/* Takes in a child that has ended; false: it still runs. */
static bool has_ended(struct shared *sh, struct lane *lane, pid_t pid) {
	int status;
	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	if (status == 0)
		return true;
	lane->failed = true;
	describe_end(status, lane->why);
	note_failed(sh, atomic_load(&lane->seed));
	return true;
}

static void tell(const struct runner_job *job, const struct shared *sh, struct rv_events *events, int64_t start_us,
				 int64_t *told_us) {
	int64_t now = rv_clock_monotonic_us();
	uint64_t done = 0;
	for (int i = 0; i < job->processes; i++)
		done += atomic_load(&sh->lanes[i].done);
	rv_progress(events, now, "simulate", done, job->seeds, "seed", "");
	if (now - *told_us < TELL_EVERY_US)
		return;
	*told_us = now;
	double rate = (double)done * RV_US_PER_S / (double)(now - start_us);
	rv_event(events, RV_DEBUG, "progress",
			 RV_FIELDS(rv_field_int("seeds", (int64_t)done), rv_field_int("of", (int64_t)job->seeds),
					   rv_field_double("seeds_per_s", rate),
					   rv_field_double("eta_s", rate > 0 ? (double)(job->seeds - done) / rate : 0)),
			 "%llu of %llu seeds", (unsigned long long)done, (unsigned long long)job->seeds);
}

static void watch_lanes(const struct runner_job *job, struct shared *sh, pid_t pids[MAX_LANES],
						struct rv_events *events) {
	int64_t start_us = rv_clock_monotonic_us(), told_us = start_us;
	for (int left = job->processes; left > 0;) {
		const struct timespec pause = {.tv_nsec = LOOK_EVERY_US * 1000};
		(void)nanosleep(&pause, NULL);
		for (int i = 0; i < job->processes; i++)
			if (pids[i] > 0 && has_ended(sh, &sh->lanes[i], pids[i])) {
				pids[i] = 0;
				left--;
			}
		tell(job, sh, events, start_us, &told_us);
	}
	rv_progress_clear(events);
}

static void sum_up(const struct runner_job *job, const struct shared *sh, struct runner_result *out) {
	for (int i = 0; i < job->processes; i++) {
		const struct lane *lane = &sh->lanes[i];
		sim_stats_add(&out->sum, &lane->sum);
		if (lane->failed && atomic_load(&lane->seed) == atomic_load(&sh->lowest_failed)) {
			out->failed = true;
			out->seed = atomic_load(&lane->seed);
			memcpy(out->why, lane->why, sizeof out->why);
		}
	}
}

static int64_t cpu_of_children_us(void) {
	struct rusage u = {0};
	(void)getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * (int64_t)RV_US_PER_S + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

enum rv_err runner_run(const struct runner_job *job, struct rv_events *events, struct runner_result *out,
					   struct rv_errtext *et) {
	memset(out, 0, sizeof *out);
	struct runner_job clamped = *job;
	clamped.processes = clamped.processes > MAX_LANES ? MAX_LANES : clamped.processes;
	struct shared *sh = share(sizeof *sh, et);
	if (sh == NULL)
		return RV_E_NOMEM;
	atomic_store(&sh->lowest_failed, UINT64_MAX);
	pid_t pids[MAX_LANES] = {0};
	int64_t start_us = rv_clock_monotonic_us(), cpu_before_us = cpu_of_children_us();
	enum rv_err e = start_lanes(&clamped, sh, pids, et);
	if (e == RV_OK)
		watch_lanes(&clamped, sh, pids, events);
	out->took_us = rv_clock_monotonic_us() - start_us;
	out->cpu_us = cpu_of_children_us() - cpu_before_us;
	sum_up(&clamped, sh, out);
	(void)munmap(sh, sizeof *sh);
	return e;
}

/* ---- one universe ---- */

struct trial {
	bool failed;
	char why[1024];
	bool happened[SIM_MAX_FAULTS];
};

enum rv_err runner_try(const struct sim_options *opt, struct sim_plan *plan, bool *failed, char why[1024],
					   struct rv_errtext *et) {
	struct trial *t = share(sizeof *t, et);
	if (t == NULL)
		return RV_E_NOMEM;
	(void)fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct sim_stats stats;
		t->failed = !sim_run(opt, plan, false, &stats, t->why);
		memcpy(t->happened, plan->happened, sizeof t->happened);
		exit(0);
	}
	int status = 0;
	enum rv_err e = RV_OK;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		e = rv_fail(et, RV_E_IO, "cannot run a universe in a process: %s", strerror(errno));
	*failed = t->failed || status != 0;
	if (status == 0) {
		memcpy(why, t->why, sizeof t->why);
		memcpy(plan->happened, t->happened, sizeof plan->happened);
	} else {
		describe_end(status, why);
		memcpy(plan->happened, plan->chosen, sizeof plan->happened);
	}
	(void)munmap(t, sizeof *t);
	return e;
}
