/* evil_relay.c: `rivulet-coordinator relay` in the hands of an attacker, by the linker (--wrap). It
 * exists for tests only. The operator has listed it, and workers pin its key.
 *
 * RIVULET_EVIL_RELAY is a list of name=value, separated by commas:
 *   drop=1      it joins links, reads what both ends send, and throws it away
 *   delay=MS    it forwards only in one of MS / 100 tenths of a second
 *   cut=N       it closes a link after N bytes of one end
 *   replay=N    after N bytes of an end it forwards the first of them again, for ever
 *   flood=N     N rings that nobody called for, to each station ten times a second
 *   aim=IP:PORT the addresses in its answers, openings and (signed) proofs are this one; and it
 *               sends openings that nobody called for, to each station ten times a second */
#include "base/assert.h"
#include "net/identity.h"
#include "net/relay/relay_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { FDS = 4096, KEPT_BYTES = 256, TENTH_US = 100000, MEMBERS = 4, STATIONS = RELAY_CONNECTIONS };

typedef size_t encode_fn(const struct relay_frame *m, uint8_t out[NET_MAX_RELAY_FRAME_BYTES]);
typedef size_t allowance_fn(struct relay_core *r, int64_t now_us, int connection);
typedef bool action_fn(struct relay_core *r, struct relay_action *out);
typedef void tick_fn(struct relay_core *r, int64_t now_us);
typedef void sign_fn(const struct identity *relay, const uint8_t run_id[NET_RUN_ID_BYTES],
					 const uint8_t key[NET_KEY_BYTES], const char *addr, uint64_t unix_s,
					 uint8_t signature[NET_SIG_BYTES]);
encode_fn __real_relay_frame_encode, __wrap_relay_frame_encode;
allowance_fn __real_relay_allowance, __wrap_relay_allowance;
action_fn __real_relay_next_action, __wrap_relay_next_action;
tick_fn __real_relay_tick, __wrap_relay_tick;
sign_fn __real_seen_sign, __wrap_seen_sign;
ssize_t __real_recv(int fd, void *out, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *out, size_t n, int flags);

/* Of this process; one thread runs the relay. */
static struct {
	struct {
		size_t bytes;
		uint8_t kept[KEPT_BYTES];
	} ends[FDS];
	bool is_station[STATIONS];
	size_t unasked; /* frames still to be sent after a tick */
	uint32_t number;
} attack;

/* Returns the text of `name` in RIVULET_EVIL_RELAY; NULL: it is not there. */
static const char *evil(const char *name) {
	const char *text = getenv("RIVULET_EVIL_RELAY");
	const size_t n = strlen(name);
	for (; text != NULL && *text != '\0'; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
		if (strncmp(text, name, n) == 0 && text[n] == '=')
			return text + n + 1;
	return NULL;
}

static size_t evil_number(const char *name) {
	const char *text = evil(name);
	return text != NULL ? strtoul(text, NULL, 10) : 0;
}

static bool victim(struct address *out) {
	char text[NET_ADDR_BYTES];
	const char *aim = evil("aim");
	if (aim == NULL)
		return false;
	size_t n = strcspn(aim, ",");
	RV_ASSERT(n < sizeof text);
	memcpy(text, aim, n);
	text[n] = '\0';
	RV_ASSERT(address_parse(text, out, NULL) == RV_OK);
	return true;
}

/* ---- what it forwards ---- */

static ssize_t forward(int fd, uint8_t *out, ssize_t n) {
	size_t *bytes = &attack.ends[fd].bytes;
	const size_t replayed = evil_number("replay"), cut = evil_number("cut");
	if (*bytes < KEPT_BYTES) {
		size_t room = KEPT_BYTES - *bytes;
		memcpy(attack.ends[fd].kept + *bytes, out, (size_t)n < room ? (size_t)n : room);
	}
	if (replayed > 0 && *bytes >= replayed)
		for (ssize_t i = 0; i < n; i++)
			out[i] = attack.ends[fd].kept[(size_t)i % KEPT_BYTES];
	*bytes += (size_t)n;
	if (cut > 0 && *bytes >= cut) {
		errno = ECONNRESET;
		return -1;
	}
	if (evil("drop") != NULL) {
		errno = EAGAIN;
		return -1;
	}
	return n;
}

/* The relay reads a link with MSG_DONTWAIT alone; any other read is of a new connection. */
ssize_t __wrap_recv(int fd, void *out, size_t n, int flags) {
	ssize_t got = __real_recv(fd, out, n, flags);
	RV_ASSERT(fd >= 0 && fd < FDS);
	if (flags != MSG_DONTWAIT)
		attack.ends[fd].bytes = 0;
	else if (got > 0)
		return forward(fd, out, got);
	return got;
}

size_t __wrap_relay_allowance(struct relay_core *r, int64_t now_us, int connection) {
	const int64_t tenths = (int64_t)evil_number("delay") / 100;
	if (tenths > 0 && now_us / TENTH_US % tenths != 0)
		return 0;
	return __real_relay_allowance(r, now_us, connection);
}

/* ---- what it sends to stations ---- */

size_t __wrap_relay_frame_encode(const struct relay_frame *m, uint8_t out[NET_MAX_RELAY_FRAME_BYTES]) {
	struct relay_frame lie = *m;
	struct address aim;
	if (victim(&aim) && m->type == RELAY_SEEN)
		lie.seen.at = aim;
	else if (victim(&aim) && m->type == RELAY_OPEN)
		lie.open.at = aim;
	else if (victim(&aim) && m->type == RELAY_PROOF)
		lie.proof.at = aim;
	return __real_relay_frame_encode(&lie, out);
}

void __wrap_seen_sign(const struct identity *relay, const uint8_t run_id[NET_RUN_ID_BYTES],
					  const uint8_t key[NET_KEY_BYTES], const char *addr, uint64_t unix_s,
					  uint8_t signature[NET_SIG_BYTES]) {
	char text[NET_ADDR_BYTES];
	struct address aim;
	if (victim(&aim) && address_format(&aim, text))
		addr = text;
	__real_seen_sign(relay, run_id, key, addr, unix_s, signature);
}

void __wrap_relay_tick(struct relay_core *r, int64_t now_us) {
	__real_relay_tick(r, now_us);
	attack.unasked = (evil_number("flood") + (evil("aim") != NULL)) * STATIONS;
}

/* Makes the next unasked frame; false: its connection is no station. */
static bool make_unasked(struct relay_action *out) {
	int connection = (int)(--attack.unasked % STATIONS);
	const uint32_t peer = attack.number++ / STATIONS % MEMBERS;
	*out = (struct relay_action){.type = RELAY_SEND, .connection = connection};
	if (evil("aim") != NULL)
		out->frame = (struct relay_frame){.type = RELAY_OPEN, .open = {.peer = peer}};
	else
		out->frame = (struct relay_frame){.type = RELAY_RING, .ring = {.peer = peer, .token = {1}}};
	return attack.is_station[connection];
}

bool __wrap_relay_next_action(struct relay_core *r, struct relay_action *out) {
	if (__real_relay_next_action(r, out)) {
		const bool greets = out->type == RELAY_SEND && out->frame.type == RELAY_SEEN;
		attack.is_station[out->connection] = out->type != RELAY_CLOSE && (greets || attack.is_station[out->connection]);
		return true;
	}
	while (attack.unasked > 0)
		if (make_unasked(out))
			return true;
	return false;
}
