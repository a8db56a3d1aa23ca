/* bench_control.c: how long control waits while a line is full: one member of a mesh, in a network
 * namespace of its own (bench/control.sh starts them). First nothing but control; then bulk to
 * everybody all the time.
 *
 *     bench_control echo HOST:PORT                      answers as the coordinator would
 *     bench_control SELF MEMBERS START_US IDLE_S FULL_S CAPS ECHO HOST...
 *                                                       HOST i is member i's; port 7440
 *
 * CAPS: UP or UP:DOWN, bytes per second of the line, 0: none. RIVULET_CONGESTION in the
 * environment: a TCP congestion control other than the mesh's own choice.
 *
 * Every 200 ms a PING is due to each peer, and a request of 300 bytes to the echo. A PING carries
 * when it was due (all clocks are one machine's), so its time includes waiting here, in the kernel,
 * and on the line. One JSON line at the end; what came in counts from a second after bulk began:
 * what the kernel of a sender took is not carried yet. */
#include "base/clock.h"
#include "net/mesh/peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PORT = 7440,
	CHUNK_BYTES = 33280,
	DUE_US = 200 * 1000,
	MAX_TIMES = 1 << 15,
	MAX_PAIR_TIMES = 1 << 12,
	WARM_US = 1000 * 1000,
	REQUEST_BYTES = 300,
	AFTER_US = 10 * 1000 * 1000 /* packets under way may still arrive */
};

struct times {
	double ms[MAX_TIMES];
	int n;
};

/* Figures of one peer, while the line is full. */
struct pair {
	double ping_ms[MAX_PAIR_TIMES];
	int n;
	uint64_t got; /* bytes of its frames */
	uint64_t before, rx_bytes;
};

struct bench {
	struct identity id;
	struct peers *peers;
	int self, n;
	int64_t start_us, full_us, end_us, now_us;
	int64_t due_us[NET_MAX_ROW]; /* of the next PING */
	uint64_t run_tag;
	struct times ping[2], echo[2]; /* idle, full */
	int echo_fd;
	int64_t echo_due_us;
	uint8_t reply[REQUEST_BYTES];
	size_t reply_bytes;
	struct pair pairs[NET_MAX_ROW];
	uint8_t chunk[CHUNK_BYTES];
};

static void die(const char *what) {
	fprintf(stderr, "bench_control: %s\n", what);
	exit(1);
}

static void note(struct times *t, int64_t us) {
	if (t->n < MAX_TIMES)
		t->ms[t->n++] = (double)us / 1e3;
}

static bool is_full(const struct bench *b, int64_t us) {
	return us >= b->full_us;
}

/* ---- the mesh ---- */

static bool next_control(void *ctx, uint32_t member, struct peers_message *out) {
	struct bench *b = ctx;
	if (b->now_us < b->due_us[member] || b->now_us >= b->end_us)
		return false;
	struct reduce_msg m = {.type = REDUCE_PING, .round = (uint64_t)b->due_us[member], .attempt = 1};
	out->header = frame_reduce_encode(&m, b->run_tag);
	while (b->due_us[member] <= b->now_us)
		b->due_us[member] += DUE_US;
	return true;
}

static bool next_message(void *ctx, uint32_t member, struct peers_message *out) {
	struct bench *b = ctx;
	if (next_control(ctx, member, out))
		return true;
	if (!is_full(b, b->now_us) || b->now_us >= b->end_us)
		return false;
	struct reduce_msg m = {
		.type = REDUCE_SCATTER, .round = 1, .attempt = 1, .data = b->chunk, .data_bytes = sizeof b->chunk};
	out->header = frame_reduce_encode(&m, b->run_tag);
	out->part[0] = m.data;
	out->part_bytes[0] = m.data_bytes;
	return true;
}

static enum rv_err on_message(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	struct bench *b = ctx;
	struct pair *pair = &b->pairs[member];
	(void)body;
	(void)et;
	pair->got += FRAME_HEADER_BYTES + h->body_bytes;
	if (h->type != FRAME_PING)
		return RV_OK;
	int64_t due_us = (int64_t)h->round;
	note(&b->ping[is_full(b, due_us)], b->now_us - due_us);
	if (is_full(b, due_us) && pair->n < MAX_PAIR_TIMES)
		pair->ping_ms[pair->n++] = (double)(b->now_us - due_us) / 1e3;
	return RV_OK;
}

static void on_link_up(void *ctx, uint32_t member) {
	(void)ctx;
	(void)member;
}

