/* tls.h: TLS as Rivulet uses it, in one place: version 1.3 only, Ed25519 raw keys, no tickets, no
 * 0-RTT.
 *
 * The certificate is a container for the raw public key: self-signed, built in memory from an
 * identity, valid for ever. Names, dates and issuers are not checked: the caller decides by the
 * peer's raw key (tls_peer_key). TLS itself proves that the peer holds the secret key
 * (CertificateVerify, RFC 8446 section 4.4.3). */
#ifndef RV_NET_TLS_H
#define RV_NET_TLS_H

#include "base/err.h"
#include "net/serving_cert.h"

#include <openssl/types.h>
#include <stdbool.h>

/* The clients that must show a certificate. */
enum tls_clients {
	TLS_CLIENTS_MUST, /* peer links: both sides, always */
	TLS_CLIENTS_MAY   /* coordinator: workers do, a browser does not */
};

/* Makes a context for both roles: TLS 1.3, own certificate and key, client certificates as
 * `clients` states. Anything but a single certificate with an Ed25519 key fails the handshake;
 * session tickets, resumption and early data are off. TLS_CLIENTS_MAY: the caller may add an
 * ECDSA or RSA certificate, which a client gets that does not offer Ed25519 (a browser); a
 * client that offers Ed25519 always gets the identity's. The caller frees it with
 * SSL_CTX_free(). RV_E_NOMEM, RV_E_UNSUPPORTED (with OpenSSL's text). */
enum rv_err tls_context_new(const struct identity *id, enum tls_clients clients, SSL_CTX **out, struct rv_errtext *et);

/* Makes a certificate of the identity, and lets `ctx` use it and its key. Returns false if OpenSSL
 * refuses (tls_error_text), most likely without memory. */
bool tls_identify(SSL_CTX *ctx, const struct identity *id);
/* The same for a coordinator: its certificate carries `cert`, a proof that the identity serves
 * the run, as an extension (TLS_SERVING_CERT_OID: an octet string of serving_cert_encode()). The
 * name is a UUID in seven parts below Microsoft's arc for such names: programs in Go
 * (Prometheus, Caddy) refuse a certificate with a number above 2^31 in a name, as 2.25.UUID has. */
#define TLS_SERVING_CERT_OID "1.2.840.113556.1.8000.2554.168.37512.60046.18511.43916.5741404.5326305"
bool tls_identify_serving(SSL_CTX *ctx, const struct identity *id, const struct serving_cert *cert);

/* Fills an empty certificate: of `key`, signed by it, for ever. Returns false if OpenSSL
 * refuses. */
bool tls_self_sign(X509 *x, EVP_PKEY *key);

/* Makes `ctx`, a client's, refuse every server whose key does not serve the run of `trust`:
 * it must be the key that *trust believes in, or bring a newer serving certificate, which *trust
 * believes from then on. Borrows `trust` as long as `ctx` makes connections. */
void tls_trust(SSL_CTX *ctx, struct run_trust *trust);

/* The protocol of links between peers (ALPN, RFC 7301): the dialer's context offers it; a
 * listener's accepts it, and fails the handshake of a dialer that offers others only. Returns false
 * without memory. */
#define TLS_PEER_PROTOCOL "rivulet/1"
bool tls_offer_peer_protocol(SSL_CTX *ctx);
void tls_accept_peer_protocol(SSL_CTX *ctx);
/* Returns true if both sides agreed on it. */
bool tls_is_peer_protocol(SSL *ssl);

/* Copies the raw Ed25519 key of the other side after the handshake. Returns false if it showed
 * none. */
bool tls_peer_key(SSL *ssl, uint8_t key[NET_KEY_BYTES]);

/* Returns the oldest error in OpenSSL's queue as a text ("no shared cipher", ...), never NULL, and
 * empties the queue. */
const char *tls_error_text(void);

#endif
