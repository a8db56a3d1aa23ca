/* frame.c: the peer link's header and bodies, byte by byte (net/mesh/frame.h, docs/protocol.md). */
#include "net/mesh/frame.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "net/control/layout.h"

#include <string.h>

enum { FRAME_CHECKED_BYTES = 56 };

struct message_rule {
	const char *name;
	uint32_t min, max;
	unsigned fields, links;
};

/* Indexed by type; a number that is not in the table has no name. */
static const struct message_rule rules[] = {
#define FRAME_MESSAGE(NAME, number, text, min, max, fields, links) [number] = {text, min, max, fields, links},
#include "net/mesh/messages.def"
#undef FRAME_MESSAGE
};

static const struct message_rule *rule_of(uint8_t type) {
	if (type >= sizeof rules / sizeof rules[0] || rules[type].name == NULL)
		return NULL;
	return &rules[type];
}

uint64_t frame_run_tag(const uint8_t run_id[NET_RUN_ID_BYTES]) {
	struct rv_reader r = rv_reader_of(run_id, NET_RUN_ID_BYTES);
	return rv_read_u64(&r);
}

const char *frame_type_name(uint8_t type) {
	const struct message_rule *rule = rule_of(type);
	return rule != NULL ? rule->name : "unknown";
}

bool frame_is_bulk(uint8_t type) {
	const struct message_rule *rule = rule_of(type);
	return rule != NULL && (rule->fields & FRAME_F_SLICES) != 0;
}

struct frame_header frame_header_of(enum frame_type type, uint64_t run_tag, uint32_t body_bytes) {
	return (struct frame_header){.magic = FRAME_MAGIC,
								 .version = FRAME_VERSION,
								 .type = (uint8_t)type,
								 .run_tag = run_tag,
								 .body_bytes = body_bytes};
}

static uint64_t check_of(const uint8_t header[FRAME_HEADER_BYTES]) {
	struct rv_hash hash = rv_hash_of(header, FRAME_CHECKED_BYTES);
	struct rv_reader r = rv_reader_of(hash.b, sizeof hash.b);
	return rv_read_u64(&r);
}

/* The struct lies in memory as on the wire: frame.h asserts it. */
void frame_header_encode(const struct frame_header *h, uint8_t out[FRAME_HEADER_BYTES]) {
	memcpy(out, h, FRAME_CHECKED_BYTES);
	uint64_t check = check_of(out);
	memcpy(out + FRAME_CHECKED_BYTES, &check, sizeof check);
}

void frame_header_decode(const uint8_t in[FRAME_HEADER_BYTES], struct frame_header *h) {
	memcpy(h, in, FRAME_HEADER_BYTES);
}

static bool all_zero(const uint8_t *p, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (p[i] != 0)
			return false;
	return true;
}

static bool check_matches(const struct frame_header *h) {
	uint8_t bytes[FRAME_HEADER_BYTES];
	frame_header_encode(h, bytes);
	return check_of(bytes) == h->check;
}

static const char *slice_invalid(const struct frame_header *h, const struct message_rule *rule, enum frame_link link) {
	if (link != FRAME_LINK_OPEN || (rule->fields & FRAME_F_SLICES) == 0)
		return "a slice, where none may come";
	if (h->whole_bytes < rule->min || h->whole_bytes > rule->max)
		return "whole_bytes is not within the type's limits";
	if (h->body_bytes == 0 || h->body_bytes >= h->whole_bytes)
		return "a slice must be some of the whole, and not all of it";
	if (h->slice_at > h->whole_bytes - h->body_bytes)
		return "a slice runs past the end of the whole";
	return NULL;
}

static const char *length_invalid(const struct frame_header *h, const struct message_rule *rule, enum frame_link link) {
	if (h->whole_bytes != 0 || h->slice_at != 0)
		return slice_invalid(h, rule, link);
	if (h->body_bytes < rule->min)
		return "body_bytes is below the type's minimum";
	if (h->body_bytes > rule->max)
		return "body_bytes is above the type's limit";
	if (link == FRAME_LINK_GREETING && h->body_bytes > NET_MAX_FRAME_UNAUTHENTICATED)
		return "body_bytes is above the limit before authentication";
	return NULL;
}

