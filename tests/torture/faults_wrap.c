/* faults_wrap.c: the calls that the linker sends here instead (-Wl,--wrap, CMakeLists.txt): each
 * fails when told to, as the real one would: NULL with errno, -1 with errno, the library's own
 * code. */
#include "base/assert.h"
#include "tests/torture/faults_hit.h"

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <glob.h>
#include <netdb.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#define SITE __builtin_return_address(0)

/* WRAP(result, name, (parameters), (arguments), errno, failed): when it shall fail, errno and
 * `failed` are what is seen. */
#define WRAP(result, name, parameters, arguments, number, failed)                                                      \
	WRAP_IF(faults_hit, result, name, parameters, arguments, number, failed)
#define WRAP_REMOVAL(result, name, parameters, arguments, number, failed)                                              \
	WRAP_IF(faults_hit_removal, result, name, parameters, arguments, number, failed)
/* One that takes a pointer `p` and can only fail when it has to keep one. */
#define WRAP_POINTER(result, name, parameters, arguments, number, failed)                                              \
	WRAP_IF(p != NULL && faults_hit, result, name, parameters, arguments, number, failed)
#define WRAP_IF(hit, result, name, parameters, arguments, number, failed)                                              \
	result __real_##name parameters;                                                                                   \
	result __wrap_##name parameters;                                                                                   \
	result __wrap_##name parameters {                                                                                  \
		if (!(hit(SITE)))                                                                                              \
			return __real_##name arguments;                                                                            \
		errno = number;                                                                                                \
		return failed;                                                                                                 \
	}

/* What cannot be undone by failing (a descriptor that is closed): it is done, and yet it fails. */
#define WRAP_DONE(result, name, parameters, arguments, number, failed)                                                 \
	result __real_##name parameters;                                                                                   \
	result __wrap_##name parameters;                                                                                   \
	result __wrap_##name parameters {                                                                                  \
		result done = __real_##name arguments;                                                                         \
		if (!faults_hit(SITE))                                                                                         \
			return done;                                                                                               \
		errno = number;                                                                                                \
		return failed;                                                                                                 \
	}

/* ---- memory ---- */

WRAP(void *, malloc, (size_t n), (n), ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), ENOMEM, NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), ENOMEM, NULL)
WRAP(void *, aligned_alloc, (size_t align, size_t n), (align, n), ENOMEM, NULL)
WRAP(char *, strdup, (const char *s), (s), ENOMEM, NULL)
WRAP(char *, strndup, (const char *s, size_t n), (s, n), ENOMEM, NULL)
WRAP(FILE *, open_memstream, (char **p, size_t *n), (p, n), ENOMEM, NULL)

/* ---- files ---- */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
	va_list args;
	va_start(args, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (!faults_hit(SITE))
		return __real_open(path, flags, mode);
	errno = EMFILE;
	return -1;
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...) {
	RV_ASSERT((flags & O_CREAT) == 0); /* no mode follows */
	if (!faults_hit(SITE))
		return __real_openat(dir, path, flags);
	errno = EMFILE;
	return -1;
}

