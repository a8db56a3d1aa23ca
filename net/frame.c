/* frame.c: the peer link's header and bodies, byte by byte (net/frame.h, docs/protocol.md). */
#include "net/frame.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"

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
#include "net/messages.def"
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

void frame_header_encode(const struct frame_header *h, uint8_t out[FRAME_HEADER_BYTES]) {
	struct rv_writer w = rv_writer_of(out, FRAME_HEADER_BYTES);
	rv_write_u32(&w, h->magic);
	rv_write_u16(&w, h->version);
	rv_write_u8(&w, h->type);
	rv_write_u8(&w, h->flags);
	rv_write_u32(&w, h->body_bytes);
	rv_write_u32(&w, h->chunk);
	rv_write_u64(&w, h->round);
	rv_write_u64(&w, h->run_tag);
	rv_write_u32(&w, h->attempt);
	rv_write_bytes(&w, h->reserved, sizeof h->reserved);
	rv_write_u64(&w, check_of(out));
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_HEADER_BYTES);
}

void frame_header_decode(const uint8_t in[FRAME_HEADER_BYTES], struct frame_header *h) {
	struct rv_reader r = rv_reader_of(in, FRAME_HEADER_BYTES);
	h->magic = rv_read_u32(&r);
	h->version = rv_read_u16(&r);
	h->type = rv_read_u8(&r);
	h->flags = rv_read_u8(&r);
	h->body_bytes = rv_read_u32(&r);
	h->chunk = rv_read_u32(&r);
	h->round = rv_read_u64(&r);
	h->run_tag = rv_read_u64(&r);
	h->attempt = rv_read_u32(&r);
	rv_read_copy(&r, h->reserved, sizeof h->reserved);
	h->check = rv_read_u64(&r);
	RV_ASSERT(rv_reader_done(&r));
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

/* The part that depends on the type. */
static const char *message_invalid(const struct frame_header *h, const struct message_rule *rule,
								   enum frame_link link) {
	if ((rule->links & (unsigned)link) == 0)
		return link == FRAME_LINK_GREETING ? "only a hello or a bye may come before the hello is accepted"
										   : "a second hello on an open link";
	if (h->body_bytes < rule->min)
		return "body_bytes is below the type's minimum";
	if (h->body_bytes > rule->max)
		return "body_bytes is above the type's limit";
	if (link == FRAME_LINK_GREETING && h->body_bytes > NET_MAX_FRAME_UNAUTHENTICATED)
		return "body_bytes is above the limit before authentication";
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
		return "version is not 1: the peer speaks another protocol version";
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

/* ---- hello ------------------------------------------------------------------------------------------------------- */

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

static void write_zeros(struct rv_writer *w, size_t n) {
	static const uint8_t zeros[8];
	RV_ASSERT(n <= sizeof zeros);
	rv_write_bytes(w, zeros, n);
}

void frame_hello_encode(const struct frame_hello *m, uint8_t out[FRAME_HELLO_BYTES]) {
	struct rv_writer w = rv_writer_of(out, FRAME_HELLO_BYTES);
	rv_write_u32(&w, m->protocol);
	rv_write_bytes(&w, m->run_id, sizeof m->run_id);
	rv_write_u8(&w, m->role);
	write_zeros(&w, 3);
	rv_write_u32(&w, m->member);
	rv_write_bytes(&w, m->ticket, sizeof m->ticket);
	rv_write_bytes(&w, m->signature, sizeof m->signature);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_HELLO_BYTES);
}

/* Reads n <= 8 padding bytes; false when one is set. */
static bool read_zeros(struct rv_reader *r, size_t n) {
	uint8_t pad[8];
	RV_ASSERT(n <= sizeof pad);
	rv_read_copy(r, pad, n);
	return all_zero(pad, n);
}

enum rv_err frame_hello_decode(const void *body, size_t n, struct frame_hello *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(body, n);
	out->protocol = rv_read_u32(&r);
	rv_read_copy(&r, out->run_id, sizeof out->run_id);
	out->role = rv_read_u8(&r);
	bool padded = read_zeros(&r, 3);
	out->member = rv_read_u32(&r);
	rv_read_copy(&r, out->ticket, sizeof out->ticket);
	rv_read_copy(&r, out->signature, sizeof out->signature);
	if (!rv_reader_done(&r))
		return rv_fail(et, RV_E_INVALID, "hello: %zu bytes, must be %d", n, (int)FRAME_HELLO_BYTES);
	if (out->role != FRAME_DIALER && out->role != FRAME_LISTENER)
		return rv_fail(et, RV_E_INVALID, "hello: role = %u: must be 1 (dialer) or 2 (listener)", out->role);
	if (!padded)
		return rv_fail(et, RV_E_INVALID, "hello: padding is not zero");
	if (out->member >= NET_MAX_MEMBERS)
		return rv_fail(et, RV_E_INVALID, "hello: member = %u: must be below %d", out->member, (int)NET_MAX_MEMBERS);
	return RV_OK;
}

/* ---- state transfer ---------------------------------------------------------------------------------------------- */

static bool fetch_kind_known(uint8_t kind) {
	return kind == FRAME_FETCH_BASE || kind == FRAME_FETCH_LOG || kind == FRAME_FETCH_INFO;
}

struct frame_header frame_fetch_encode(const struct frame_fetch *m, uint64_t run_tag, uint8_t body[FRAME_FETCH_BYTES]) {
	struct rv_writer w = rv_writer_of(body, FRAME_FETCH_BYTES);
	rv_write_u8(&w, m->kind);
	write_zeros(&w, 3);
	rv_write_u32(&w, m->length);
	rv_write_u64(&w, m->offset);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_FETCH_BYTES);
	struct frame_header h = frame_header_of(FRAME_FETCH, run_tag, FRAME_FETCH_BYTES);
	h.round = m->round;
	return h;
}

