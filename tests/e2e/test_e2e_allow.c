/* test_e2e_allow.c: the computer stays its owner's, with real processes and looked at from outside:
 * a pause leaves the processors idle and the run going, limits hold over restarts, settings change
 * while the worker runs, and it ends as it is told to. */
#include "base/clock.h"
#include "base/parallel.h"
#include "e2e.h"
#include "kernels/gate.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "told.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OUR = 2, WORKERS = 3 };

/* A sanitizer keeps what a program has freed. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool gives_back = false;
#else
static const bool gives_back = true;
#endif

static const char config[] =
	"n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\nmin-workers = 2\n"
	"steps-per-round = 40\nrounds = 100000\nsnapshot-every = 4\ngrace-ms = 2000\nsilence-ms = 60000\n";

/* Makes it about noon for all programs: bytes are counted by the local day, which must not end
 * during a test. */
static void set_local_time_to_noon(void) {
	char zone[32];
	const int minutes = (int)(rv_clock_wall_us() / RV_US_PER_S / 60 % (24 * 60)) - 12 * 60; /* west of Greenwich */
	const int size = minutes < 0 ? -minutes : minutes;
	snprintf(zone, sizeof zone, "NOON%c%d:%02d", minutes < 0 ? '-' : '+', size / 60, size % 60);
	assert_int_equal(setenv("TZ", zone, 1), 0);
}

static void open_run(struct e2e *e, void **state) {
	*state = e;
	e2e_open(e, config, WORKERS);
	e2e_start_workers(e, WORKERS);
}

static int tell(const struct e2e *e, char *out, size_t cap, const char *words) {
	return e2e_tell(e, OUR, out, cap, words);
}

static void tell_ok(const struct e2e *e, const char *words, const char *answer) {
	e2e_tell_ok(e, OUR, words, answer);
}

static void wait_counted(const struct e2e *e) {
	e2e_wait_counted(e, OUR);
}

/* Waits for a state, such as "paused". */
static void wait_for_state(const struct e2e *e, const char *state) {
	bool is = false;
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, state); !is; deadline_pause(&d)) {
		json_t *status = e2e_worker_status(e, OUR);
		is = strcmp(e2e_text(status, "state"), state) == 0;
		json_decref(status);
	}
}

/* Waits for an event of our worker. */
static json_t *wait_event(struct e2e *e, const char *name, long *from) {
	return e2e_wait_event(&e->workers[OUR], name, NULL, 0, from);
}

static long processor_ticks(pid_t pid) {
	char path[64], text[1024];
	long user = 0, system = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	const size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = '\0';
	assert_int_equal(
		sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system), 2);
	return user + system;
}

/* Waits until the process hardly uses the processor: its step may take long on a busy machine. */
static void wait_idle(pid_t pid) {
	enum { LOOK_S = 1, PERCENT = 10 };
	bool idle = false;
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "an idle worker"); !idle; deadline_pause(&d)) {
		const long before = processor_ticks(pid);
		(void)nanosleep(&(struct timespec){.tv_sec = LOOK_S}, NULL);
		idle = (processor_ticks(pid) - before) * 100 <= LOOK_S * sysconf(_SC_CLK_TCK) * PERCENT;
	}
}

/* Waits until the run is so many rounds further. */
static void wait_rounds(struct e2e *e, int worker, int64_t rounds) {
	long from = 0;
	json_t *last = NULL, *next;
	while ((next = e2e_find_event(e->workers[worker].log, "round", NULL, 0, &from))) {
		json_decref(last);
		last = next;
	}
	const int64_t now = last ? e2e_int(last, "round") : 0;
	json_decref(last);
	json_decref(e2e_wait_event(&e->workers[worker], "round", "round", now + rounds, NULL));
}

static void assert_why(const struct e2e *e, const char *why) {
	json_t *status = e2e_worker_status(e, OUR);
	assert_string_equal(e2e_text(json_object_get(status, "allowed"), "why"), why);
	json_decref(status);
}

static void a_pause_gives_the_computer_back(void **state) {
	static struct e2e e;
	long from = 0;
	open_run(&e, state);
	wait_counted(&e);
	tell_ok(&e, "pause", "Paused, until you resume it.");
	wait_idle(e.workers[OUR].pid);
	assert_why(&e, "person");
	json_t *j = wait_event(&e, "paused", &from);
	assert_string_equal(e2e_text(j, "why"), "person");
	json_decref(j);
	wait_rounds(&e, 0, 3); /* without it */
	process_kill(&e.workers[OUR]);
	e2e_launch_worker(&e, OUR); /* the pause holds over a restart */
	wait_for_state(&e, "paused");
	tell_ok(&e, "resume", "Going on; it takes part in the next round.");
	wait_counted(&e);
	tell_ok(&e, "pause 1s", "It goes on by itself");
	json_decref(wait_event(&e, "resumed", &from));
	wait_counted(&e);
}

