/* replica_stream.c: a replica's own state (replica_state.c) on its way to the host, in pieces. Of a
 * device's memory two are under way at a time, through pinned memory: the bus works while the host
 * copies or hashes the piece before. */
#include "base/assert.h"
#include "base/clock.h"
#include "train/replica.h"
#include "train/replica_internal.h"
#include "train/step_bounds.h"

#include <string.h>

/* ---- pieces ---- */

static void swap_parts(struct replica_pieces *s, int i, int k) {
	const struct replica_vector part = s->parts[i];
	struct backend *on = s->on[i];
	s->parts[i] = s->parts[k];
	s->on[i] = s->on[k];
	s->parts[k] = part;
	s->on[k] = on;
}

/* Sorts by place: the parts' slices of m come before those of v. */
static void sort_parts(struct replica_pieces *s) {
	for (int i = 1; i < s->n; i++)
		for (int k = i; k > 0 && s->parts[k - 1].at > s->parts[k].at; k--)
			swap_parts(s, k, k - 1);
}

static void begin_pieces(struct replica *r, struct replica_pieces *s) {
	_Static_assert((size_t)REPLICA_PIECE_BYTES == STREAMED_FLOATS * sizeof(float), "as step_bounds.h reserves");
	replica_end_update(r);
	*s = (struct replica_pieces){.n = 1};
	replica_copy_head(r, s->head);
	s->parts[0] = (struct replica_vector){0, s->head, REPLICA_HEAD_BYTES};
	s->n += replica_list_vectors(r, s->parts + 1, s->on + 1);
	for (int i = 0; i < s->n && !r->on_device; i++)
		s->on[i] = NULL;
	sort_parts(s);
	size_t end = 0;
	for (int i = 0; i < s->n; i++) {
		RV_ASSERT(s->parts[i].at == end);
		end += s->parts[i].bytes;
	}
	RV_ASSERT(end + RV_HASH_BYTES == replica_state_bytes(r));
}

/* Returns the bytes of the piece at a place, and moves the place there; 0: there is none. */
static size_t piece_at(const struct replica_pieces *s, struct replica_place *at) {
	while (at->part < s->n && at->done == s->parts[at->part].bytes)
		*at = (struct replica_place){.part = at->part + 1};
	if (at->part == s->n)
		return 0;
	const size_t left = s->parts[at->part].bytes - at->done;
	return left < REPLICA_PIECE_BYTES ? left : REPLICA_PIECE_BYTES;
}

static const uint8_t *bytes_at(const struct replica_pieces *s, const struct replica_place *at) {
	return (const uint8_t *)s->parts[at->part].from + at->done;
}

/* Begins to copy the next pieces: as many as a device has buffers. */
static void start_ahead(struct replica_pieces *s) {
	for (size_t n; s->under_way < FETCHES && (n = piece_at(s, &s->ahead)) > 0; s->ahead.done += n) {
		struct backend *on = s->on[s->ahead.part];
		s->under_way++;
		if (!on)
			continue;
		RV_ASSERT(n % sizeof(float) == 0);
		on->ops->begin_copies(on);
		on->ops->start_fetch(on, (const float *)(const void *)bytes_at(s, &s->ahead), n / sizeof(float));
	}
}

/* Returns the next piece, in the host's memory, until the next call; NULL: there is none. */
static const void *next_piece(struct replica_pieces *s, size_t *n) {
	start_ahead(s);
	*n = piece_at(s, &s->next);
	if (*n == 0)
		return NULL;
	struct backend *on = s->on[s->next.part];
	const void *piece = on ? (const void *)on->ops->end_fetch(on) : bytes_at(s, &s->next);
	s->next.done += *n;
	s->under_way--;
	return piece;
}

static void drop_pieces(struct replica_pieces *s) {
	for (size_t n; s->under_way > 0 && (n = piece_at(s, &s->next)) > 0; s->under_way--) {
		struct backend *on = s->on[s->next.part];
		if (on)
			(void)on->ops->end_fetch(on);
		s->next.done += n;
	}
}

bool replica_copy_vectors(struct replica *r, uint8_t *out, int64_t until_us) {
	struct replica_pieces s;
	size_t at = 0, n;
	begin_pieces(r, &s);
	for (const void *piece; (piece = next_piece(&s, &n)) != NULL; at += n) {
		memcpy(out + at, piece, n);
		if (until_us != INT64_MAX && rv_clock_monotonic_us() >= until_us) {
			drop_pieces(&s);
			return false;
		}
	}
	return true;
}

/* ---- the state with its hash ---- */

void replica_stream_begin(struct replica *r, struct replica_stream *s, uint8_t *room) {
	*s = (struct replica_stream){.room = room, .hasher = rv_hasher_of(REPLICA_STATE_DOMAIN)};
	begin_pieces(r, &s->pieces);
}

/* Returns the hash of what was read, and that it was the last. */
static const void *end_stream(struct replica_stream *s, size_t *n) {
	if (s->ended)
		return NULL;
	s->ended = true;
	s->hash = rv_hash_final(&s->hasher);
	*n = RV_HASH_BYTES;
	return s->hash.b;
}

const void *replica_stream_next(struct replica_stream *s, size_t *n) {
	const void *piece = next_piece(&s->pieces, n);
	if (!piece)
		return end_stream(s, n);
	if (s->room)
		piece = memcpy(s->room, piece, *n);
	rv_hash_update(&s->hasher, piece, *n);
	return piece;
}

void replica_stream_drop(struct replica_stream *s) {
	drop_pieces(&s->pieces);
}
