/* e2e.h: the one way in which tests in C start a coordinator and workers: real processes over TLS
 * on loopback; their logs; their ends.
 *
 * Everything lives in one temporary directory (tests/common/scratch.h); processes and waiting are
 * those of tests/common/process.h. */
#ifndef TESTS_E2E_E2E_H
#define TESTS_E2E_E2E_H

#include "tests/common/process.h"

#include <jansson.h>
#include <stdint.h>

/* For a run.conf: nobody is to be left out of a round, however slow the machine, so the lab can say
 * what the end is. */
#define E2E_PATIENT "grace-ms = 600000\nsilence-ms = 60000\n"
/* Where somebody is lost: who gives nothing for ten seconds is done without, and nobody who is
 * merely slow. */
#define E2E_STEADY "grace-ms = 600000\nsilence-ms = 10000\n"

/* The worker that stops at the gate (gated_worker.c); so does rivulet-worker-failpoint. */
#define E2E_GATED "rivulet-worker-gated"

enum { E2E_MAX_WORKERS = 40, E2E_PATH = PROCESS_PATH, E2E_MAX_ARGS = 8 };

/* Where processes run: the network namespace (its path; "": the test's own) and their address
 * there. */
struct e2e_site {
	char name_space[64];
	char host[32];
};

struct e2e {
	const struct e2e_site *sites; /* the coordinator's, then worker i's at i + 1; NULL: all on loopback */
	char dir[E2E_PATH];
	char data[E2E_PATH];
	char links[E2E_MAX_WORKERS][512]; /* invite links, one each */
	char listen[64];                  /* the coordinator's host:port */
	int port_fd;                      /* keeps that port for it while it does not run; -1: not on loopback */
	int64_t steps_per_round;
	long file_limit; /* bytes: no worker started from now on can write a longer file; 0: no limit */
	const char *worker_args[E2E_MAX_ARGS]; /* more of them, for workers started from now on; NULL: no more */
	/* Workers started from now on get --dir, at first their link, and worker_args; beside these
	 * only that they work on battery and metered lines, too. */
	bool says_little;
	const char *coordinator_program; /* for starts from now on; NULL: rivulet-coordinator */
	const char *coordinator_env;     /* the same: NULL or one "NAME=value" */
	const char *coordinator_option;  /* the same: NULL or one more of its options */
	struct process coordinator, workers[E2E_MAX_WORKERS];
	int n_workers;
};

/* Makes the directory, a text, the run (`config`: lines of run.conf), starts the coordinator, makes
 * `n_workers` links. */
void e2e_open(struct e2e *e, const char *config, int n_workers);
/* The same, not on loopback: n_workers + 1 sites, borrowed. */
void e2e_open_at(struct e2e *e, const struct e2e_site *sites, const char *config, int n_workers);
/* The same of a run that leases a published text to its members: `n_blocks` blocks of 16,384
 * tokens, a shard each, of which every fourth is held out. e->data is its directory. */
void e2e_open_published(struct e2e *e, const char *config, int n_blocks, int n_workers);
/* A run whose coordinator hands its text out, in two steps: publishes `n_blocks` blocks as e->data,
 * `shard_blocks` in a shard; and opens the run on it. A worker that says little comes with its link
 * alone. */
void e2e_publish(struct e2e *e, int n_blocks, int shard_blocks, int n_workers);
void e2e_open_handed_out(struct e2e *e, const char *config, int n_workers);
/* Kills what is left, removes the directory. */
void e2e_close(struct e2e *e);
int e2e_teardown(void **state); /* of a test whose *state is its struct e2e, or NULL: e2e_close() */
/* A file or folder of the directory; `out` may be a part of *e. */
void e2e_path(const struct e2e *e, const char *name, char out[E2E_PATH]);

void e2e_start_coordinator(struct e2e *e); /* on the port it had before, if it had one */
/* False if it ended instead of listening, with its exit status. */
bool e2e_try_start_coordinator(struct e2e *e, int *status);
/* Makes e->links[first], ... `n` of them. */
void e2e_make_links(struct e2e *e, int first, int n);
/* Starts worker i and waits until it has joined, so that member numbers are the same every time.
 * The first start uses its link. `program`: NULL for rivulet-worker. `env`: NULL or one
 * "NAME=value". */
void e2e_start_worker(struct e2e *e, int i, const char *program, const char *env);
void e2e_launch_worker(struct e2e *e, int i); /* without waiting for its join */
void e2e_launch_worker_as(struct e2e *e, int i, const char *program, const char *env);
/* Worker i, which does not run, is somebody new from now on: its directory is removed and its link
 * is a fresh one. */
void e2e_renew_worker(struct e2e *e, int i);
void e2e_start_workers(struct e2e *e, int n);
void e2e_start_gated_workers(struct e2e *e, int n); /* the same, of E2E_GATED */
/* Gated workers begin no inner step of `round` or a later one, wherever they are, until a later
 * round is said or the gate is opened: a run that cannot do without one of them commits no such
 * round. What a test wants to happen before the run is over, or before it has moved on too far, it
 * does behind a gate. */
void e2e_gate_at(struct e2e *e, int64_t round);
void e2e_open_gate(struct e2e *e);
void e2e_worker_dir(const struct e2e *e, int i, char out[E2E_PATH]);

/* Runs a program of ours to its end, which must be this exit status; its output goes to
 * DIR/NAME.log. `argv` ends with NULL; argv[0] is the program's name. `status` -1: any. Returns
 * it. */
int e2e_run(struct e2e *e, const char *name, const char *const *argv, int status);

/* What `rivulet-coordinator status` says of the run, as the coordinator serves. The caller's
 * reference. */
json_t *e2e_status(struct e2e *e);
/* One field of that. The caller's reference. */
json_t *e2e_status_of(struct e2e *e, const char *key);
/* The strikes of a member, by that; prints the reason of the last one. */
int64_t e2e_strikes(struct e2e *e, size_t member);

/* The first event `name` in a log, from line `*from` on, whose integer `key` is >= `at_least` (key
 * NULL: any); waits for it. *from (NULL: 0) moves past it. The caller's reference. */
json_t *e2e_wait_event(const struct process *p, const char *name, const char *key, int64_t at_least, long *from);
/* The same without waiting: NULL when it is not there. */
json_t *e2e_find_event(const char *log, const char *name, const char *key, int64_t at_least, long *from);
/* The last line of that kind in DIR/metrics.jsonl. The caller's reference; fails the test when
 * there is none. */
json_t *e2e_metrics(const char *dir, const char *kind);
const char *e2e_text(const json_t *object, const char *key);
int64_t e2e_int(const json_t *object, const char *key);
double e2e_time(const json_t *event); /* seconds */

#endif
