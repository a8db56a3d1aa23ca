/* sim_tcp.h: one end of a simulated connection, shared by sim_tcp.c and sim_pipe.c and included by
 * no other. */
#ifndef RV_TESTS_SIM_SIM_TCP_H
#define RV_TESTS_SIM_SIM_TCP_H

#include "sim.h"

enum { SIM_SEGMENT_BYTES = 1 << 14 };

/* An acknowledgement on its way back to the writer. */
struct sim_ack {
	uint64_t upto;
	int64_t at_us, rtt_us;
};

/* One end of a connection. */
struct sim_end {
	uint32_t number, theirs;            /* of the other end; two that dialed each other differ */
	int peer;                           /* host; SIM_OUTSIDE: nobody */
	int who;                            /* whose bytes come: peer, or the host beyond a relay */
	struct sim_where at;                /* the other end's address, as it is seen here */
	uint16_t port;                      /* of this end; 0: any */
	bool connected, accepted, finished; /* finished: nothing more will arrive */
	int error;                          /* errno; 0: none */
	uint8_t *in;                        /* [in_at, in_end) arrived, and is not read yet */
	size_t in_at, in_end, in_cap;
	uint64_t arrived; /* bytes; and when the latest were sent */
	int64_t sent_us;
	uint64_t written, delivered;
	bool starved; /* its owner waits for room */
	struct sim_ack *acks;
	int n_acks, cap_acks;
	int64_t least_rtt_us;
};

/* Returns the end of that number; NULL: there is none. */
struct sim_end *tcp_find(const struct sim_ends *of, uint32_t number);
/* Returns the end that dials; NULL: the port is taken for that address. */
struct sim_end *tcp_dial(struct sim *s, int host, const struct sim_where *to, uint16_t port);
void tcp_take_acks(struct sim_end *e, int64_t now_us);
size_t tcp_room(struct sim_end *e, int64_t now_us);
void tcp_put(struct sim *s, int host, struct sim_end *e, const void *data, size_t n);
void tcp_remove(struct sim_ends *of, struct sim_end *e);
void tcp_close(struct sim *s, int host, uint32_t number);

#endif