/* Without pages of programs and libraries: the system takes those back by itself. */
static long resident_kib(pid_t pid) {
	char path[64], line[256];
	long kib = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (kib == 0 && fgets(line, sizeof line, f))
		(void)sscanf(line, "RssAnon: %ld", &kib);
	fclose(f);
	return kib;
}

/* A pause that lasts gives the memory back, in the middle of a step that would take longer than the
 * test may; a start in a pause takes none; and then the worker goes on where it was. */
static void a_long_pause_gives_the_memory_back(void **state) {
	static const char large[] = "n-layer = 4\nn-head = 4\nn-embd = 256\ncontext = 256\nbatch = 8\nmin-workers = 1\n"
								"steps-per-round = 2\nrounds = 100000\nsnapshot-every = 4\nsilence-ms = 60000\n";
	enum { FEW_KIB = 64 << 10 };
	static struct e2e e;
	long from = 0;
	*state = &e;
	e2e_open(&e, large, OUR + 1);
	e2e_start_worker(&e, OUR, NULL, NULL);
	wait_counted(&e);
	const long before = resident_kib(e.workers[OUR].pid);
	tell_ok(&e, "set free-memory-after=0", "In force now");
	tell_ok(&e, "pause", "Paused");
	long kept = before;
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "less memory"); gives_back && kept > FEW_KIB;
		 deadline_pause(&d))
		kept = resident_kib(e.workers[OUR].pid);
	print_message("%ld KiB while it trains, %ld KiB paused\n", before, kept);
	assert_true(before > 2 * FEW_KIB);
	json_decref(wait_event(&e, "rests", &from));
	wait_for_state(&e, "paused");
	assert_why(&e, "person");
	process_signal(&e.workers[OUR], SIGTERM);
	process_assert_exit(&e.workers[OUR], 0);
	e2e_launch_worker(&e, OUR);
	wait_for_state(&e, "paused");
	assert_true(!gives_back || resident_kib(e.workers[OUR].pid) <= FEW_KIB);
	tell_ok(&e, "resume", "Going on");
	wait_counted(&e);
}

/* The limit on a day's bytes: it pauses before they are used up, also after a restart. */
static void a_day_has_so_many_bytes(void **state) {
	enum { DAY_BYTES = 3 * 1000 * 1000 };
	static struct e2e e;
	*state = &e;
	e2e_open(&e, config, WORKERS);
	e2e_gate_at(&e, 0); /* it could have used them before it is told */
	e2e_start_gated_workers(&e, WORKERS);
	tell_ok(&e, "set max-per-day=3MB", "In force now, and kept.");
	e2e_open_gate(&e);
	wait_for_state(&e, "paused");
	assert_why(&e, "bytes_today");
	json_t *status = e2e_worker_status(&e, OUR), *allowed = json_object_get(status, "allowed");
	assert_true(e2e_int(allowed, "bytes_today") > DAY_BYTES / 2 && e2e_int(allowed, "bytes_today") <= DAY_BYTES);
	assert_true(e2e_int(allowed, "until") > rv_clock_wall_us() / RV_US_PER_S);
	json_decref(status);
	wait_rounds(&e, 0, 2);
	process_signal(&e.workers[OUR], SIGINT);
	process_assert_exit(&e.workers[OUR], 0);
	e2e_launch_worker(&e, OUR);
	wait_for_state(&e, "paused");
	assert_why(&e, "bytes_today");
	tell_ok(&e, "resume", "Today's bytes are used up.");
	tell_ok(&e, "set max-per-day=0", "In force now");
	wait_counted(&e);
}

/* Rounds end by time, and exchanges take so long that lines are measured. A step is short, for a
 * contribution has at least one. All are needed: on a busy machine the others would go on without
 * one of low priority for ever. */
enum { STEP_TOKENS = 4, ROUND_MS = 100 };
static const char by_time[] =
	"n-layer = 1\nn-head = 2\nn-embd = 128\ncontext = 4\nbatch = 1\ndata-shards = 3\nmin-workers = 3\n"
	"steps-per-round = 100000\nround-ms = 100\nrounds = 100000\nsnapshot-every = 4\ngrace-ms = 2000\n"
	"silence-ms = 60000\n";

