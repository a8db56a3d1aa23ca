/* bench_links.c: the throughput of a peer link: the mesh over loopback, one sender, one receiver, a
 * thread each.
 *
 * The peer is OpenSSL itself with the same cipher: blocking sockets, SSL_write of 64 KiB, SSL_read
 * into 128 KiB, and nothing around it. Both move the same payload; the rates count payload only.
 * Runs alternate; medians are reported.
 *
 *     bench_links [MIB [ROUNDS]] */
#include "bench/bench_report.h"

#include "base/clock.h"
#include "net/mesh/peers.h"
#include "net/tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 66560, MAX_ROUNDS = 21, WRITE_BYTES = 1 << 16, READ_BYTES = 1 << 17 };

struct figures {
	double gbit_per_s, cpu_s_per_gb; /* both ends together */
};

static void die(const char *what) {
	fprintf(stderr, "bench_links: %s\n", what);
	exit(1);
}

static double cpu_seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct figures figures_of(int64_t us, double cpu_s, uint64_t bytes) {
	return (struct figures){(double)bytes * 8e-3 / (double)us, cpu_s / ((double)bytes * 1e-9)};
}

static struct identity identity_number(uint8_t n) {
	uint8_t seed[IDENTITY_SEED_BYTES] = {n};
	struct identity id;
	identity_of_seed(seed, &id);
	return id;
}

/* ---- ours ---- */

struct end {
	struct identity id;
	struct peers *peers;
	const uint8_t *chunk;
	uint64_t left, got; /* bytes */
	atomic_bool *stop;
	uint64_t run_tag;
};

static bool next_message(void *ctx, uint32_t member, struct peers_message *out) {
	struct end *e = ctx;
	(void)member;
	if (e->left == 0)
		return false;
	struct reduce_msg m = {
		.type = REDUCE_SCATTER, .round = 1, .attempt = 1, .data = e->chunk, .data_bytes = CHUNK_BYTES};
	out->header = frame_reduce_encode(&m, e->run_tag);
	out->part[0] = m.data;
	out->part_bytes[0] = m.data_bytes;
	e->left -= CHUNK_BYTES;
	return true;
}

static enum rv_err on_message(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	struct end *e = ctx;
	(void)member;
	(void)body;
	(void)et;
	e->got += h->body_bytes;
	return RV_OK;
}

static void on_link_up(void *ctx, uint32_t member) {
	(void)ctx;
	(void)member;
}

static void on_link_down(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text) {
	(void)ctx;
	(void)member;
	(void)fatal;
	(void)why;
	die(text);
}

static void end_init(struct end *e, uint32_t member, atomic_bool *stop, const uint8_t *chunk) {
	*e = (struct end){.id = identity_number((uint8_t)(member + 1)), .stop = stop, .chunk = chunk};
	struct peers_config cfg = {.identity = &e->id,
							   .self_member = member,
							   .listen = "127.0.0.1:0",
							   .owner = {.ctx = e,
										 .next_message = next_message,
										 .on_message = on_message,
										 .on_link_up = on_link_up,
										 .on_link_down = on_link_down}};
	struct rv_errtext et = {0};
	e->run_tag = frame_run_tag(cfg.run_id);
	if (peers_new(&cfg, &e->peers, &et) != RV_OK)
		die(et.text);
}

/* Returns at most 10 ms: the other thread may have ended the run. */
static struct timespec until(int64_t deadline_us) {
	enum { MOST_US = 10 * 1000, NS_PER_US = 1000 };
	int64_t us = deadline_us - rv_clock_monotonic_us();
	us = us < 0 ? 0 : us < MOST_US ? us : MOST_US;
	return (struct timespec){.tv_nsec = us * NS_PER_US};
}

static void step(struct end *e) {
	struct pollfd fds[PEERS_MAX_FDS];
	int n = peers_pollfds(e->peers, fds, PEERS_MAX_FDS);
	struct timespec wait = until(peers_deadline_us(e->peers));
	(void)ppoll(fds, (nfds_t)n, &wait, NULL);
	peers_handle(e->peers, rv_clock_monotonic_us(), fds, n);
}

static void *receiver_main(void *arg) {
	struct end *e = arg;
	while (!atomic_load(e->stop))
		step(e);
	return NULL;
}

static struct figures run_mesh(uint64_t bytes, const uint8_t *chunk) {
	struct end sender, receiver;
	atomic_bool stop = false;
	pthread_t thread;
	end_init(&sender, 0, &stop, chunk);
	end_init(&receiver, 1, &stop, chunk);
	struct member_ref to = {.member = 1, .weight = 1}, from = {.member = 0, .weight = 1};
	memcpy(to.key, receiver.id.key, NET_KEY_BYTES);
	memcpy(from.key, sender.id.key, NET_KEY_BYTES);
	to.n_candidates = 1;
	snprintf(to.candidates[0].addr, sizeof to.candidates[0].addr, "127.0.0.1:%u", peers_port(receiver.peers));
	peers_allow(receiver.peers, rv_clock_monotonic_us(), &from, 1);
	peers_allow(sender.peers, rv_clock_monotonic_us(), &to, 1);
	while (!peers_linked(sender.peers, 1) || !peers_linked(receiver.peers, 0)) {
		step(&sender);
		step(&receiver);
	}
	if (pthread_create(&thread, NULL, receiver_main, &receiver) != 0)
		die("no thread");
	int64_t start_us = rv_clock_monotonic_us();
	double cpu_s = cpu_seconds();
	sender.left = bytes;
	receiver.left = 0;
	while (sender.left > 0 || peers_total(sender.peers).tx_bytes < bytes)
		step(&sender);
	atomic_store(&stop, true);
	pthread_join(thread, NULL); /* from here on the receiver is ours: it takes what is still on the way */
	while (receiver.got < bytes) {
		step(&sender);
		step(&receiver);
	}
	struct figures f = figures_of(rv_clock_monotonic_us() - start_us, cpu_seconds() - cpu_s, bytes);
	peers_free(sender.peers);
	peers_free(receiver.peers);
	return f;
}

