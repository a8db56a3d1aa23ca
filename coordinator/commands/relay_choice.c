/* relay_choice.c: see relay_choice.h. */
#include "coordinator/commands/relay_choice.h"

#include "base/hex.h"
#include "coordinator/web/listen_socket.h"

#include <string.h>

/* Reads "HOST:PORT=KEY" of n characters into *out. */
static enum rv_err parse_relay(const char *text, size_t n, struct relay_ref *out, struct rv_errtext *et) {
	char item[NET_ADDR_BYTES + 2 * NET_KEY_BYTES + 2];
	struct address at;
	if (n >= sizeof item)
		return rv_fail(et, RV_E_INVALID, "--relay-at: an entry of %zu characters", n);
	memcpy(item, text, n);
	item[n] = '\0';
	char *equals = strchr(item, '=');
	if (equals == NULL || !rv_hex_decode(equals + 1, out->key, NET_KEY_BYTES))
		return rv_fail(et, RV_E_INVALID,
					   "--relay-at %s: must be HOST:PORT=KEY with a key of 64 hex digits, as `rivulet-coordinator "
					   "relay` prints it",
					   item);
	*equals = '\0';
	enum rv_err e = address_parse(item, &at, et);
	if (e == RV_OK && (at.host[0] == '\0' || at.port == 0 || !address_format(&at, out->addr)))
		e = rv_fail(et, RV_E_INVALID, "the host or the port is missing");
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--relay-at %s", item);
}

/* Adds the listed relays. */
static enum rv_err parse_relays(const struct relay_choice *o, struct run_relays *out, struct rv_errtext *et) {
	for (const char *p = o->at; *p != '\0';) {
		size_t n = strcspn(p, ",");
		if (out->n == NET_MAX_RELAYS)
			return rv_fail(et, RV_E_INVALID, "--relay-at: a run has %d relays at most, its coordinator's included",
						   (int)NET_MAX_RELAYS);
		RV_TRY(parse_relay(p, n, &out->at[out->n++], et));
		p += n + (p[n] == ',');
	}
	return RV_OK;
}

static enum rv_err relay_address(const struct relay_choice *o, const struct address *listen, struct address *out,
								 struct rv_errtext *et) {
	struct sockaddr_storage numeric;
	socklen_t n;
	*out = *listen;
	out->port = listen->port != 0 ? RELAY_DEFAULT_PORT : 0;
	if (o->listen[0] == '\0')
		return RV_OK;
	enum rv_err e = address_parse(o->listen, out, et);
	if (e == RV_OK && !address_to_socket(out, &numeric, &n))
		e = rv_fail(et, RV_E_INVALID, "give a numeric address, such as 0.0.0.0 or 127.0.0.1");
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--relay-listen %s", o->listen);
}

enum { PORTS_TRIED = 64 };

/* Opens the relay's port. Another program may have the default one, another coordinator most
 * likely: then the next free one will do, as documents name it. */
static enum rv_err open_port(const struct relay_choice *o, const struct address *listen, int *fd, struct address *bound,
							 struct rv_errtext *et) {
	struct address at;
	RV_TRY(relay_address(o, listen, &at, et));
	enum rv_err e = listen_socket_open(&at, fd, bound, et);
	for (int i = 0; i < PORTS_TRIED && e == RV_E_BUSY && o->listen[0] == '\0'; i++) {
		at.port++;
		e = listen_socket_open(&at, fd, bound, et);
	}
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "the relay (--relay-listen; --no-relay: none)");
}

enum rv_err relay_choice_check(const struct relay_choice *o, const struct address *listen, struct rv_errtext *et) {
	struct address at;
	struct run_relays relays = {.n = o->own};
	RV_TRY(relay_address(o, listen, &at, et));
	return parse_relays(o, &relays, et);
}

enum rv_err relay_choice_open(const struct relay_choice *o, const struct address *listen,
							  const struct address *advertise, struct relay_server_config *cfg,
							  struct run_relays *relays, struct rv_errtext *et) {
	struct address bound, at = *advertise;
	*relays = (struct run_relays){.has_own = o->own, .n = o->own};
	cfg->bytes_per_day = (uint64_t)o->bytes_per_day;
	cfg->bytes_per_s = (uint64_t)o->bytes_per_s;
	RV_TRY(parse_relays(o, relays, et));
	if (!o->own)
		return RV_OK;
	RV_TRY(open_port(o, listen, &cfg->listen_fd, &bound, et));
	at.port = bound.port;
	return address_format(&at, relays->at[0].addr) ? RV_OK
												   : rv_fail(et, RV_E_RANGE, "--advertise: the address is too long");
}

void relay_choice_log(struct rv_events *ev, const struct run_relays *relays, const struct identity *run) {
	char key[2 * NET_KEY_BYTES + 1];
	rv_hex_encode(run->key, NET_KEY_BYTES, key);
	rv_event(ev, RV_INFO, "relays",
			 RV_FIELDS(rv_field_int("relays", relays->n), rv_field_bool("own", relays->has_own),
					   rv_field_str("first", relays->n > 0 ? relays->at[0].addr : ""), rv_field_str("run_key", key)),
			 "%s%s; on another server: rivulet-coordinator relay --run-key %s",
			 relays->has_own ? "relay for workers that do not reach each other: " : "no relay here",
			 relays->has_own ? relays->at[0].addr : "", key);
}