WRAP(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), EIO, -1)
WRAP(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), EIO, -1)
WRAP(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), ENOSPC, -1)
WRAP(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), ENOSPC, -1)
WRAP(int, fsync, (int fd), (fd), EIO, -1)
WRAP(int, fdatasync, (int fd), (fd), EIO, -1)
WRAP(off_t, lseek, (int fd, off_t at, int from), (fd, at, from), EIO, -1)
WRAP(int, ftruncate, (int fd, off_t n), (fd, n), EIO, -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), EIO, -1)
WRAP(int, statvfs, (const char *path, struct statvfs *st), (path, st), EIO, -1)
WRAP(int, stat, (const char *path, struct stat *st), (path, st), EIO, -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), EIO, -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), EIO, -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
WRAP(char *, mkdtemp, (char *name), (name), ENOSPC, NULL)
WRAP(int, mkostemp, (char *name, int flags), (name, flags), EMFILE, -1)
WRAP(int, flock, (int fd, int what), (fd, what), ENOLCK, -1)
WRAP(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
WRAP(DIR *, fdopendir, (int fd), (fd), ENOMEM, NULL)
WRAP(struct dirent *, readdir, (DIR * d), (d), EIO, NULL)
WRAP(int, fstatat, (int fd, const char *path, struct stat *st, int flags), (fd, path, st, flags), EIO, -1)
WRAP(int, access, (const char *path, int how), (path, how), EACCES, -1)
WRAP_REMOVAL(int, unlink, (const char *path), (path), EROFS, -1)
WRAP_REMOVAL(int, rmdir, (const char *path), (path), EROFS, -1)
WRAP_REMOVAL(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), EROFS, -1)
WRAP(ssize_t, readlink, (const char *path, char *out, size_t n), (path, out, n), EACCES, -1)
WRAP(ssize_t, readlinkat, (int fd, const char *path, char *out, size_t n), (fd, path, out, n), EACCES, -1)
WRAP(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), ENOSPC, ENOSPC)
WRAP(void *, mmap, (void *p, size_t n, int protection, int flags, int fd, off_t at), (p, n, protection, flags, fd, at),
	 ENOMEM, MAP_FAILED)
WRAP(char *, getcwd, (char *p, size_t n), (p, n), EACCES, NULL)
WRAP(char *, realpath, (const char *path, char *out), (path, out), EACCES, NULL)
WRAP(int, glob, (const char *pattern, int flags, int (*f)(const char *, int), glob_t *out), (pattern, flags, f, out),
	 ENOMEM, GLOB_NOSPACE)
WRAP_DONE(int, close, (int fd), (fd), EIO, -1)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
WRAP(size_t, fwrite, (const void *p, size_t size, size_t n, FILE *f), (p, size, n, f), ENOSPC, 0)
WRAP(int, fputs, (const char *text, FILE *f), (text, f), ENOSPC, EOF)
WRAP(char *, fgets, (char *p, int n, FILE *f), (p, n, f), EIO, NULL)
WRAP(int, fflush, (FILE * f), (f), ENOSPC, EOF)
WRAP_DONE(int, fclose, (FILE * f), (f), ENOSPC, EOF)

/* ---- sockets and threads ---- */

WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
WRAP(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), EADDRINUSE, -1)
WRAP(int, pipe2, (int *fds, int flags), (fds, flags), EMFILE, -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), EADDRINUSE, -1)
WRAP(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags), EMFILE, -1)
WRAP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), ENETUNREACH, -1)
WRAP(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), ENOBUFS, -1)
WRAP(int, getpeername, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), ENOTCONN, -1)
WRAP(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), EPIPE, -1)
WRAP(ssize_t, sendfile, (int fd, int file, off_t *at, size_t n), (fd, file, at, n), EPIPE, -1)
WRAP(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), ECONNRESET, -1)
WRAP(int, setsockopt, (int fd, int level, int option, const void *p, socklen_t n), (fd, level, option, p, n), ENOBUFS,
	 -1)
WRAP(int, getsockopt, (int fd, int level, int option, void *p, socklen_t *n), (fd, level, option, p, n), ENOBUFS, -1)
WRAP(int, gethostname, (char *p, size_t n), (p, n), ENAMETOOLONG, -1)
WRAP(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), EMFILE, -1)
WRAP(int, poll, (struct pollfd * fds, nfds_t n, int timeout_ms), (fds, n, timeout_ms), ENOMEM, -1)
WRAP(int, getaddrinfo, (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out),
	 (host, port, hints, out), ENOMEM, EAI_MEMORY)
WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *ctx), (t, a, run, ctx),
	 EAGAIN, EAGAIN)

/* ---- OpenSSL ---- */

