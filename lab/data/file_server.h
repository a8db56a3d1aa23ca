/* file_server.h: serves the files of a published text over HTTP, with ranges.
 *
 * A thread serves a connection at a time, so that there are never more connections than threads;
 * others wait in the system's queue. A host has at most half of them. Slow clients are cut off: a
 * head must come within 10 s, a body must go faster than 8 kB/s. evhttp, which the coordinator
 * uses, cannot count connections without TLS. Shards are hashed: the transport need not be
 * trusted. */
#ifndef RV_LAB_DATA_FILE_SERVER_H
#define RV_LAB_DATA_FILE_SERVER_H

#include "base/err.h"

#include <stdint.h>

enum { FILE_SERVER_CONNECTIONS_MAX = 256 };

struct file_server_config {
	const char *dir;    /* of the published text */
	const char *listen; /* numeric address; "": all */
	uint16_t port;      /* 0: any free one */
	int connections;    /* 1..FILE_SERVER_CONNECTIONS_MAX */
};
struct file_server; /* opaque */

/* Served since the start. */
struct file_server_counts {
	uint64_t requests, bytes;
	int connections; /* now */
};

/* Starts to serve, on threads. The caller has opened signals (base/signals.h), which the threads
 * inherit. RV_E_BUSY: the port is taken; RV_E_INVALID: not a numeric address; RV_E_IO,
 * RV_E_NOMEM. */
enum rv_err file_server_start(const struct file_server_config *c, struct file_server **out, struct rv_errtext *et);
/* Ends all connections, joins the threads and frees `s`. NULL is fine. */
void file_server_stop(struct file_server *s);
uint16_t file_server_port(const struct file_server *s);
struct file_server_counts file_server_counts(struct file_server *s);

#endif
