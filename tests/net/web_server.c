/* web_server.c: see web_server.h. */
#include "web_server.h"

#include "net/tls.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
	struct web_server *server;
	int fd;
	SSL *ssl;
	char *in;
	size_t in_bytes;
};

/* True when fd is readable, false when the server stops. */
static bool wait_readable(const struct web_server *s, int fd) {
	struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = s->stop_fd, .events = POLLIN}};
	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	return fds[1].revents == 0 && fds[0].revents != 0;
}

static int receive(struct connection *c, char *out, size_t cap) {
	if (c->ssl != NULL && SSL_pending(c->ssl) > 0)
		return SSL_read(c->ssl, out, (int)cap);
	if (!wait_readable(c->server, c->fd))
		return 0;
	return c->ssl != NULL ? SSL_read(c->ssl, out, (int)cap) : (int)recv(c->fd, out, cap, 0);
}

static bool transmit(struct connection *c, const void *data, size_t n) {
	for (size_t at = 0; at < n;) {
		int sent = c->ssl != NULL ? SSL_write(c->ssl, (const char *)data + at, (int)(n - at))
								  : (int)send(c->fd, (const char *)data + at, n - at, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		at += (size_t)sent;
	}
	return true;
}

static const char *header_value(const char *head, const char *name) {
	for (const char *at = strstr(head, "\r\n"); at != NULL; at = strstr(at + 2, "\r\n"))
		if (strncasecmp(at + 2, name, strlen(name)) == 0)
			return at + 2 + strlen(name);
	return NULL;
}

/* One whole request into c->in; its bytes, 0 at the end of the connection. */
static size_t read_request(struct connection *c, struct web_request *rq) {
	*rq = (struct web_request){0};
	for (;;) {
		c->in[c->in_bytes] = '\0';
		char *end = strstr(c->in, "\r\n\r\n");
		size_t head = end != NULL ? (size_t)(end - c->in) + 4 : 0;
		const char *length = end != NULL ? header_value(c->in, "Content-Length: ") : NULL;
		size_t body = length != NULL && length < end ? strtoul(length, NULL, 10) : 0;
		if (end != NULL && c->in_bytes >= head + body) {
			const char *range = header_value(c->in, "Range: bytes=");
			rq->range_end = UINT64_MAX;
			rq->has_range = range != NULL && range < end;
			if (rq->has_range)
				(void)sscanf(range, "%" SCNu64 "-%" SCNu64, &rq->range_start, &rq->range_end);
			sscanf(c->in, "%7s %255s", rq->method, rq->path);
			rq->body = (const uint8_t *)c->in + head;
			rq->body_bytes = body;
			return head + body;
		}
		int n = receive(c, c->in + c->in_bytes, WEB_REQUEST_BYTES - c->in_bytes);
		if (n <= 0)
			return 0;
		c->in_bytes += (size_t)n;
	}
}

static bool send_reply(struct connection *c, const struct web_reply *r) {
	char head[1024], length[64] = "Connection: close\r\n";
	if (!r->no_length)
		snprintf(length, sizeof length, "Content-Length: %zu\r\n", r->body_bytes);
	int n = snprintf(head, sizeof head, "HTTP/1.1 %d Answer\r\n%s%s\r\n", r->status, length,
					 r->headers != NULL ? r->headers : "");
	bool cut = r->cut_after > 0 && r->cut_after < r->body_bytes;
	if (!transmit(c, head, (size_t)n) || !transmit(c, r->body, cut ? r->cut_after : r->body_bytes))
		return false;
	return !cut && !r->no_length;
}

static void serve(struct connection *c) {
	struct web_request rq;
	size_t n;
	while ((n = read_request(c, &rq)) > 0) {
		struct web_reply reply = {.status = 200};
		rq.has_client_key = c->ssl != NULL && tls_peer_key(c->ssl, rq.client_key);
		c->server->handle(c->server->handle_ctx, &rq, &reply);
		if (reply.hang) {
			(void)wait_readable(c->server, c->fd); /* the client's end, or ours */
			return;
		}
		if (!send_reply(c, &reply))
			return;
		memmove(c->in, c->in + n, c->in_bytes - n);
		c->in_bytes -= n;
	}
}

static void *connection_main(void *arg) {
	struct connection *c = arg;
	bool ready = true;
	if (c->server->ctx != NULL) {
		c->ssl = SSL_new(c->server->ctx);
		SSL_set_fd(c->ssl, c->fd);
		ready = wait_readable(c->server, c->fd) && SSL_accept(c->ssl) == 1;
	}
	if (ready)
		serve(c);
	if (c->ssl != NULL && ready)
		SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	ERR_clear_error();
	close(c->fd);
	free(c->in);
	free(c);
	return NULL;
}

static void *server_main(void *arg) {
	struct web_server *s = arg;
	while (wait_readable(s, s->listener)) {
		int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
		struct connection *c = calloc(1, sizeof *c);
		char *in = malloc(WEB_REQUEST_BYTES + 1);
		if (fd < 0 || c == NULL || in == NULL || s->n_connections == WEB_MAX_CONNECTIONS)
			abort();
		*c = (struct connection){.server = s, .fd = fd, .in = in};
		if (pthread_create(&s->connections[s->n_connections++], NULL, connection_main, c) != 0)
			abort();
	}
	return NULL;
}

void web_start(struct web_server *s, const struct identity *tls,
			   void (*handle)(void *, const struct web_request *, struct web_reply *), void *ctx) {
	*s = (struct web_server){.handle = handle, .handle_ctx = ctx};
	signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to connections that the client has left */
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t n = sizeof sa;
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(s->stop_fd >= 0 && s->listener >= 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(s->listener, 16), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&sa, &n), 0);
	s->port = ntohs(sa.sin_port);
	if (tls != NULL)
		assert_int_equal(tls_context_new(tls, TLS_CLIENTS_MAY, &s->ctx, NULL), RV_OK);
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

void web_stop(struct web_server *s) {
	uint64_t one = 1;
	assert_int_equal(write(s->stop_fd, &one, sizeof one), sizeof one);
	pthread_join(s->thread, NULL);
	for (int i = 0; i < s->n_connections; i++)
		pthread_join(s->connections[i], NULL);
	close(s->listener);
	close(s->stop_fd);
	SSL_CTX_free(s->ctx);
}