enum rv_err frame_fetch_decode(const struct frame_header *h, const void *body, struct frame_fetch *out,
							   struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(body, h->body_bytes);
	out->round = h->round;
	out->kind = rv_read_u8(&r);
	bool padded = read_zeros(&r, 3);
	out->length = rv_read_u32(&r);
	out->offset = rv_read_u64(&r);
	if (!rv_reader_done(&r))
		return rv_fail(et, RV_E_INVALID, "fetch: %u bytes, must be %d", h->body_bytes, (int)FRAME_FETCH_BYTES);
	if (!fetch_kind_known(out->kind) || !padded)
		return rv_fail(et, RV_E_INVALID, "fetch: kind = %u: must be 1 (base), 2 (log) or 3 (info)", out->kind);
	if (out->length > NET_MAX_FETCH_BYTES)
		return rv_fail(et, RV_E_INVALID, "fetch: length = %u: at most %d", out->length, (int)NET_MAX_FETCH_BYTES);
	return RV_OK;
}

struct frame_header frame_piece_encode(const struct frame_piece *m, uint64_t run_tag, uint8_t body[FRAME_PIECE_BYTES]) {
	RV_ASSERT(m->data_bytes <= NET_MAX_FETCH_BYTES);
	struct rv_writer w = rv_writer_of(body, FRAME_PIECE_BYTES);
	rv_write_u8(&w, m->kind);
	write_zeros(&w, 7);
	rv_write_u64(&w, m->offset);
	rv_write_u64(&w, m->total_bytes);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_PIECE_BYTES);
	struct frame_header h = frame_header_of(FRAME_PIECE, run_tag, FRAME_PIECE_BYTES + m->data_bytes);
	h.round = m->round;
	return h;
}

enum rv_err frame_piece_decode(const struct frame_header *h, const void *body, struct frame_piece *out,
							   struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(body, h->body_bytes);
	out->round = h->round;
	out->kind = rv_read_u8(&r);
	bool padded = read_zeros(&r, 7);
	out->offset = rv_read_u64(&r);
	out->total_bytes = rv_read_u64(&r);
	if (!rv_reader_ok(&r))
		return rv_fail(et, RV_E_INVALID, "piece: %u bytes, at least %d", h->body_bytes, (int)FRAME_PIECE_BYTES);
	out->data_bytes = (uint32_t)rv_reader_left(&r);
	out->data = rv_read_span(&r, out->data_bytes);
	if (!fetch_kind_known(out->kind) || !padded)
		return rv_fail(et, RV_E_INVALID, "piece: kind = %u: must be 1 (base), 2 (log) or 3 (info)", out->kind);
	if (out->data_bytes > NET_MAX_FETCH_BYTES)
		return rv_fail(et, RV_E_INVALID, "piece: %u bytes of data, at most %d", out->data_bytes,
					   (int)NET_MAX_FETCH_BYTES);
	if (out->offset > out->total_bytes || out->data_bytes > out->total_bytes - out->offset)
		return rv_fail(et, RV_E_INVALID, "piece: %u bytes at offset %llu run past the total of %llu", out->data_bytes,
					   (unsigned long long)out->offset, (unsigned long long)out->total_bytes);
	return RV_OK;
}

