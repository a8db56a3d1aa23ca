/* auditor_rig.h: an auditor between three contributors, for tests: what it may ask for is made up,
 * its time stands still, and tests answer what it fetches. Functions assert; there is one rig. */
#ifndef RV_TESTS_WORKER_AUDITOR_RIG_H
#define RV_TESTS_WORKER_AUDITOR_RIG_H

#include "base/merkle.h"
#include "worker/audit/auditor.h"

enum { SELF = 1, MEMBERS = 3, CHUNKS = 5, CHUNK = 3, BYTES = 100, TAG = 77, PATIENCE_US = 30 * 1000 * 1000 };

struct auditor_world {
	struct auditor *a;
	int64_t now_us;
	uint8_t data[MEMBERS][CHUNKS][BYTES];
	struct rv_hash nodes[MEMBERS][2 * CHUNKS + MERKLE_LEVELS];
	bool linked[MEMBERS], own_is_there, busy, relayed;
	bool beyond;   /* no contributions of those that are missing make the mean */
	int looked;    /* times that this was asked */
	unsigned had;  /* members whose pieces were there, by bits */
	bool is_short; /* there is no memory for pieces */
	int taken, judged;
	enum audit_verdict verdict;
	uint8_t kind;       /* of the audit that is judged */
	size_t sent_bytes;  /* of a contribution to be scored; 0: this worker cannot */
	uint8_t *scored;    /* that was given to be scored; NULL: none */
	uint32_t scored_of; /* whose that is */
	uint32_t chunk;     /* that answers are for, and FETCH is expected for */
};
extern struct auditor_world w;
extern struct document doc; /* as the auditor followed it last */

/* Writes a chunk of a member with its proof; returns the bytes. */
size_t piece_of(uint32_t member, uint32_t chunk, uint8_t *out);
/* Begins anew: all members are linked, and the round with their contributions is being reduced. */
void open_world(void);
/* Ends a test, and asserts that all memory was given back. */
int close_world(void **state);
/* Has the auditor follow a document: the round is committed, and this worker is to audit CHUNK. */
void order(uint32_t attempt);
/* Opens a world, and orders that audit. */
void begin(void);
/* Returns whether the auditor asks the member now, for w.chunk. */
bool is_asked(uint32_t member);
/* Gives `slice` bytes at `at` of a piece of n, or what is left. */
enum rv_err answer_slice(uint32_t member, const uint8_t *piece, size_t n, size_t at, size_t slice);
/* Gives a piece of n bytes in slices. */
enum rv_err answer_bytes(uint32_t member, const uint8_t *piece, size_t n, size_t slice);
/* Gives what the member has committed to of w.chunk. */
enum rv_err answer(uint32_t member);
/* Answers that the member does not have it. */
enum rv_err answer_none(uint32_t member);
/* Returns the only result that a report has. */
const struct audit_result *result(void);
/* Asserts that the audit of CHUNK is over, with this verdict on this member. */
void expect(enum audit_verdict verdict, uint32_t member);
/* Returns whether the audit of CHUNK is not over. */
bool is_open(void);

#endif