WRAP(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *m), (m), ENOMEM, NULL)
WRAP(int, SSL_CTX_use_certificate, (SSL_CTX * ctx, X509 *x), (ctx, x), ENOMEM, 0)
WRAP(int, SSL_CTX_use_PrivateKey, (SSL_CTX * ctx, EVP_PKEY *k), (ctx, k), ENOMEM, 0)
WRAP(long, SSL_CTX_ctrl, (SSL_CTX * ctx, int what, long number_in, void *p), (ctx, what, number_in, p), ENOMEM, 0)
WRAP(int, SSL_CTX_set_ciphersuites, (SSL_CTX * ctx, const char *names), (ctx, names), ENOMEM, 0)
WRAP(int, SSL_CTX_set_alpn_protos, (SSL_CTX * ctx, const unsigned char *names, unsigned n), (ctx, names, n), ENOMEM, 1)
WRAP(int, SSL_CTX_set_num_tickets, (SSL_CTX * ctx, size_t n), (ctx, n), ENOMEM, 0)
WRAP(int, SSL_CTX_set_max_early_data, (SSL_CTX * ctx, uint32_t n), (ctx, n), ENOMEM, 0)
WRAP(int, CRYPTO_get_ex_new_index,
	 (int what, long n, void *p, CRYPTO_EX_new *make, CRYPTO_EX_dup *copy, CRYPTO_EX_free *drop),
	 (what, n, p, make, copy, drop), ENOMEM, -1)
WRAP(int, SSL_get_fd, (const SSL *s), (s), EBADF, -1)
WRAP_POINTER(int, SSL_set_ex_data, (SSL * s, int at, void *p), (s, at, p), ENOMEM, 0)
WRAP(int, SSL_key_update, (SSL * s, int type), (s, type), ENOMEM, 0)
WRAP(X509 *, SSL_get0_peer_certificate, (const SSL *s), (s), ENOMEM, NULL)
WRAP(EVP_PKEY *, X509_get0_pubkey, (const X509 *x), (x), ENOMEM, NULL)
WRAP(int, EVP_PKEY_get_raw_public_key, (const EVP_PKEY *k, unsigned char *out, size_t *n), (k, out, n), ENOMEM, 0)
WRAP(SSL *, SSL_new, (SSL_CTX * ctx), (ctx), ENOMEM, NULL)
WRAP(int, SSL_do_handshake, (SSL * s), (s), ECONNRESET, -1)
WRAP(int, SSL_read_ex, (SSL * s, void *p, size_t n, size_t *got), (s, p, n, got), ECONNRESET, 0)
WRAP(int, SSL_write_ex, (SSL * s, const void *p, size_t n, size_t *put), (s, p, n, put), EPIPE, 0)
WRAP(int, SSL_export_keying_material,
	 (SSL * s, unsigned char *out, size_t n, const char *label, size_t label_n, const unsigned char *context,
	  size_t context_n, int use_context),
	 (s, out, n, label, label_n, context, context_n, use_context), ENOMEM, 0)
WRAP(BIO *, BIO_new, (const BIO_METHOD *m), (m), ENOMEM, NULL)
WRAP(int, BIO_meth_set_read, (BIO_METHOD * m, int (*f)(BIO *, char *, int)), (m, f), ENOMEM, 0)
WRAP(int, BIO_meth_set_write, (BIO_METHOD * m, int (*f)(BIO *, const char *, int)), (m, f), ENOMEM, 0)
WRAP(int, BIO_meth_set_ctrl, (BIO_METHOD * m, long (*f)(BIO *, int, long, void *)), (m, f), ENOMEM, 0)
WRAP(int, BIO_meth_set_create, (BIO_METHOD * m, int (*f)(BIO *)), (m, f), ENOMEM, 0)
WRAP(int, PEM_write_bio_X509, (BIO * b, const X509 *x), (b, x), ENOMEM, 0)
WRAP(int, PEM_write_bio_PrivateKey,
	 (BIO * b, const EVP_PKEY *k, const EVP_CIPHER *c, const unsigned char *word, int n, pem_password_cb *f, void *ctx),
	 (b, k, c, word, n, f, ctx), ENOMEM, 0)
