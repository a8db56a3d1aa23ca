/* wire.c: see wire.h. */
#include "net/relay/wire.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"

#include <string.h>

static const char magic[8] = {'R', 'V', 'L', 'R', 'E', 'L', 'A', 'Y'};

/* ---- frames ---- */

static void write_address(struct rv_writer *w, const struct address *a) {
	rv_write_u16(w, a->port);
	rv_write_str(w, a->host);
}

static void write_hello(struct rv_writer *w, const struct relay_hello *m) {
	rv_write_u32(w, m->version);
	rv_write_bytes(w, m->run_id, NET_RUN_ID_BYTES);
	rv_write_u32(w, m->member);
	rv_write_bytes(w, m->ticket, NET_SIG_BYTES);
	uint8_t cert[SERVING_CERT_BYTES];
	serving_cert_encode(&m->cert, cert);
	rv_write_bytes(w, cert, sizeof cert);
}

static void write_call(struct rv_writer *w, const struct relay_call *m) {
	rv_write_u32(w, m->peer);
	rv_write_u8(w, m->way);
	rv_write_u64(w, m->term);
	rv_write_u64(w, m->round);
	rv_write_bytes(w, m->ticket, NET_SIG_BYTES);
}

static void write_seen(struct rv_writer *w, const struct relay_seen *m) {
	rv_write_bytes(w, m->nonce, sizeof m->nonce);
	rv_write_u16(w, m->second_port);
	write_address(w, &m->at);
}

static void write_ring(struct rv_writer *w, const struct relay_ring *m) {
	rv_write_u32(w, m->peer);
	rv_write_bytes(w, m->token, NET_TOKEN_BYTES);
}

static void write_refused(struct rv_writer *w, const struct relay_refused *m) {
	rv_write_u32(w, m->peer);
	rv_write_u8(w, m->way);
	rv_write_u8(w, m->reason);
	rv_write_u8(w, m->whose);
	rv_write_u32(w, m->wait_ms);
}

static void write_open(struct rv_writer *w, const struct relay_open *m) {
	rv_write_u32(w, m->peer);
	rv_write_u32(w, m->delay_us);
	write_address(w, &m->at);
}

static void write_proof(struct rv_writer *w, const struct relay_proof *m) {
	rv_write_u64(w, m->unix_s);
	rv_write_bytes(w, m->signature, NET_SIG_BYTES);
	write_address(w, &m->at);
}

static void write_body(struct rv_writer *w, const struct relay_frame *m) {
	switch (m->type) {
	case RELAY_HELLO:
		write_hello(w, &m->hello);
		return;
	case RELAY_PING:
	case RELAY_PONG:
		rv_write_u64(w, m->number);
		return;
	case RELAY_CALL:
		write_call(w, &m->call);
		return;
	case RELAY_SEEN:
		write_seen(w, &m->seen);
		return;
	case RELAY_RING:
		write_ring(w, &m->ring);
		return;
	case RELAY_REFUSED:
		write_refused(w, &m->refused);
		return;
	case RELAY_OPEN:
		write_open(w, &m->open);
		return;
	case RELAY_PROOF:
		write_proof(w, &m->proof);
		return;
	default:
		RV_ASSERT(m->type == RELAY_LEAVE);
	}
}

size_t relay_frame_encode(const struct relay_frame *m, uint8_t out[NET_MAX_RELAY_FRAME_BYTES]) {
	struct rv_writer body = rv_writer_of(out + RELAY_HEAD_BYTES, NET_MAX_RELAY_FRAME_BYTES - RELAY_HEAD_BYTES);
	write_body(&body, m);
	RV_ASSERT(!body.failed);
	struct rv_writer head = rv_writer_of(out, RELAY_HEAD_BYTES);
	rv_write_u8(&head, m->type);
	rv_write_u16(&head, (uint16_t)rv_writer_len(&body));
	return RELAY_HEAD_BYTES + rv_writer_len(&body);
}

static void read_address(struct rv_reader *r, struct address *a) {
	a->port = rv_read_u16(r);
	rv_read_str(r, a->host, sizeof a->host);
}

static void read_hello(struct rv_reader *r, struct relay_hello *m) {
	m->version = rv_read_u32(r);
	rv_read_copy(r, m->run_id, NET_RUN_ID_BYTES);
	m->member = rv_read_u32(r);
	rv_read_copy(r, m->ticket, NET_SIG_BYTES);
	uint8_t cert[SERVING_CERT_BYTES];
	rv_read_copy(r, cert, sizeof cert);
	serving_cert_decode(cert, &m->cert);
}

