/* stream.c: the two buffers of a stream (net/mesh/stream.h). */
#include "net/mesh/stream.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { OUT_FIRST_BYTES = 4096 };

size_t stream_take(struct stream *s, void *out, size_t cap) {
	size_t n = s->in_bytes < cap ? s->in_bytes : cap;
	if (n > 0)
		memcpy(out, s->in, n);
	s->in += n;
	s->in_bytes -= n;
	return n;
}

/* Makes room for `n` more bytes behind out_end; false past the limit (a peer that asks for answers
 * but never reads). */
static bool make_room(struct stream *s, size_t n) {
	size_t pending = s->out_end - s->out_at;
	if (s->out_end + n <= s->out_cap)
		return true;
	if (pending + n > STREAM_OUT_MAX_BYTES)
		return false;
	if (pending > 0)
		memmove(s->out, s->out + s->out_at, pending);
	s->out_at = 0;
	s->out_end = pending;
	size_t cap = s->out_cap > 0 ? s->out_cap : OUT_FIRST_BYTES;
	while (cap < pending + n)
		cap *= 2;
	if (cap > STREAM_OUT_MAX_BYTES)
		cap = STREAM_OUT_MAX_BYTES;
	if (cap == s->out_cap)
		return true;
	uint8_t *out = realloc(s->out, cap);
	if (out == NULL)
		return false;
	s->out = out;
	s->out_cap = cap;
	return true;
}

bool stream_put(struct stream *s, const void *data, size_t n) {
	if (!make_room(s, n)) {
		s->out_full = true;
		return false;
	}
	memcpy(s->out + s->out_end, data, n);
	s->out_end += n;
	return true;
}

void stream_feed(struct stream *s, const void *data, size_t n) {
	RV_ASSERT(s->in_bytes == 0);
	s->in = data;
	s->in_bytes = n;
}

void stream_sent(struct stream *s, size_t n) {
	RV_ASSERT(n <= stream_pending(s));
	s->out_at += n;
	if (s->out_at == s->out_end)
		s->out_at = s->out_end = 0;
}