/* Checks the fields that depend on the type. */
static const char *message_invalid(const struct frame_header *h, const struct message_rule *rule,
								   enum frame_link link) {
	if ((rule->links & (unsigned)link) == 0)
		return link == FRAME_LINK_GREETING ? "only a hello or a bye may come before the hello is accepted"
										   : "a second hello on an open link";
	const char *wrong = length_invalid(h, rule, link);
	if (wrong != NULL)
		return wrong;
	if ((rule->fields & FRAME_F_ROUND) == 0 && h->round != 0)
		return "round is not zero in a type without one";
	if ((rule->fields & FRAME_F_ATTEMPT) == 0 && h->attempt != 0)
		return "attempt is not zero in a type without one";
	if ((rule->fields & FRAME_F_ATTEMPT) != 0 && h->attempt == 0)
		return "attempt is zero";
	if ((rule->fields & FRAME_F_CHUNK) == 0 && h->chunk != 0)
		return "chunk is not zero in a type without one";
	if (h->chunk > NET_MAX_CHUNKS)
		return "chunk is above the limit";
	if ((rule->fields & FRAME_F_SECTION) == 0 && h->section != 0)
		return "section is not zero in a type without one";
	if (h->section >= NET_MAX_CHUNKS)
		return "section is above the limit";
	if ((rule->fields & FRAME_F_FLAGS) == 0 && h->flags != 0)
		return "flags are not zero in a type without any";
	if ((h->flags & ~(REDUCE_RESUME_ACK | REDUCE_RESUME_ASK)) != 0)
		return "unknown flags";
	return NULL;
}

const char *frame_header_invalid(const struct frame_header *h, uint64_t run_tag, enum frame_link link) {
	if (h->magic != FRAME_MAGIC)
		return "magic is not RVL1: not a peer link of Rivulet";
	if (h->version != FRAME_VERSION)
		return "version is not 1: the peer speaks another protocol version: update the older program";
	if (!check_matches(h))
		return "header check does not match";
	if (!all_zero(h->reserved, sizeof h->reserved))
		return "reserved bytes are not zero";
	if (h->run_tag != run_tag)
		return "run tag is another run's";
	const struct message_rule *rule = rule_of(h->type);
	if (rule == NULL)
		return "unknown type";
	return message_invalid(h, rule, link);
}

/* ---- hello ---- */

void frame_hello_signed(const uint8_t exporter[FRAME_EXPORTER_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES],
						enum frame_role role, uint8_t out[FRAME_HELLO_SIGNED_BYTES]) {
	static const char domain[14] = "rivulet hello";
	struct rv_writer w = rv_writer_of(out, FRAME_HELLO_SIGNED_BYTES);
	rv_write_bytes(&w, domain, sizeof domain);
	rv_write_bytes(&w, exporter, FRAME_EXPORTER_BYTES);
	rv_write_bytes(&w, run_id, NET_RUN_ID_BYTES);
	rv_write_u8(&w, (uint8_t)role);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_HELLO_SIGNED_BYTES);
}

static const struct layout hello_fields[] = {
	LAYOUT_FIELD(PLAIN, struct frame_hello, protocol),  LAYOUT_FIELD(PLAIN, struct frame_hello, run_id),
	LAYOUT_FIELD(PLAIN, struct frame_hello, role),      LAYOUT_PADDING(3),
	LAYOUT_FIELD(PLAIN, struct frame_hello, member),    LAYOUT_FIELD(PLAIN, struct frame_hello, ticket),
	LAYOUT_FIELD(PLAIN, struct frame_hello, signature), LAYOUT_LAST,
};

void frame_hello_encode(const struct frame_hello *m, uint8_t out[FRAME_HELLO_BYTES]) {
	struct rv_writer w = rv_writer_of(out, FRAME_HELLO_BYTES);
	layout_write(hello_fields, m, &w);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_HELLO_BYTES);
}

