/* reach.h: the stations and reflections of a worker over TCP and TLS: the shell of reach_core.h,
 * with the mesh and the control client as its neighbours. One thread; nothing blocks, names are
 * looked up by a thread of the C library.
 *
 *   relay_connection.h  a station's TLS connection     relay_dial.h   a TCP connection in the making
 *   relay_reflection.h  a reflection                   relay_names.h  the addresses of relays' names */
#ifndef RV_WORKER_REACH_REACH_H
#define RV_WORKER_REACH_REACH_H

#include "net/identity.h"
#include "net/mesh/peers.h"
#include "worker/reach/reach_core.h"

enum { REACH_MAX_FDS = REACH_STATIONS + REACH_REFLECTIONS };

struct reach_owner {
	void *ctx;
	void (*ask_tickets)(void *ctx, const uint32_t *peers, int n); /* as reach_ops */
	void (*tell)(void *ctx, const struct reach_event *e);         /* as reach_ops */
	/* Fills in the numeric address of the coordinator as this program reaches it: a relay at the
	 * coordinator's own name is there. Returns false until it is known. */
	bool (*coordinator_at)(void *ctx, struct address *out);
};

struct reach_shell_config {
	const struct identity *identity; /* borrowed */
	struct peers *peers;             /* borrowed: it gets the routes, and its port is reflected */
	struct relay_hello hello;
	char coordinator[NET_ADDR_BYTES]; /* host of the invite */
	struct reach_owner owner;
	uint64_t seed;
};

struct reach;

/* Makes it, without a station. RV_E_NOMEM, and the faults of tls_context_new. */
enum rv_err reach_new(const struct reach_shell_config *cfg, struct reach **out, struct rv_errtext *et);
void reach_free(struct reach *r); /* NULL is fine */
struct reach_core *reach_core_of(struct reach *r);

/* Fills in the descriptors (REACH_MAX_FDS at most) and what they wait for. Returns their
 * number. */
int reach_pollfds(struct reach *r, struct pollfd *fds);
/* Reads, writes and times out. fds as reach_pollfds filled them, with revents; NULL: it was not
 * called since. */
void reach_handle(struct reach *r, int64_t now_us, const struct pollfd *fds);
int64_t reach_deadline_us(const struct reach *r, int64_t now_us);

#endif
