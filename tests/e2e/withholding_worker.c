/* withholding_worker.c: the real worker, which withholds from its peers what it owes them, put in by the linker
 * (--wrap). It exists for tests only. To the coordinator it reports as ever.
 *
 * RIVULET_WITHHOLD (reduce_send):
 *   contributions  gives its peers none
 *   means          gives its peers none
 *   drip           gives everything, one chunk every 6 s
 *   unlike         gives every peer another mean
 * Its PINGs say all the while that it waits for others.
 */
#include "base/clock.h"
#include "net/reduce/reduce.h"

#include <stdlib.h>
#include <string.h>

enum { DRIP_EVERY_US = 6 * 1000 * 1000 };

typedef bool send_fn(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
send_fn __real_reduce_send, __wrap_reduce_send, __real_reduce_send_control, __wrap_reduce_send_control;

static bool does(const char *what) {
	const char *text = getenv("RIVULET_WITHHOLD");
	return text != NULL && strcmp(text, what) == 0;
}

/* Says in each PING what makes others wait longest. */
static void lie(struct reduce_msg *m) {
	if (m->type == REDUCE_PING)
		m->waiting = 1;
}

static bool is_withheld(const struct reduce_msg *m) {
	return (m->type == REDUCE_SCATTER && does("contributions")) || (m->type == REDUCE_GATHER && does("means"));
}

/* The last value of the chunk is another one for each peer. */
static void differ(int to, struct reduce_msg *m) {
	static uint8_t bytes[NET_MAX_CHUNK_BYTES];
	if (m->type != REDUCE_GATHER || !does("unlike"))
		return;
	memcpy(bytes, m->data, m->data_bytes);
	bytes[m->data_bytes - 1] = (uint8_t)(1 + to);
	m->data = bytes;
}

static bool drips(int64_t now_us) {
	static int64_t next_us;
	if (!does("drip"))
		return false;
	if (now_us < next_us)
		return true;
	next_us = now_us + DRIP_EVERY_US;
	return false;
}

bool __wrap_reduce_send_control(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out) {
	bool any = __real_reduce_send_control(r, now_us, to, out);
	if (any)
		lie(out);
	return any;
}

bool __wrap_reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out) {
	if (__wrap_reduce_send_control(r, now_us, to, out))
		return true;
	if (drips(now_us))
		return false;
	while (__real_reduce_send(r, now_us, to, out))
		if (!is_withheld(out)) {
			differ(to, out);
			return true;
		}
	return false;
}
