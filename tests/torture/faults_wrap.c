/* faults_wrap.c: the calls that the linker sends here instead (-Wl,--wrap, CMakeLists.txt): each fails when told to, as the
 * real one would: NULL with errno, -1 with errno, the library's own code. */
#include "tests/torture/faults_hit.h"

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SITE __builtin_return_address(0)

/* WRAP(result, name, (parameters), (arguments), errno, failed): when it shall fail, errno and `failed` are what is seen. */
#define WRAP(result, name, parameters, arguments, number, failed)                                                      \
	result __real_##name parameters;                                                                                   \
	result __wrap_##name parameters;                                                                                   \
	result __wrap_##name parameters {                                                                                  \
		if (!faults_hit(SITE))                                                                                         \
			return __real_##name arguments;                                                                            \
		errno = number;                                                                                                \
		return failed;                                                                                                 \
	}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

WRAP(void *, malloc, (size_t n), (n), ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), ENOMEM, NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), ENOMEM, NULL)
WRAP(void *, aligned_alloc, (size_t align, size_t n), (align, n), ENOMEM, NULL)
WRAP(char *, strdup, (const char *s), (s), ENOMEM, NULL)
WRAP(char *, strndup, (const char *s, size_t n), (s, n), ENOMEM, NULL)
WRAP(FILE *, open_memstream, (char **p, size_t *n), (p, n), ENOMEM, NULL)

/* ---- files ----------------------------------------------------------------------------------------------------------- */

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

WRAP(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), EIO, -1)
WRAP(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), EIO, -1)
WRAP(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), ENOSPC, -1)
WRAP(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), ENOSPC, -1)
WRAP(int, fsync, (int fd), (fd), EIO, -1)
WRAP(int, ftruncate, (int fd, off_t n), (fd, n), EIO, -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), EIO, -1)
WRAP(int, stat, (const char *path, struct stat *st), (path, st), EIO, -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), EIO, -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), EIO, -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
WRAP(int, mkostemp, (char *name, int flags), (name, flags), EMFILE, -1)
WRAP(int, flock, (int fd, int what), (fd, what), ENOLCK, -1)
WRAP(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)

/* ---- sockets and threads --------------------------------------------------------------------------------------------- */

WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
WRAP(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), EADDRINUSE, -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), EADDRINUSE, -1)
WRAP(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags), EMFILE, -1)
WRAP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), ENETUNREACH, -1)
WRAP(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), ENOBUFS, -1)
WRAP(int, getpeername, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), ENOTCONN, -1)
WRAP(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), EPIPE, -1)
WRAP(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), ECONNRESET, -1)
WRAP(int, getaddrinfo, (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out),
	 (host, port, hints, out), ENOMEM, EAI_MEMORY)
WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *ctx), (t, a, run, ctx),
	 EAGAIN, EAGAIN)

/* ---- OpenSSL --------------------------------------------------------------------------------------------------------- */

WRAP(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *m), (m), ENOMEM, NULL)
WRAP(int, SSL_CTX_use_certificate, (SSL_CTX * ctx, X509 *x), (ctx, x), ENOMEM, 0)
WRAP(int, SSL_CTX_use_PrivateKey, (SSL_CTX * ctx, EVP_PKEY *k), (ctx, k), ENOMEM, 0)
WRAP(SSL *, SSL_new, (SSL_CTX * ctx), (ctx), ENOMEM, NULL)
WRAP(int, SSL_do_handshake, (SSL * s), (s), ECONNRESET, -1)
WRAP(int, SSL_read_ex, (SSL * s, void *p, size_t n, size_t *got), (s, p, n, got), ECONNRESET, 0)
WRAP(int, SSL_write_ex, (SSL * s, const void *p, size_t n, size_t *put), (s, p, n, put), EPIPE, 0)
WRAP(int, SSL_export_keying_material,
	 (SSL * s, unsigned char *out, size_t n, const char *label, size_t label_n, const unsigned char *context,
	  size_t context_n, int use_context),
	 (s, out, n, label, label_n, context, context_n, use_context), ENOMEM, 0)
WRAP(BIO *, BIO_new, (const BIO_METHOD *m), (m), ENOMEM, NULL)
WRAP(BIO_METHOD *, BIO_meth_new, (int type, const char *name), (type, name), ENOMEM, NULL)
WRAP(X509 *, X509_new, (void), (), ENOMEM, NULL)
WRAP(int, X509_sign, (X509 * x, EVP_PKEY *k, const EVP_MD *md), (x, k, md), ENOMEM, 0)
WRAP(EVP_PKEY *, EVP_PKEY_new_raw_private_key, (int type, ENGINE *e, const unsigned char *key, size_t n),
	 (type, e, key, n), ENOMEM, NULL)

/* ---- libcurl --------------------------------------------------------------------------------------------------------- */

WRAP(CURL *, curl_easy_init, (void), (), ENOMEM, NULL)
WRAP(CURLM *, curl_multi_init, (void), (), ENOMEM, NULL)
WRAP(CURLMcode, curl_multi_add_handle, (CURLM * m, CURL *e), (m, e), ENOMEM, CURLM_OUT_OF_MEMORY)
WRAP(struct curl_slist *, curl_slist_append, (struct curl_slist * l, const char *s), (l, s), ENOMEM, NULL)

/* Its third argument is as wide as a pointer or a long, or a curl_off_t: the same on every 64-bit system. */
CURLcode __real_curl_easy_setopt(CURL *e, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *e, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *e, CURLoption option, ...) {
	va_list args;
	va_start(args, option);
	void *value = va_arg(args, void *);
	va_end(args);
	return faults_hit(SITE) ? CURLE_OUT_OF_MEMORY : __real_curl_easy_setopt(e, option, value);
}

/* ---- libevent -------------------------------------------------------------------------------------------------------- */

WRAP(struct event_base *, event_base_new, (void), (), ENOMEM, NULL)
WRAP(struct event *, event_new, (struct event_base * b, evutil_socket_t fd, short what, event_callback_fn f, void *ctx),
	 (b, fd, what, f, ctx), ENOMEM, NULL)
WRAP(struct evhttp *, evhttp_new, (struct event_base * b), (b), ENOMEM, NULL)
WRAP(struct bufferevent *, bufferevent_openssl_socket_new,
	 (struct event_base * b, evutil_socket_t fd, SSL *s, enum bufferevent_ssl_state state, int options),
	 (b, fd, s, state, options), ENOMEM, NULL)
