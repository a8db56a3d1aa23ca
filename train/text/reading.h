/* reading.h: which sequences of a published text one member of a run reads, and in which order.
 *
 * A member numbers the sequences that it reads (its *stream*); a *position* is the number of a
 * sequence in the order of all passes (sequence_order.h). The member holds a part of its stream:
 * numbers from `first` on, as pieces of consecutive positions (base/leases.h). */
#ifndef RV_TRAIN_TEXT_READING_H
#define RV_TRAIN_TEXT_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { READING_MAX_PIECES = 16 };

struct reading_piece {
	uint64_t begin, count; /* positions [begin, begin + count) */
};

struct reading {
	uint64_t first; /* stream number of the first sequence of pieces[0] */
	int n;          /* 0: it holds nothing */
	struct reading_piece pieces[READING_MAX_PIECES];
};

/* Adds a piece; one that goes on where the last ends becomes a part of that. Returns false if there
 * is no room, with nothing changed. */
bool reading_add(struct reading *r, uint64_t begin, uint64_t count);
/* Returns the stream number after the last that it holds. */
uint64_t reading_end(const struct reading *r);
/* Returns true if it holds the stream numbers [number, number + count). */
bool reading_has(const struct reading *r, uint64_t number, uint64_t count);
/* Returns the position of a stream number that it holds. */
uint64_t reading_position(const struct reading *r, uint64_t number);
/* Returns the part [number, number + count), which it holds. */
struct reading reading_part(const struct reading *r, uint64_t number, uint64_t count);

#endif