/* ---- OpenSSL alone ---- */

struct plain_end {
	SSL_CTX *ctx;
	SSL *ssl;
	int fd;
	uint64_t bytes;
};

static void plain_init(struct plain_end *e, uint8_t number, int fd, bool dialer, uint64_t bytes) {
	struct identity id = identity_number(number);
	*e = (struct plain_end){.fd = fd, .bytes = bytes};
	if (tls_context_new(&id, TLS_CLIENTS_MUST, &e->ctx, NULL) != RV_OK || (e->ssl = SSL_new(e->ctx)) == NULL)
		die("TLS");
	SSL_set_fd(e->ssl, fd);
	if (dialer)
		SSL_set_connect_state(e->ssl);
	else
		SSL_set_accept_state(e->ssl);
}

static void plain_release(struct plain_end *e) {
	SSL_free(e->ssl);
	SSL_CTX_free(e->ctx);
	close(e->fd);
}

static void *plain_receiver_main(void *arg) {
	static uint8_t buffer[READ_BYTES];
	struct plain_end *e = arg;
	int n;
	for (uint64_t got = 0; got < e->bytes; got += (uint64_t)n)
		if ((n = SSL_read(e->ssl, buffer, sizeof buffer)) <= 0)
			die("SSL_read");
	return SSL_write(e->ssl, "x", 1) == 1 ? e : NULL;
}

static void tcp_pair(int fds[2]) {
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t n = sizeof sa;
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&sa, n) != 0 || listen(listener, 1) != 0 ||
		getsockname(listener, (struct sockaddr *)&sa, &n) != 0 || connect(fds[0], (struct sockaddr *)&sa, n) != 0 ||
		(fds[1] = accept(listener, NULL, NULL)) < 0)
		die("loopback connection");
	close(listener);
}

static struct figures run_plain(uint64_t bytes, const uint8_t *chunk) {
	struct plain_end sender, receiver;
	pthread_t thread;
	int fds[2];
	char byte;
	tcp_pair(fds);
	plain_init(&sender, 1, fds[0], true, bytes);
	plain_init(&receiver, 2, fds[1], false, bytes);
	if (pthread_create(&thread, NULL, plain_receiver_main, &receiver) != 0 || SSL_do_handshake(sender.ssl) != 1)
		die("handshake");
	int64_t start_us = rv_clock_monotonic_us();
	double cpu_s = cpu_seconds();
	for (uint64_t sent = 0; sent < bytes;) {
		uint64_t left = bytes - sent;
		int n = SSL_write(sender.ssl, chunk, left < WRITE_BYTES ? (int)left : WRITE_BYTES);
		if (n <= 0)
			die("SSL_write");
		sent += (uint64_t)n;
	}
	if (SSL_read(sender.ssl, &byte, 1) != 1)
		die("SSL_read");
	struct figures f = figures_of(rv_clock_monotonic_us() - start_us, cpu_seconds() - cpu_s, bytes);
	pthread_join(thread, NULL);
	plain_release(&sender);
	plain_release(&receiver);
	return f;
}

/* ---- main ---- */

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *v, int n) {
	qsort(v, (size_t)n, sizeof *v, compare);
	return v[n / 2];
}

int main(int argc, char **argv) {
	static uint8_t chunk[CHUNK_BYTES];
	double rate[2][MAX_ROUNDS], cpu[2][MAX_ROUNDS];
	long mib = argc > 1 ? strtol(argv[1], NULL, 10) : 1024;
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
	if (mib < 1 || mib > 65536 || rounds < 1 || rounds > MAX_ROUNDS)
		die("usage: bench_links [MIB 1..65536 [ROUNDS 1..21]]");
	uint64_t bytes = ((uint64_t)mib << 20) / CHUNK_BYTES * CHUNK_BYTES;
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof chunk; i++)
		chunk[i] = (uint8_t)(i * 2654435761u >> 24);
	bench_warn_if_busy();
	for (int i = 0; i < rounds; i++) {
		struct figures f[2] = {run_mesh(bytes, chunk), run_plain(bytes, chunk)};
		for (int k = 0; k < 2; k++) {
			rate[k][i] = f[k].gbit_per_s;
			cpu[k][i] = f[k].cpu_s_per_gb;
		}
	}
	struct bench_report r = {.bench = "links"};
	bench_more_is_better(&r, "one link, loopback, TLS 1.3", "openssl alone", median(rate[0], rounds),
						 median(rate[1], rounds), "Gbit/s");
	bench_less_is_better(&r, "processor time, both ends", "openssl alone", median(cpu[0], rounds),
						 median(cpu[1], rounds), "s/GB");
	bench_print_table(&r);
	return 0;
}
