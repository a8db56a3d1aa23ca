/* probe_answer.h: answers probes (net/mesh/probe.h) on the port of a worker that has no mesh yet:
 * it accepts, shows its key in a TLS handshake, and closes. */
#ifndef RV_NET_MESH_PROBE_ANSWER_H
#define RV_NET_MESH_PROBE_ANSWER_H

#include "net/identity.h"
#include "net/mesh/pipe.h"
#include "net/mesh/stream.h"

#include <poll.h>
#include <stdbool.h>

enum {
	PROBE_ANSWERS = 8, /* connections at once: the oldest makes room */
	PROBE_ANSWER_FDS = PROBE_ANSWERS + 1,
	PROBE_ANSWER_US = 5 * 1000 * 1000 /* for a handshake */
};

struct probe_answer_config {
	const struct identity *identity; /* used during probe_answer_new only */
	const char *listen;              /* as peers_config.listen */
	const struct pipe_ops *pipe;     /* NULL: sockets */
	const struct stream_ops *stream; /* NULL: TLS */
};

struct probe_answer;
/* Listens for probes. RV_E_BUSY: the port is taken; RV_E_INVALID, RV_E_IO, RV_E_NOMEM. */
enum rv_err probe_answer_new(const struct probe_answer_config *cfg, struct probe_answer **out, struct rv_errtext *et);
void probe_answer_free(struct probe_answer *a); /* NULL is fine */
uint16_t probe_answer_port(const struct probe_answer *a);

int probe_answer_pollfds(const struct probe_answer *a, struct pollfd fds[PROBE_ANSWER_FDS]);
int64_t probe_answer_deadline_us(const struct probe_answer *a); /* INT64_MAX: none */
void probe_answer_handle(struct probe_answer *a, int64_t now_us, const struct pollfd *fds, int n);

#endif