WRAP(BIGNUM *, BN_bin2bn, (const unsigned char *p, int n, BIGNUM *out), (p, n, out), ENOMEM, NULL)
WRAP(ASN1_INTEGER *, BN_to_ASN1_INTEGER, (const BIGNUM *n, ASN1_INTEGER *out), (n, out), ENOMEM, NULL)
WRAP(int, ASN1_TIME_set_string_X509, (ASN1_TIME * t, const char *text), (t, text), ENOMEM, 0)
WRAP(ASN1_OBJECT *, OBJ_txt2obj, (const char *text, int no_name), (text, no_name), ENOMEM, NULL)
WRAP(ASN1_OCTET_STRING *, ASN1_OCTET_STRING_new, (void), (), ENOMEM, NULL)
WRAP(int, ASN1_OCTET_STRING_set, (ASN1_OCTET_STRING * s, const unsigned char *bytes, int n), (s, bytes, n), ENOMEM, 0)
WRAP(X509_EXTENSION *, X509_EXTENSION_create_by_OBJ,
	 (X509_EXTENSION * *at, const ASN1_OBJECT *name, int critical, ASN1_OCTET_STRING *value),
	 (at, name, critical, value), ENOMEM, NULL)
WRAP(int, X509_add_ext, (X509 * x, X509_EXTENSION *extension, int at), (x, extension, at), ENOMEM, 0)
WRAP(int, X509_set_version, (X509 * x, long version), (x, version), ENOMEM, 0)
WRAP(int, X509_set_pubkey, (X509 * x, EVP_PKEY *k), (x, k), ENOMEM, 0)
WRAP(int, X509_set_issuer_name, (X509 * x, const X509_NAME *name), (x, name), ENOMEM, 0)
WRAP(int, X509_NAME_add_entry_by_txt,
	 (X509_NAME * name, const char *field, int type, const unsigned char *p, int n, int at, int set),
	 (name, field, type, p, n, at, set), ENOMEM, 0)
WRAP(BIO_METHOD *, BIO_meth_new, (int type, const char *name), (type, name), ENOMEM, NULL)
WRAP(X509 *, X509_new, (void), (), ENOMEM, NULL)
WRAP(int, X509_sign, (X509 * x, EVP_PKEY *k, const EVP_MD *md), (x, k, md), ENOMEM, 0)
WRAP(EVP_PKEY *, EVP_PKEY_new_raw_private_key, (int type, ENGINE *e, const unsigned char *key, size_t n),
	 (type, e, key, n), ENOMEM, NULL)

/* ---- libcurl ---- */

WRAP(CURL *, curl_easy_init, (void), (), ENOMEM, NULL)
WRAP(CURLM *, curl_multi_init, (void), (), ENOMEM, NULL)
WRAP(CURLMcode, curl_multi_add_handle, (CURLM * m, CURL *e), (m, e), ENOMEM, CURLM_OUT_OF_MEMORY)
WRAP(CURLMcode, curl_multi_perform, (CURLM * m, int *running), (m, running), ENOMEM, CURLM_OUT_OF_MEMORY)
WRAP(CURLMcode, curl_multi_poll, (CURLM * m, struct curl_waitfd *fds, unsigned n, int timeout_ms, int *ready),
	 (m, fds, n, timeout_ms, ready), ENOMEM, CURLM_OUT_OF_MEMORY)
WRAP(CURLMcode, curl_multi_wakeup, (CURLM * m), (m), ENOMEM, CURLM_WAKEUP_FAILURE)
WRAP(CURLcode, curl_easy_perform, (CURL * e), (e), ENOMEM, CURLE_OUT_OF_MEMORY)
WRAP(CURLcode, curl_global_init, (long what), (what), ENOMEM, CURLE_FAILED_INIT)
WRAP(CURLHcode, curl_easy_header,
	 (CURL * e, const char *name, size_t i, unsigned origin, int request, struct curl_header **out),
	 (e, name, i, origin, request, out), ENOMEM, CURLHE_OUT_OF_MEMORY)
