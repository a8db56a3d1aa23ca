/* web_server.h: a small HTTP/1.1 server for tests: loopback, any port, its own thread, one more per
 * connection. */
#ifndef RV_TESTS_NET_WEB_SERVER_H
#define RV_TESTS_NET_WEB_SERVER_H

#include "net/identity.h"

#include <openssl/types.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEB_MAX_CONNECTIONS = 1024, WEB_REQUEST_BYTES = 1 << 16 };

struct web_request {
	char method[8], path[256];
	bool has_client_key; /* TLS client certificate */
	uint8_t client_key[NET_KEY_BYTES];
	bool has_range;
	uint64_t range_start, range_end; /* "Range: bytes=N-M"; 0 and UINT64_MAX: none */
	const uint8_t *body;
	size_t body_bytes;
};

struct web_reply {
	int status;          /* 200 */
	const char *headers; /* more lines, each with its CRLF; NULL: none */
	const void *body;
	size_t body_bytes;
	size_t cut_after; /* closes after so many bytes of the body; 0: not */
	bool no_length;   /* without Content-Length; the end is the close */
	bool hang;        /* no reply at all until the server stops */
};

struct web_server {
	uint16_t port;
	int listener, stop_fd; /* stop_fd: readable when it is time to go */
	SSL_CTX *ctx;          /* NULL: plain http */
	void (*handle)(void *ctx, const struct web_request *rq, struct web_reply *reply); /* any thread */
	void *handle_ctx;
	pthread_t thread;
	pthread_t connections[WEB_MAX_CONNECTIONS];
	int n_connections;
};

/* tls: NULL for plain http. */
void web_start(struct web_server *s, const struct identity *tls,
			   void (*handle)(void *, const struct web_request *, struct web_reply *), void *ctx);
void web_stop(struct web_server *s);

#endif
