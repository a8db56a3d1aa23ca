/* server.h: the coordinator's web server: HTTPS (TLS 1.3, the serving key as certificate) on
 * libevent's evhttp, one thread, one event loop. */
#ifndef RV_COORDINATOR_SERVER_H
#define RV_COORDINATOR_SERVER_H

#include "coordinator/service/service.h"
#include "coordinator/store/run_keys.h"
#include "coordinator/web/served_text.h"
#include "coordinator/web/web_cert.h"
#include "net/address.h"
#include "net/relay_server/relay_server.h"

struct server_config {
	struct service *service;     /* borrowed */
	const struct run_keys *keys; /* borrowed */
	struct web_cert web;         /* what browsers are shown; read again within a second of a change */
	int listen_fd;               /* of listen_socket_open; the server closes it, also when server_new fails */
	int max_connections;
	int signal_fd;            /* of rv_signals_open: a signal ends server_run; -1: none */
	struct served_text *text; /* borrowed; NULL: none */
	int64_t text_bytes_per_s; /* of all that is sent of it; 0: no limit */
	struct rv_events *events; /* borrowed; NULL: no log */
	/* The relay that the server runs beside itself; its key is the serving key. RELAY_NO_PORTS:
	 * none. */
	struct relay_server_config relay;
	void (*on_sweep)(void *ctx, int64_t now_us); /* about once a second; NULL: nothing */
	void *ctx;
};

struct server;
/* Makes a server; the caller frees it. RV_E_NOMEM, and the faults of tls_context_new and
 * web_cert_use. */
enum rv_err server_new(const struct server_config *cfg, struct server **out, struct rv_errtext *et);
/* Serves until a signal or server_stop (RV_OK), or until the store fails (its fault). Blocks. */
enum rv_err server_run(struct server *s, struct rv_errtext *et);
/* Ends server_run. Called from its thread, in a callback of the loop. */
void server_stop(struct server *s);
void server_free(struct server *s); /* NULL is fine */

#endif