WRAP(struct curl_slist *, curl_slist_append, (struct curl_slist * l, const char *s), (l, s), ENOMEM, NULL)

/* Its third argument is as wide as a pointer or a long, or a curl_off_t: the same on every 64-bit
 * system. */
CURLcode __real_curl_easy_setopt(CURL *e, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *e, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *e, CURLoption option, ...) {
	va_list args;
	va_start(args, option);
	void *value = va_arg(args, void *);
	va_end(args);
	return faults_hit(SITE) ? CURLE_OUT_OF_MEMORY : __real_curl_easy_setopt(e, option, value);
}

/* ---- libevent ---- */

WRAP(struct event_base *, event_base_new, (void), (), ENOMEM, NULL)
WRAP(struct event *, event_new, (struct event_base * b, evutil_socket_t fd, short what, event_callback_fn f, void *ctx),
	 (b, fd, what, f, ctx), ENOMEM, NULL)
WRAP(struct evhttp *, evhttp_new, (struct event_base * b), (b), ENOMEM, NULL)
WRAP(struct bufferevent *, bufferevent_openssl_socket_new,
	 (struct event_base * b, evutil_socket_t fd, SSL *s, enum bufferevent_ssl_state state, int options),
	 (b, fd, s, state, options), ENOMEM, NULL)
WRAP(struct evbuffer *, evbuffer_new, (void), (), ENOMEM, NULL)
WRAP(int, event_add, (struct event * ev, const struct timeval *t), (ev, t), ENOMEM, -1)
WRAP(struct evconnlistener *, evconnlistener_new,
	 (struct event_base * b, evconnlistener_cb f, void *ctx, unsigned flags, int backlog, evutil_socket_t fd),
	 (b, f, ctx, flags, backlog, fd), ENOMEM, NULL)
WRAP(struct evhttp_bound_socket *, evhttp_bind_listener, (struct evhttp * h, struct evconnlistener *l), (h, l), ENOMEM,
	 NULL)
WRAP(int, evhttp_accept_socket, (struct evhttp * h, evutil_socket_t fd), (h, fd), ENOMEM, -1)
WRAP(int, evhttp_add_header, (struct evkeyvalq * headers, const char *key, const char *value), (headers, key, value),
	 ENOMEM, -1)
WRAP(int, evbuffer_add, (struct evbuffer * b, const void *p, size_t n), (b, p, n), ENOMEM, -1)
WRAP(int, evbuffer_add_reference,
	 (struct evbuffer * b, const void *p, size_t n, evbuffer_ref_cleanup_cb done, void *ctx), (b, p, n, done, ctx),
	 ENOMEM, -1)
WRAP(unsigned char *, evbuffer_pullup, (struct evbuffer * b, ev_ssize_t n), (b, n), ENOMEM, NULL)

/* ---- zstd ---- */

#define ZSTD_NO_MEMORY ((size_t)-ZSTD_error_memory_allocation)
WRAP(ZSTD_CCtx *, ZSTD_createCCtx, (void), (), ENOMEM, NULL)
WRAP(ZSTD_DCtx *, ZSTD_createDCtx, (void), (), ENOMEM, NULL)
WRAP(size_t, ZSTD_compressCCtx, (ZSTD_CCtx * c, void *out, size_t cap, const void *p, size_t n, int level),
	 (c, out, cap, p, n, level), ENOMEM, ZSTD_NO_MEMORY)
WRAP(size_t, ZSTD_compress2, (ZSTD_CCtx * c, void *out, size_t cap, const void *p, size_t n), (c, out, cap, p, n),
	 ENOMEM, ZSTD_NO_MEMORY)
WRAP(size_t, ZSTD_decompressDCtx, (ZSTD_DCtx * d, void *out, size_t cap, const void *p, size_t n), (d, out, cap, p, n),
	 ENOMEM, ZSTD_NO_MEMORY)
