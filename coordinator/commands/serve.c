/* serve.c: `serve`: runs the coordinator until a signal. */
#include "coordinator/commands/commands.h"
#include "coordinator/commands/descriptors.h"
#include "coordinator/commands/kept_address.h"

#include "base/clock.h"
#include "base/event.h"
#include "coordinator/commands/opened_run.h"
#include "coordinator/commands/relay_choice.h"
#include "coordinator/commands/serve_text.h"
#include "coordinator/commands/serving.h"
#include "coordinator/web/listen_file.h"
#include "coordinator/web/listen_socket.h"
#include "coordinator/web/server.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOCK_PATIENCE_MS = 3000 };

struct serve_options {
	char dir[RUN_DIR_BYTES];
	char listen[NET_ADDR_BYTES], advertise[NET_ADDR_BYTES];
	char log[RUN_PATH_BYTES];
	char web_cert[WEB_CERT_PATH_BYTES], web_key[WEB_CERT_PATH_BYTES];
	int64_t max_connections;
	char text[RUN_TEXT_BYTES];
	int64_t text_up;
	char model_at[sizeof((struct run_about *)0)->model_at];
	bool sandbox;
	struct relay_choice relay;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct serve_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory of the run (`new-run` makes it).", "Coordinator"},
	{"listen", RV_OPT_STRING, offsetof(struct serve_options, listen), NET_ADDR_BYTES, "127.0.0.1:7433", 0, 0, NULL,
	 "Numeric address and port to listen on; 0.0.0.0 or [::] for all, port 0 for any free one. Kept in DIR/address for "
	 "the next `serve`.",
	 "Coordinator"},
	{"advertise", RV_OPT_STRING, offsetof(struct serve_options, advertise), NET_ADDR_BYTES, "", 0, 0, NULL,
	 "HOST:PORT that invite links name: how workers reach this machine. Port 0: the one listened on. Kept, too.",
	 "Coordinator"},
	{"max-connections", RV_OPT_INT, offsetof(struct serve_options, max_connections), 0, "0", 0,
	 DESCRIPTORS_MAX_CONNECTIONS, NULL,
	 "Connections open at once, 8 at least; a worker needs three. 0: 4096, or as many as the limit of open files "
	 "(`ulimit -Hn`) leaves room for.",
	 "Coordinator"},
	{"log", RV_OPT_STRING, offsetof(struct serve_options, log), RUN_PATH_BYTES, "", 0, 0, NULL,
	 "A file for every event as a JSON line.", "Coordinator"},
	{"web-cert", RV_OPT_STRING, offsetof(struct serve_options, web_cert), WEB_CERT_PATH_BYTES, "", 0, 0, NULL,
	 "A PEM file with the certificate that browsers see, and those that lead to its authority; read again when it "
	 "changes. None: one that the first `serve` makes, and keeps as web.pem. Workers check the run's key instead.",
	 "Pages"},
	{"web-key", RV_OPT_STRING, offsetof(struct serve_options, web_key), WEB_CERT_PATH_BYTES, "", 0, 0, NULL,
	 "The PEM file with its key (ECDSA or RSA, without a passphrase). None: the file of --web-cert.", "Pages"},
	{"sandbox", RV_OPT_BOOL, offsetof(struct serve_options, sandbox), 0, RV_SANDBOX_USUAL, 0, 0, NULL,
	 "Gives up, for good, what serving does not need: other files than the run's, its text and --log, starting "
	 "programs, and system calls that serve to attack (Linux: Landlock and seccomp).",
	 "Coordinator"},
	{"text", RV_OPT_STRING, offsetof(struct serve_options, text), RUN_TEXT_BYTES, "", 0, 0, NULL,
	 "Where the run's text is now: a directory of `rivulet data publish`. None: where it was.", "Text"},
	{"text-up", RV_OPT_RATE, offsetof(struct serve_options, text_up), 0, "20mbit", RELAY_LEAST_RATE, RELAY_MOST_RATE,
	 NULL, "Bandwidth for all text that members fetch from here, which is their last resort; 0: all there is.", "Text"},
	{"model-at", RV_OPT_STRING, offsetof(struct serve_options, model_at), sizeof((struct run_about *)0)->model_at, "",
	 0, 0, NULL,
	 "Where the trained model is given away, such as a URL: computers that want to join after the end are sent there. "
	 "Kept. None: as it was stated before.",
	 "About the run"},
	{"relay", RV_OPT_BOOL, offsetof(struct serve_options, relay.own), 0, "yes", 0, 0, NULL,
	 "Forwards (ciphertext) between workers that do not reach each other, on a port of its own. --no-relay: does not.",
	 "Relay"},
	{"relay-listen", RV_OPT_STRING, offsetof(struct serve_options, relay.listen), NET_ADDR_BYTES, "", 0, 0, NULL,
	 "Numeric address and port of the relay. None: the host of --listen, and the port of the last `serve`, else 7435, "
	 "or the next free one where that is taken or --listen has port 0. Workers reach it at the host of --advertise "
	 "with "
	 "this port.",
	 "Relay"},
	{"relay-second-port", RV_OPT_STRING, offsetof(struct serve_options, relay.second), RELAY_SECOND_BYTES, "next", 1, 0,
	 NULL, RELAY_SECOND_HELP, "Relay"},
	{"relay-bytes-per-day", RV_OPT_BYTES, offsetof(struct serve_options, relay.bytes_per_day), 0, RELAY_BYTES_PER_DAY,
	 0, 9007199254740992.0, NULL, "Bytes that each member may send and receive through it in 24 hours; 0: any number.",
	 "Relay"},
	{"relay-rate", RV_OPT_RATE, offsetof(struct serve_options, relay.bytes_per_s), 0, "0", RELAY_LEAST_RATE,
	 RELAY_MOST_RATE, NULL, "Bandwidth for all that it forwards, such as 50mbit; 0: all there is.", "Relay"},
	{"relay-at", RV_OPT_STRING, offsetof(struct serve_options, relay.at), RELAY_LIST_BYTES, "", 0, 0, NULL,
	 "Other relays of the run, HOST:PORT=KEY as `rivulet-coordinator relay` prints it, several with commas.", "Relay"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

/* Takes the address of the last `serve` for the usual one. */
static enum rv_err recall(void *opts, struct rv_errtext *et) {
	struct serve_options *o = opts;
	struct kept_address kept = {.listen = ""};
	struct run_dir d;
	char dir[RUN_DIR_BYTES];
	memcpy(dir, o->dir, sizeof dir);
	rv_options_defaults(options, o);
	memcpy(o->dir, dir, sizeof dir);
	if (run_dir_of(dir, &d, NULL) != RV_OK)
		return RV_OK; /* it is refused later */
	RV_TRY(kept_address_read(d.address, &kept, et));
	if (kept.listen[0] != '\0')
		(void)snprintf(o->listen, sizeof o->listen, "%s", kept.listen);
	(void)snprintf(o->advertise, sizeof o->advertise, "%s", kept.advertise);
	return RV_OK;
}

/* Keeps where it listens. A full disk is no reason not to serve. */
static void keep_address(const struct serve_options *o, const struct run_dir *d, const struct address *bound,
						 struct rv_events *ev) {
	struct kept_address kept = {.listen = ""};
	struct rv_errtext why = {0};
	(void)address_format(bound, kept.listen);
	(void)snprintf(kept.advertise, sizeof kept.advertise, "%s", o->advertise);
	if (kept_address_write(d->address, &kept, &why) != RV_OK)
		rv_event(ev, RV_WARN, "address", RV_NO_FIELDS, "the next `serve` needs --listen and --advertise again: %s",
				 why.text);
}

static bool is_wildcard(const struct address *a) {
	return a->host[0] == '\0' || strcmp(a->host, "0.0.0.0") == 0 || strcmp(a->host, "::") == 0;
}

static enum rv_err parse_addresses(const struct serve_options *o, struct address *listen, struct address *advertise,
								   struct rv_errtext *et) {
	enum rv_err e = address_parse(o->listen, listen, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "--listen %s", o->listen);
	struct sockaddr_storage numeric;
	socklen_t n;
	if (!address_to_socket(listen, &numeric, &n))
		return rv_fail(et, RV_E_INVALID, "--listen %s: give a numeric address, such as 0.0.0.0 or 127.0.0.1",
					   o->listen);
	*advertise = *listen;
	if (o->advertise[0] == '\0')
		return is_wildcard(listen) ? rv_fail(et, RV_E_INVALID,
											 "--listen %s is every address of this machine, so invite links cannot "
											 "name one: set the address at which "
											 "workers reach it with --advertise HOST:PORT",
											 o->listen)
								   : RV_OK;
	e = address_parse(o->advertise, advertise, et);
	if (e == RV_OK && advertise->host[0] == '\0')
		e = rv_fail(et, RV_E_INVALID, "the host is missing");
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--advertise %s", o->advertise);
}

static enum rv_err check_model_at(const struct serve_options *o, struct rv_errtext *et) {
	struct run_about about = {.round_s = 0};
	(void)snprintf(about.model_at, sizeof about.model_at, "%s", o->model_at);
	return run_about_check(&about, et);
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct serve_options *o = opts;
	struct address listen, advertise;
	RV_TRY(check_model_at(o, et));
	RV_TRY(parse_addresses(o, &listen, &advertise, et));
	RV_TRY(descriptors_check((int)o->max_connections, et));
	if (o->web_key[0] != '\0' && o->web_cert[0] == '\0')
		return rv_fail(et, RV_E_INVALID, "--web-key %s needs --web-cert FILE, the certificate of that key", o->web_key);
	return relay_choice_check(&o->relay, &listen, et);
}

static enum rv_err check_files(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	struct run_dir d;
	return run_dir_find(((const struct serve_options *)opts)->dir, &d, et);
}

/* Returns the address for programs on this machine: loopback, if the server listens on all
 * addresses. */
static struct address local_of(const struct address *bound) {
	struct address a = *bound;
	if (is_wildcard(&a))
		(void)snprintf(a.host, sizeof a.host, "%s", strcmp(a.host, "0.0.0.0") == 0 ? "127.0.0.1" : "::1");
	return a;
}

static void on_sweep(void *notice, int64_t now_us) {
	listen_notice_tick(notice, now_us);
}

static void say_listening(struct rv_events *ev, const struct address *bound, const struct address *advertise) {
	char at[NET_ADDR_BYTES] = "", as[NET_ADDR_BYTES] = "";
	(void)address_format(bound, at);
	(void)address_format(advertise, as);
	rv_event(ev, RV_INFO, "listening",
			 RV_FIELDS(rv_field_str("address", at), rv_field_int("port", bound->port), rv_field_str("advertise", as)),
			 "listening on %s; workers are sent to %s; dashboard: https://%s/", at, as, as);
}

static enum rv_err serve_run(struct opened_run *r, struct server_config *cfg, const struct address *bound,
							 const struct address *advertise, struct rv_events *ev, struct rv_errtext *et) {
	struct server *server = NULL;
	struct listen_notice notice = {.path = r->dir.listen, .at = local_of(bound), .events = ev};
	cfg->on_sweep = on_sweep;
	cfg->ctx = &notice;
	RV_TRY(server_new(cfg, &server, et));
	enum rv_err e = listen_notice_begin(&notice, rv_clock_monotonic_us(), et);
	if (e == RV_OK) {
		say_listening(ev, bound, advertise);
		e = server_run(server, et);
	}
	(void)unlink(r->dir.listen);
	server_free(server);
	if (e == RV_OK)
		rv_event(ev, RV_INFO, "stopped", RV_NO_FIELDS, "stopped; nothing is lost: `serve` continues where this was");
	return e;
}

/* Chooses what browsers are shown; makes it, if it is our own and not there yet. Without room
 * for it the run is served all the same. */
static enum rv_err choose_web_cert(const struct serve_options *o, const struct run_dir *d, struct rv_events *ev,
								   struct web_cert *out, struct rv_errtext *et) {
	const char *cert = o->web_cert[0] != '\0' ? o->web_cert : d->web;
	struct rv_errtext why = {0};
	enum rv_err e = o->web_cert[0] == '\0' ? web_cert_make(d->web, &why) : RV_OK;
	if (e == RV_E_FULL) {
		rv_event(ev, RV_WARN, "web_cert", RV_NO_FIELDS, "%s: browsers are not served until the next start", why.text);
		return RV_OK;
	}
	(void)snprintf(out->cert, sizeof out->cert, "%s", cert);
	(void)snprintf(out->key, sizeof out->key, "%s", o->web_key[0] != '\0' ? o->web_key : cert);
	return e == RV_OK ? RV_OK : rv_fail(et, e, "%s", why.text);
}

/* Writes the directory that holds a file once it is renewed: the one that a link leads to. */
static void directory_of(const char *file, char out[PATH_MAX]) {
	char *slash;
	if (file[0] == '\0' || realpath(file, out) == NULL)
		out[0] = '\0';
	else if ((slash = strrchr(out, '/')) != NULL)
		slash[slash == out] = '\0';
}

/* Gives up what serving does not need, once the run is open. SQLite's temporary files go to the
 * run's directory. */
static enum rv_err enter_sandbox(const struct serve_options *o, const struct run_dir *d, const struct served_text *text,
								 struct rv_events *ev, struct rv_errtext *et) {
	const unsigned both = OS_SANDBOX_READ | OS_SANDBOX_WRITE;
	char cert[PATH_MAX], key[PATH_MAX];
	directory_of(o->web_cert, cert);
	directory_of(o->web_key, key);
	const struct os_sandbox_path paths[] = {{d->dir, both},
											{o->log, both},
											{cert, OS_SANDBOX_READ},
											{key, OS_SANDBOX_READ},
											{text ? served_text_dir(text) : "", OS_SANDBOX_READ}};
	if (!o->sandbox)
		return RV_OK;
	(void)setenv("SQLITE_TMPDIR", d->dir, 0);
	return serving_enter_sandbox(paths, sizeof paths / sizeof paths[0], ev, et);
}

/* Opens the run and serves it. The socket is open: its port is known, for links too. */
static enum rv_err open_and_serve(const struct serve_options *o, const struct run_dir *d, int signal_fd,
								  struct rv_events *ev, struct rv_errtext *et) {
	struct address listen, advertise, bound;
	struct opened_run r;
	struct run_relays relays;
	struct server_config cfg = {.signal_fd = signal_fd, .listen_fd = -1, .relay = {.ports = RELAY_NO_PORTS}};
	RV_TRY(parse_addresses(o, &listen, &advertise, et));
	RV_TRY(descriptors_reserve((int)o->max_connections, o->relay.own, &cfg.max_connections, et));
	RV_TRY(listen_socket_open(&listen, "--listen", &cfg.listen_fd, &bound, et));
	if (advertise.port == 0)
		advertise.port = bound.port;
	const struct relay_place place = {
		.listen = &listen, .advertise = &advertise, .kept_path = d->relay_ports, .events = ev};
	enum rv_err e = relay_choice_open(&o->relay, &place, &cfg.relay, &relays, et);
	if (e == RV_OK)
		e = opened_run_open(d, LOCK_PATIENCE_MS, &advertise, &relays, ev, &r, et);
	if (e != RV_OK) {
		(void)close(cfg.listen_fd);
		relay_ports_close(&cfg.relay.ports);
		return e;
	}
	const struct address local = local_of(&bound);
	keep_address(o, d, &bound, ev);
	relay_choice_keep(&place, &cfg.relay.ports);
	listen_file_clean(d->listen, &local);
	cfg.service = r.service;
	cfg.keys = &r.keys;
	cfg.events = ev;
	cfg.text_bytes_per_s = o->text_up;
	relay_choice_log(ev, &relays, &cfg.relay.ports, r.keys.root);
	e = choose_web_cert(o, d, ev, &cfg.web, et);
	if (e == RV_OK && o->model_at[0] != '\0')
		e = service_set_model_at(r.service, o->model_at, et);
	if (e == RV_OK)
		e = serve_text_open(&r, o->text, ev, &cfg.text, et);
	if (e == RV_OK)
		e = enter_sandbox(o, d, cfg.text, ev, et);
	if (e == RV_OK) {
		e = serve_run(&r, &cfg, &bound, &advertise, ev, et);
	} else {
		(void)close(cfg.listen_fd);
		relay_ports_close(&cfg.relay.ports);
	}
	served_text_close(cfg.text);
	opened_run_close(&r);
	return e;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct serve_options *o = opts;
	struct run_dir d;
	struct serving with;
	RV_TRY(run_dir_find(o->dir, &d, et));
	RV_TRY(serving_open(o->log, &with, et));
	enum rv_err e = open_and_serve(o, &d, with.signal_fd, with.events, et);
	serving_close(&with);
	return e;
}

const struct rv_command cmd_serve = {
	.name = "serve",
	.synopsis = "",
	.help = "Coordinates the run until SIGINT or SIGTERM; kill -9 loses nothing either.",
	.details =
		"The address is needed once: the next `serve` of DIR listens there again.\n"
		"Workers and browsers use the same port (HTTPS, TLS 1.3): workers check the run's key, browsers see\n"
		"--web-cert. DIR/listen holds the address once it is open. Behind a router, forward the port and use\n"
		"--advertise. Forward the relay's port too: home routers often let no worker in, and then it carries what\n"
		"they exchange.",
	.options = options,
	.opts_bytes = sizeof(struct serve_options),
	.recall = recall,
	.check = check,
	.check_files = check_files,
	.run = run,
};
