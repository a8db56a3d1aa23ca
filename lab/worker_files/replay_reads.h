/* replay_reads.h: which positions of a leased text the committed contributions of a replayed run
 * contain: each one once, at most. */
#ifndef RV_LAB_REPLAY_READS_H
#define RV_LAB_REPLAY_READS_H

#include "base/err.h"
#include "train/text/reading.h"

#include <stdbool.h>
#include <stddef.h>

/* Positions under the numbers of one member's stream: pieces by ascending number. */
struct replay_stream {
	struct replay_piece {
		uint64_t number, begin, count;
	} * pieces; /* (n, room cap) */
	size_t n, cap;
};

/* Positions of all committed contributions. */
struct replay_reads {
	struct reading_piece *pieces; /* (n, room cap) */
	size_t n, cap;
};

/* Sets what a stream has from number reads->first on; what it had there before is forgotten: a
 * process that starts again from a copy reads other sequences under the same numbers.
 * RV_E_NOMEM. */
enum rv_err replay_stream_put(struct replay_stream *s, const struct reading *reads, struct rv_errtext *et);
/* Adds the numbers [first, first + count) of a stream: a contribution is committed. RV_E_PROTOCOL:
 * the stream lacks some; RV_E_NOMEM. */
enum rv_err replay_reads_add(struct replay_reads *r, const struct replay_stream *s, uint64_t first, uint64_t count,
							 struct rv_errtext *et);

struct replay_counted {
	uint64_t sequences; /* of committed contributions */
	uint64_t until;     /* all positions below are in one */
	uint64_t passes;    /* `until` in passes of `length`, rounded down */
};
/* Counts the positions, and sorts the pieces. `length`: sequences of a pass. RV_E_PROTOCOL: a
 * position is in two contributions; the text names it. */
enum rv_err replay_reads_count(struct replay_reads *r, uint64_t length, struct replay_counted *out,
							   struct rv_errtext *et);
void replay_stream_release(struct replay_stream *s);
void replay_reads_release(struct replay_reads *r);

#endif
