/* service_world.h: a coordinator among hostile workers, for fuzz_service.c: the service over a
 * store in memory that is sometimes full, and what must hold of the documents that it announces.
 *
 * There is one world, begun anew by every execution; of earlier ones nothing is left but memory,
 * and tickets that were found to be signed well. */
#ifndef RV_TESTS_FUZZ_SERVICE_WORLD_H
#define RV_TESTS_FUZZ_SERVICE_WORLD_H

#include "coordinator/service/service.h"
#include "tests/common/memory_store.h"

enum {
	WORLD_KEYS = 6,
	WORLD_ROUNDS_MAX = 9,
	WORLD_RESTARTS_MAX = 2,
	WORLD_STORE_BYTES = 1 << 16,
	WORLD_TOKENS = 4 + WORLD_KEYS
};

struct world {
	const char *config;                      /* the run's */
	uint32_t n_chunks[WORLD_ROUNDS_MAX + 1]; /* that each round exchanges */
	struct memory_store store;
	struct service *service;
	int64_t now_us;
	struct document doc; /* the latest */
	/* State hashes of the rounds up to doc.round, as documents have said; zero: none was seen. */
	struct rv_hash chains[WORLD_ROUNDS_MAX + 1];
	/* What does not follow from the document; term: less the document's; n_chunks 0: the run's. */
	struct report says[WORLD_KEYS];
	uint64_t seq; /* of reports */
	int restarts;
};

/* `config`: which one of a few. The world is valid until the next call. */
struct world *world_begin(uint8_t config);
/* After a restart everything is as it was; nothing has leaked. */
void world_end(struct world *w);

const uint8_t *world_run_id(void);
void world_key(unsigned who, uint8_t key[NET_KEY_BYTES]);
/* Decodes and checks the document, when it is another than the last. */
void world_look(struct world *w);
/* What takes as long as some twenty reports: the signature of the document, status and
 * metrics. `details`: of the status. */
void world_look_closely(struct world *w, bool details);
/* The reply to a join is whole, for this run, and its ticket is signed. */
void world_look_at_reply(const void *p, size_t n, const uint8_t key[NET_KEY_BYTES]);
/* The service ends, and another one is made of the records: what was announced is what they say.
 * Nothing happens more than WORLD_RESTARTS_MAX times: it takes as long as ten reports. */
void world_restart(struct world *w);

#endif