enum rv_err frame_hello_decode(const void *body, size_t n, struct frame_hello *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(body, n);
	RV_TRY(layout_read(hello_fields, &r, out, "hello", et));
	if (!rv_reader_done(&r))
		return rv_fail(et, RV_E_INVALID, "hello: %zu bytes, must be %d", n, (int)FRAME_HELLO_BYTES);
	if (out->role != FRAME_DIALER && out->role != FRAME_LISTENER)
		return rv_fail(et, RV_E_INVALID, "hello: role = %u: must be 1 (dialer) or 2 (listener)", out->role);
	if (out->member == NET_NO_MEMBER)
		return rv_fail(et, RV_E_INVALID, "hello: member = %u, which is the number of none", out->member);
	return RV_OK;
}

/* ---- state transfer ---- */

/* The fields with which FETCH, PIECE and NONE begin; only PIECE has an encoding. */
static const struct layout piece_fields[] = {
	LAYOUT_FIELD(PLAIN, struct frame_piece, of.kind),  LAYOUT_FIELD(PLAIN, struct frame_piece, of.part),
	LAYOUT_FIELD(PLAIN, struct frame_piece, encoding), LAYOUT_PADDING(1),
	LAYOUT_FIELD(PLAIN, struct frame_piece, of.index), LAYOUT_LAST,
};

static enum rv_err read_fetch(struct rv_reader *r, const struct frame_header *h, struct frame_piece *piece,
							  struct rv_errtext *et) {
	const char *name = frame_type_name(h->type);
	struct frame_fetch *out = &piece->of;
	out->round = h->round;
	RV_TRY(layout_read(piece_fields, r, piece, name, et));
	if (!rv_reader_ok(r))
		return rv_fail(et, RV_E_INVALID, "%s: %u bytes, at least %d", name, h->body_bytes, (int)FRAME_FETCH_BYTES);
	if (out->kind < FRAME_FETCH_SNAPSHOT || out->kind > FRAME_FETCH_SUM)
		return rv_fail(
			et, RV_E_INVALID,
			"%s: kind = %u: must be 1 (snapshot), 2 (log), 3 (text), 4 (contribution), 5 (inner state) or 6 (sum)",
			name, out->kind);
	if (out->kind >= FRAME_FETCH_TEXT && (out->part == FRAME_PART_MANIFEST || piece->encoding != FRAME_RAW))
		return rv_fail(et, RV_E_INVALID,
					   "%s: part = %u, encoding = %u: text, contributions, inner states and sums come in pieces, raw",
					   name, out->part, piece->encoding);
	if (out->part > (h->type == FRAME_FETCH ? FRAME_PART_FORGET : FRAME_PART_MANIFEST))
		return rv_fail(et, RV_E_INVALID, "%s: part = %u: must be 0 (piece) or 1 (manifest)%s", name, out->part,
					   h->type == FRAME_FETCH ? " or 2 (forget)" : "");
	return RV_OK;
}

static struct frame_header state_header(enum frame_type type, uint64_t run_tag, uint64_t round, uint32_t body_bytes) {
	struct frame_header h = frame_header_of(type, run_tag, body_bytes);
	h.round = round;
	return h;
}

struct frame_header frame_fetch_encode(const struct frame_fetch *m, uint64_t run_tag, uint8_t body[FRAME_FETCH_BYTES]) {
	struct rv_writer w = rv_writer_of(body, FRAME_FETCH_BYTES);
	layout_write(piece_fields, &(struct frame_piece){.of = *m}, &w);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_FETCH_BYTES);
	return state_header(FRAME_FETCH, run_tag, m->round, FRAME_FETCH_BYTES);
}

struct frame_header frame_none_encode(const struct frame_fetch *m, uint64_t run_tag, uint8_t body[FRAME_NONE_BYTES]) {
	_Static_assert((int)FRAME_NONE_BYTES == (int)FRAME_FETCH_BYTES, "what was asked for comes back");
	(void)frame_fetch_encode(m, run_tag, body);
	return state_header(FRAME_NONE, run_tag, m->round, FRAME_NONE_BYTES);
}

bool frame_fetch_equal(const struct frame_fetch *a, const struct frame_fetch *b) {
	return a->kind == b->kind && a->part == b->part && a->round == b->round && a->index == b->index;
}

