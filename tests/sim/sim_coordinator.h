/* sim_coordinator.h: the platform around coordinator/core, and requests to it. */
#ifndef RV_TESTS_SIM_SIM_COORDINATOR_H
#define RV_TESTS_SIM_SIM_COORDINATOR_H

#include "coordinator/core/core.h"
#include "tests/common/memory_store.h"
#include "tests/sim/sim_limits.h"
#include "worker/join/control_client.h"

struct sim;
struct packet;

/* ---- HTTP: the head of a request or reply, then the encoded message ---- */

enum http_what { HTTP_CONFIG, HTTP_JOIN, HTTP_REPORT, HTTP_DOCUMENT, HTTP_PAIRS, HTTP_EVIDENCE, HTTP_WHATS };
struct http_head {
	uint8_t what;
	uint16_t status;  /* reply: 200, ...; 0: the connection is closed */
	uint32_t version; /* DOCUMENT: the highest that the client speaks */
	uint32_t id;      /* of the client's request */
	uint64_t life;    /* of the client */
	uint64_t after;   /* DOCUMENT: number that the client has; UINT64_MAX: none */
};
/* A request that is not answered yet. */
struct sim_call {
	uint32_t id; /* 0: none */
	void (*done)(void *ctx, const struct http_reply *reply);
	void *ctx;
};

/* ---- coordinator (sim_coordinator.c) ---- */

struct sim_poll {
	bool waiting;
	struct http_head head;
	int64_t until_us;
};
/* What a member was sent last, where each has its own document. */
struct sim_sent {
	uint64_t seq;          /* 0: nothing */
	uint64_t compared_seq; /* the latest document that says nothing else */
	struct rv_hash hash;
};
struct sim_coordinator {
	void *memory;
	struct core *core; /* NULL: not running */
	uint32_t version;  /* of the protocol, the highest that it speaks */
	uint64_t life;
	bool dark;            /* its host has no power: nothing answers */
	double disk_slowness; /* 1: none */
	bool writing;         /* one record at a time */
	bool steps;           /* reports were taken that it looks at soon */
	struct core_record record;
	struct memory_store store;
	struct sim_poll polls[SIM_MAX_WORKERS];
	struct sim_sent sent[SIM_MAX_WORKERS];
	bool own;                                /* each member has its own document: the one made last */
	struct http_head joins[SIM_MAX_WORKERS]; /* waiting for their record; id == 0: none */
	uint32_t join_members[SIM_MAX_WORKERS];
	int64_t timer_us;
};
void coordinator_start(struct sim *s);
/* `silent`: its host lost power, and no connection is closed. */
void coordinator_crash(struct sim *s, bool silent);
/* The kernel of `host` closes the connection on which its dead process waited for news. */
void coordinator_hang_up(struct sim *s, int host);
/* Does what its core has to do: records, answers, its timer. */
void coordinator_turn(struct sim *s);
void coordinator_receive(struct sim *s, const struct packet *p);
/* Looks in now and then, and takes back rounds that are lost. */
void operator_start(struct sim *s);
/* Takes the last `rounds` back, again and again until that is durable. */
void operator_takes_back(struct sim *s, uint64_t rounds);
void coordinator_release(struct sim_coordinator *c);

#endif
