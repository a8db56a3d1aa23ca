/* reach_tests.h: which members dial a worker that wants to know how others reach it, and what they
 * found (docs/security.md has the bound on third parties).
 *
 * A worker asks with the addresses that it would report. Two live members that are seen at other
 * hosts than the worker dial them, once each: the coordinator's own address would prove nothing, as
 * the worker's router lets in whom the worker has contacted. Each prober is handed the probe in the
 * reply to a report until a report of its has the answer. The same question gets the answer of the
 * same test for REACH_SAME_US, so it can be asked again and again for news.
 *
 * Addresses at the host at which the worker is seen are its own. A *given* address is any host that
 * a worker names. It counts as confirmed for a worker only if a prober found that worker's key
 * there and none found less; what a test for another key finds there changes nothing of that.
 *
 * The bounds on given addresses: the probes of one are counted by the address, for all who name it;
 * where it has a holder, a worker for which it was confirmed, others leave one of them to the
 * holder. New ones are counted over the whole run; a worker brings a few of them, and a site as
 * many by workers that ask themselves, who may have keys without number. One that may not be probed
 * yet uses up no test. Tests for reports leave REACH_NEWCOMERS of the tests at once to workers that
 * ask themselves.
 *
 * No I/O, no clock, no allocation. Times are monotonic microseconds. */
#ifndef RV_COORDINATOR_SERVICE_REACH_TESTS_H
#define RV_COORDINATOR_SERVICE_REACH_TESTS_H

#include "base/clock.h"
#include "net/control/probe.h"

enum {
	REACH_TESTS = 64,
	REACH_PROBERS = 2,                  /* of one test */
	REACH_GIVENS = 128,                 /* given addresses that are remembered */
	REACH_GIVENS_EACH = 2,              /* of these, of one worker; unconfirmed, of one site */
	REACH_HOLDERS = 4,                  /* of one given address */
	REACH_PER_SITE = 8,                 /* tests of one site that are remembered: more are refused */
	REACH_BURST = 32,                   /* tests of all sites at once; then one every REACH_EVERY_US */
	REACH_NEWCOMERS = 8,                /* of these, not for reports */
	REACH_GIVEN_PROBES = REACH_PROBERS, /* of one given address at once; then one every REACH_GIVEN_PROBE_US */
	REACH_GIVEN_BURST = 8 /* given addresses not seen before, at once; then one every REACH_GIVEN_EVERY_US */
};
#define REACH_TEST_US        (INT64_C(15) * RV_US_PER_S)  /* until a test ends without an answer */
#define REACH_SAME_US        (INT64_C(30) * RV_US_PER_S)  /* for which it answers the same question */
#define REACH_KEPT_US        (INT64_C(600) * RV_US_PER_S) /* for which it counts against its site */
#define REACH_EVERY_US       (INT64_C(5) * RV_US_PER_S)
#define REACH_GIVEN_EVERY_US (INT64_C(120) * RV_US_PER_S)
#define REACH_GIVEN_PROBE_US (INT64_C(3600) * RV_US_PER_S) /* so that one is probed three times an hour at most */
#define REACH_CONFIRMED_US   (INT64_C(86400) * RV_US_PER_S)

/* A worker's question. */
struct reach_question {
	uint8_t key[NET_KEY_BYTES];
	char host[NET_ADDR_BYTES];                /* numeric: where it is seen */
	uint8_t n;                                /* 0: only whether somebody could test it */
	struct probe_addr addrs[PROBE_MAX_ADDRS]; /* at `host` */
	bool given;                               /* n = 1: at another host than it is seen at */
	bool of_report;                           /* the coordinator asks, for what a member reports */
};

/* A live member. */
struct reach_helper {
	uint32_t member;  /* its slot, below NET_MAX_HERE */
	const char *host; /* numeric: where it is seen; borrowed */
};

struct reach_finding {
	uint8_t n_probers; /* who dial, or of n = 0 who could; 0: nobody */
	bool done;
	uint8_t results[PROBE_MAX_ADDRS]; /* enum probe_result: the best that a prober found */
};

struct reach_prober {
	uint32_t member; /* its slot */
	bool answered;
	uint8_t results[PROBE_MAX_ADDRS];
};

struct reach_test {
	uint64_t id; /* 0: free */
	struct reach_question ask;
	int64_t begun_us;
	uint8_t n_probers;
	struct reach_prober probers[REACH_PROBERS];
};

/* A worker that was found at a given address. */
struct reach_holder {
	uint8_t key[NET_KEY_BYTES];
	int64_t until_us; /* time until which it counts as confirmed there; 0: free */
};

/* A given address, over the whole run. */
struct reach_given {
	char addr[NET_ADDR_BYTES];  /* "": free */
	int64_t paid_us;            /* time up to which its probes are accounted for */
	uint8_t key[NET_KEY_BYTES]; /* of the worker that brought it */
	char host[NET_ADDR_BYTES];  /* at which that worker was seen */
	struct reach_holder holders[REACH_HOLDERS];
};

struct reach_tests {
	uint64_t last_id;
	struct reach_test tests[REACH_TESTS];
	struct reach_given givens[REACH_GIVENS];
	int64_t paid_us, given_paid_us; /* times up to which all tests, all new given addresses are accounted for */
	int64_t used_us[NET_MAX_HERE];  /* time of a member's last probe */
};

/* Makes it empty. `first_id`: above all ids of an earlier coordinator of the run, such as the wall
 * clock. */
void reach_tests_init(struct reach_tests *t, uint64_t first_id);

/* Begins a test, or reports on the one that the same question began. RV_E_BUSY: too many tests, of
 * this site or in all. */
enum rv_err reach_tests_ask(struct reach_tests *t, int64_t now_us, const struct reach_question *q,
							const struct reach_helper *helpers, int n_helpers, struct reach_finding *out,
							struct rv_errtext *et);
/* Fills in the probes that `member` shall make now, the oldest first. Returns false if there is
 * none. */
bool reach_tests_next(const struct reach_tests *t, int64_t now_us, uint32_t member, struct probes *out);
/* Takes a member's answers, each once; anything else that it says is ignored. */
void reach_tests_take(struct reach_tests *t, int64_t now_us, uint32_t member, const struct probed_list *probed);
/* Returns true if this worker was found at that given address within REACH_CONFIRMED_US. */
bool reach_tests_confirmed(const struct reach_tests *t, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						   const char *addr);

/* Returns true if both numeric hosts are of one site: equal, or of one /64 of IPv6. */
bool reach_same_site(const char *a, const char *b);

#endif
