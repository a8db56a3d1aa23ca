/* bench_streams.c: what bare TLS makes of the lines of some sites: OpenSSL over blocking sockets,
 * the cipher of peer links, two connections a pair (one each way), a thread at each end, and
 * nothing around it. Each site sends the same bytes to each other one, again and again, all at
 * once; an exchange is over when every site has received everything.
 *
 *     bench_streams SELF BYTES PAUSE_S cubic|bbr IPV4 IPV4...   (SELF: index of the own address)
 *
 * Prints a line after each exchange; bench/realnet/peers.py runs it, and ends it. */
#include "base/clock.h"
#include "net/tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_SITES = 40,
	PORT = 7461,
	WRITE_BYTES = 1 << 16,
	READ_BYTES = 1 << 17,
	DIALS = 200,
	DIAL_EVERY_NS = 50000000
};

struct mesh {
	int self, n;
	const char *congestion;
	char **hosts;
	uint64_t bytes; /* to each other site in an exchange */
	SSL_CTX *tls;
	pthread_barrier_t step; /* all threads here, and the main one */
};

/* One connection; a thread of its own. */
struct stream {
	struct mesh *mesh;
	SSL *ssl;
	bool sends;
};

static void die(const char *what) {
	perror(what);
	exit(1);
}

static void sleep_ns(int64_t ns) {
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	(void)nanosleep(&t, NULL);
}

static struct sockaddr_in address_of(const char *host) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	if (inet_pton(AF_INET, host, &sa.sin_addr) != 1)
		die(host);
	return sa;
}

/* Connects to a site that may not listen yet. */
static int dial(const char *host) {
	struct sockaddr_in sa = address_of(host);
	for (int i = 0; i < DIALS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0)
			die("socket");
		if (connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
			return fd;
		close(fd);
		sleep_ns(DIAL_EVERY_NS);
	}
	die(host);
	return -1;
}

static int listen_at(const char *host) {
	struct sockaddr_in sa = address_of(host);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
		bind(fd, (struct sockaddr *)&sa, sizeof sa) != 0 || listen(fd, MAX_SITES) != 0)
		die("listen");
	return fd;
}

static void must(bool is_true, const char *what) {
	if (!is_true) {
		(void)fprintf(stderr, "bench_streams: %s: %s\n", what, tls_error_text());
		exit(1);
	}
}

static void write_all(SSL *ssl, uint64_t bytes) {
	static const uint8_t zeros[WRITE_BYTES];
	for (uint64_t left = bytes; left > 0;) {
		int n = SSL_write(ssl, zeros, left < WRITE_BYTES ? (int)left : WRITE_BYTES);
		must(n > 0, "write");
		left -= (uint64_t)n;
	}
}

static void read_all(SSL *ssl, uint8_t *buffer, uint64_t bytes) {
	for (uint64_t left = bytes; left > 0;) {
		int n = SSL_read(ssl, buffer, left < READ_BYTES ? (int)left : READ_BYTES);
		must(n > 0, "read");
		left -= (uint64_t)n;
	}
}

/* Moves the bytes of one exchange after another. A receiver acknowledges when this site has
 * received all from all: so a sender that has the acknowledgement knows this of its peer. */
static void *stream_main(void *arg) {
	struct stream *s = arg;
	uint8_t *buffer = malloc(READ_BYTES);
	must(buffer != NULL && SSL_do_handshake(s->ssl) == 1, "handshake");
	for (;;) {
		pthread_barrier_wait(&s->mesh->step);
		if (s->sends)
			write_all(s->ssl, s->mesh->bytes);
		else
			read_all(s->ssl, buffer, s->mesh->bytes);
		pthread_barrier_wait(&s->mesh->step);
		if (s->sends)
			read_all(s->ssl, buffer, 1);
		else
			write_all(s->ssl, 1);
		pthread_barrier_wait(&s->mesh->step);
	}
	return NULL;
}

static void start(struct mesh *m, int fd, bool sends) {
	struct stream *s = malloc(sizeof *s);
	pthread_t thread;
	must(s != NULL, "memory");
	*s = (struct stream){.mesh = m, .ssl = SSL_new(m->tls), .sends = sends};
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, m->congestion, (socklen_t)strlen(m->congestion)) != 0)
		die(m->congestion);
	must(s->ssl != NULL && SSL_set_fd(s->ssl, fd) == 1, "TLS");
	if (sends)
		SSL_set_connect_state(s->ssl);
	else
		SSL_set_accept_state(s->ssl);
	must(pthread_create(&thread, NULL, stream_main, s) == 0, "thread");
}

/* Connects to all others and takes their connections. */
static void open_streams(struct mesh *m) {
	int listener = listen_at(m->hosts[m->self]);
	for (int i = 0; i < m->n; i++)
		if (i != m->self)
			start(m, dial(m->hosts[i]), true);
	for (int i = 1; i < m->n; i++) {
		int fd = accept(listener, NULL, NULL);
		if (fd < 0)
			die("accept");
		start(m, fd, false);
	}
	close(listener);
}

static void make_context(struct mesh *m) {
	uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)(m->self + 1)};
	struct identity id;
	struct rv_errtext et = {0};
	identity_of_seed(seed, &id);
	must(tls_context_new(&id, TLS_CLIENTS_MUST, &m->tls, &et) == RV_OK, et.text);
}

int main(int argc, char **argv) {
	enum { FIRST_HOST = 5 };
	struct mesh m = {.n = argc - FIRST_HOST, .hosts = argv + FIRST_HOST, .congestion = argv[FIRST_HOST - 1]};
	if (m.n < 2 || m.n > MAX_SITES || (m.self = (int)strtol(argv[1], NULL, 10)) < 0 || m.self >= m.n) {
		(void)fprintf(stderr, "usage: bench_streams SELF BYTES PAUSE_S cubic|bbr IPV4 IPV4... (at most %d)\n",
					  MAX_SITES);
		return 2;
	}
	m.bytes = strtoull(argv[2], NULL, 10);
	int64_t pause_ns = (int64_t)(strtod(argv[3], NULL) * 1e9);
	(void)signal(SIGPIPE, SIG_IGN);
	make_context(&m);
	if (pthread_barrier_init(&m.step, NULL, 2 * (unsigned)(m.n - 1) + 1) != 0)
		die("barrier");
	open_streams(&m);
	for (int k = 0;; k++) {
		sleep_ns(pause_ns);
		int64_t start_us = rv_clock_monotonic_us();
		for (int i = 0; i < 3; i++)
			pthread_barrier_wait(&m.step);
		printf("%d %d members, %.3f s\n", k, m.n, (double)(rv_clock_monotonic_us() - start_us) * 1e-6);
		(void)fflush(stdout);
	}
}
