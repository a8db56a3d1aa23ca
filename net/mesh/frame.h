/* frame.h: the peer link's wire encoding: a fixed 64-byte header, then a body of `body_bytes`
 * (docs/protocol.md, "Peer link").
 *
 * The header can be judged alone, before a byte of the body is read or room for it is made:
 * frame_header_invalid() returns the violated condition as text. Its check covers the header only
 * (a desynchronised stream is found at once); TLS protects the bodies. All integers are
 * little-endian. No I/O, no allocation; nothing here blocks. */
#ifndef RV_NET_MESH_FRAME_H
#define RV_NET_MESH_FRAME_H

#include "base/err.h"
#include "net/limits.h"
#include "net/reduce/reduce.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FRAME_MAGIC = 0x314c5652, /* "RVL1" */
	FRAME_VERSION = 1,
	FRAME_HEADER_BYTES = 64,
	FRAME_EXPORTER_BYTES = 32, /* TLS exporter, RFC 8446 section 7.5 */
	FRAME_HELLO_BYTES =
		4 + NET_RUN_ID_BYTES + 1 + 3 + 4 + NET_SIG_BYTES + NET_SIG_BYTES, /* protocol, run id, role, zero,
																		   member, ticket, signature */
	FRAME_FETCH_BYTES = 8,                                                /* kind, part, zero, index */
	FRAME_PIECE_BYTES = 16,    /* kind, part, encoding, zero, index, offset, total; then the data */
	FRAME_NONE_BYTES = 8,      /* kind, part, zero, index */
	FRAME_TEXT_FILE_BYTES = 8, /* number of a file */
	FRAME_TEXT_HELD_BYTES = 8, /* a bit for each file of the question */
	FRAME_BYE_MAX_BYTES = 256, /* why, for people: text without control bytes */
	FRAME_HELLO_SIGNED_BYTES = 14 + FRAME_EXPORTER_BYTES + NET_RUN_ID_BYTES + 1
};

/* The state of a link: TLS is up and the peer's HELLO is awaited, or the HELLO was accepted. */
enum frame_link { FRAME_LINK_GREETING = 1, FRAME_LINK_OPEN = 2 };

/* Header fields that a type may use. */
enum {
	FRAME_F_ROUND = 1,
	FRAME_F_ATTEMPT = 2,
	FRAME_F_CHUNK = 4,
	FRAME_F_FLAGS = 8,
	FRAME_F_SLICES = 16,
	FRAME_F_SECTION = 32
};

enum frame_type {
#define FRAME_MESSAGE(NAME, number, text, min, max, fields, links) FRAME_##NAME = (number),
#include "net/mesh/messages.def"
#undef FRAME_MESSAGE
};

