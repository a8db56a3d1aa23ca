/* reach_check.h: finds out how others reach this worker: asks the coordinator who could test it,
 * learns the router's mapping of its port meanwhile, has its addresses probed, and concludes.
 *
 * Before the join the mapping comes from two plain reflections at a relay and from the router
 * (net/portmap); after it from the worker's station. A check ends after REACH_CHECK_US, whatever
 * the others do, and at once if nobody is in the run who could test.
 *
 * No I/O, no clock, no allocation: what happens goes in with its time, operations come out. One
 * thread; operations may not call back. */
#ifndef RV_WORKER_JOIN_REACH_CHECK_H
#define RV_WORKER_JOIN_REACH_CHECK_H

#include "base/clock.h"
#include "net/address.h"
#include "net/control/reach_test.h"

enum {
	REACH_CHECK_US = 15 * RV_US_PER_S, /* until it ends with what it knows */
	REACH_GATHER_US = 5 * RV_US_PER_S  /* for the reflections and the router */
};

/* How the router maps the port on which the worker listens (RFC 4787 section 4.1). */
enum check_mapping {
	CHECK_MAPPING_NOT_KNOWN,
	CHECK_MAPPING_INDEPENDENT, /* to one public port for all destinations */
	CHECK_MAPPING_DEPENDENT    /* to another one for each: a symmetric router */
};

struct reach_router {
	bool asked;          /* the router has answered, or was not asked */
	uint16_t mapped;     /* public port that it says it forwards; 0: none */
	bool behind_another; /* its own address is not public */
};

/* The kinds of addresses that are tested. */
enum reach_place_kind {
	REACH_PLACE_OWN,       /* the port on which it listens */
	REACH_PLACE_MAPPED,    /* the port that the router forwards, possibly the same */
	REACH_PLACE_REFLECTED, /* the port that a relay saw */
	REACH_PLACE_GIVEN      /* --advertise */
};
struct reach_place {
	uint8_t kind;              /* enum reach_place_kind */
	uint8_t result;            /* enum probe_result */
	char addr[NET_ADDR_BYTES]; /* as in the request */
};

/* The facts from which a check concludes. */
struct reach_facts {
	uint16_t port;              /* on which it listens */
	char local[NET_ADDR_BYTES]; /* this machine's own host towards the coordinator; "": not known */
	char seen[NET_ADDR_BYTES];  /* host at which the coordinator sees it; "": it did not answer */
	uint8_t n_probers;
	bool has_relays; /* the run lists some */
	struct reach_router router;
	enum check_mapping mapping;
	uint8_t n;
	struct reach_place places[PROBE_MAX_ADDRS];
	char why[128]; /* why the test could not be had; "": it was, or nobody is there */
};

struct reach_check_ops {
	void *ctx;
	/* Asks the coordinator. Ends in one reach_check_answer. */
	void (*ask)(void *ctx, const struct reach_test_request *rq);
	/* Asks relays of the reply for two reflections. Ends in one reach_check_reflected. NULL: the
	 * mapping was given to reach_check_begin. */
	void (*reflect)(void *ctx, const struct reach_test_reply *reply);
};

struct reach_check_config {
	struct reach_check_ops ops;
	struct reach_test_request request; /* without addresses */
	uint16_t port;
	struct address given; /* --advertise, numeric or without a host; port 0: none */
	struct reach_router router;
	enum check_mapping mapping; /* as far as it is known already, */
	struct address reflected;   /* and where a relay sees the port; no host: not known */
};

enum reach_check_state { REACH_CHECK_IDLE, REACH_CHECK_ASKING, REACH_CHECK_GATHERING, REACH_CHECK_TESTING };

struct reach_check {
	struct reach_check_config cfg;
	enum reach_check_state state;
	bool waits;                          /* for an answer */
	int64_t begun_us, gather_us, ask_us; /* ask_us: time of the next question */
	bool reflected;                      /* the reflections have ended, or are not wanted */
	struct reach_facts facts;
};

/* Begins a check; one that is under way is given up, and its pending answer ignored by the
 * owner. */
void reach_check_begin(struct reach_check *c, int64_t now_us, const struct reach_check_config *cfg);
/* Returns true while it runs; then `facts` are final. */
static inline bool reach_check_runs(const struct reach_check *c) {
	return c->state != REACH_CHECK_IDLE;
}
/* Takes the coordinator's answer; NULL: there is none, and `why`. `final`: it refuses. */
void reach_check_answer(struct reach_check *c, int64_t now_us, const struct reach_test_reply *reply, bool final,
						const char *why);
/* Takes what the relay's two ports saw; no host: no answer. */
void reach_check_reflected(struct reach_check *c, int64_t now_us, const struct address *first,
						   const struct address *second);
void reach_check_router(struct reach_check *c, int64_t now_us, const struct reach_router *router);
void reach_check_local(struct reach_check *c, const char *host);
void reach_check_tick(struct reach_check *c, int64_t now_us);
int64_t reach_check_deadline_us(const struct reach_check *c); /* INT64_MAX: none */

/* Returns what follows from the facts. */
enum reach_kind reach_of_facts(const struct reach_facts *f);
/* Returns the place at which others reach the worker; NULL: none is known. */
const struct reach_place *reach_open_place(const struct reach_facts *f);
/* Returns true if probers looked at the port that the router maps, and none got through. */
bool reach_mapping_refuted(const struct reach_facts *f);

#endif
