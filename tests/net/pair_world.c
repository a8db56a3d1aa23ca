/* pair_world.c: see pair_world.h. */
#include "pair_world.h"

#include "tests/common/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the relay ---- */

/* Whole segments: on loopback there is room in the socket for what little these tests send at
 * once, and the rest is left in the source's buffer. */
static void forward(struct relay *r, int from, int to) {
	uint8_t bytes[16384];
	ssize_t n = recv(from, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return;
	ssize_t sent = send(to, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent <= 0)
		return;
	assert_int_equal(recv(from, bytes, (size_t)sent, 0), sent);
	r->forwarded += (uint64_t)sent;
	r->saw_the_text = r->saw_the_text || memmem(bytes, (size_t)sent, "plain text of a frame", 21) != NULL;
}

static bool is_whole(const struct relay *r, int i) {
	return r->got[i] == PREAMBLE_BYTES;
}

static void relay_step(void *self) {
	struct relay *r = self;
	for (int fd; r->n < MAX_LINES && (fd = accept4(r->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0;)
		r->lines[r->n++] = fd;
	for (int i = 0; i < r->n; i++) {
		ssize_t n = is_whole(r, i) ? 0 : recv(r->lines[i], r->shown[i] + r->got[i], PREAMBLE_BYTES - r->got[i], 0);
		r->got[i] += n > 0 ? (size_t)n : 0;
		if (r->hangs_up && is_whole(r, i))
			shutdown(r->lines[i], SHUT_RDWR);
	}
	int a = r->n - 2, b = r->n - 1;
	if (r->hangs_up || a < 0 || !is_whole(r, a) || !is_whole(r, b))
		return;
	if (r->go != r->n && r->answer != 0) {
		assert_memory_equal(r->shown[a], r->shown[b], PREAMBLE_BYTES);
		assert_int_equal(send(r->lines[a], &r->answer, 1, 0), 1);
		assert_int_equal(send(r->lines[b], &r->answer, 1, 0), 1);
		r->go = r->n;
	}
	if (r->go == r->n && !r->drops) {
		forward(r, r->lines[a], r->lines[b]);
		forward(r, r->lines[b], r->lines[a]);
	}
}

void relay_open(struct world *w, struct relay *r) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof sa;
	*r = (struct relay){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .answer = 1};
	assert_int_equal(bind(r->fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(r->fd, SOMAXCONN), 0);
	assert_int_equal(getsockname(r->fd, (struct sockaddr *)&sa, &n), 0);
	r->port = ntohs(sa.sin_port);
	world_actor(w, relay_step, r);
}

void relay_cut(struct relay *r) {
	for (int i = 0; i < r->n; i++)
		shutdown(r->lines[i], SHUT_RDWR);
}

void relay_release(struct relay *r) {
	for (int i = 0; i < r->n; i++)
		close(r->lines[i]);
	close(r->fd);
}

/* ---- two nodes that cannot be dialed ---- */

struct asked asked[WORLD_MAX_NODES], upgrades[WORLD_MAX_NODES];
struct ended ended[WORLD_MAX_NODES];

static void note_asked(void *ctx, uint32_t member, enum peers_need need) {
	const struct node *n = ctx;
	struct asked *a = need == PEERS_UNREACHED ? &asked[n->member] : &upgrades[n->member];
	assert_int_equal(member, 1 - n->member);
	if (a->n < MAX_ASKED)
		a->at_us[a->n] = n->world->now_us;
	a->n++;
}

static void note_ended(void *ctx, uint32_t member, const struct route *route, int64_t lived_us, bool failed) {
	const struct node *n = ctx;
	struct ended *e = &ended[n->member];
	assert_int_equal(member, 1 - n->member);
	*e = (struct ended){
		.n = e->n + 1, .failed = e->failed + failed, .kind = route->kind, .port = route->at.port, .lived_us = lived_us};
}

void ask_owner(struct peers_config *cfg, int node) {
	cfg->owner.on_unreached = note_asked;
	cfg->owner.on_route_end = note_ended;
	ended[node] = (struct ended){0};
	asked[node] = upgrades[node] = (struct asked){0};
}

void two_behind_routers(struct world *w, struct relay *r, void (*tweak)(struct peers_config *, int)) {
	world_init(w, 2, tweak);
	relay_open(w, r);
	for (int i = 0; i < 2; i++)
		w->nodes[i].ref.n_candidates = 0;
	world_allow_all(w);
}

int lower_of(const struct world *w) {
	return memcmp(w->nodes[0].id.key, w->nodes[1].id.key, NET_KEY_BYTES) < 0 ? 0 : 1;
}

struct route by_relay(const struct relay *r, uint8_t call) {
	struct route route = {.kind = ROUTE_RELAY, .at = {.host = "127.0.0.1", .port = r->port}};
	memset(route.token, call, sizeof route.token);
	return route;
}

void offer_both(struct world *w, const struct route *route, bool taken) {
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(peers_offer_route(w->nodes[i].peers, w->now_us, 1 - i, route), taken);
}

void link_by_relay(struct world *w, struct relay *r, void (*tweak)(struct peers_config *, int)) {
	two_behind_routers(w, r, tweak);
	const struct route route = by_relay(r, 7);
	offer_both(w, &route, true);
	assert_true(world_until(w, world_all_linked, NULL));
}

enum path_kind path_at(const struct world *w, uint32_t node) {
	return peers_path(w->nodes[node].peers, 1 - node);
}

void pair_end(struct world *w, struct relay *r) {
	world_release(w);
	relay_release(r);
}
