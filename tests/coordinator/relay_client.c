/* relay_client.c: see relay_client.h. */
#include "tests/coordinator/relay_client.h"

#include "base/hex.h"
#include "net/tls.h"
#include "tests/common/check.h"
#include "tests/common/process.h"
#include "tests/common/scratch.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sanitizer makes calls that a sandbox refuses. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANDBOX "--no-sandbox"
#else
#define SANDBOX "--sandbox"
#endif

/* ---- the process ---- */

enum { OWN_ARGS = 9 };

static void spawn(struct relay_process *p, const char *const *args, int out) {
	char run_key[2 * NET_KEY_BYTES + 1];
	const char *argv[OWN_ARGS + RELAY_TEST_ARGS_MAX] = {
		COORDINATOR_PROGRAM, "relay", "--run-key", run_key, "--state", p->dir, "--listen", "127.0.0.1:0", SANDBOX};
	rv_hex_encode(p->run.key, NET_KEY_BYTES, run_key);
	for (int i = 0; args[i] != NULL && i < RELAY_TEST_ARGS_MAX - 1; i++)
		argv[OWN_ARGS + i] = args[i];
	p->pid = process_spawn(argv, out, NULL);
}

void relay_process_start(struct relay_process *p, const char *const *args) {
	int fds[2];
	char line[1024] = "";
	const uint8_t seed[IDENTITY_SEED_BYTES] = {77};
	*p = (struct relay_process){.run_id = {3}};
	identity_of_seed(seed, &p->run);
	scratch_make(p->dir, sizeof p->dir);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	spawn(p, args, fds[1]);
	(void)close(fds[1]);
	p->out = fdopen(fds[0], "r");
	assert_non_null(p->out);
	do { /* that parts of its sandbox are missing; {"t": ..., "event": "listening", ... "port": P, "key": K */
		assert_non_null(fgets(line, sizeof line, p->out));
		p->lacks_filter = p->lacks_filter || strstr(line, "\"calls\":false") != NULL;
	} while (strstr(line, "\"event\":\"sandbox\"") != NULL);
	const char *second = strstr(line, "\"second_port\":");
	const char *port = strstr(line, "\"port\":"), *key = strstr(line, "\"key\":");
	if (port == NULL || second == NULL || key == NULL)
		fail_msg("the relay says %s", line);
	p->port = (uint16_t)strtoul(port + 7, NULL, 10);
	p->second_port = (uint16_t)strtoul(second + 14, NULL, 10);
	char digits[2 * NET_KEY_BYTES + 1] = "";
	(void)snprintf(digits, sizeof digits, "%s", strchr(key + 6, '"') + 1);
	assert_true(rv_hex_decode(digits, p->key, NET_KEY_BYTES));
}

int relay_process_stop(struct relay_process *p) {
	int status = 0;
	assert_int_equal(kill(p->pid, SIGTERM), 0);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	(void)fclose(p->out);
	scratch_remove(p->dir);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

long relay_process_kib(const struct relay_process *p, const char *name) {
	char path[64], line[256];
	long kib = -1;
	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)p->pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtol(line + strlen(name) + 1, NULL, 10);
	(void)fclose(f);
	return kib;
}

/* Returns the local port of the TCP socket with this inode; 0: not found. */
static unsigned port_of_inode(unsigned long inode) {
	FILE *f = fopen("/proc/net/tcp", "r");
	char line[512];
	unsigned found = 0;
	assert_non_null(f);
	while (found == 0 && fgets(line, sizeof line, f) != NULL) {
		unsigned port = 0;
		unsigned long node = 0;
		if (sscanf(line, " %*d: %*[0-9A-F]:%x %*s %*s %*s %*s %*s %*u %*d %lu", &port, &node) == 2 && node == inode)
			found = port;
	}
	(void)fclose(f);
	return found;
}

int relay_process_dialed(const struct relay_process *p, int *accepted) {
	char path[64], link[128];
	int dialed = 0;
	*accepted = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)p->pid);
	DIR *d = opendir(path);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		unsigned long inode = 0;
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
		link[n > 0 ? n : 0] = '\0';
		if (sscanf(link, "socket:[%lu]", &inode) != 1)
			continue;
		unsigned port = port_of_inode(inode);
		*accepted += port == p->port;
		dialed += port != 0 && port != p->port && port != p->second_port;
	}
	(void)closedir(d);
	return dialed;
}

/* ---- plain connections ---- */

int relay_connect(uint16_t port) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

int relay_data(uint16_t port, enum relay_preamble_kind kind, const uint8_t token[NET_TOKEN_BYTES]) {
	uint8_t bytes[RELAY_PREAMBLE_BYTES];
	struct relay_preamble m = {.kind = (uint8_t)kind};
	int fd = relay_connect(port);
	memcpy(m.token, token, NET_TOKEN_BYTES);
	relay_preamble_encode(&m, bytes);
	for (size_t i = 0; i < sizeof bytes; i += 5) /* in pieces: a relay waits for the rest */
		assert_int_equal(send(fd, bytes + i, 5, MSG_NOSIGNAL), 5);
	return fd;
}