/* Has the layout of the wire, field for field (on a little-endian machine also byte for byte). */
struct frame_header {
	uint32_t magic;
	uint16_t version;
	uint8_t type;  /* enum frame_type */
	uint8_t flags; /* RESUME, COLUMN_RESUME: REDUCE_RESUME_*; else 0 */
	uint32_t body_bytes;
	/* SCATTER, GATHER and these of a column: its index in the vector; LEAVES: that of the first;
	 * PING, COLUMN_PING: chunks for which the sender waits; else 0 */
	uint32_t chunk;
	uint64_t round;   /* SCATTER .. NONE; of FETCH, PIECE and NONE of kind TEXT: the file */
	uint64_t run_tag; /* frame_run_tag() of the run: a link of another run is noticed at its first frame */
	uint32_t attempt; /* SCATTER .. PING, LEAVES, SEAL, and these of a column */
	/* Offset of this slice in the body, and bytes of the body. Bulk may come in slices, in order,
	 * each with a header of its own; the rest of the header is the whole frame's. Both 0: not a
	 * slice. */
	uint32_t slice_at, whole_bytes;
	uint32_t section; /* COLUMN_*: first chunk of the column; else 0 */
	uint8_t reserved[8];
	uint64_t check; /* first 8 bytes of BLAKE2b-256 over the 56 bytes before */
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a header is copied as it lies in memory");
_Static_assert(offsetof(struct frame_header, magic) == 0, "wire layout");
_Static_assert(offsetof(struct frame_header, version) == 4, "wire layout");
_Static_assert(offsetof(struct frame_header, type) == 6, "wire layout");
_Static_assert(offsetof(struct frame_header, flags) == 7, "wire layout");
_Static_assert(offsetof(struct frame_header, body_bytes) == 8, "wire layout");
_Static_assert(offsetof(struct frame_header, chunk) == 12, "wire layout");
_Static_assert(offsetof(struct frame_header, round) == 16, "wire layout");
_Static_assert(offsetof(struct frame_header, run_tag) == 24, "wire layout");
_Static_assert(offsetof(struct frame_header, attempt) == 32, "wire layout");
_Static_assert(offsetof(struct frame_header, slice_at) == 36, "wire layout");
_Static_assert(offsetof(struct frame_header, whole_bytes) == 40, "wire layout");
_Static_assert(offsetof(struct frame_header, section) == 44, "wire layout");
_Static_assert(offsetof(struct frame_header, reserved) == 48, "wire layout");
_Static_assert(offsetof(struct frame_header, check) == 56, "wire layout");
_Static_assert(sizeof(struct frame_header) == FRAME_HEADER_BYTES, "wire layout");
_Static_assert((int)REDUCE_HEADER_BYTES == (int)FRAME_HEADER_BYTES, "wire layout");

/* Returns the first 8 bytes of the run id, as a little-endian integer. */
uint64_t frame_run_tag(const uint8_t run_id[NET_RUN_ID_BYTES]);

/* Returns "scatter", ...; "unknown" for a number that is not in the table. */
const char *frame_type_name(uint8_t type);

/* Returns true for SCATTER, GATHER, these of a column, LEAVES, PIECE: these may be long, may come
 * in slices, and wait for control. */
bool frame_is_bulk(uint8_t type);

/* Returns a header of `type` with all fields zero but magic, version, run tag and body length. */
struct frame_header frame_header_of(enum frame_type type, uint64_t run_tag, uint32_t body_bytes);

/* Encodes with the check computed here (h->check is ignored). */
void frame_header_encode(const struct frame_header *h, uint8_t out[FRAME_HEADER_BYTES]);

/* Splits 64 bytes into fields; judges nothing. */
void frame_header_decode(const uint8_t in[FRAME_HEADER_BYTES], struct frame_header *h);

/* Returns NULL if the header is valid on a link of that run in that state; else the violated
 * condition, e.g. "reserved bytes are not zero". A link that receives an invalid header is closed:
 * nothing after it can be trusted. */
const char *frame_header_invalid(const struct frame_header *h, uint64_t run_tag, enum frame_link link);

/* ---- bodies ---- */

/* Encoders fill `out`, of exactly the named size. Decoders take the whole body; RV_E_INVALID names
 * the field. */

/* A side of a TCP connection: its opener, or the other. The two sign different bytes, so a HELLO
 * cannot be played back to its sender. */
enum frame_role { FRAME_DIALER = 1, FRAME_LISTENER = 2 };

/* HELLO: the first frame in each direction. The sender's key is the one of its TLS certificate; the
 * signature by that key binds it to this connection and run. */
struct frame_hello {
	uint32_t protocol; /* FRAME_VERSION of the sender */
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint8_t role;                  /* enum frame_role */
	uint32_t member;               /* the sender's number in the run */
	uint8_t ticket[NET_SIG_BYTES]; /* run's signature for it (net/identity.h): for peers whose roster lacks it */
	uint8_t signature[NET_SIG_BYTES];
};
/* Makes the bytes that a HELLO signs: "rivulet hello" NUL | exporter | run id | role. */
void frame_hello_signed(const uint8_t exporter[FRAME_EXPORTER_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES],
						enum frame_role role, uint8_t out[FRAME_HELLO_SIGNED_BYTES]);
void frame_hello_encode(const struct frame_hello *m, uint8_t out[FRAME_HELLO_BYTES]);
enum rv_err frame_hello_decode(const void *body, size_t n, struct frame_hello *out, struct rv_errtext *et);

/* State transfer (docs/protocol.md). The round is in the header. A donor answers every FETCH, in
 * order, with the slices of the piece or part (PIECE, in order, until all of it was sent), or with
 * one NONE. */
enum frame_fetch_kind {
	FRAME_FETCH_SNAPSHOT = 1, /* theta and outer state at `round` */
	FRAME_FETCH_LOG,          /* the reduced bytes of `round` */
	FRAME_FETCH_TEXT,         /* file number `round` of the run's text, in pieces of NET_MAX_PIECE_BYTES, raw */
	FRAME_FETCH_CONTRIBUTION, /* chunk `index` of the donor's own contribution to `round`, and its proof, raw */
	FRAME_FETCH_INNER,        /* the same of its inner state (train/inner_state.h) after its steps of `round` */
	FRAME_FETCH_SUM           /* as the final owner of a chunk in `round`: a row's sum of it (frame_sum_index), raw */
};
/* Returns frame_fetch.index of the sum of a chunk that row number `row` of those in the mean has
 * made. */
static inline uint32_t frame_sum_index(uint32_t row, uint32_t chunk) {
	return row * NET_MAX_CHUNKS + chunk;
}
enum frame_fetch_part {
	FRAME_PART_PIECE = 0,
	FRAME_PART_MANIFEST, /* the hashes of the pieces, NET_MANIFEST_PART_BYTES of them at a time */
	FRAME_PART_FORGET    /* FETCH only: earlier requests that are not answered yet are answered by NONE */
};
enum frame_encoding { FRAME_RAW = 0, FRAME_ZSTD };
/* A request for the piece, or part of the manifest, number `index`. Its size follows from the run's
 * configuration. */
struct frame_fetch {
	uint8_t kind, part;
	uint64_t round;
	uint32_t index;
};
struct frame_piece {
	struct frame_fetch of;
	uint8_t encoding;       /* enum frame_encoding, of all its bytes */
	uint32_t offset, total; /* encoded bytes: 0 < total <= NET_MAX_PIECE_BYTES, offset + data_bytes <= total */
	const uint8_t *data;    /* borrows from the body */
	uint32_t data_bytes;    /* 1 to NET_MAX_SLICE_BYTES */
};
/* NONE: the donor does not have it, no longer has it, or not now. */

/* Returns the kind of a FETCH, PIECE or NONE. */
enum frame_fetch_kind frame_kind_of(const struct frame_header *h, const uint8_t *body);

/* Each of these makes header and body; `round` goes into the header. PIECE: the caller sends the
 * data after the 16 bytes. */
struct frame_header frame_fetch_encode(const struct frame_fetch *m, uint64_t run_tag, uint8_t body[FRAME_FETCH_BYTES]);
struct frame_header frame_piece_encode(const struct frame_piece *m, uint64_t run_tag, uint8_t body[FRAME_PIECE_BYTES]);
struct frame_header frame_none_encode(const struct frame_fetch *m, uint64_t run_tag, uint8_t body[FRAME_NONE_BYTES]);
/* Returns true if both ask for the same. */
bool frame_fetch_equal(const struct frame_fetch *a, const struct frame_fetch *b);
/* Takes FETCH and NONE, which gives back what was asked for. */
enum rv_err frame_fetch_decode(const struct frame_header *h, const void *body, struct frame_fetch *out,
							   struct rv_errtext *et);
enum rv_err frame_piece_decode(const struct frame_header *h, const void *body, struct frame_piece *out,
							   struct rv_errtext *et);

/* The question which of some files of the run's text a member holds (1 to NET_MAX_TEXT_FILES, of
 * any numbers), and the answer: bit i for file i. One question of a member is answered before it
 * asks the next. */
struct frame_header frame_text_ask_encode(const uint64_t *files, int n, uint64_t run_tag,
										  uint8_t body[FRAME_TEXT_FILE_BYTES * NET_MAX_TEXT_FILES]);
struct frame_header frame_text_held_encode(uint64_t held, uint64_t run_tag, uint8_t body[FRAME_TEXT_HELD_BYTES]);
/* Writes the files and returns how many there are. RV_E_INVALID: a part of a number. */
enum rv_err frame_text_ask_decode(const struct frame_header *h, const uint8_t *body, uint64_t files[NET_MAX_TEXT_FILES],
								  int *n, struct rv_errtext *et);
uint64_t frame_text_held_decode(const uint8_t body[FRAME_TEXT_HELD_BYTES]);

/* Makes the header of an all-reduce message: SCATTER, GATHER, RESUME, PING, LEAVES, SEAL, or these
 * of a column (but no LEAVES), or SUMS of one. The body is m->data. */
struct frame_header frame_reduce_encode(const struct reduce_msg *m, uint64_t run_tag);
/* Returns true for PING and COLUMN_PING, which may come between the slices of a frame. */
bool frame_is_ping(uint8_t type);
/* Returns true if the type is one of those twelve. frame_reduce_decode fills *out, which borrows
 * `body`. */
bool frame_is_reduce(uint8_t type);
void frame_reduce_decode(const struct frame_header *h, const uint8_t *body, struct reduce_msg *out);

#endif
