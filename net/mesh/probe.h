/* probe.h: dials addresses for the coordinator, once each, and says what answered: a program that
 * holds the expected key, something else, or nothing.
 *
 * A probe is one TCP connection to each of its addresses, all at once, and one TLS handshake,
 * without HELLO: TCP sends its first packet three times at most, and a mesh that is probed reports
 * no trouble. PROBES_AT_ONCE are under way, and each place takes a new one at most every
 * PROBE_EVERY_US, whatever the coordinator sends. One thread, no clock: time is handed in
 * (monotonic microseconds). */
#ifndef RV_NET_MESH_PROBE_H
#define RV_NET_MESH_PROBE_H

#include "net/address_reach.h"
#include "net/control/probe.h"
#include "net/identity.h"
#include "net/mesh/pipe.h"
#include "net/mesh/stream.h"

#include <poll.h>

enum {
	/* Until an address counts as silent: three first packets of TCP, which Linux repeats every
	 * second since 6.5, and twice as late each time before. */
	PROBE_US = 2900 * 1000,
	PROBE_TLS_US = 6 * 1000 * 1000, /* until what accepted, and says nothing, is something else */
	PROBE_EVERY_US = 2 * 1000 * 1000,
	PROBE_MAX_FDS = PROBES_AT_ONCE * PROBE_MAX_ADDRS
};

struct prober_config {
	const struct identity *identity; /* used during prober_new only */
	const struct pipe_ops *pipe;     /* NULL: sockets */
	const struct stream_ops *stream; /* NULL: TLS */
};

struct prober;
/* Makes a prober that probes nobody yet. RV_E_NOMEM, RV_E_UNSUPPORTED (TLS cannot do it). */
enum rv_err prober_new(const struct prober_config *cfg, struct prober **out, struct rv_errtext *et);
void prober_free(struct prober *p); /* NULL is fine */

/* Begins these probes, but for those that are under way, or are among those that ended last; and
 * does nothing where no place is free: the coordinator repeats them. An address that is not
 * dialable from a network that reaches the coordinator in the range `met` is PROBE_UNABLE. */
void prober_take(struct prober *p, int64_t now_us, const struct probes *probes, enum address_reach met);
/* Returns the results of those that ended last. */
const struct probed_list *prober_results(const struct prober *p);

/* Fills at most PROBE_MAX_FDS descriptors, for prober_handle. */
int prober_pollfds(const struct prober *p, struct pollfd *fds, int cap);
int64_t prober_deadline_us(const struct prober *p); /* INT64_MAX: none */
/* Returns true if a probe has ended. */
bool prober_handle(struct prober *p, int64_t now_us, const struct pollfd *fds, int n);

#endif
