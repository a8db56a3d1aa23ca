/* link.c: TLS, HELLO and frames of one link (net/mesh/link.h). */
#include "net/mesh/link.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_BYTES = 1 << 14 }; /* plaintext of a TLS record, RFC 8446 section 5.1 */

enum rv_err link_new(const struct stream_ops *kind, void *shared, int fd, enum frame_role role, enum path_kind path,
					 uint64_t run_tag, struct link **out, struct rv_errtext *et) {
	struct link *l = calloc(1, sizeof *l);
	*out = NULL;
	if (l == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a link");
	l->kind = kind;
	l->fd = fd;
	l->role = role;
	l->run_tag = run_tag;
	l->path = path;
	l->inbound = path == PATH_ACCEPTED;
	l->connect_events = POLLOUT;
	l->state = path == PATH_ACCEPTED ? LINK_TLS : LINK_CONNECTING;
	l->member = NET_NO_MEMBER;
	l->poll_slot = -1;
	enum rv_err e = kind->open(&l->stream, shared, role == FRAME_DIALER, et);
	if (e != RV_OK) {
		link_free(l);
		return e;
	}
	*out = l;
	return RV_OK;
}

void link_free(struct link *l) {
	if (l == NULL)
		return;
	l->kind->release(&l->stream);
	free(l->body);
	free(l->cut_body);
	free(l);
}

void link_kill(struct link *l, bool fatal, enum rv_err why, const char *fmt, ...) {
	if (l->state == LINK_DEAD)
		return;
	l->say_bye = l->state == LINK_GREETING || l->state == LINK_OPEN;
	l->state = LINK_DEAD;
	l->fatal = fatal;
	l->why = why;
	va_list args;
	va_start(args, fmt);
	vsnprintf(l->reason.text, sizeof l->reason.text, fmt, args);
	va_end(args);
}

void link_end(struct link *l, bool fatal, enum rv_err why, const char *text) {
	l->deliberate = l->deliberate || l->state != LINK_DEAD;
	link_kill(l, fatal, why, "%s", text);
}

/* ---- outgoing ---- */

/* Copies the next n bytes of the frame (header, part 0, part 1), starting at `from`. */
static void gather(const uint8_t head[FRAME_HEADER_BYTES], const struct peers_message *m, size_t from, size_t n,
				   uint8_t *out) {
	const void *piece[3] = {head, m->part[0], m->part[1]};
	size_t bytes[3] = {FRAME_HEADER_BYTES, m->part_bytes[0], m->part_bytes[1]};
	for (int i = 0; i < 3 && n > 0; i++) {
		if (from >= bytes[i]) {
			from -= bytes[i];
			continue;
		}
		size_t take = bytes[i] - from < n ? bytes[i] - from : n;
		memcpy(out, (const uint8_t *)piece[i] + from, take);
		out += take;
		n -= take;
		from = 0;
	}
	RV_ASSERT(n == 0);
}

/* Gathers header and start of the body in the first record; encrypts the rest of a long last part
 * where it lies. */
enum rv_err link_put(struct link *l, const struct peers_message *m, struct rv_errtext *et) {
	RV_ASSERT(m->header.body_bytes == m->part_bytes[0] + m->part_bytes[1]);
	uint8_t head[FRAME_HEADER_BYTES], first[RECORD_BYTES];
	frame_header_encode(&m->header, head);
	size_t total = FRAME_HEADER_BYTES + m->header.body_bytes;
	size_t n = total < sizeof first ? total : sizeof first;
	RV_ASSERT(n == total || FRAME_HEADER_BYTES + m->part_bytes[0] < n || m->part_bytes[1] == 0);
	gather(head, m, 0, n, first);
	if (l->kind->write(&l->stream, first, n, et) != STREAM_DONE)
		return RV_E_CLOSED;
	if (n < total) {
		int last = m->part_bytes[1] > 0 ? 1 : 0;
		const uint8_t *end = (const uint8_t *)m->part[last] + m->part_bytes[last];
		if (l->kind->write(&l->stream, end - (total - n), total - n, et) != STREAM_DONE)
			return RV_E_CLOSED;
	}
	l->traffic.tx_frames++;
	return RV_OK;
}

void link_put_bye(struct link *l, const char *text) {
	struct peers_message m = {0};
	size_t n = strnlen(text, FRAME_BYE_MAX_BYTES);
	m.header = frame_header_of(FRAME_BYE, l->run_tag, (uint32_t)n);
	m.part[0] = text;
	m.part_bytes[0] = n;
	if (link_put(l, &m, NULL) == RV_OK)
		l->kind->end(&l->stream);
}

bool link_hello_signed(const struct link *l, const uint8_t run_id[NET_RUN_ID_BYTES], enum frame_role signer,
					   uint8_t out[FRAME_HELLO_SIGNED_BYTES]) {
	uint8_t exporter[FRAME_EXPORTER_BYTES];
	if (!l->kind->exporter(&l->stream, "EXPORTER-rivulet-hello", exporter, sizeof exporter))
		return false;
	frame_hello_signed(exporter, run_id, signer, out);
	return true;
}

/* ---- incoming ---- */

static enum rv_err fault_of(enum stream_io io, struct rv_errtext *et) {
	return io == STREAM_CLOSED ? rv_fail(et, RV_E_CLOSED, "the other side closed the link") : RV_E_PROTOCOL;
}

enum rv_err link_start_tls(struct link *l, struct rv_errtext *et) {
	RV_ASSERT(l->state == LINK_CONNECTING || (l->state == LINK_TLS && l->role == FRAME_DIALER));
	l->state = LINK_TLS;
	enum stream_io io = l->kind->handshake(&l->stream, et);
	return io == STREAM_WAIT ? RV_OK : fault_of(io, et);
}

enum rv_err link_become_dialer(struct link *l, void *shared, struct rv_errtext *et) {
	RV_ASSERT(l->state == LINK_TLS && l->role == FRAME_LISTENER && l->greeting_rx == 0);
	l->kind->release(&l->stream);
	l->role = FRAME_DIALER;
	RV_TRY(l->kind->open(&l->stream, shared, true, et));
	return link_start_tls(l, et);
}

static enum rv_err handshake(struct link *l, const struct link_handler *handler, struct rv_errtext *et) {
	enum stream_io io = l->kind->handshake(&l->stream, et);
	if (io == STREAM_WAIT)
		return RV_OK;
	if (io != STREAM_DONE)
		return fault_of(io, et);
	RV_TRY(l->kind->secured(&l->stream, l->key, et));
	l->state = LINK_GREETING;
	return handler->secured(handler->ctx, l, et);
}

/* Judges the header, which is complete, before it makes room for the body. */
static enum rv_err take_header(struct link *l, struct rv_errtext *et) {
	frame_header_decode(l->head, &l->header);
	enum frame_link where = l->state == LINK_OPEN ? FRAME_LINK_OPEN : FRAME_LINK_GREETING;
	const char *wrong = frame_header_invalid(&l->header, l->run_tag, where);
	if (wrong == NULL)
		wrong = link_slice_misplaced(l);
	if (wrong != NULL)
		return rv_fail(et, RV_E_PROTOCOL, "bad frame (%s, body of %u bytes): %s", frame_type_name(l->header.type),
					   l->header.body_bytes, wrong);
	RV_ASSERT(l->state == LINK_OPEN || l->header.body_bytes <= NET_MAX_FRAME_UNAUTHENTICATED);
	l->body_got = 0;
	size_t room = link_body_room(l);
	if (room <= l->body_cap)
		return RV_OK;
	free(l->body);
	l->body_cap = 0;
	l->body = malloc(room);
	if (l->body == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a frame of %zu bytes", room);
	l->body_cap = room;
	return RV_OK;
}

static enum rv_err take_frame(struct link *l, const struct link_handler *handler, struct rv_errtext *et) {
	l->head_got = 0;
	l->traffic.rx_frames++;
	if (!link_slice_joined(l))
		return RV_OK;
	return handler->frame(handler->ctx, l, &l->header, l->body, et);
}

/* Moves on by one read: part of a header or of a body. */
static enum stream_io read_some(struct link *l, const struct link_handler *handler, enum rv_err *fault,
								struct rv_errtext *et) {
	bool in_head = l->head_got < FRAME_HEADER_BYTES;
	uint8_t *to = in_head ? l->head + l->head_got : l->body + link_body_at(l) + l->body_got;
	size_t want = in_head ? FRAME_HEADER_BYTES - l->head_got : l->header.body_bytes - l->body_got;
	size_t got = 0;
	enum stream_io io = l->kind->read(&l->stream, to, want, &got, et);
	if (io != STREAM_DONE) {
		*fault = io == STREAM_WAIT ? RV_OK : fault_of(io, et);
		return io;
	}
	if (in_head) {
		l->head_got += got;
		if (l->head_got < FRAME_HEADER_BYTES)
			return io;
		*fault = take_header(l, et);
	} else {
		l->body_got += got;
	}
	if (*fault == RV_OK && l->body_got == l->header.body_bytes)
		*fault = take_frame(l, handler, et);
	l->refused = l->state == LINK_OPEN && (*fault == RV_E_PROTOCOL || *fault == RV_E_INVALID || *fault == RV_E_CORRUPT);
	return io;
}

enum rv_err link_receive(struct link *l, const uint8_t *data, size_t n, const struct link_handler *handler,
						 struct rv_errtext *et) {
	bool greeting = l->state != LINK_OPEN;
	stream_feed(&l->stream, data, n);
	enum rv_err fault = RV_OK;
	if (l->state == LINK_TLS)
		fault = handshake(l, handler, et);
	while (fault == RV_OK && (l->state == LINK_GREETING || l->state == LINK_OPEN))
		if (read_some(l, handler, &fault, et) != STREAM_DONE)
			break;
	l->stream.in_bytes = 0; /* a dead link leaves some */
	l->greeting_rx += greeting ? n : 0;
	if (fault == RV_OK && l->state < LINK_OPEN && l->greeting_rx > LINK_GREETING_MAX_BYTES)
		fault = rv_fail(et, RV_E_RANGE, "%llu bytes and no hello, at most %d", (unsigned long long)l->greeting_rx,
						LINK_GREETING_MAX_BYTES);
	return fault;
}
