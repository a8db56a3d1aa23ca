/* tls.c: certificates in memory and the one TLS configuration of Rivulet (net/tls.h). */
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sodium.h>
#include <string.h>

enum {
	SERIAL_BYTES = 16,
	CERTIFICATE_MAX_BYTES = 4096 /* what a peer may send; ours has about 500 */
};

const char *tls_error_text(void) {
	unsigned long code = ERR_get_error();
	const char *text = code != 0 ? ERR_reason_error_string(code) : NULL;
	ERR_clear_error();
	return text != NULL ? text : "TLS error without a reason";
}

/* Adds `cert` as an extension that others than Rivulet may ignore. */
static bool add_serving_cert(X509 *x, const struct serving_cert *cert) {
	uint8_t bytes[SERVING_CERT_BYTES];
	serving_cert_encode(cert, bytes);
	ASN1_OBJECT *name = OBJ_txt2obj(TLS_SERVING_CERT_OID, 1);
	ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
	X509_EXTENSION *extension = NULL;
	bool ok = name != NULL && value != NULL && ASN1_OCTET_STRING_set(value, bytes, sizeof bytes) == 1 &&
			  (extension = X509_EXTENSION_create_by_OBJ(NULL, name, 0, value)) != NULL &&
			  X509_add_ext(x, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	ASN1_OCTET_STRING_free(value);
	ASN1_OBJECT_free(name);
	return ok;
}

/* Returns true if `x` has the extension, once and of the right length. */
static bool read_serving_cert(const X509 *x, struct serving_cert *out) {
	ASN1_OBJECT *name = OBJ_txt2obj(TLS_SERVING_CERT_OID, 1);
	int at = name != NULL ? X509_get_ext_by_OBJ(x, name, -1) : -1;
	bool once = at >= 0 && X509_get_ext_by_OBJ(x, name, at) < 0;
	ASN1_OBJECT_free(name);
	const ASN1_OCTET_STRING *value = once ? X509_EXTENSION_get_data(X509_get_ext(x, at)) : NULL;
	if (value == NULL || ASN1_STRING_length(value) != SERVING_CERT_BYTES)
		return false;
	serving_cert_decode(ASN1_STRING_get0_data(value), out);
	return true;
}

/* Version 3, subject = issuer "rivulet", serial from `seed`, 1970 to the end of time (RFC 5280
 * section 4.1.2.5). `cert` may be NULL. */
static bool fill_certificate(X509 *x, const uint8_t seed[SERIAL_BYTES], EVP_PKEY *key,
							 const struct serving_cert *cert) {
	uint8_t serial[SERIAL_BYTES];
	memcpy(serial, seed, sizeof serial);
	serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40); /* positive, not zero */
	BIGNUM *number = BN_bin2bn(serial, sizeof serial, NULL);
	bool ok = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) != NULL;
	BN_free(number);
	X509_NAME *name = X509_get_subject_name(x);
	return ok && X509_set_version(x, X509_VERSION_3) == 1 &&
		   ASN1_TIME_set_string_X509(X509_getm_notBefore(x), "19700101000000Z") == 1 &&
		   ASN1_TIME_set_string_X509(X509_getm_notAfter(x), "99991231235959Z") == 1 &&
		   X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"rivulet", -1, -1, 0) == 1 &&
		   X509_set_issuer_name(x, name) == 1 && X509_set_pubkey(x, key) == 1 &&
		   (cert == NULL || add_serving_cert(x, cert)) && X509_sign(x, key, NULL) != 0;
}

/* Makes a certificate of `key`, which may be NULL, and uses both. */
static bool use_certificate(SSL_CTX *ctx, const uint8_t seed[SERIAL_BYTES], EVP_PKEY *key,
							const struct serving_cert *cert) {
	X509 *x = X509_new();
	bool ok = key != NULL && x != NULL && fill_certificate(x, seed, key, cert) &&
			  SSL_CTX_use_certificate(ctx, x) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1;
	X509_free(x);
	return ok;
}

bool tls_identify_serving(SSL_CTX *ctx, const struct identity *id, const struct serving_cert *cert) {
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, id->secret, IDENTITY_SEED_BYTES);
	bool ok = use_certificate(ctx, id->key, key, cert);
	EVP_PKEY_free(key);
	return ok;
}

bool tls_identify(SSL_CTX *ctx, const struct identity *id) {
	return tls_identify_serving(ctx, id, NULL);
}

/* Instead of a chain check: one certificate, with an Ed25519 key. Whose key it is, is asked after
 * the handshake. */
static int accept_raw_key(X509_STORE_CTX *store, void *arg) {
	(void)arg;
	X509 *x = X509_STORE_CTX_get0_cert(store);
	STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(store);
	EVP_PKEY *key = x != NULL ? X509_get0_pubkey(x) : NULL;
	if (key != NULL && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519 && (sent == NULL || sk_X509_num(sent) == 1))
		return 1;
	X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
	return 0;
}

