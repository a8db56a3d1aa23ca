/* service_bench.h: a coordinator's service over a store in memory, and members with the keys {1},
 * {2}, ... whose reports a test chooses. */
#ifndef RV_TESTS_COORDINATOR_SERVICE_BENCH_H
#define RV_TESTS_COORDINATOR_SERVICE_BENCH_H

#include "coordinator/service/service.h"
#include "tests/common/memory_store.h"

struct service_bench {
	struct memory_store store;
	struct identity run;
	struct service *service;
	const char *config; /* of its run */
	int64_t now_us;
	uint64_t seq;
	/* In reports from now on: */
	uint8_t storage;
	uint64_t compute_us;
	bool nameless;                                  /* who joins from now on */
	const struct report *state;                     /* whose round and chain; NULL: the run's */
	uint8_t liar;                                   /* who claims everything that a report can hold; 0: nobody */
	void (*alter)(struct report *rep, uint8_t who); /* what else it says; NULL: nothing */
	struct member_sight sight;                      /* of the member that reports */
};

/* Set-ups and tear-down of tests: a run of four rounds with min-workers = 2; in rows of four; one
 * of 20 rounds in which members with slow uplinks send topk64. The tear-down holds docs/privacy.md
 * against the last status. */
int bench_set_up(void **state);
int bench_set_up_rows(void **state);
int bench_set_up_coarser(void **state);
int bench_set_up_audited(void **state);
int bench_set_up_scored(void **state); /* its training is audited, its means are not */
int bench_set_up_text(void **state);   /* a run with a data-hash, whose members may bring a text */
int bench_tear_down(void **state);
/* Starts the service anew from its store, as after a crash. */
void bench_restart(struct service_bench *b);

/* Joins {who} by an invite of its own, which a failing store makes nevertheless. */
enum rv_err bench_join(struct service_bench *b, uint8_t who, struct join_reply *out);
/* Reads the document of {1}, a member. */
void bench_document(struct service_bench *b, struct document *out);
/* Reports as {who}. `addr`: ":port", or "host:port": then the host is given, too. */
enum rv_err bench_report(struct service_bench *b, uint8_t who, enum worker_phase phase, const char *addr);
/* Commits a round of {1} and {2}. */
void bench_commit_round(struct service_bench *b);
/* Returns true if an event for everybody contains `what`. */
bool bench_was_told(struct service_bench *b, const char *what);

#endif
