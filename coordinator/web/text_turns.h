/* text_turns.h: whose part of the run's text leaves the coordinator next: one of each member in
 * turn, at most at a given rate over all of them, so that the documents of rounds still pass. No
 * I/O, no clock. */
#ifndef RV_COORDINATOR_TEXT_TURNS_H
#define RV_COORDINATOR_TEXT_TURNS_H

#include "base/gcra.h"
#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Bounds of requests under way: of all members, and of each. */
enum { TEXT_REPLIES_MAX = 64, TEXT_REPLIES_PER_MEMBER = 2, TEXT_PART_BYTES = 1 << 16 };
/* The time after which a request whose part has not left makes way where places are scarce. */
#define TEXT_SLOW_US INT64_C(10000000)

/* A request under way; a part of its owner's. */
struct text_turn {
	TAILQ_ENTRY(text_turn) link;
	uint8_t key[NET_KEY_BYTES]; /* the member's */
	uint64_t number;            /* grows */
	bool leaves;                /* a part is on its way, since sent_us */
	int64_t sent_us;
};

struct text_turns {
	TAILQ_HEAD(text_turn_list, text_turn) list; /* whose turn it is comes first */
	int n;
	uint64_t last_number;
	struct gcra limit; /* each_us 0: none */
	int64_t paid_until_us;
};

/* Makes it empty. `bytes_per_s`: of all replies together; 0: no limit. */
void text_turns_init(struct text_turns *t, int64_t bytes_per_s);
/* Returns true if the member may have one more request under way. */
bool text_turns_admits(const struct text_turns *t, const uint8_t key[NET_KEY_BYTES]);
/* Returns the request that makes way for the first one of another member, while all places are
 * taken: the latest that waits behind another of its member, else the slowest of those whose parts
 * do not leave. NULL: none does. */
struct text_turn *text_turns_gives_way(const struct text_turns *t, const uint8_t key[NET_KEY_BYTES], int64_t now_us);
void text_turns_add(struct text_turns *t, struct text_turn *turn, const uint8_t key[NET_KEY_BYTES]);
void text_turns_remove(struct text_turns *t, struct text_turn *turn);

/* Returns the request whose turn it is among those that `may` accepts; NULL: there is none. A
 * member's requests are answered one after the other. */
struct text_turn *text_turns_next(const struct text_turns *t,
								  bool (*may)(const void *ctx, const struct text_turn *turn), const void *ctx);
/* Returns the time from which a part may be sent; it may be past. */
int64_t text_turns_ready_us(const struct text_turns *t);
/* Counts a part that is sent: it leaves, and the others come before this one's next. */
void text_turns_sent(struct text_turns *t, struct text_turn *turn, int64_t now_us);

#endif