static void read_call(struct rv_reader *r, struct relay_call *m) {
	m->peer = rv_read_u32(r);
	m->way = rv_read_u8(r);
	m->term = rv_read_u64(r);
	m->round = rv_read_u64(r);
	rv_read_copy(r, m->ticket, NET_SIG_BYTES);
}

static void read_seen(struct rv_reader *r, struct relay_seen *m) {
	rv_read_copy(r, m->nonce, sizeof m->nonce);
	m->second_port = rv_read_u16(r);
	read_address(r, &m->at);
}

static void read_ring(struct rv_reader *r, struct relay_ring *m) {
	m->peer = rv_read_u32(r);
	rv_read_copy(r, m->token, NET_TOKEN_BYTES);
}

static void read_refused(struct rv_reader *r, struct relay_refused *m) {
	m->peer = rv_read_u32(r);
	m->way = rv_read_u8(r);
	m->reason = rv_read_u8(r);
	m->whose = rv_read_u8(r);
	m->wait_ms = rv_read_u32(r);
}

static void read_open(struct rv_reader *r, struct relay_open *m) {
	m->peer = rv_read_u32(r);
	m->delay_us = rv_read_u32(r);
	read_address(r, &m->at);
}

static void read_proof(struct rv_reader *r, struct relay_proof *m) {
	m->unix_s = rv_read_u64(r);
	rv_read_copy(r, m->signature, NET_SIG_BYTES);
	read_address(r, &m->at);
}

/* Returns false if the type is not known. */
static bool read_body(struct rv_reader *r, struct relay_frame *m) {
	switch (m->type) {
	case RELAY_HELLO:
		read_hello(r, &m->hello);
		return true;
	case RELAY_PING:
	case RELAY_PONG:
		m->number = rv_read_u64(r);
		return true;
	case RELAY_CALL:
		read_call(r, &m->call);
		return true;
	case RELAY_SEEN:
		read_seen(r, &m->seen);
		return true;
	case RELAY_RING:
		read_ring(r, &m->ring);
		return true;
	case RELAY_REFUSED:
		read_refused(r, &m->refused);
		return true;
	case RELAY_OPEN:
		read_open(r, &m->open);
		return true;
	case RELAY_PROOF:
		read_proof(r, &m->proof);
		return true;
	default:
		return m->type == RELAY_LEAVE;
	}
}

static bool is_numeric(const struct address *a) {
	struct sockaddr_storage sa;
	socklen_t n;
	return a->host[0] != '\0' && a->port != 0 && address_to_socket(a, &sa, &n);
}

static bool is_way(uint8_t way) {
	return way >= WAY_OPEN_V4 && way <= WAY_FORWARD;
}

/* Each returns NULL, or the violated condition. */
static const char *invalid_call(const struct relay_call *m) {
	if (!is_way(m->way))
		return "call: the way is not known";
	return m->peer == NET_NO_MEMBER ? "call: the peer's number is that of none" : NULL;
}

static const char *invalid_refused(const struct relay_refused *m) {
	if (!is_way(m->way))
		return "refused: the way is not known";
	if (m->reason < RELAY_REFUSE_TICKET || m->reason >= RELAY_REFUSALS)
		return "refused: the reason is not known";
	if (m->whose > (RELAY_CALLER | RELAY_CALLED))
		return "refused: it is of neither caller nor called";
	return m->peer == NET_NO_MEMBER ? "refused: the peer's number is that of none" : NULL;
}

static const char *invalid_open(const struct relay_open *m) {
	if (m->delay_us > NET_RELAY_OPEN_DELAY_MS * RV_US_PER_MS)
		return "open: the delay is too long";
	if (!is_numeric(&m->at))
		return "open: not a numeric address with a port";
	return m->peer == NET_NO_MEMBER ? "open: the peer's number is that of none" : NULL;
}

