/* raw_client.h: a peer that does not play by the rules: TLS under full control of the test, over
 * its own OpenSSL. */
#ifndef RV_TESTS_NET_RAW_CLIENT_H
#define RV_TESTS_NET_RAW_CLIENT_H

#include "net/identity.h"
#include "net/mesh/frame.h"

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct raw_options {
	const struct identity *id; /* NULL: shows no certificate */
	const char *alpn;          /* "\x09rivulet/1"; NULL: none */
	int max_version;           /* TLS1_3_VERSION */
	bool rsa;                  /* an RSA certificate instead */
};

struct raw_client {
	int fd;
	SSL_CTX *ctx;
	SSL *ssl; /* NULL: plain TCP */
	bool secured, closed;
	uint8_t got[4096]; /* decrypted */
	size_t got_bytes;
};

/* Connects from the host 127.0.0.0 + `host`, and says nothing. */
void raw_open_silent(struct raw_client *c, uint32_t host, uint16_t port);
/* Connects to 127.0.0.1:port. o NULL: no TLS at all. */
void raw_open(struct raw_client *c, uint16_t port, const struct raw_options *o);
void raw_close(struct raw_client *c);
/* For world_actor: handshakes, reads, notices the end. */
void raw_step(void *client);
void raw_send(struct raw_client *c, const void *data, size_t n);
void raw_send_frame(struct raw_client *c, const struct frame_header *h, const void *body, size_t body_bytes);
/* A right HELLO of this connection. */
void raw_make_hello(struct raw_client *c, const struct identity *id, const uint8_t run_id[NET_RUN_ID_BYTES],
					uint32_t member, struct frame_hello *out);
void raw_send_hello(struct raw_client *c, const struct frame_hello *hello, const uint8_t run_id[NET_RUN_ID_BYTES]);

#endif
