/* test_e2e_half_open.c: hosts that vanish without a word: their packets are dropped, so nobody gets
 * a FIN or a RST of them, and every connection to them stays half open. First a worker's in the
 * middle of an all-reduce: the others find out, commit without it the mean of what is left, close
 * its links, and welcome it when it is back. Then the coordinator's. How long things took is
 * printed, not asserted. */
#include "rounds.h"
#include "sites.h"

#include "tests/chaos/mean_check.h"
#include "tests/common/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define WORKER "rivulet-worker-failpoint"
enum { WORKERS = 4, LOST = 3, SITES = WORKERS + 1, DELAY_MS = 5, SKIPPED = 77 };
/* Of a worker to the coordinator: reports, documents, a question beside both (the held-out losses),
 * the station, reflections at two ports. */
enum { CONTROL_SOCKETS = 6 };

static const char endless[] = "n-layer = 2\nn-head = 2\nn-embd = 64\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
							  "min-workers = 3\nsteps-per-round = 3\nrounds = 4000\nsnapshot-every = 4\n" E2E_STEADY;
static const int everybody[] = {0, 1, 2, 3};

static struct world {
	struct sites sites;
	struct e2e e;
	char dumps[E2E_PATH + 16];
} w;

static double now_s(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int teardown(void **state) {
	(void)state;
	e2e_close(&w.e);
	sites_close(&w.sites);
	return 0;
}

static void open_world(const char *lost_env) {
	char why[256];
	assert_true(sites_open(&w.sites, SITES, DELAY_MS, why));
	e2e_open_at(&w.e, w.sites.at, endless, WORKERS);
	snprintf(w.dumps, sizeof w.dumps, "%s/dumps", w.e.dir);
	assert_int_equal(mkdir(w.dumps, 0700), 0);
	assert_int_equal(setenv("RIVULET_DUMP", w.dumps, 1), 0);
	for (int i = 0; i < WORKERS; i++)
		e2e_start_worker(&w.e, i, WORKER, i == LOST ? lost_env : NULL);
}

/* Its kernel says good-bye for the process, but nothing gets out. */
static void vanish(struct process *p, int site) {
	sites_cut(&w.sites, site);
	process_signal(p, SIGKILL);
	process_assert_exit(p, 128 + SIGKILL);
}

/* Connections of the process to that site which it has a descriptor for: the only process in its
 * namespace. */
static int sockets_to(const struct process *p, int site) {
	char path[64], line[512];
	unsigned a, b, c, d, remote, state, inode;
	int n = 0;
	assert_int_equal(sscanf(w.sites.at[site].host, "%u.%u.%u.%u", &a, &b, &c, &d), 4);
	snprintf(path, sizeof path, "/proc/%d/net/tcp", (int)p->pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		/* sl: local:port remote:port state queues timer retransmits uid timeout inode */
		if (sscanf(line, "%*d: %*x:%*x %x:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %u", &remote, &state, &inode) == 3)
			n += remote == (d << 24 | c << 16 | b << 8 | a) && inode != 0;
	fclose(f);
	return n;
}

static void wait_for_sockets(const struct process *p, int site, int at_most, const char *what) {
	double since_s = now_s();
	while (sockets_to(p, site) > at_most) {
		nanosleep(&(struct timespec){.tv_nsec = 100 * 1000000}, NULL);
		if (now_s() - since_s > PROCESS_WAIT_S)
			fail_msg("%s: %d connections to a host that is gone are open after %d s", what, sockets_to(p, site),
					 PROCESS_WAIT_S);
	}
}

/* Every committed round is the mean of what its participants gave, byte for byte, on all who took
 * part. */
static void assert_means(void) {
	static struct mean_check mean;
	char store[E2E_PATH + 32];
	process_signal(&w.e.coordinator, SIGTERM);
	process_assert_exit(&w.e.coordinator, 0);
	snprintf(store, sizeof store, "%s/coordinator/store.db", w.e.dir);
	assert_ok(mean_check(store, w.dumps, &mean, &et));
	assert_true(mean.rounds > 3);
	print_message("%d rounds are the mean of what was given, %d of them of a later attempt\n", (int)mean.rounds,
				  (int)mean.by_later_attempts);
}

static void a_worker_that_vanishes_in_the_middle_of_an_all_reduce(void **state) {
	static const int survivors[] = {0, 1, 2};
	struct process *lost = &w.e.workers[LOST];
	(void)state;
	open_world("RIVULET_FAILPOINT=reduce.scatter-mid@3=stop");
	json_t *stopped = e2e_wait_event(lost, "failpoint", NULL, 0, NULL);
	double lost_s = e2e_time(stopped);
	json_decref(stopped);
	vanish(lost, LOST + 1);
	e2e_assert_committed_by_survivors(&w.e, e2e_last_attempt(&w.e, LOST), lost_s,
									  "a host that vanished in the middle of an all-reduce");

	/* The same identity is back while its old connections are still half open. */
	long from = e2e_lines_so_far(&w.e, LOST);
	sites_heal(&w.sites, LOST + 1);
	e2e_start_worker(&w.e, LOST, WORKER, NULL);
	e2e_assert_takes_part_again(&w.e, LOST, from);

	/* Gone for good: nobody keeps a descriptor for it. */
	vanish(lost, LOST + 1);
	double since_s = now_s();
	for (int k = 0; k < 3; k++)
		wait_for_sockets(&w.e.workers[survivors[k]], LOST + 1, 0, "a survivor");
	print_message("links to a vanished host are closed after %.1f s", now_s() - since_s);
	wait_for_sockets(&w.e.coordinator, LOST + 1, 0, "the coordinator");
	print_message(", the coordinator's connections after %.1f s\n", now_s() - since_s);
	e2e_assert_no_state_was_wrong(&w.e, WORKERS);
	assert_means();
}

static int count_joins(int i) {
	int n = 0;
	long from = 0;
	for (json_t *j; (j = e2e_find_event(w.e.workers[i].log, "joined", NULL, 0, &from)); n++)
		json_decref(j);
	return n;
}

static void the_coordinator_vanishes_and_is_back(void **state) {
	(void)state;
	open_world(NULL);
	e2e_wait_for_round(&w.e, everybody, WORKERS, 3);
	vanish(&w.e.coordinator, 0);
	for (int i = 0; i < WORKERS; i++) /* a request without an answer */
		json_decref(e2e_wait_event(&w.e.workers[i], "coordinator_away", NULL, 0, NULL));
	int64_t round = e2e_latest_round(&w.e, 0);
	sites_heal(&w.sites, 0);
	e2e_start_coordinator(&w.e);
	double back_s = now_s();
	e2e_wait_for_round(&w.e, everybody, WORKERS, round + 1);
	print_message("the next round was committed %.1f s after the coordinator's return\n", now_s() - back_s);
	e2e_wait_for_round(&w.e, everybody, WORKERS, round + 3);
	for (int i = 0; i < WORKERS; i++) {
		assert_int_equal(count_joins(i), 1);
		wait_for_sockets(&w.e.workers[i], 0, CONTROL_SOCKETS, "a worker");
	}
	e2e_assert_no_state_was_wrong(&w.e, WORKERS);
	assert_means();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_worker_that_vanishes_in_the_middle_of_an_all_reduce, teardown),
		cmocka_unit_test_teardown(the_coordinator_vanishes_and_is_back, teardown),
	};
	if (!sites_possible())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
