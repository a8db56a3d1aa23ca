/* relay.c: `relay`: a relay as a program of its own, for a cheap server with an open port. */
#include "coordinator/commands/commands.h"

#include "base/event.h"
#include "base/hex.h"
#include "base/signals.h"
#include "coordinator/commands/relay_choice.h"
#include "coordinator/commands/serving.h"
#include "coordinator/store/run_dir.h"
#include "coordinator/web/listen_socket.h"
#include "net/relay_server/relay_server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_TEXT_BYTES = 2 * NET_KEY_BYTES + 1, TOTALS_EVERY_S = 3600 };

struct relay_options {
	char run_key[KEY_TEXT_BYTES];
	char listen[NET_ADDR_BYTES];
	char second[RELAY_SECOND_BYTES];
	char state[RUN_DIR_BYTES];
	char log[RUN_PATH_BYTES];
	bool sandbox;
	int64_t bytes_per_day, rate;
};

static const struct rv_option options[] = {
	{"run-key", RV_OPT_STRING, offsetof(struct relay_options, run_key), KEY_TEXT_BYTES, NULL, 1, 0, NULL,
	 "The run's public root key, 64 hex digits: `serve` logs it, with the whole command.", "Relay"},
	{"listen", RV_OPT_STRING, offsetof(struct relay_options, listen), NET_ADDR_BYTES, "[::]:7435", 0, 0, NULL,
	 "Numeric address and port to listen on; [::] for all, 0.0.0.0 where there is no IPv6, port 0 for any free one.",
	 "Relay"},
	{"second-port", RV_OPT_STRING, offsetof(struct relay_options, second), RELAY_SECOND_BYTES, "next", 1, 0, NULL,
	 RELAY_SECOND_HELP, "Relay"},
	{"state", RV_OPT_STRING, offsetof(struct relay_options, state), RUN_DIR_BYTES, "rivulet-relay", 1, 0, NULL,
	 "Directory for relay.key, the relay's own key, made at the first start: the run names the relay by it.", "Relay"},
	{"relay-bytes-per-day", RV_OPT_BYTES, offsetof(struct relay_options, bytes_per_day), 0, RELAY_BYTES_PER_DAY, 0,
	 9007199254740992.0, NULL, "Bytes that each member may send and receive through it in 24 hours; 0: any number.",
	 "Relay"},
	{"relay-rate", RV_OPT_RATE, offsetof(struct relay_options, rate), 0, "0", RELAY_LEAST_RATE, RELAY_MOST_RATE, NULL,
	 "Bandwidth for all that it forwards, such as 50mbit; 0: all there is. The server sends and receives that much.",
	 "Relay"},
	{"log", RV_OPT_STRING, offsetof(struct relay_options, log), RUN_PATH_BYTES, "", 0, 0, NULL,
	 "A file for every event as a JSON line.", "Relay"},
	{"sandbox", RV_OPT_BOOL, offsetof(struct relay_options, sandbox), 0, RV_SANDBOX_USUAL, 0, 0, NULL,
	 "Gives up, for good, what a relay does not need: files but --log, starting programs, and system calls that serve "
	 "to attack (Linux: Landlock and seccomp).",
	 "Relay"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

struct relay_program {
	struct event_base *base;
	struct relay_server *server;
	struct rv_events *events;
};

static enum rv_err parse(const struct relay_options *o, uint8_t run_key[NET_KEY_BYTES], struct address *listen,
						 struct rv_errtext *et) {
	struct sockaddr_storage numeric;
	socklen_t n;
	if (!rv_hex_decode(o->run_key, run_key, NET_KEY_BYTES))
		return rv_fail(et, RV_E_INVALID, "--run-key: must be 64 hex digits; `serve` logs the key of its run");
	enum rv_err e = address_parse(o->listen, listen, et);
	if (e == RV_OK && !address_to_socket(listen, &numeric, &n))
		e = rv_fail(et, RV_E_INVALID, "give a numeric address, such as 0.0.0.0 or [::]");
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--listen %s", o->listen);
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	uint8_t run_key[NET_KEY_BYTES];
	struct address listen;
	const struct relay_options *o = opts;
	RV_TRY(parse(o, run_key, &listen, et));
	int second;
	enum rv_err e = relay_second_parse(o->second, &second, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--second-port");
}

static enum rv_err load_key(const char *state, struct identity *out, struct rv_errtext *et) {
	char path[RUN_PATH_BYTES];
	if (mkdir(state, 0700) != 0 && errno != EEXIST)
		return rv_fail_errno(et, errno, "--state %s: cannot make the directory", state);
	if (snprintf(path, sizeof path, "%s/relay.key", state) >= (int)sizeof path)
		return rv_fail(et, RV_E_RANGE, "--state %s: the path is too long", state);
	return identity_load_or_create(path, out, NULL, et);
}

static void log_totals(const struct relay_program *p, const char *name) {
	const struct relay_totals *t = relay_server_totals(p->server);
	uint64_t refused = 0;
	for (int i = 0; i < RELAY_REFUSALS; i++)
		refused += t->refused[i];
	rv_event(p->events, RV_INFO, name,
			 RV_FIELDS(rv_field_int("bytes", (int64_t)t->bytes), rv_field_int("calls", (int64_t)t->calls),
					   rv_field_int("refused", (int64_t)refused), rv_field_int("stations", t->stations_now),
					   rv_field_int("links", t->links_now)),
			 "%.1f GB forwarded since the start, %llu calls made, %llu refused; now %u stations, %u links",
			 (double)t->bytes / 1e9, (unsigned long long)t->calls, (unsigned long long)refused, t->stations_now,
			 t->links_now);
}

static void on_hour(evutil_socket_t fd, short what, void *program) {
	(void)fd, (void)what;
	log_totals(program, "relay");
}

static void on_signal(evutil_socket_t fd, short what, void *program) {
	(void)what;
	struct relay_program *p = program;
	if (rv_signals_take((int)fd) != 0)
		(void)event_base_loopbreak(p->base);
}

static void say_listening(struct rv_events *ev, const struct address *bound, uint16_t second,
						  const struct identity *id) {
	char at[NET_ADDR_BYTES] = "", key[KEY_TEXT_BYTES], with[64] = ", no second port";
	(void)address_format(bound, at);
	rv_hex_encode(id->key, NET_KEY_BYTES, key);
	if (second != 0)
		(void)snprintf(with, sizeof with, ", second port %u", second);
	rv_event(ev, RV_INFO, "listening",
			 RV_FIELDS(rv_field_str("address", at), rv_field_int("port", bound->port),
					   rv_field_int("second_port", second), rv_field_str("key", key)),
			 "relay on %s%s; its run lists it with: serve --relay-at HOST:%u=%s", at, with, bound->port, key);
}

/* Gives up what the open relay does not need: its key is read, its ports are open. */
static enum rv_err enter_sandbox(const struct relay_options *o, struct rv_events *ev, struct rv_errtext *et) {
	const struct os_sandbox_path log = {o->log, OS_SANDBOX_READ | OS_SANDBOX_WRITE};
	return o->sandbox ? serving_enter_sandbox(&log, 1, ev, et) : RV_OK;
}

/* Runs the loop until a signal. */
static enum rv_err serve(struct relay_program *p, int signal_fd, struct rv_errtext *et) {
	const struct timeval hour = {.tv_sec = TOTALS_EVERY_S};
	struct event *timer = event_new(p->base, -1, EV_PERSIST, on_hour, p);
	struct event *signal = event_new(p->base, signal_fd, EV_READ | EV_PERSIST, on_signal, p);
	enum rv_err e = RV_OK;
	if (timer == NULL || signal == NULL || event_add(timer, &hour) != 0 || event_add(signal, NULL) != 0)
		e = rv_fail(et, RV_E_NOMEM, "no memory for the event loop");
	else
		(void)event_base_dispatch(p->base);
	if (e == RV_OK)
		log_totals(p, "stopped");
	if (timer != NULL)
		event_free(timer);
	if (signal != NULL)
		event_free(signal);
	return e;
}

static enum rv_err open_ports(const struct relay_options *o, struct relay_server_config *cfg, struct address *bound,
							  struct rv_errtext *et) {
	struct address listen;
	int second;
	RV_TRY(parse(o, cfg->root, &listen, et));
	RV_TRY(relay_second_parse(o->second, &second, et));
	RV_TRY(listen_socket_open(&listen, "--listen", &cfg->ports.fd[RELAY_MAIN_PORT], bound, et));
	cfg->ports.port[RELAY_MAIN_PORT] = bound->port;
	enum rv_err e = relay_second_open(bound, second, 0, &cfg->ports, et);
	if (e == RV_OK)
		return RV_OK;
	relay_ports_close(&cfg->ports);
	return rv_fail_context(et, e, "--second-port");
}

static enum rv_err open_and_serve(const struct relay_options *o, const struct identity *id, struct rv_events *ev,
								  int signal_fd, struct rv_errtext *et) {
	struct relay_server_config cfg = {.identity = id,
									  .bytes_per_day = (uint64_t)o->bytes_per_day,
									  .bytes_per_s = (uint64_t)o->rate,
									  .ports = RELAY_NO_PORTS};
	struct address bound;
	RV_TRY(open_ports(o, &cfg, &bound, et));
	struct relay_program p = {.base = event_base_new(), .events = ev};
	if (p.base == NULL) {
		relay_ports_close(&cfg.ports);
		return rv_fail(et, RV_E_NOMEM, "no memory for the event loop");
	}
	enum rv_err e = relay_server_new(p.base, &cfg, &p.server, et);
	if (e == RV_OK)
		e = enter_sandbox(o, ev, et);
	if (e == RV_OK) {
		say_listening(ev, &bound, cfg.ports.port[RELAY_SECOND_PORT], id);
		e = serve(&p, signal_fd, et);
	}
	relay_server_free(p.server);
	event_base_free(p.base);
	return e;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct relay_options *o = opts;
	struct identity id = {0};
	struct serving with;
	RV_TRY(load_key(o->state, &id, et));
	enum rv_err e = serving_open(o->log, &with, et);
	if (e == RV_OK) {
		e = open_and_serve(o, &id, with.events, with.signal_fd, et);
		serving_close(&with);
	}
	identity_release(&id);
	return e;
}

const struct rv_command cmd_relay = {
	.name = "relay",
	.synopsis = "",
	.help = "Forwards ciphertext between members that do not reach each other, until SIGINT or SIGTERM.",
	.details = "For a server with an open TCP port, better two; it needs no files of the run, and learns nothing but "
			   "who exchanges how\n"
			   "much with whom. Only members of the run with this key are served, each pair with a ticket that the\n"
			   "coordinator signed for it. It connects to nobody. Any number may run; `serve --relay-at` lists them.",
	.options = options,
	.opts_bytes = sizeof(struct relay_options),
	.check = check,
	.run = run,
};
