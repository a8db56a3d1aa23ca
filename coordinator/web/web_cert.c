/* web_cert.c: see web_cert.h. */
#include "coordinator/web/web_cert.h"

#include "base/clock.h"
#include "base/file.h"
#include "net/tls.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_MODE = 0600 };

/* ---- one that is made here ---- */

/* Writes a fresh key and its certificate as PEM. */
static bool write_pem(BIO *out) {
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	bool ok = key != NULL && x != NULL && tls_self_sign(x, key) &&
			  PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1 && PEM_write_bio_X509(out, x) == 1;
	X509_free(x);
	EVP_PKEY_free(key);
	return ok;
}

enum rv_err web_cert_make(const char *path, struct rv_errtext *et) {
	char *pem = NULL;
	if (access(path, F_OK) == 0)
		return RV_OK;
	BIO *memory = BIO_new(BIO_s_secmem());
	if (memory == NULL || !write_pem(memory)) {
		BIO_free(memory);
		return rv_fail(et, RV_E_NOMEM, "%s: a certificate for browsers cannot be made: %s", path, tls_error_text());
	}
	const long n = BIO_get_mem_data(memory, &pem);
	enum rv_err e = rv_file_write_atomic(path, pem, (size_t)n, SECRET_MODE, et);
	BIO_free(memory);
	return e;
}

/* ---- both ---- */

static struct web_cert_stamp stamp_of(const char *path) {
	struct stat st;
	if (stat(path, &st) != 0)
		return (struct web_cert_stamp){.inode = 0};
	return (struct web_cert_stamp){.inode = st.st_ino,
								   .bytes = st.st_size,
								   .changed_ns = st.st_mtim.tv_sec * (RV_US_PER_S * 1000) + st.st_mtim.tv_nsec};
}

static bool same(const struct web_cert_stamp *a, const struct web_cert_stamp *b) {
	return a->inode == b->inode && a->bytes == b->bytes && a->changed_ns == b->changed_ns;
}

bool web_cert_changed(const struct web_cert *w) {
	const struct web_cert_stamp cert = stamp_of(w->cert), key = stamp_of(w->key);
	return w->cert[0] != '\0' && (!same(&cert, &w->seen[0]) || !same(&key, &w->seen[1]));
}

/* Gives no passphrase: a service has nobody to ask. */
static int no_passphrase(char *out, int cap, int writing, void *ctx) {
	(void)out, (void)cap, (void)writing, (void)ctx;
	return -1;
}

/* Returns NULL, or what is wrong with the kind of key of the context's certificate. */
static const char *fault_of_kind(SSL_CTX *ctx) {
	const EVP_PKEY *key = X509_get0_pubkey(SSL_CTX_get0_certificate(ctx));
	if (key == NULL)
		return "its key cannot be read";
	if (EVP_PKEY_get_id(key) != EVP_PKEY_EC && EVP_PKEY_get_id(key) != EVP_PKEY_RSA)
		return "its key must be ECDSA (P-256, P-384) or RSA: others are not for browsers";
	return NULL;
}

static enum rv_err fail(struct rv_errtext *et, const char *path) {
	return rv_fail(et, access(path, R_OK) == 0 ? RV_E_INVALID : RV_E_IO, "%s: %s", path,
				   access(path, R_OK) == 0 ? tls_error_text() : "cannot be read");
}

/* Reads the files into a context of their own first: a pair that does not belong together must not
 * touch the serving key's. */
static enum rv_err check(const struct web_cert *w, struct rv_errtext *et) {
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	enum rv_err e = ctx != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory to read %s", w->cert);
	if (e == RV_OK)
		SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	if (e == RV_OK && SSL_CTX_use_certificate_chain_file(ctx, w->cert) != 1)
		e = fail(et, w->cert);
	const char *fault = e == RV_OK ? fault_of_kind(ctx) : NULL;
	if (fault != NULL)
		e = rv_fail(et, RV_E_INVALID, "%s: %s", w->cert, fault);
	if (e == RV_OK && SSL_CTX_use_PrivateKey_file(ctx, w->key, SSL_FILETYPE_PEM) != 1)
		e = fail(et, w->key);
	SSL_CTX_free(ctx);
	return e;
}

enum rv_err web_cert_use(struct web_cert *w, SSL_CTX *ctx, struct rv_errtext *et) {
	if (w->cert[0] == '\0')
		return RV_OK;
	w->seen[0] = stamp_of(w->cert);
	w->seen[1] = stamp_of(w->key);
	RV_TRY(check(w, et));
	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	if (SSL_CTX_use_certificate_chain_file(ctx, w->cert) != 1)
		return fail(et, w->cert);
	return SSL_CTX_use_PrivateKey_file(ctx, w->key, SSL_FILETYPE_PEM) == 1 ? RV_OK : fail(et, w->key);
}
