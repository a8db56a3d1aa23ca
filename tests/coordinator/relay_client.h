/* relay_client.h: a real `rivulet-coordinator relay`, and blocking clients of it: stations with
 * TLS, data connections, reflections. */
#ifndef RV_TESTS_RELAY_CLIENT_H
#define RV_TESTS_RELAY_CLIENT_H

#include "net/identity.h"
#include "net/relay/wire.h"

#include <openssl/types.h>
#include <stdio.h>
#include <sys/types.h>

enum { RELAY_TEST_ARGS_MAX = 8 };

struct relay_process {
	pid_t pid;
	FILE *out;         /* what it prints */
	bool lacks_filter; /* it says that this system filters no calls */
	char dir[64];
	uint16_t port, second_port; /* 0: it has no second one */
	uint8_t key[NET_KEY_BYTES];
	struct identity run;      /* signs tickets */
	struct serving_cert cert; /* shown beside them; serial 0: `run` is the root key */
	uint8_t run_id[NET_RUN_ID_BYTES];
};

/* Starts a relay on a free port of 127.0.0.1 with further options (NULL-terminated). */
void relay_process_start(struct relay_process *p, const char *const *args);
/* Ends it with SIGTERM, returns its exit status, and removes its directory. */
int relay_process_stop(struct relay_process *p);
/* Returns the number in a line of /proc/PID/status, such as VmRSS, which is in KiB; -1: no such
 * line. */
long relay_process_kib(const struct relay_process *p, const char *name);
/* Returns the number of its TCP sockets whose local port is none that it listens on: those that it
 * would have dialed. *accepted: those at its main port. */
int relay_process_dialed(const struct relay_process *p, int *accepted);

int relay_connect(uint16_t port);
/* Connects with this preamble. */
int relay_data(uint16_t port, enum relay_preamble_kind kind, const uint8_t token[NET_TOKEN_BYTES]);

/* Opens a reflection from a local port (0: any; then *local_port is it), reads SEEN, which names
 * that port and repeats the token, and returns the connection. */
int relay_reflect(uint16_t port, uint16_t *local_port, const uint8_t token[NET_TOKEN_BYTES], struct relay_frame *seen);

struct relay_station {
	int fd;
	SSL_CTX *ctx;
	SSL *ssl;
	struct identity id;
	uint32_t member;
	uint8_t token[NET_TOKEN_BYTES]; /* for its reflections */
	uint16_t second_port;           /* as its SEEN names it */
	uint8_t in[2 * NET_MAX_RELAY_FRAME_BYTES];
	size_t n_in;
};
/* Opens a station as `member` with this identity (NULL: one that follows from the number) and a
 * ticket signed by `signer`; false: the relay refused. */
bool relay_station_open(struct relay_station *s, const struct relay_process *p, uint32_t member,
						const struct identity *id, const struct identity *signer);
void relay_station_close(struct relay_station *s);
void relay_station_send(struct relay_station *s, const struct relay_frame *m);
/* Waits for a frame; false: closed. */
bool relay_station_read(struct relay_station *s, struct relay_frame *out);
void relay_station_call(struct relay_station *s, const struct relay_process *p, const struct relay_station *peer,
						uint64_t round);
void relay_station_call_way(struct relay_station *s, const struct relay_process *p, const struct relay_station *peer,
							enum relay_way way, uint64_t round);
/* Calls (relay_link), reads both RINGs, and returns both ends of the link, each after RELAY_GO. */
void relay_join(struct relay_station *a, struct relay_station *b, const struct relay_process *p, int ends[2]);
void relay_link(struct relay_station *a, struct relay_station *b, const struct relay_process *p, int ends[2]);

#endif