/* Copies the raw Ed25519 key of a certificate, which may be NULL. */
static bool key_of(const X509 *x, uint8_t key[NET_KEY_BYTES]) {
	const EVP_PKEY *public_key = x != NULL ? X509_get0_pubkey(x) : NULL;
	size_t n = NET_KEY_BYTES;
	return public_key != NULL && EVP_PKEY_get_id(public_key) == EVP_PKEY_ED25519 &&
		   EVP_PKEY_get_raw_public_key(public_key, key, &n) == 1 && n == NET_KEY_BYTES;
}

/* Instead of a chain check: the server's key serves the run. */
static int accept_serving_key(X509_STORE_CTX *store, void *trust) {
	struct run_trust *t = trust;
	struct serving_cert cert;
	uint8_t key[NET_KEY_BYTES];
	const X509 *x = X509_STORE_CTX_get0_cert(store);
	if (!key_of(x, key)) {
		X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
		return 0;
	}
	if (read_serving_cert(x, &cert) && memcmp(cert.key, key, sizeof key) == 0)
		(void)run_trust_take(t, &cert, NULL);
	if (memcmp(run_trust_key(t), key, sizeof key) == 0)
		return 1;
	X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED);
	return 0;
}

void tls_trust(SSL_CTX *ctx, struct run_trust *trust) {
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, accept_serving_key, trust);
}

static bool configure(SSL_CTX *ctx, enum tls_clients clients) {
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
								 SSL_OP_PRIORITIZE_CHACHA | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_max_early_data(ctx, 0);
	SSL_CTX_set_max_cert_list(ctx, CERTIFICATE_MAX_BYTES);
	int verify = SSL_VERIFY_PEER | (clients == TLS_CLIENTS_MUST ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
	SSL_CTX_set_verify(ctx, verify, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, accept_raw_key, NULL);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
		   SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(ctx, 0) == 1 &&
		   SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
		   SSL_CTX_set1_groups_list(ctx, "X25519:P-256") == 1;
}

bool tls_self_sign(X509 *x, EVP_PKEY *key) {
	uint8_t seed[SERIAL_BYTES];
	randombytes_buf(seed, sizeof seed); /* browsers refuse a serial that they saw with another key */
	return fill_certificate(x, seed, key, NULL);
}

/* For browsers, which do not take Ed25519: algorithms of a second certificate. Who takes Ed25519
 * gets the identity: that one comes first, and ours is the order that counts. Browsers want to
 * find an algorithm of theirs in the request for a client's certificate too; accept_raw_key
 * refuses such a certificate. */
static bool allow_browsers(SSL_CTX *ctx) {
	return SSL_CTX_set1_sigalgs_list(ctx, "ed25519:ECDSA+SHA256:ECDSA+SHA384:RSA-PSS+SHA256") == 1;
}

enum rv_err tls_context_new(const struct identity *id, enum tls_clients clients, SSL_CTX **out, struct rv_errtext *et) {
	*out = SSL_CTX_new(TLS_method());
	if (*out != NULL && configure(*out, clients) && tls_identify(*out, id) &&
		(clients != TLS_CLIENTS_MAY || allow_browsers(*out)))
		return RV_OK;
	SSL_CTX_free(*out);
	*out = NULL;
	return rv_fail(et, RV_E_UNSUPPORTED, "cannot set up TLS 1.3: %s", tls_error_text());
}

static const unsigned char peer_protocol[] = "\x09" TLS_PEER_PROTOCOL;
_Static_assert(sizeof TLS_PEER_PROTOCOL - 1 == 9, "the length byte in front");

bool tls_offer_peer_protocol(SSL_CTX *ctx) {
	return SSL_CTX_set_alpn_protos(ctx, peer_protocol, sizeof peer_protocol - 1) == 0;
}

/* RFC 7301 section 3.2. */
static int select_peer_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_bytes, const unsigned char *in,
								unsigned in_bytes, void *arg) {
	(void)ssl, (void)arg;
	unsigned char *chosen;
	if (SSL_select_next_proto(&chosen, out_bytes, peer_protocol, sizeof peer_protocol - 1, in, in_bytes) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

void tls_accept_peer_protocol(SSL_CTX *ctx) {
	SSL_CTX_set_alpn_select_cb(ctx, select_peer_protocol, NULL);
}

bool tls_is_peer_protocol(SSL *ssl) {
	const unsigned char *chosen;
	unsigned n;
	SSL_get0_alpn_selected(ssl, &chosen, &n);
	return n == strlen(TLS_PEER_PROTOCOL) && memcmp(chosen, TLS_PEER_PROTOCOL, n) == 0;
}

bool tls_peer_key(SSL *ssl, uint8_t key[NET_KEY_BYTES]) {
	return key_of(SSL_get0_peer_certificate(ssl), key);
}
