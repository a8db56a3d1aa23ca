/* run_keys.h: the keys of a run as its directory holds them.
 *
 *   run.key    what serves the run (net/serving_cert.h): the serving key's seed (32 bytes), the
 *              public root key (32), the serving certificate (100); mode 0600
 *   root.key   the root key's seed (net/identity.h); its place is away from this machine, and only
 *              `new-run` and `rotate-key` read it
 *
 * A thief of run.key can do what the coordinator can, until the operator replaces it. */
#ifndef RV_COORDINATOR_RUN_KEYS_H
#define RV_COORDINATOR_RUN_KEYS_H

#include "net/serving_cert.h"

enum { RUN_KEYS_BYTES = IDENTITY_SEED_BYTES + NET_KEY_BYTES + SERVING_CERT_BYTES };

struct run_keys {
	struct identity serving;
	uint8_t root[NET_KEY_BYTES];
	struct serving_cert cert; /* of `serving` */
};

/* Makes a serving key that `root` certifies for the run. RV_E_UNSUPPORTED: no random numbers. */
enum rv_err run_keys_make(const struct identity *root, const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t serial,
						  struct run_keys *out, struct rv_errtext *et);
/* Reads run.key. RV_E_NOTFOUND; RV_E_AUTH: others may read it; RV_E_CORRUPT: it is no such file;
 * RV_E_IO. */
enum rv_err run_keys_load(const char *path, struct run_keys *out, struct rv_errtext *et);
/* Replaces run.key atomically, mode 0600. RV_E_FULL, RV_E_IO. */
enum rv_err run_keys_store(const char *path, const struct run_keys *k, struct rv_errtext *et);
/* Checks that the root key has certified the serving key for this run. RV_E_CORRUPT names
 * `path`. */
enum rv_err run_keys_check(const struct run_keys *k, const uint8_t run_id[NET_RUN_ID_BYTES], const char *path,
						   struct rv_errtext *et);
/* Writes the bytes of run.key. */
void run_keys_encode(const struct run_keys *k, uint8_t out[RUN_KEYS_BYTES]);
void run_keys_decode(const uint8_t in[RUN_KEYS_BYTES], struct run_keys *out);
/* Wipes the secret. Harmless on a zeroed struct. */
void run_keys_release(struct run_keys *k);

#endif
