/* relay_choice.c: see relay_choice.h. */
#include "coordinator/commands/relay_choice.h"

#include "base/hex.h"
#include "coordinator/commands/kept_ports.h"
#include "coordinator/web/listen_socket.h"

#include <stdio.h>
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

static void say_taken(struct rv_events *ev, const char *why, uint16_t taken, uint16_t port) {
	rv_event(ev, RV_WARN, "relay_port", RV_FIELDS(rv_field_int("taken", taken), rv_field_int("port", port)),
			 "%s; the relay listens on port %u: where a router or a firewall lets in %u, let in %u as well", why, port,
			 taken, port);
}

/* Opens the first free port from `at` on. */
static enum rv_err open_next(struct address at, int *fd, struct address *bound, struct rv_errtext *et) {
	enum rv_err e = RV_E_BUSY;
	for (int i = 0; i <= PORTS_TRIED && e == RV_E_BUSY; i++, at.port++)
		e = listen_socket_open(&at, "--relay-listen", fd, bound, et);
	return e;
}

/* Opens the relay's port: that of the last `serve`, else the usual one, `at`. Another program may
 * have it, another coordinator most likely: then the next free one will do, as documents name
 * it. */
static enum rv_err open_usual(const struct relay_place *place, uint16_t kept, const struct address *at, int *fd,
							  struct address *bound, struct rv_errtext *et) {
	struct rv_errtext why;
	struct address first = *at;
	first.port = kept != 0 ? kept : at->port;
	enum rv_err e = listen_socket_open(&first, "--relay-listen", fd, bound, &why);
	if (e == RV_OK)
		return RV_OK;
	if (e != RV_E_BUSY)
		return rv_fail(et, e, "%s", why.text);
	RV_TRY(open_next(*at, fd, bound, et));
	say_taken(place->events, why.text, first.port, bound->port);
	return RV_OK;
}

static enum rv_err open_ports(const struct relay_choice *o, const struct relay_place *place, struct relay_ports *ports,
							  struct rv_errtext *et) {
	const struct kept_ports kept = kept_ports_read(place->kept_path);
	int *fd = &ports->fd[RELAY_MAIN_PORT], wanted;
	struct address at, bound;
	RV_TRY(relay_second_parse(o->second, &wanted, et));
	RV_TRY(relay_address(o, place->listen, &at, et));
	if (o->listen[0] != '\0')
		RV_TRY(listen_socket_open(&at, "--relay-listen", fd, &bound, et));
	else
		RV_TRY(open_usual(place, kept.port[RELAY_MAIN_PORT], &at, fd, &bound, et));
	ports->port[RELAY_MAIN_PORT] = bound.port;
	return relay_second_open(&bound, wanted, kept.port[RELAY_SECOND_PORT], ports, et);
}

void relay_choice_keep(const struct relay_place *place, const struct relay_ports *ports) {
	struct rv_errtext why;
	if (ports->fd[RELAY_MAIN_PORT] < 0)
		return;
	if (kept_ports_write(place->kept_path, ports, &why) != RV_OK)
		rv_event(place->events, RV_WARN, "relay_port", RV_NO_FIELDS,
				 "%s; the next `serve` may have another port for its relay: choose it with --relay-listen", why.text);
}

/* ---- the choice ---- */

static enum rv_err check_second(const struct relay_choice *o, struct rv_errtext *et) {
	int wanted;
	enum rv_err e = relay_second_parse(o->second, &wanted, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--relay-second-port");
}

enum rv_err relay_choice_check(const struct relay_choice *o, const struct address *listen, struct rv_errtext *et) {
	struct address at;
	struct run_relays relays = {.n = o->own};
	RV_TRY(relay_address(o, listen, &at, et));
	RV_TRY(check_second(o, et));
	return parse_relays(o, &relays, et);
}

enum rv_err relay_choice_open(const struct relay_choice *o, const struct relay_place *place,
							  struct relay_server_config *cfg, struct run_relays *relays, struct rv_errtext *et) {
	struct address at = *place->advertise;
	*relays = (struct run_relays){.has_own = o->own, .n = o->own};
	cfg->bytes_per_day = (uint64_t)o->bytes_per_day;
	cfg->bytes_per_s = (uint64_t)o->bytes_per_s;
	RV_TRY(parse_relays(o, relays, et));
	if (!o->own)
		return RV_OK;
	enum rv_err e = open_ports(o, place, &cfg->ports, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "the relay (--relay-listen; --no-relay: none)");
	at.port = cfg->ports.port[RELAY_MAIN_PORT];
	return address_format(&at, relays->at[0].addr) ? RV_OK
												   : rv_fail(et, RV_E_RANGE, "--advertise: the address is too long");
}

/* ---- the log ---- */

/* Writes "; second port N" with what it is for, or that there is none. */
static void describe_second(const struct relay_ports *ports, char *out, size_t cap) {
	uint16_t second = ports->port[RELAY_SECOND_PORT];
	if (second != 0)
		(void)snprintf(out, cap, "; second port %u, at which workers learn how their routers map ports", second);
	else
		(void)snprintf(out, cap, "; no second port: workers do not learn how their routers map ports");
}

static void describe(const struct run_relays *relays, const struct relay_ports *ports, char *out, size_t cap) {
	char second[128] = "", others[64] = "";
	int more = relays->n - 1;
	if (relays->has_own)
		describe_second(ports, second, sizeof second);
	if (more > 0)
		(void)snprintf(others, sizeof others, ", and %d more", more);
	if (relays->n > 0)
		(void)snprintf(out, cap, "workers that do not reach each other meet at the relay %s%s%s", relays->at[0].addr,
					   others, second);
	else
		(void)snprintf(out, cap, "no relay: two workers that do not reach each other do not meet");
}

void relay_choice_log(struct rv_events *ev, const struct run_relays *relays, const struct relay_ports *ports,
					  const uint8_t root[NET_KEY_BYTES]) {
	char key[2 * NET_KEY_BYTES + 1], text[512];
	rv_hex_encode(root, NET_KEY_BYTES, key);
	describe(relays, ports, text, sizeof text);
	rv_event(ev, RV_INFO, "relays",
			 RV_FIELDS(rv_field_int("relays", relays->n), rv_field_bool("own", relays->has_own),
					   rv_field_str("first", relays->n > 0 ? relays->at[0].addr : ""),
					   rv_field_int("second_port", ports->port[RELAY_SECOND_PORT]), rv_field_str("run_key", key)),
			 "%s; for one on another server: rivulet-coordinator relay --run-key %s", text, key);
}