static void on_link_down(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text) {
	struct bench *b = ctx;
	(void)fatal;
	(void)why;
	if (b->now_us < b->end_us)
		fprintf(stderr, "bench_control: the link to member %u is gone: %s\n", member, text);
}

static struct identity identity_of(int member) {
	uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)(member + 1), 0x42};
	struct identity id;
	identity_of_seed(seed, &id);
	return id;
}

static void open_mesh(struct bench *b, const char *caps, char **hosts) {
	struct member_ref refs[NET_MAX_ROW] = {0};
	char listen[NET_ADDR_BYTES];
	struct rv_errtext et = {0};
	b->id = identity_of(b->self);
	snprintf(listen, sizeof listen, "%s:%d", hosts[b->self], PORT);
	char *down;
	int64_t max_up = strtoll(caps, &down, 10);
	struct peers_config cfg = {.identity = &b->id,
							   .self_member = (uint32_t)b->self,
							   .listen = listen,
							   .max_up = max_up,
							   .congestion = getenv("RIVULET_CONGESTION"),
							   .max_down = *down == ':' ? strtoll(down + 1, NULL, 10) : 0,
							   .owner = {.ctx = b,
										 .next_message = next_message,
										 .next_control = next_control,
										 .on_message = on_message,
										 .on_link_up = on_link_up,
										 .on_link_down = on_link_down}};
	b->run_tag = frame_run_tag(cfg.run_id);
	if (peers_new(&cfg, &b->peers, &et) != RV_OK)
		die(et.text);
	for (int i = 0; i < b->n; i++) {
		struct identity id = identity_of(i);
		refs[i].member = (uint32_t)i;
		refs[i].weight = 1;
		memcpy(refs[i].key, id.key, NET_KEY_BYTES);
		refs[i].n_candidates = 1;
		snprintf(refs[i].candidates[0].addr, sizeof refs[i].candidates[0].addr, "%s:%d", hosts[i], PORT);
	}
	peers_allow(b->peers, rv_clock_monotonic_us(), refs, b->n);
}

/* ---- the echo ---- */

static struct sockaddr_in parse_address(const char *text) {
	char host[64];
	unsigned port;
	struct sockaddr_in a = {.sin_family = AF_INET};
	if (sscanf(text, "%63[0-9.]:%u", host, &port) != 2 || inet_pton(AF_INET, host, &a.sin_addr) != 1)
		die("HOST:PORT must be numbers");
	a.sin_port = htons((uint16_t)port);
	return a;
}

static void open_echo(struct bench *b, const char *where) {
	struct sockaddr_in a = parse_address(where);
	int on = 1;
	b->echo_fd = socket(AF_INET, SOCK_STREAM, 0);
	if (b->echo_fd < 0 || connect(b->echo_fd, (struct sockaddr *)&a, sizeof a) != 0)
		die("no echo");
	(void)setsockopt(b->echo_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)fcntl(b->echo_fd, F_SETFL, O_NONBLOCK);
	b->echo_due_us = b->start_us;
}

static void take_replies(struct bench *b) {
	ssize_t n;
	while ((n = recv(b->echo_fd, b->reply + b->reply_bytes, sizeof b->reply - b->reply_bytes, 0)) > 0) {
		int64_t due_us;
		b->reply_bytes += (size_t)n;
		if (b->reply_bytes < sizeof b->reply)
			continue;
		memcpy(&due_us, b->reply, sizeof due_us);
		note(&b->echo[is_full(b, due_us)], b->now_us - due_us);
		b->reply_bytes = 0;
	}
}

static void ask_echo(struct bench *b) {
	uint8_t request[REQUEST_BYTES] = {0};
	if (b->now_us < b->echo_due_us || b->now_us >= b->end_us)
		return;
	memcpy(request, &b->echo_due_us, sizeof b->echo_due_us);
	if (send(b->echo_fd, request, sizeof request, MSG_NOSIGNAL) != (ssize_t)sizeof request)
		die("the echo's socket is full");
	b->echo_due_us += DUE_US;
}

static void serve_one(struct pollfd *p) {
	uint8_t data[REQUEST_BYTES];
	ssize_t n = recv(p->fd, data, sizeof data, 0);
	if (n <= 0 || send(p->fd, data, (size_t)n, MSG_NOSIGNAL) != n) {
		close(p->fd);
		p->fd = -1;
	}
}

