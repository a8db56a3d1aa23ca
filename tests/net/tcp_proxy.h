/* tcp_proxy.h: a TCP relay in a test: it records what passes, changes a bit, or cuts the line.
 * Never blocks. */
#ifndef RV_TESTS_NET_TCP_PROXY_H
#define RV_TESTS_NET_TCP_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROXY_LINES = 16, PROXY_BUFFER_BYTES = 1 << 16, PROXY_LOG_BYTES = 4 << 20 };

struct proxy_half {
	uint8_t buffer[PROXY_BUFFER_BYTES];
	size_t at, end;
};

struct proxy_line {
	int client, server; /* -1: free */
	struct proxy_half up, down;
	bool answered; /* the server has spoken */
	bool frozen;   /* nothing is read from it or written to it any more */
};

struct tcp_proxy {
	int listener;
	uint16_t port, target;
	struct proxy_line *lines;
	bool record, flip_next; /* flip_next: one bit of the next bytes from the client */
	bool hold;              /* keeps what a client says once the server has spoken: its Finished and HELLO */
	uint8_t *log;           /* both directions */
	size_t log_bytes;
};

void proxy_init(struct tcp_proxy *p, uint16_t target);
void proxy_release(struct tcp_proxy *p);
void proxy_step(void *proxy);
/* It keeps something back. */
bool proxy_holds(const struct tcp_proxy *p);
/* How many lines are open. */
int proxy_open_lines(const struct tcp_proxy *p);
/* Freezes the lines that are open: to both ends they look alive, and deliver nothing. */
void proxy_freeze(struct tcp_proxy *p);
/* Closes every line with a reset. */
void proxy_cut(struct tcp_proxy *p);

#endif
