/* serving_cert.h: which key serves a run: the root key's signature, and what a program believes.
 *
 * A run is known by its *root key*, which every invite link carries and which its operator keeps
 * off the coordinator's machine. The root key signs one thing: that another key, the *serving key*,
 * speaks for the run. The serving key is in the coordinator's TLS certificate and signs documents
 * and tickets. If it is stolen, the operator has the root key sign another one with a higher serial
 * number; a program that has seen that refuses the earlier ones. (The idea is X.509's intermediate
 * authority, RFC 5280 section 3.2, without dates: volunteers' clocks are not to be trusted.)
 *
 * Serial 0 is the root key itself, serving without a certificate. No I/O, no allocation; a
 * struct run_trust belongs to one thread. */
#ifndef RV_NET_SERVING_CERT_H
#define RV_NET_SERVING_CERT_H

#include "net/identity.h"

enum { SERVING_CERT_BYTES = 4 + NET_KEY_BYTES + NET_SIG_BYTES };

struct serving_cert {
	uint32_t serial; /* from 1; of two the higher one counts */
	uint8_t key[NET_KEY_BYTES];
	uint8_t signature[NET_SIG_BYTES]; /* by the root key, over "rivulet serving" NUL | run id | serial | key */
};

void serving_cert_make(const struct identity *root, const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t serial,
					   const uint8_t key[NET_KEY_BYTES], struct serving_cert *out);
/* Returns false also for serial 0. */
bool serving_cert_verify(const uint8_t root[NET_KEY_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES],
						 const struct serving_cert *c);

/* Writes serial u32 | key | signature. */
void serving_cert_encode(const struct serving_cert *c, uint8_t out[SERVING_CERT_BYTES]);
void serving_cert_decode(const uint8_t in[SERVING_CERT_BYTES], struct serving_cert *out);

/* A program's belief about one run. */
struct run_trust {
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint8_t root[NET_KEY_BYTES];
	struct serving_cert cert; /* the newest one seen; serial 0: none, and `cert.key` is the root key */
};

struct run_trust run_trust_of(const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t root[NET_KEY_BYTES]);
/* Returns the key that serves the run, as far as `t` knows. */
const uint8_t *run_trust_key(const struct run_trust *t);
/* Believes `c` if it is newer than what `t` has. RV_E_AUTH: the root key did not sign it for this
 * run, or it has been replaced by another one (serial lower, or equal with another key). */
enum rv_err run_trust_take(struct run_trust *t, const struct serving_cert *c, struct rv_errtext *et);

#endif