enum rv_err frame_fetch_decode(const struct frame_header *h, const void *body, struct frame_fetch *out,
							   struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(body, h->body_bytes);
	struct frame_piece piece;
	RV_TRY(read_fetch(&r, h, &piece, et));
	*out = piece.of;
	if (!rv_reader_done(&r) || piece.encoding != 0)
		return rv_fail(et, RV_E_INVALID, "%s: must be %d bytes, the third of them zero", frame_type_name(h->type),
					   (int)FRAME_FETCH_BYTES);
	return RV_OK;
}

struct frame_header frame_piece_encode(const struct frame_piece *m, uint64_t run_tag, uint8_t body[FRAME_PIECE_BYTES]) {
	RV_ASSERT(m->data_bytes > 0 && m->data_bytes <= NET_MAX_SLICE_BYTES);
	struct rv_writer w = rv_writer_of(body, FRAME_PIECE_BYTES);
	layout_write(piece_fields, m, &w);
	rv_write_u32(&w, m->offset);
	rv_write_u32(&w, m->total);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_PIECE_BYTES);
	return state_header(FRAME_PIECE, run_tag, m->of.round, FRAME_PIECE_BYTES + m->data_bytes);
}

enum rv_err frame_piece_decode(const struct frame_header *h, const void *body, struct frame_piece *out,
							   struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(body, h->body_bytes);
	RV_TRY(read_fetch(&r, h, out, et));
	out->offset = rv_read_u32(&r);
	out->total = rv_read_u32(&r);
	if (!rv_reader_ok(&r))
		return rv_fail(et, RV_E_INVALID, "piece: %u bytes, more than %d", h->body_bytes, (int)FRAME_PIECE_BYTES);
	out->data_bytes = (uint32_t)rv_reader_left(&r);
	out->data = rv_read_span(&r, out->data_bytes);
	if (out->encoding != FRAME_RAW && out->encoding != FRAME_ZSTD)
		return rv_fail(et, RV_E_INVALID, "piece: encoding = %u: must be 0 (raw) or 1 (zstd)", out->encoding);
	if (out->data_bytes == 0 || out->data_bytes > NET_MAX_SLICE_BYTES)
		return rv_fail(et, RV_E_INVALID, "piece: %u bytes of data: must be 1 to %d", out->data_bytes,
					   (int)NET_MAX_SLICE_BYTES);
	if (out->total > NET_MAX_PIECE_BYTES)
		return rv_fail(et, RV_E_INVALID, "piece: total = %u: at most %d", out->total, (int)NET_MAX_PIECE_BYTES);
	if (out->offset > out->total || out->data_bytes > out->total - out->offset)
		return rv_fail(et, RV_E_INVALID, "piece: %u bytes at offset %u run past the total of %u", out->data_bytes,
					   out->offset, out->total);
	return RV_OK;
}

enum frame_fetch_kind frame_kind_of(const struct frame_header *h, const uint8_t *body) {
	RV_ASSERT(h->type == FRAME_FETCH || h->type == FRAME_PIECE || h->type == FRAME_NONE);
	return (enum frame_fetch_kind)body[0];
}

/* ---- which files of the text a member holds ---- */

struct frame_header frame_text_ask_encode(const uint64_t *files, int n, uint64_t run_tag,
										  uint8_t body[FRAME_TEXT_FILE_BYTES * NET_MAX_TEXT_FILES]) {
	RV_ASSERT(n > 0 && n <= NET_MAX_TEXT_FILES);
	struct rv_writer w = rv_writer_of(body, (size_t)n * FRAME_TEXT_FILE_BYTES);
	for (int i = 0; i < n; i++)
		rv_write_u64(&w, files[i]);
	RV_ASSERT(!w.failed);
	return frame_header_of(FRAME_TEXT_ASK, run_tag, (uint32_t)n * FRAME_TEXT_FILE_BYTES);
}

struct frame_header frame_text_held_encode(uint64_t held, uint64_t run_tag, uint8_t body[FRAME_TEXT_HELD_BYTES]) {
	struct rv_writer w = rv_writer_of(body, FRAME_TEXT_HELD_BYTES);
	rv_write_u64(&w, held);
	return frame_header_of(FRAME_TEXT_HELD, run_tag, FRAME_TEXT_HELD_BYTES);
}