/* What our worker does in a round that counts it. */
struct work {
	double tokens;
	double processor_ms;
};

static struct work work_so_far(const struct e2e *e, double *rounds) {
	json_t *status = e2e_worker_status(e, OUR), *given = json_object_get(status, "given");
	const double ticks = (double)processor_ticks(e->workers[OUR].pid);
	const struct work w = {(double)e2e_int(given, "tokens"), 1000 * ticks / (double)sysconf(_SC_CLK_TCK)};
	*rounds = (double)e2e_int(given, "rounds");
	json_decref(status);
	return w;
}

static struct work work_a_round(const struct e2e *e) {
	enum { LOOKED_AT = 3 };
	double from, to;
	const struct work before = work_so_far(e, &from);
	struct work w = work_so_far(e, &to);
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "rounds that count it"); to < from + LOOKED_AT;
		 deadline_pause(&d))
		w = work_so_far(e, &to);
	return (struct work){(w.tokens - before.tokens) / (to - from),
						 (w.processor_ms - before.processor_ms) / (to - from)};
}

/* Returns how many chunks our worker owns, in percent. */
static double owned_percent(struct e2e *e) {
	json_t *status = e2e_status(e);
	const json_t *ours = json_array_get(json_object_get(status, "members"), OUR);
	const double percent = 100 * (double)e2e_int(ours, "owned_chunks") / (double)e2e_int(ours, "n_chunks");
	json_decref(status);
	return percent;
}

static void wait_owned(struct e2e *e, double least, double most) {
	char what[96] = "that share of the chunks";
	double owned = owned_percent(e);
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, what); owned < least || owned > most; deadline_pause(&d)) {
		owned = owned_percent(e);
		snprintf(what, sizeof what, "%.0f %% of the chunks instead of %.0f to %.0f", owned, least, most);
	}
}

/* Waits until contributions have no more tokens than a share of 1 % leaves processor time for, with
 * what was saved before the steps. The bound is loose: steps had only a part of the processor time
 * before, and may be faster now. A busy machine shows less: it gave little before. */
static void wait_shorter(const struct e2e *e, const struct work *before) {
	enum { LOOSE = 4 };
	const double left_ms = 0.01 * parallel_cores() * (ROUND_MS + GATE_SAVED_MS);
	const double few = fmax(LOOSE * before->tokens * left_ms / before->processor_ms, STEP_TOKENS);
	struct work now = work_a_round(e);
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "shorter contributions"); now.tokens > few; deadline_pause(&d))
		now = work_a_round(e);
	print_message("%.0f tokens a round in %.0f ms of processor, %.0f with a share of it; the most is %.0f\n",
				  before->tokens, before->processor_ms, now.tokens, few);
}

/* What a cap leaves of a line and of a processor, the run asks for: chunks and inner steps. With
 * three members one whose line is two thirds of the others' owns nothing, one with three quarters
 * 9 %: lines that a busy machine shows as 20 % slower than they are still count as equal here. */
static void the_run_follows_caps(struct e2e *e) {
	enum { LIKE_OTHERS = 6, FEW = 3 };
	wait_owned(e, LIKE_OTHERS, 100);
	const struct work before = work_a_round(e);
	tell_ok(e, "set max-up=3mbit cpu-share=1", "In force now, and kept.");
	wait_shorter(e, &before);
	wait_owned(e, 0, FEW);
	tell_ok(e, "set max-up=20mbit cpu-share=100", "In force now, and kept.");
	wait_owned(e, LIKE_OTHERS, 100);
}