int relay_reflect(uint16_t port, uint16_t *local_port, const uint8_t token[NET_TOKEN_BYTES], struct relay_frame *seen) {
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(*local_port)}, to = from;
	const struct relay_preamble m = {.kind = RELAY_REFLECT};
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	socklen_t n_from = sizeof from;
	const int yes = 1;
	size_t used = 0, n = 0;
	from.sin_addr.s_addr = to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &n_from), 0);
	*local_port = ntohs(from.sin_port);
	relay_preamble_encode(&m, bytes);
	memcpy(bytes + RELAY_PREAMBLE_BYTES - NET_TOKEN_BYTES, token, NET_TOKEN_BYTES);
	assert_int_equal(send(fd, bytes, RELAY_PREAMBLE_BYTES, MSG_NOSIGNAL), RELAY_PREAMBLE_BYTES);
	for (ssize_t k; used == 0 && (k = recv(fd, bytes + n, sizeof bytes - n, 0)) > 0;) {
		n += (size_t)k;
		assert_ok(relay_frame_decode(bytes, n, seen, &used, &et));
	}
	assert_true(used > 0 && used == n);
	assert_int_equal(seen->type, RELAY_SEEN);
	assert_string_equal(seen->seen.at.host, "127.0.0.1");
	assert_int_equal(seen->seen.at.port, *local_port);
	assert_memory_equal(seen->seen.nonce, token, NET_TOKEN_BYTES);
	return fd;
}

/* ---- stations ---- */

bool relay_station_open(struct relay_station *s, const struct relay_process *p, uint32_t member,
						const struct identity *id, const struct identity *signer) {
	const uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)member, 5};
	uint8_t key[NET_KEY_BYTES];
	struct relay_frame m = {.type = RELAY_HELLO,
							.hello = {.version = RELAY_VERSION, .member = member, .cert = p->cert}};
	*s = (struct relay_station){.member = member, .fd = relay_connect(p->port)};
	if (id != NULL)
		s->id = *id;
	else
		identity_of_seed(seed, &s->id);
	assert_ok(tls_context_new(&s->id, TLS_CLIENTS_MUST, &s->ctx, &et));
	s->ssl = SSL_new(s->ctx);
	assert_int_equal(SSL_set_fd(s->ssl, s->fd), 1);
	assert_int_equal(SSL_connect(s->ssl), 1);
	assert_true(tls_peer_key(s->ssl, key));
	assert_memory_equal(key, p->key, NET_KEY_BYTES);
	memcpy(m.hello.run_id, p->run_id, NET_RUN_ID_BYTES);
	ticket_sign(signer, p->run_id, member, s->id.key, m.hello.ticket);
	relay_station_send(s, &m);
	if (!relay_station_read(s, &m) || m.type != RELAY_SEEN || strcmp(m.seen.at.host, "127.0.0.1") != 0)
		return false;
	memcpy(s->token, m.seen.nonce, sizeof s->token);
	s->second_port = m.seen.second_port;
	return true;
}

void relay_station_close(struct relay_station *s) {
	SSL_free(s->ssl);
	SSL_CTX_free(s->ctx);
	(void)close(s->fd);
}

void relay_station_send(struct relay_station *s, const struct relay_frame *m) {
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	size_t n = relay_frame_encode(m, bytes);
	assert_int_equal(SSL_write(s->ssl, bytes, (int)n), (int)n);
}

bool relay_station_read(struct relay_station *s, struct relay_frame *out) {
	for (;;) {
		size_t used;
		assert_ok(relay_frame_decode(s->in, s->n_in, out, &used, &et));
		if (used > 0) {
			s->n_in -= used;
			memmove(s->in, s->in + used, s->n_in);
			return true;
		}
		int n = SSL_read(s->ssl, s->in + s->n_in, (int)(sizeof s->in - s->n_in));
		if (n <= 0)
			return false;
		s->n_in += (size_t)n;
	}
}

void relay_station_call(struct relay_station *s, const struct relay_process *p, const struct relay_station *peer,
						uint64_t round) {
	relay_station_call_way(s, p, peer, WAY_FORWARD, round);
}

void relay_station_call_way(struct relay_station *s, const struct relay_process *p, const struct relay_station *peer,
							enum relay_way way, uint64_t round) {
	struct relay_frame m = {.type = RELAY_CALL,
							.call = {.peer = peer->member, .way = (uint8_t)way, .term = 0, .round = round}};
	struct pair_end a = {.member = s->member}, b = {.member = peer->member};
	memcpy(a.key, s->id.key, NET_KEY_BYTES);
	memcpy(b.key, peer->id.key, NET_KEY_BYTES);
	pair_ticket_sign(&p->run, p->run_id, 0, round, &a, &b, m.call.ticket);
	relay_station_send(s, &m);
}

void relay_link(struct relay_station *a, struct relay_station *b, const struct relay_process *p, int ends[2]) {
	relay_station_call(a, p, b, 1);
	relay_join(a, b, p, ends);
}

void relay_join(struct relay_station *a, struct relay_station *b, const struct relay_process *p, int ends[2]) {
	struct relay_frame ring[2];
	assert_true(relay_station_read(a, &ring[0]) && relay_station_read(b, &ring[1]));
	for (int e = 0; e < 2; e++) {
		assert_int_equal(ring[e].type, RELAY_RING);
		ends[e] = relay_data(p->port, RELAY_DATA, ring[e].ring.token);
	}
	for (int e = 0; e < 2; e++) {
		uint8_t go = 0;
		assert_int_equal(recv(ends[e], &go, 1, 0), 1);
		assert_int_equal(go, RELAY_GO);
	}
}
