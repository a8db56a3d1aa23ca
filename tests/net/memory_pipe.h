/* memory_pipe.h: pipes within one process (net/mesh/pipe.h): what is written lies in the other
 * end's buffer at once, of which a part counts as acknowledged and the rest as on its way, as in a
 * kernel whose reader is slow. Without sockets nothing waits for a kernel, so a world on it runs as
 * fast as the processor allows, and always the same way. */
#ifndef RV_TESTS_NET_MEMORY_PIPE_H
#define RV_TESTS_NET_MEMORY_PIPE_H

#include "net/mesh/pipe.h"

#include <poll.h>

enum { MEMORY_MAX_PIPES = 512, MEMORY_WINDOW_BYTES = 1 << 17, MEMORY_ROOM_BYTES = 1 << 18 };

struct memory_end {
	bool used, listens, connected, accepted, finished, refused; /* finished: nothing more will come */
	int other;                                                  /* number of the other end, or of the listener; -1 */
	uint16_t port;                                              /* of a listener */
	uint8_t *in;                                                /* (MEMORY_ROOM_BYTES) [0, in_bytes) is not read yet */
	size_t in_bytes;
	uint64_t written;
	uint64_t lost_share;   /* one byte of these many was sent twice; 0: none */
	char congestion[16];   /* as set; "": never */
	bool lacks_congestion; /* none can be set */
};
struct memory_net {
	struct memory_end ends[MEMORY_MAX_PIPES]; /* a pipe's number is its place; places are not used again */
	int n;
	int infos; /* calls of info */
};

struct pipe_ops memory_pipe(struct memory_net *net);
/* As poll(2), without waiting: fills revents, and returns how many are ready. */
int memory_poll(struct memory_net *net, struct pollfd *fds, int n);
void memory_release(struct memory_net *net);

#endif