static void settings_change_while_it_runs(void **state) {
	static struct e2e e;
	char out[2048], dir[E2E_PATH], kept[4096] = "";
	long from = 0;
	*state = &e;
	e2e_open(&e, by_time, WORKERS);
	e.worker_args[0] = "--max-up=20mbit";
	e2e_start_workers(&e, WORKERS);
	wait_counted(&e);
	the_run_follows_caps(&e);
	e2e_worker_dir(&e, OUR, dir);
	tell_ok(&e, "set max-up=8mbit max-down=8mbit cpu-share=50 priority=low threads=1", "In force now, and kept.");
	wait_counted(&e);
	assert_int_not_equal(tell(&e, out, sizeof out, "set max-up=1kbit"), 0); /* less than any run can live with */
	assert_int_not_equal(tell(&e, out, sizeof out, "set max-memory=1MiB cpu-share=70"), 0);
	assert_non_null(strstr(out, "--max-memory allows 1"));
	assert_int_not_equal(tell(&e, out, sizeof out, "set max-disk=1MB"), 0);
	assert_int_not_equal(tell(&e, out, sizeof out, "set max-dawn=1mbit"), 0);
	assert_non_null(strstr(out, "did you mean max-down?"));
	json_decref(wait_event(&e, "started", &from));
	tell_ok(&e, "set max-memory=4GiB max-disk=1GB log-file=more.log",
			"goes on with it in a moment. In force when the worker is started again: log-file.");
	json_decref(wait_event(&e, "started", &from)); /* in the same process */
	tell_ok(&e, "set log-file=", "Kept. In force when the worker is started again: log-file.");
	wait_counted(&e);
	assert_int_equal(process_shell(kept, sizeof kept, "cat %s/worker.conf", dir), 0);
	static const char *const lines[] = {"max-up = 8mbit", "cpu-share = 50", "priority = low", "max-disk = 1000000000"};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_non_null(strstr(kept, lines[i]));
	tell_ok(&e, "set hours='mon 0-1, tue 0-1' on-battery=yes", "In force now"); /* one of them is not now */
	tell_ok(&e, "set hours='tue 1-2'", "In force now");
	process_signal(&e.workers[OUR], SIGINT);
	process_assert_exit(&e.workers[OUR], 0);
	tell_ok(&e, "set hours= max-up=unlimited", "It is in force when the worker is started.");
	assert_int_equal(process_shell(kept, sizeof kept, "cat %s/worker.conf", dir), 0);
	assert_null(strstr(kept, "hours"));
	assert_null(strstr(kept, "max-up"));
}

/* Waits until the page of every worker has the curve of the held-out loss, which one measures. */
static void wait_heldout(const struct e2e *e) {
	for (int i = 0; i < WORKERS; i++) {
		size_t n = 0;
		for (struct deadline d = deadline_in(PROCESS_WAIT_S, "the held-out loss"); n < 2; deadline_pause(&d)) {
			json_t *status = e2e_worker_status(e, i);
			n = json_array_size(json_object_get(status, "heldout"));
			json_decref(status);
		}
	}
}

/* The round under way counts, whatever asks for the end. */
static void it_ends_after_its_round(void **state) {
	static struct e2e e;
	long from = 0;
	*state = &e;
	e2e_open(&e, config, WORKERS);
	e.worker_args[0] = "--eval-every=1";
	e.worker_args[1] = "--eval-tokens=64";
	e2e_start_workers(&e, WORKERS);
	wait_counted(&e);
	wait_heldout(&e);
	tell_ok(&e, "finish", "It ends after this round");
	process_assert_exit(&e.workers[OUR], 0);
	json_t *j = wait_event(&e, "stopped", &from);
	assert_non_null(strstr(e2e_text(j, "text"), "thank you"));
	json_decref(j);
	e2e_launch_worker(&e, OUR);
	wait_counted(&e);
	process_signal(&e.workers[OUR], SIGTERM);
	process_assert_exit(&e.workers[OUR], 0);
	wait_rounds(&e, 0, 1);
}

static void it_leaves_for_good(void **state) {
	static struct e2e e;
	char out[2048], dir[E2E_PATH], path[E2E_PATH + 32];
	struct stat st;
	open_run(&e, state);
	wait_counted(&e);
	e2e_worker_dir(&e, OUR, dir);
	assert_int_equal(tell(&e, out, sizeof out, "leave < /dev/null"), 4); /* nobody was asked */
	tell_ok(&e, "leave --yes", "Left. Thank you");
	process_assert_exit(&e.workers[OUR], 0);
	snprintf(path, sizeof path, "%s/run.conf", dir);
	assert_true(stat(path, &st) != 0 && errno == ENOENT);
	snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
	assert_int_equal(stat(path, &st), 0);
	wait_rounds(&e, 0, 2); /* nobody waits for it */
	assert_int_not_equal(tell(&e, out, sizeof out, "status"), 0);
	assert_non_null(strstr(out, "no worker runs in"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_pause_gives_the_computer_back, e2e_teardown),
		cmocka_unit_test_teardown(a_long_pause_gives_the_memory_back, e2e_teardown),
		cmocka_unit_test_teardown(a_day_has_so_many_bytes, e2e_teardown),
		cmocka_unit_test_teardown(settings_change_while_it_runs, e2e_teardown),
		cmocka_unit_test_teardown(it_ends_after_its_round, e2e_teardown),
		cmocka_unit_test_teardown(it_leaves_for_good, e2e_teardown),
	};
	set_local_time_to_noon();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
