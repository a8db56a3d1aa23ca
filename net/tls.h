/* tls.h: TLS as Rivulet uses it, in one place: version 1.3 only, Ed25519 raw keys, no tickets, no 0-RTT.
 *
 * The certificate is a container for the raw public key: self-signed, built in memory from an identity, valid for ever.
 * Nobody checks names, dates or issuers; whoever asks gets the peer's raw key (tls_peer_key) and decides on that. TLS
 * itself proves that the peer holds the secret key (CertificateVerify, RFC 8446 section 4.4.3).
 */
#ifndef RV_NET_TLS_H
#define RV_NET_TLS_H

#include "base/err.h"
#include "net/identity.h"

#include <openssl/types.h>
#include <stdbool.h>

/* Who must show a certificate. */
enum tls_clients {
	TLS_CLIENTS_MUST, /* peer links: both sides, always */
	TLS_CLIENTS_MAY   /* coordinator: workers do, a browser does not */
};

/* A context for both roles: TLS 1.3, own certificate and key loaded, client certificates as told; a certificate that
 * is not a single one with an Ed25519 key fails the handshake; session tickets, resumption and early data are off.
 * TLS_CLIENTS_MAY: a client that does not offer Ed25519 (browsers) gets an ECDSA P-256 certificate made for this
 * context alone, which says nothing about who we are; whoever offers Ed25519 always gets the identity's.
 * SSL_CTX_free() it. RV_E_NOMEM, RV_E_UNSUPPORTED (what OpenSSL says). */
enum rv_err tls_context_new(const struct identity *id, enum tls_clients clients, SSL_CTX **out, struct rv_errtext *et);

/* The raw Ed25519 key of the other side after the handshake; false: it showed none. */
bool tls_peer_key(SSL *ssl, uint8_t key[NET_KEY_BYTES]);

/* "sha256//BASE64" of the key's SubjectPublicKeyInfo (RFC 8410): libcurl's CURLOPT_PINNEDPUBLICKEY. */
enum { TLS_PIN_BYTES = 64 };
void tls_pin_of_key(const uint8_t key[NET_KEY_BYTES], char out[TLS_PIN_BYTES]);

/* Certificate and private key as PEM text (libcurl's CURLOPT_SSLCERT_BLOB, CURLOPT_SSLKEY_BLOB). */
struct tls_pem {
	char *certificate, *key; /* NUL-terminated */
	size_t certificate_bytes, key_bytes;
};
/* RV_E_NOMEM; *out is then zero. */
enum rv_err tls_pem_make(const struct identity *id, struct tls_pem *out, struct rv_errtext *et);
void tls_pem_release(struct tls_pem *pem); /* wipes the key; harmless on a zeroed struct */

/* The oldest error in OpenSSL's queue for people ("no shared cipher", ...), queue emptied; never NULL. */
const char *tls_error_text(void);

#endif
