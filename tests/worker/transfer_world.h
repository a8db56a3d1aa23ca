/* transfer_world.h: a joiner's fetcher and its donors, joined message by message, over real files,
 * in a time that a test makes pass. */
#ifndef TESTS_WORKER_TRANSFER_WORLD_H
#define TESTS_WORKER_TRANSFER_WORLD_H

#include "state_fixture.h"
#include "worker/transfer/donor_store.h"
#include "worker/transfer/fetch_store.h"

enum { TRANSFER_JOINER = 0, TRANSFER_DONORS = 3, TRANSFER_TAG = 77, TRANSFER_ROUNDS = 5, TRANSFER_MS = 1000 };

struct transfer_world {
	struct state_fixture *source, *target; /* what the donors have; the joiner's directory */
	struct donor *donors[TRANSFER_DONORS + 1];
	struct jobs *storage;
	struct fetcher *fetcher;
	int64_t now;
	uint64_t liars; /* flip a bit in every slice */
	uint64_t dead;
	/* what came of it */
	bool may_be_late; /* else a file that nobody waits for fails the test */
	bool may_warn;    /* else a file that the disk does not take fails the test */
	int files, failures, bad;
	uint32_t bad_member;
	struct state_id id;
	struct state_file *snapshot;
	struct blob *log;
	int pieces[TRANSFER_DONORS + 1];
	uint64_t bytes; /* of what was given */
};

/* Donors 1 to TRANSFER_DONORS have the state of some rounds, with a snapshot at 2 and 4; the joiner
 * has nothing. */
struct transfer_world *transfer_world_new(void);
void transfer_world_free(struct transfer_world *w);
void transfer_open_storage(struct transfer_world *w);
void transfer_open_fetcher(struct transfer_world *w); /* that of another process, over the same directory */
/* The storage thread has done all there was. */
void transfer_settle(struct transfer_world *w);
/* Everybody says what he has to say, a slice each, and a millisecond passes. False: nobody had
 * anything. */
bool transfer_say(struct transfer_world *w);
bool transfer_step(struct transfer_world *w); /* the same, and the storage thread does its part */
void transfer_until(struct transfer_world *w, int files);
struct state_id transfer_id(struct transfer_world *w, enum state_kind kind, uint64_t round);
void transfer_want(struct transfer_world *w, const struct state_id *first, const struct state_id *next);
void transfer_assert_snapshot(struct transfer_world *w, uint64_t round);

#endif