static const char *invalid(const struct relay_frame *m) {
	switch (m->type) {
	case RELAY_HELLO:
		return m->hello.member == NET_NO_MEMBER ? "hello: the member's number is that of none" : NULL;
	case RELAY_CALL:
		return invalid_call(&m->call);
	case RELAY_SEEN:
		return is_numeric(&m->seen.at) ? NULL : "seen: not a numeric address with a port";
	case RELAY_RING:
		return m->ring.peer == NET_NO_MEMBER ? "ring: the peer's number is that of none" : NULL;
	case RELAY_REFUSED:
		return invalid_refused(&m->refused);
	case RELAY_OPEN:
		return invalid_open(&m->open);
	case RELAY_PROOF:
		return is_numeric(&m->proof.at) ? NULL : "proof: not a numeric address with a port";
	default:
		return NULL;
	}
}

enum rv_err relay_frame_decode(const void *p, size_t n, struct relay_frame *out, size_t *used, struct rv_errtext *et) {
	struct rv_reader head = rv_reader_of(p, n);
	*used = 0;
	memset(out, 0, sizeof *out);
	if (n < RELAY_HEAD_BYTES)
		return RV_OK;
	out->type = rv_read_u8(&head);
	size_t body_bytes = rv_read_u16(&head);
	if (body_bytes > NET_MAX_RELAY_FRAME_BYTES - RELAY_HEAD_BYTES)
		return rv_fail(et, RV_E_INVALID, "relay: a frame of type %u with %zu bytes, at most %d", out->type, body_bytes,
					   (int)(NET_MAX_RELAY_FRAME_BYTES - RELAY_HEAD_BYTES));
	if (rv_reader_left(&head) < body_bytes)
		return RV_OK;
	struct rv_reader body = rv_reader_of(head.at, body_bytes);
	if (!read_body(&body, out))
		return rv_fail(et, RV_E_INVALID, "relay: a frame of type %u, which is not known", out->type);
	if (out->type == RELAY_HELLO && !body.failed && out->hello.version != RELAY_VERSION)
		return rv_fail(et, RV_E_PROTOCOL, "relay: hello of version %u, this program speaks %d", out->hello.version,
					   (int)RELAY_VERSION);
	if (!rv_reader_done(&body))
		return rv_fail(et, RV_E_INVALID, "relay: a frame of type %u with a body of %zu bytes", out->type, body_bytes);
	const char *why = invalid(out);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "relay: %s", why);
	*used = RELAY_HEAD_BYTES + body_bytes;
	return RV_OK;
}

/* ---- refusals ---- */

static const struct {
	const char *name, *text;
} refusals[RELAY_REFUSALS] = {
	{"unknown", "for a reason that this program does not know"},
	{"ticket", "the pair ticket is not the run's for these two members"},
	{"stale", "the pair ticket is of an earlier round"},
	{"absent", "the peer is not connected to this relay"},
	{"banned", "the operator banned one of the two"},
	{"budget", "as many bytes as it forwards in a day have passed, of one of the two or of all"},
	{"rate", "too many calls: wait a little"},
	{"full", "the relay forwards as many links as it can"},
	{"unmapped", "the relay does not see both through a port on which they listen"},
	{"dependent", "both are behind routers that give each destination another port"},
};

const char *relay_refusal_name(uint8_t reason) {
	return refusals[reason < RELAY_REFUSALS ? reason : 0].name;
}

const char *relay_refusal_text(uint8_t reason) {
	return refusals[reason < RELAY_REFUSALS ? reason : 0].text;
}

/* ---- preambles ---- */

void relay_preamble_encode(const struct relay_preamble *m, uint8_t out[RELAY_PREAMBLE_BYTES]) {
	struct rv_writer w = rv_writer_of(out, RELAY_PREAMBLE_BYTES);
	rv_write_bytes(&w, magic, sizeof magic);
	rv_write_u8(&w, m->kind);
	rv_write_bytes(&w, m->token, NET_TOKEN_BYTES);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == RELAY_PREAMBLE_BYTES);
}

enum rv_err relay_preamble_decode(const uint8_t in[RELAY_PREAMBLE_BYTES], struct relay_preamble *out,
								  struct rv_errtext *et) {
	if (memcmp(in, magic, sizeof magic) != 0)
		return rv_fail(et, RV_E_INVALID, "relay: a preamble that does not begin with RVLRELAY");
	out->kind = in[sizeof magic];
	memcpy(out->token, in + sizeof magic + 1, NET_TOKEN_BYTES);
	if (out->kind != RELAY_REFLECT && out->kind != RELAY_DATA)
		return rv_fail(et, RV_E_INVALID, "relay: a preamble of kind %u, which is not known", out->kind);
	return RV_OK;
}
