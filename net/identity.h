/* identity.h: an Ed25519 key pair that identifies a worker or a run: signing and checking
 * signatures.
 *
 * A worker's identity and a run's key are the same kind of thing: 32 seed bytes in a file of mode
 * 0600, made on first start. Every signed message begins with a NUL-terminated domain string, so a
 * signature made for one purpose is invalid for another. Ed25519 is RFC 8032 (libsodium).
 * Thread-safe: an identity does not change once made. */
#ifndef RV_NET_IDENTITY_H
#define RV_NET_IDENTITY_H

#include "base/err.h"
#include "net/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IDENTITY_SEED_BYTES = 32 };

struct identity {
	uint8_t secret[64];         /* seed | public key, as libsodium keeps it; wiped by identity_release */
	uint8_t key[NET_KEY_BYTES]; /* public */
};

/* Reads the seed at `path`, or makes one (mode 0600, atomic, durable) if there is no file; *created
 * (may be NULL) reports which. RV_E_AUTH: others than the owner may read or write the file;
 * RV_E_CORRUPT: wrong size; RV_E_IO, RV_E_FULL. */
enum rv_err identity_load_or_create(const char *path, struct identity *out, bool *created, struct rv_errtext *et);
/* Reads the seed like identity_load_or_create; RV_E_NOTFOUND if there is no file. */
enum rv_err identity_load(const char *path, struct identity *out, struct rv_errtext *et);
/* Makes a fresh one, in memory only. RV_E_UNSUPPORTED: there is no source of random numbers. */
enum rv_err identity_make(struct identity *out, struct rv_errtext *et);
/* Reads a file of exactly `n` secret bytes; the faults of identity_load. */
enum rv_err identity_read_secret(const char *path, uint8_t *out, size_t n, struct rv_errtext *et);
void identity_of_seed(const uint8_t seed[IDENTITY_SEED_BYTES], struct identity *out);
/* Wipes the secret. Harmless on a zeroed struct. */
void identity_release(struct identity *id);

/* Signs `message`, which starts with its NUL-terminated domain (asserted). */
void identity_sign(const struct identity *id, const void *message, size_t n, uint8_t signature[NET_SIG_BYTES]);
bool identity_verify(const uint8_t key[NET_KEY_BYTES], const void *message, size_t n,
					 const uint8_t signature[NET_SIG_BYTES]);

/* ---- signed documents: signature (64) | bytes. The signature covers `domain` NUL | the bytes as
 * sent. ---- */
#define IDENTITY_DOCUMENT_DOMAIN "rivulet document"
enum { IDENTITY_SIGNED_MAX_BYTES = NET_SIG_BYTES + NET_MAX_DOCUMENT_BYTES };

/* Writes signature and data to `out` (NET_SIG_BYTES + n bytes, may not overlap `data`). n <=
 * NET_MAX_DOCUMENT_BYTES (asserted). RV_E_NOMEM. */
enum rv_err signed_make(const struct identity *id, const char *domain, const void *data, size_t n, uint8_t *out,
						struct rv_errtext *et);
/* Checks the signature; *data, *data_bytes borrow from `p`. RV_E_INVALID: too short or too long;
 * RV_E_AUTH: not signed by `key`; RV_E_NOMEM. */
enum rv_err signed_open(const uint8_t key[NET_KEY_BYTES], const char *domain, const void *p, size_t n,
						const uint8_t **data, size_t *data_bytes, struct rv_errtext *et);

/* ---- member tickets ---- */

/* Signs, with the key that serves the run, that `key` is member number `member`: Ed25519 over
 * "rivulet member" NUL | run id | member (u32) | key. The coordinator gives a ticket at the join,
 * and the member shows it in HELLO: so a joiner, which is in no document yet, can fetch state from
 * donors. */
void ticket_sign(const struct identity *run, const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t member,
				 const uint8_t key[NET_KEY_BYTES], uint8_t ticket[NET_SIG_BYTES]);
bool ticket_verify(const uint8_t serving_key[NET_KEY_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t member,
				   const uint8_t key[NET_KEY_BYTES], const uint8_t ticket[NET_SIG_BYTES]);

/* ---- pair tickets ---- */

/* One of the two members of a pair. */
struct pair_end {
	uint32_t member;
	uint8_t key[NET_KEY_BYTES];
};
/* Signs, with the key that serves the run, that two members may meet through a relay while `round`
 * of `term` is open or soon after: Ed25519 over "rivulet pair" NUL | run id | term u64 | round u64
 * | lower member u32 | its key | higher member u32 | its key. The order of `a` and `b` is the same
 * to it; they differ (asserted). */
void pair_ticket_sign(const struct identity *run, const uint8_t run_id[NET_RUN_ID_BYTES], uint64_t term, uint64_t round,
					  const struct pair_end *a, const struct pair_end *b, uint8_t ticket[NET_SIG_BYTES]);
/* Returns false also if both ends are one member. */
bool pair_ticket_verify(const uint8_t serving_key[NET_KEY_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES], uint64_t term,
						uint64_t round, const struct pair_end *a, const struct pair_end *b,
						const uint8_t ticket[NET_SIG_BYTES]);

/* ---- proofs of where a member is seen ---- */

/* Signs, with a relay's key, that the relay saw a connection of the member with `key` come from
 * `addr` ("host:port" as address_format writes it, shorter than NET_ADDR_BYTES; asserted) at
 * `unix_s`: Ed25519 over "rivulet seen" NUL | run id | key | addr without NUL | unix_s u64. */
void seen_sign(const struct identity *relay, const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t key[NET_KEY_BYTES],
			   const char *addr, uint64_t unix_s, uint8_t signature[NET_SIG_BYTES]);
bool seen_verify(const uint8_t relay_key[NET_KEY_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES],
				 const uint8_t key[NET_KEY_BYTES], const char *addr, uint64_t unix_s,
				 const uint8_t signature[NET_SIG_BYTES]);

enum { IDENTITY_SHORT_BYTES = 17 };
/* Writes the first 8 bytes of a key as hex, for people. */
void identity_short(const uint8_t key[NET_KEY_BYTES], char out[IDENTITY_SHORT_BYTES]);

#endif