static int serve_echo(const char *where) {
	struct sockaddr_in a = parse_address(where);
	struct pollfd fds[NET_MAX_ROW + 1];
	int n = 1, on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	(void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(listener, NET_MAX_ROW) != 0)
		die(strerror(errno));
	fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	puts("ready");
	fflush(stdout);
	while (poll(fds, (nfds_t)n, -1) > 0) {
		if ((fds[0].revents & POLLIN) != 0 && n <= NET_MAX_ROW) {
			fds[n] = (struct pollfd){.fd = accept(listener, NULL, NULL), .events = POLLIN};
			(void)setsockopt(fds[n].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
			n++;
		}
		for (int i = 1; i < n; i++)
			if (fds[i].revents != 0)
				serve_one(&fds[i]);
	}
	return 0;
}

/* ---- the run ---- */

static void count_bytes(struct bench *b) {
	for (int i = 0; i < b->n; i++) {
		uint64_t got = b->pairs[i].got;
		if (b->now_us < b->full_us + WARM_US)
			b->pairs[i].before = got;
		else if (b->now_us < b->end_us)
			b->pairs[i].rx_bytes = got - b->pairs[i].before;
	}
}

static void run(struct bench *b) {
	struct pollfd fds[PEERS_MAX_FDS + 1];
	for (b->now_us = rv_clock_monotonic_us(); b->now_us < b->end_us + AFTER_US;) {
		int n = peers_pollfds(b->peers, fds, PEERS_MAX_FDS);
		fds[n] = (struct pollfd){.fd = b->echo_fd, .events = POLLIN};
		int64_t wait_us = peers_deadline_us(b->peers) - b->now_us;
		(void)poll(fds, (nfds_t)n + 1, wait_us > 10000 ? 10 : wait_us > 0 ? (int)(wait_us / 1000 + 1) : 0);
		b->now_us = rv_clock_monotonic_us();
		peers_handle(b->peers, b->now_us, fds, n);
		take_replies(b);
		ask_echo(b);
		count_bytes(b);
	}
}

static int by_size(const void *x, const void *y) {
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static void print_times(const char *name, struct times *t) {
	qsort(t->ms, (size_t)t->n, sizeof t->ms[0], by_size);
	double p50 = t->n ? t->ms[t->n / 2] : -1, p99 = t->n ? t->ms[t->n * 99 / 100] : -1;
	printf(",\"%s\":{\"n\":%d,\"p50_ms\":%.1f,\"p99_ms\":%.1f,\"max_ms\":%.1f}", name, t->n, p50, p99,
		   t->n ? t->ms[t->n - 1] : -1.0);
}

static void print_pairs(const struct bench *b) {
	double seconds = (double)(b->end_us - b->full_us - WARM_US) / 1e6;
	printf(",\"from\":[");
	for (int i = 0; i < b->n; i++) {
		const struct pair *pair = &b->pairs[i];
		printf("%s{\"mbit\":%.4f,\"ping_ms\":[", i > 0 ? "," : "", (double)pair->rx_bytes * 8e-6 / seconds);
		for (int k = 0; k < pair->n; k++)
			printf("%s%.1f", k > 0 ? "," : "", pair->ping_ms[k]);
		printf("]}");
	}
	putchar(']');
}

int main(int argc, char **argv) {
	static struct bench b;
	if (argc == 3 && strcmp(argv[1], "echo") == 0)
		return serve_echo(argv[2]);
	if (argc < 9 || argc != 8 + atoi(argv[2]) || atoi(argv[2]) > NET_MAX_ROW)
		die("arguments: see the top of bench_control.c");
	b.self = atoi(argv[1]);
	b.n = atoi(argv[2]);
	b.start_us = strtoll(argv[3], NULL, 10);
	b.full_us = b.start_us + (int64_t)(strtod(argv[4], NULL) * 1e6);
	b.end_us = b.full_us + (int64_t)(strtod(argv[5], NULL) * 1e6);
	for (int i = 0; i < b.n; i++)
		b.due_us[i] = b.start_us + i * 1000;
	open_echo(&b, argv[7]);
	open_mesh(&b, argv[6], argv + 8);
	run(&b);
	printf("{\"member\":%d", b.self);
	print_times("ping_idle", &b.ping[0]);
	print_times("ping_full", &b.ping[1]);
	print_times("echo_idle", &b.echo[0]);
	print_times("echo_full", &b.echo[1]);
	print_pairs(&b);
	puts("}");
	peers_free(b.peers);
	return 0;
}
