/* web_cert.h: the certificate that browsers see: the operator's, of two PEM files that another
 * program may renew; or one that the coordinator makes once and keeps, so that a browser which
 * has accepted it can notice another one.
 *
 * Browsers do not accept Ed25519. A client that does (a worker, `status`) is shown the serving
 * key's certificate whatever these files hold (net/tls.h), so a stolen or wrong web certificate
 * concerns pages only. */
#ifndef RV_COORDINATOR_WEB_CERT_H
#define RV_COORDINATOR_WEB_CERT_H

#include "base/err.h"

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

enum { WEB_CERT_PATH_BYTES = 1024 };

/* A file as it was when it was read. */
struct web_cert_stamp {
	uint64_t inode;
	int64_t bytes, changed_ns;
};

struct web_cert {
	char cert[WEB_CERT_PATH_BYTES]; /* PEM: the certificate, then those that lead to its authority */
	char key[WEB_CERT_PATH_BYTES];  /* PEM, without a passphrase; may be the same file */
	struct web_cert_stamp seen[2];  /* of both, by web_cert_use */
};

/* Makes `path`: a new key and a certificate of it, mode 0600, unless the file is there. RV_E_NOMEM,
 * RV_E_FULL, RV_E_IO. */
enum rv_err web_cert_make(const char *path, struct rv_errtext *et);
/* Lets `ctx`, of TLS_CLIENTS_MAY, show the certificate, and keeps what the files are. RV_E_IO: one
 * cannot be read; RV_E_INVALID: no PEM, another key than the certificate's, or a kind of key that
 * browsers do not take, or would confuse with the serving key; *ctx is unusable then. An empty
 * `cert`: browsers are shown nothing, and cannot connect. */
enum rv_err web_cert_use(struct web_cert *w, SSL_CTX *ctx, struct rv_errtext *et);
/* Returns true if one of the files is another one than web_cert_use() last saw. */
bool web_cert_changed(const struct web_cert *w);

#endif
