/* own_relay.c: see own_relay.h. */
#include "worker/own_relay/own_relay.h"

#include "base/assert.h"
#include "base/clock.h"
#include "net/relay_server/relay_server.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TURN_MS = 100, BACKLOG = 256, PORTS_TRIED = 64 };

struct own_relay {
	struct event_base *base;
	struct event *turn;
	struct relay_server *server;
	uint16_t port, second_port;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock; /* of what follows */
	bool stops;
	struct banned banned;
	uint16_t named_second;
	struct own_relay_figures figures;
};

/* ---- the thread ---- */

static struct own_relay_figures figures_of(const struct relay_totals *t) {
	return (struct own_relay_figures){.bytes = t->bytes, .stations = t->stations_now, .links = t->links_now};
}

static void on_turn(evutil_socket_t fd, short what, void *relay) {
	(void)fd, (void)what;
	struct own_relay *r = relay;
	(void)pthread_mutex_lock(&r->lock);
	bool stops = r->stops;
	struct banned banned = r->banned;
	uint16_t named_second = r->named_second;
	r->figures = figures_of(relay_server_totals(r->server));
	(void)pthread_mutex_unlock(&r->lock);
	relay_server_ban(r->server, &banned);
	relay_server_name_second(r->server, named_second);
	if (stops)
		(void)event_base_loopbreak(r->base);
}

static void *run(void *relay) {
	(void)event_base_dispatch(((struct own_relay *)relay)->base);
	return NULL;
}

/* ---- life ---- */

static enum rv_err open_ports(const struct own_relay_config *cfg, struct relay_ports *ports, struct rv_errtext *et) {
	struct address at = {.port = cfg->port != 0 ? cfg->port : RELAY_DEFAULT_PORT}, bound;
	int *fd = &ports->fd[RELAY_MAIN_PORT];
	*fd = address_listen(&at, 0, BACKLOG, &bound);
	for (int i = 0; i < PORTS_TRIED && *fd < 0 && errno == EADDRINUSE && cfg->port == 0; i++) {
		at.port++;
		*fd = address_listen(&at, 0, BACKLOG, &bound);
	}
	if (*fd < 0 && errno == EADDRINUSE)
		return rv_fail(et, RV_E_BUSY,
					   "port %u is taken: choose another one with --relay-for-others-port, or leave it out", at.port);
	if (*fd < 0)
		return rv_fail_errno(et, errno, "cannot listen on port %u for the relay", at.port);
	ports->port[RELAY_MAIN_PORT] = at.port;
	return relay_second_open(&at, RELAY_SECOND_NEXT, 0, ports, et);
}

static enum rv_err set_up(struct own_relay *r, const struct own_relay_config *cfg, struct rv_errtext *et) {
	const struct timeval turn = {.tv_usec = TURN_MS * RV_US_PER_MS};
	struct relay_server_config server = {.identity = cfg->identity,
										 .bytes_per_day_of_all = cfg->bytes_per_day,
										 .bytes_per_s = cfg->bytes_per_s,
										 .ports = RELAY_NO_PORTS};
	memcpy(server.root, cfg->root, sizeof server.root);
	r->base = event_base_new();
	if (r->base == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the relay");
	RV_TRY(open_ports(cfg, &server.ports, et));
	r->port = server.ports.port[RELAY_MAIN_PORT];
	r->second_port = r->named_second = server.ports.port[RELAY_SECOND_PORT];
	RV_TRY(relay_server_new(r->base, &server, &r->server, et));
	r->turn = event_new(r->base, -1, EV_PERSIST, on_turn, r);
	if (r->turn == NULL || event_add(r->turn, &turn) != 0)
		return rv_fail(et, RV_E_NOMEM, "no memory for the relay");
	r->started = pthread_create(&r->thread, NULL, run, r) == 0;
	return r->started ? RV_OK : rv_fail(et, RV_E_NOMEM, "no thread for the relay");
}

enum rv_err own_relay_start(const struct own_relay_config *cfg, struct own_relay **out, struct rv_errtext *et) {
	RV_ASSERT(cfg->bytes_per_s > 0);
	*out = NULL;
	struct own_relay *r = calloc(1, sizeof *r);
	if (r == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the relay");
	(void)pthread_mutex_init(&r->lock, NULL);
	enum rv_err e = set_up(r, cfg, et);
	if (e == RV_OK)
		*out = r;
	else
		(void)own_relay_stop(r);
	return e;
}

struct own_relay_figures own_relay_stop(struct own_relay *r) {
	struct own_relay_figures last = {0};
	if (r == NULL)
		return last;
	(void)pthread_mutex_lock(&r->lock);
	r->stops = true;
	(void)pthread_mutex_unlock(&r->lock);
	if (r->started)
		(void)pthread_join(r->thread, NULL);
	if (r->server != NULL)
		last = figures_of(relay_server_totals(r->server));
	if (r->turn != NULL)
		event_free(r->turn);
	relay_server_free(r->server);
	if (r->base != NULL)
		event_base_free(r->base);
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
	return last;
}

/* ---- the owner's side ---- */

uint16_t own_relay_port(const struct own_relay *r) {
	return r->port;
}

uint16_t own_relay_second_port(const struct own_relay *r) {
	return r->second_port;
}

void own_relay_name_second(struct own_relay *r, uint16_t port) {
	(void)pthread_mutex_lock(&r->lock);
	r->named_second = port;
	(void)pthread_mutex_unlock(&r->lock);
}

void own_relay_ban(struct own_relay *r, const struct banned *members) {
	(void)pthread_mutex_lock(&r->lock);
	r->banned = *members;
	(void)pthread_mutex_unlock(&r->lock);
}

struct own_relay_figures own_relay_look(struct own_relay *r) {
	(void)pthread_mutex_lock(&r->lock);
	struct own_relay_figures now = r->figures;
	(void)pthread_mutex_unlock(&r->lock);
	return now;
}