enum rv_err frame_text_ask_decode(const struct frame_header *h, const uint8_t *body, uint64_t files[NET_MAX_TEXT_FILES],
								  int *n, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(body, h->body_bytes);
	RV_ASSERT(h->type == FRAME_TEXT_ASK && h->body_bytes <= FRAME_TEXT_FILE_BYTES * NET_MAX_TEXT_FILES);
	*n = (int)(h->body_bytes / FRAME_TEXT_FILE_BYTES);
	for (int i = 0; i < *n; i++)
		files[i] = rv_read_u64(&r);
	return rv_reader_done(&r) ? RV_OK
							  : rv_fail(et, RV_E_INVALID, "text-ask: %u bytes: must be a multiple of %d", h->body_bytes,
										(int)FRAME_TEXT_FILE_BYTES);
}

uint64_t frame_text_held_decode(const uint8_t body[FRAME_TEXT_HELD_BYTES]) {
	struct rv_reader r = rv_reader_of(body, FRAME_TEXT_HELD_BYTES);
	return rv_read_u64(&r);
}

/* ---- all-reduce ---- */

/* enum reduce_type <-> enum frame_type, in the row and in a column */
static const uint8_t frame_of_reduce[2][REDUCE_SUMS + 1] = {
	{[REDUCE_SCATTER] = FRAME_SCATTER,
	 [REDUCE_GATHER] = FRAME_GATHER,
	 [REDUCE_RESUME] = FRAME_RESUME,
	 [REDUCE_PING] = FRAME_PING,
	 [REDUCE_LEAVES] = FRAME_LEAVES,
	 [REDUCE_SEAL] = FRAME_SEAL},
	{[REDUCE_SCATTER] = FRAME_COLUMN_SCATTER,
	 [REDUCE_GATHER] = FRAME_COLUMN_GATHER,
	 [REDUCE_RESUME] = FRAME_COLUMN_RESUME,
	 [REDUCE_PING] = FRAME_COLUMN_PING,
	 [REDUCE_SEAL] = FRAME_COLUMN_SEAL,
	 [REDUCE_SUMS] = FRAME_COLUMN_SUMS},
};

struct frame_header frame_reduce_encode(const struct reduce_msg *m, uint64_t run_tag) {
	RV_ASSERT(m->type >= REDUCE_SCATTER && m->type <= REDUCE_SUMS && (m->column || m->section == 0));
	RV_ASSERT(m->type != (m->column ? REDUCE_LEAVES : REDUCE_SUMS));
	const bool of_chunk = m->type == REDUCE_SCATTER || m->type == REDUCE_GATHER || m->type == REDUCE_LEAVES;
	struct frame_header h = frame_header_of(frame_of_reduce[m->column][m->type], run_tag, m->data_bytes);
	h.round = m->round;
	h.attempt = m->attempt;
	h.section = m->section;
	h.flags = m->type == REDUCE_RESUME ? m->flags : 0;
	h.chunk = m->type == REDUCE_PING ? m->waiting : of_chunk ? m->chunk : 0;
	return h;
}

static bool is_column(uint8_t type) {
	return (type >= FRAME_COLUMN_SCATTER && type <= FRAME_COLUMN_PING) || type == FRAME_COLUMN_SEAL ||
		   type == FRAME_COLUMN_SUMS;
}

bool frame_is_ping(uint8_t type) {
	return type == FRAME_PING || type == FRAME_COLUMN_PING;
}

bool frame_is_reduce(uint8_t type) {
	return (type >= FRAME_SCATTER && type <= FRAME_PING) || type == FRAME_LEAVES || type == FRAME_SEAL ||
		   is_column(type);
}

void frame_reduce_decode(const struct frame_header *h, const uint8_t *body, struct reduce_msg *out) {
	RV_ASSERT(frame_is_reduce(h->type));
	*out = (struct reduce_msg){.round = h->round,
							   .attempt = h->attempt,
							   .flags = h->flags,
							   .column = is_column(h->type),
							   .section = h->section};
	for (int type = REDUCE_SCATTER; type <= REDUCE_SUMS; type++)
		if (frame_of_reduce[out->column][type] == h->type)
			out->type = (uint8_t)type;
	if (out->type == REDUCE_PING) {
		out->waiting = h->chunk;
		return;
	}
	out->chunk = h->chunk;
	out->data = body;
	out->data_bytes = h->body_bytes;
}