struct frame_header frame_none_encode(const struct frame_none *m, uint64_t run_tag, uint8_t body[FRAME_NONE_BYTES]) {
	struct rv_writer w = rv_writer_of(body, FRAME_NONE_BYTES);
	rv_write_u8(&w, m->kind);
	write_zeros(&w, 7);
	rv_write_u64(&w, m->offset);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_NONE_BYTES);
	struct frame_header h = frame_header_of(FRAME_NONE, run_tag, FRAME_NONE_BYTES);
	h.round = m->round;
	return h;
}

enum rv_err frame_none_decode(const struct frame_header *h, const void *body, struct frame_none *out,
							  struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(body, h->body_bytes);
	out->round = h->round;
	out->kind = rv_read_u8(&r);
	bool padded = read_zeros(&r, 7);
	out->offset = rv_read_u64(&r);
	if (!rv_reader_done(&r))
		return rv_fail(et, RV_E_INVALID, "none: %u bytes, must be %d", h->body_bytes, (int)FRAME_NONE_BYTES);
	if (!fetch_kind_known(out->kind) || !padded)
		return rv_fail(et, RV_E_INVALID, "none: kind = %u: must be 1 (base), 2 (log) or 3 (info)", out->kind);
	return RV_OK;
}

void frame_info_encode(const struct frame_info *m, uint8_t out[FRAME_INFO_BYTES]) {
	struct rv_writer w = rv_writer_of(out, FRAME_INFO_BYTES);
	rv_write_u64(&w, m->base_round);
	rv_write_u64(&w, m->log_first);
	rv_write_u64(&w, m->log_end);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == FRAME_INFO_BYTES);
}

enum rv_err frame_info_decode(const void *data, size_t n, struct frame_info *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(data, n);
	out->base_round = rv_read_u64(&r);
	out->log_first = rv_read_u64(&r);
	out->log_end = rv_read_u64(&r);
	if (!rv_reader_done(&r))
		return rv_fail(et, RV_E_INVALID, "info: %zu bytes, must be %d", n, (int)FRAME_INFO_BYTES);
	if (out->log_first > out->log_end)
		return rv_fail(et, RV_E_INVALID, "info: log [%llu, %llu) ends before it starts",
					   (unsigned long long)out->log_first, (unsigned long long)out->log_end);
	return RV_OK;
}

/* ---- all-reduce -------------------------------------------------------------------------------------------------- */

/* enum reduce_type <-> enum frame_type */
static const uint8_t frame_of_reduce[] = {[REDUCE_SCATTER] = FRAME_SCATTER,
										  [REDUCE_GATHER] = FRAME_GATHER,
										  [REDUCE_RESUME] = FRAME_RESUME,
										  [REDUCE_PING] = FRAME_PING};

struct frame_header frame_reduce_encode(const struct reduce_msg *m, uint64_t run_tag) {
	RV_ASSERT(m->type >= REDUCE_SCATTER && m->type <= REDUCE_PING);
	struct frame_header h = frame_header_of(frame_of_reduce[m->type], run_tag, m->data_bytes);
	h.round = m->round;
	h.attempt = m->attempt;
	h.flags = m->type == REDUCE_RESUME ? m->flags : 0;
	h.chunk = m->type == REDUCE_PING ? m->reduced : m->type == REDUCE_RESUME ? 0 : m->chunk;
	return h;
}

bool frame_is_reduce(uint8_t type) {
	return type >= FRAME_SCATTER && type <= FRAME_PING;
}

void frame_reduce_decode(const struct frame_header *h, const uint8_t *body, struct reduce_msg *out) {
	RV_ASSERT(frame_is_reduce(h->type));
	*out = (struct reduce_msg){.round = h->round, .attempt = h->attempt, .flags = h->flags};
	for (int type = REDUCE_SCATTER; type <= REDUCE_PING; type++)
		if (frame_of_reduce[type] == h->type)
			out->type = (uint8_t)type;
	if (out->type == REDUCE_PING) {
		out->reduced = h->chunk;
		return;
	}
	out->chunk = h->chunk;
	out->data = body;
	out->data_bytes = h->body_bytes;
}
