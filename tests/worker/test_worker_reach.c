/* test_worker_reach.c: stations, reflections and openings of two workers at a real relay, on
 * loopback (worker/reach/reach.h). */
#include "tests/common/check.h"
#include "tests/coordinator/relay_client.h"
#include "worker/reach/reach.h"

#include "base/clock.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 2, STEPS_MS = 20, PATIENCE_US = 120 * RV_US_PER_S };

struct node {
	struct world *world;
	uint32_t member;
	struct identity id;
	uint8_t ticket[NET_SIG_BYTES];
	struct peers *peers;
	struct reach *reach;
	uint64_t asked;
	int ups, downs, openings;
	struct reach_mapping mapping;
	char text[RV_ERRTEXT_BYTES];
};

struct world {
	struct relay_process relay;
	struct node nodes[WORKERS];
	struct document doc;
};

/* ---- the neighbours of a node ---- */

static bool no_message(void *ctx, uint32_t member, struct peers_message *out) {
	(void)ctx, (void)member, (void)out;
	return false;
}

static enum rv_err on_message(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	(void)ctx, (void)member, (void)h, (void)body, (void)et;
	return RV_OK;
}

static void on_link_up(void *ctx, uint32_t member) {
	(void)ctx, (void)member;
}

static void on_link_down(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text) {
	(void)ctx, (void)member, (void)fatal, (void)why, (void)text;
}

static void ask_tickets(void *ctx, const uint32_t *peers, int n) {
	for (int i = 0; i < n; i++)
		((struct node *)ctx)->asked |= UINT64_C(1) << peers[i];
}

static void tell(void *ctx, const struct reach_event *e) {
	struct node *n = ctx;
	n->ups += e->type == REACH_SAYS_UP;
	n->downs += e->type == REACH_SAYS_DOWN;
	n->openings += e->type == REACH_SAYS_OPENING;
	if (e->type == REACH_SAYS_MAPPING)
		n->mapping = *e->mapping;
	(void)snprintf(n->text, sizeof n->text, "%s", e->text);
}

static bool coordinator_at(void *ctx, struct address *out) {
	(void)ctx, (void)out;
	return false;
}

/* ---- the world ---- */

static void open_mesh(struct world *w, struct node *n) {
	struct peers_config cfg = {.identity = &n->id,
							   .self_member = n->member,
							   .listen = "127.0.0.1:0",
							   .owner = {.ctx = n,
										 .next_message = no_message,
										 .on_message = on_message,
										 .on_link_up = on_link_up,
										 .on_link_down = on_link_down}};
	memcpy(cfg.run_id, w->relay.run_id, NET_RUN_ID_BYTES);
	memcpy(cfg.serving_key, w->relay.run.key, NET_KEY_BYTES);
	memcpy(cfg.ticket, n->ticket, NET_SIG_BYTES);
	assert_ok(peers_new(&cfg, &n->peers, &et));
}

static void open_node(struct world *w, uint32_t member) {
	struct node *n = &w->nodes[member];
	uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)(member + 1)};
	n->world = w;
	n->member = member;
	identity_of_seed(seed, &n->id);
	ticket_sign(&w->relay.run, w->relay.run_id, member, n->id.key, n->ticket);
	open_mesh(w, n);
	struct reach_shell_config cfg = {
		.identity = &n->id,
		.peers = n->peers,
		.hello = {.version = RELAY_VERSION, .member = member},
		.owner = {.ctx = n, .ask_tickets = ask_tickets, .tell = tell, .coordinator_at = coordinator_at}};
	memcpy(cfg.hello.run_id, w->relay.run_id, NET_RUN_ID_BYTES);
	memcpy(cfg.hello.ticket, n->ticket, NET_SIG_BYTES);
	assert_ok(reach_new(&cfg, &n->reach, &et));
}

static void follow(struct world *w) {
	int64_t now_us = rv_clock_monotonic_us();
	for (int i = 0; i < WORKERS; i++) {
		reach_core_follow(reach_core_of(w->nodes[i].reach), now_us, &w->doc);
		peers_allow(w->nodes[i].peers, now_us, w->doc.members, w->doc.n_members);
	}
}

/* `host`: of the relay, which runs. */
static void open_nodes(struct world *w, const char *host) {
	w->doc.n_relays = 1;
	memcpy(w->doc.relays[0].key, w->relay.key, NET_KEY_BYTES);
	(void)snprintf(w->doc.relays[0].addr, NET_ADDR_BYTES, "%s:%u", host, w->relay.port);
	for (uint32_t m = 0; m < WORKERS; m++) {
		open_node(w, m);
		struct member_ref *ref = &w->doc.members[w->doc.n_members++];
		*ref = (struct member_ref){.member = m, .relay = 1}; /* without a candidate: nobody dials it */
		memcpy(ref->key, w->nodes[m].id.key, NET_KEY_BYTES);
	}
	follow(w);
}

static void open_world(struct world *w, const char *host) {
	memset(w, 0, sizeof *w);
	relay_process_start(&w->relay, (const char *const[]){NULL});
	open_nodes(w, host);
}

static void close_world(struct world *w) {
	for (int i = 0; i < WORKERS; i++) {
		reach_free(w->nodes[i].reach);
		peers_free(w->nodes[i].peers);
	}
	if (w->relay.pid > 0)
		assert_int_equal(relay_process_stop(&w->relay), 0);
}

static struct pair_end end_of(const struct node *n) {
	struct pair_end e = {.member = n->member};
	memcpy(e.key, n->id.key, NET_KEY_BYTES);
	return e;
}

/* Answers as the coordinator. */
static void give_tickets(struct node *n) {
	struct pair_reply reply = {.term = 0, .round = 1};
	for (uint32_t m = 0; m < WORKERS; m++) {
		if ((n->asked >> m & 1) == 0)
			continue;
		const struct pair_end a = end_of(n), b = end_of(&n->world->nodes[m]);
		struct pair_ticket *t = &reply.tickets[reply.n++];
		t->peer = m;
		pair_ticket_sign(&n->world->relay.run, n->world->relay.run_id, reply.term, reply.round, &a, &b, t->signature);
	}
	n->asked = 0;
	reach_core_tickets(reach_core_of(n->reach), rv_clock_monotonic_us(), &reply);
}

static void step(struct world *w) {
	struct pollfd fds[WORKERS][REACH_MAX_FDS + PEERS_MAX_FDS], all[WORKERS * (REACH_MAX_FDS + PEERS_MAX_FDS)];
	int n_reach[WORKERS], n[WORKERS], n_all = 0;
	for (int i = 0; i < WORKERS; i++) {
		struct node *k = &w->nodes[i];
		n_reach[i] = reach_pollfds(k->reach, fds[i]);
		n[i] = n_reach[i] + peers_pollfds(k->peers, fds[i] + n_reach[i], PEERS_MAX_FDS);
		memcpy(all + n_all, fds[i], (size_t)n[i] * sizeof fds[i][0]);
		n_all += n[i];
	}
	(void)poll(all, (nfds_t)n_all, STEPS_MS);
	int64_t now_us = rv_clock_monotonic_us();
	for (int i = 0, at = 0; i < WORKERS; at += n[i++]) {
		struct node *k = &w->nodes[i];
		reach_handle(k->reach, now_us, all + at);
		peers_handle(k->peers, now_us, all + at + n_reach[i], n[i] - n_reach[i]);
		if (k->asked != 0)
			give_tickets(k);
	}
}

static void wait_for(struct world *w, bool (*condition)(const struct world *w)) {
	int64_t end_us = rv_clock_monotonic_us() + PATIENCE_US;
	while (!condition(w)) {
		assert_true(rv_clock_monotonic_us() < end_us);
		step(w);
	}
}

static bool know_their_mappings(const struct world *w) {
	bool all = true;
	for (int i = 0; i < WORKERS; i++) {
		const struct reach_core *core = reach_core_of(w->nodes[i].reach);
		all = all && w->nodes[i].mapping.at.port != 0 && reach_core_proof(core, REACH_V4) != NULL;
	}
	return all;
}

static bool are_linked(const struct world *w) {
	return peers_linked(w->nodes[0].peers, 1) && peers_linked(w->nodes[1].peers, 0);
}

/* ---- tests ---- */

static void the_port_of_the_mesh_is_reflected_and_proven(void **state) {
	(void)state;
	struct world w;
	open_world(&w, "127.0.0.1");
	wait_for(&w, know_their_mappings);
	for (int i = 0; i < WORKERS; i++) {
		const struct node *n = &w.nodes[i];
		const struct reach_proof *p = reach_core_proof(reach_core_of(n->reach), REACH_V4);
		char addr[NET_ADDR_BYTES];
		assert_int_equal(n->mapping.at.port, peers_port(n->peers));
		assert_int_equal(n->mapping.kind, REACH_MAPPING_INDEPENDENT);
		assert_true(address_format(&p->at, addr));
		assert_true(seen_verify(w.relay.key, w.relay.run_id, n->id.key, addr, p->unix_s, p->signature));
		assert_int_equal(reach_core_relay(reach_core_of(n->reach)), 1);
	}
	close_world(&w);
}

/* Returns true if the kernel still keeps a connection from this port, in whatever state, that no
 * process has any more: by now the port may be another program's. */
static bool has_connection_from(uint16_t port) {
	FILE *f = fopen("/proc/self/net/tcp", "r");
	char line[256];
	unsigned local = 0, remote = 0, found = 0;
	unsigned long inode = 0;
	assert_non_null(f);
	while (fgets(line, sizeof line, f) != NULL)
		/* sl: local:port remote:port state queues timer retransmits uid timeout inode */
		if (sscanf(line, " %*u: %*x:%x %*x:%x %*x %*x:%*x %*x:%*x %*x %*u %*d %lu", &local, &remote, &inode) == 3)
			found += local == port && remote != 0 && inode == 0;
	(void)fclose(f);
	return found > 0;
}

/* A worker that is killed and started again reflects from the same port: nothing of the former
 * process is in the way. A child plays it, because only the end of a process closes as it does. */
static void the_port_is_free_when_the_process_is_killed(void **state) {
	(void)state;
	struct world w = {0};
	int told[2], status;
	uint16_t port = 0;
	relay_process_start(&w.relay, (const char *const[]){NULL});
	assert_int_equal(pipe(told), 0);
	pid_t child = fork();
	if (child == 0) {
		open_nodes(&w, "127.0.0.1");
		wait_for(&w, know_their_mappings);
		port = peers_port(w.nodes[0].peers);
		(void)kill(w.relay.pid, SIGSTOP); /* it cannot close first */
		_exit(write(told[1], &port, sizeof port) == sizeof port ? 0 : 1);
	}
	assert_int_equal(read(told[0], &port, sizeof port), sizeof port);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(has_connection_from(port));
	(void)close(told[0]);
	(void)close(told[1]);
	(void)kill(w.relay.pid, SIGCONT);
	assert_int_equal(relay_process_stop(&w.relay), 0);
}

static void two_meet_by_an_opening(void **state) {
	(void)state;
	struct world w;
	open_world(&w, "127.0.0.1");
	wait_for(&w, know_their_mappings);
	reach_core_want(reach_core_of(w.nodes[0].reach), rv_clock_monotonic_us(), 1, false);
	wait_for(&w, are_linked);
	for (int i = 0; i < WORKERS; i++) {
		assert_int_not_equal(peers_path(w.nodes[i].peers, (uint32_t)!i), PATH_RELAYED);
		assert_int_equal(w.nodes[i].openings, 1);
	}
	assert_int_equal(peers_relayed(w.nodes[0].peers).tx_bytes, 0);
	close_world(&w);
}

static bool are_up(const struct world *w) {
	return w->nodes[0].ups > 0 && w->nodes[1].ups > 0;
}

static void a_relay_may_have_a_name(void **state) {
	(void)state;
	struct world w;
	open_world(&w, "localhost");
	wait_for(&w, are_up);
	close_world(&w);
}

static bool one_is_down(const struct world *w) {
	return w->nodes[0].downs > 0;
}

static void another_key_is_refused(void **state) {
	(void)state;
	struct world w;
	open_world(&w, "127.0.0.1");
	w.doc.relays[0].key[0] ^= 1;
	follow(&w);
	wait_for(&w, one_is_down);
	assert_non_null(strstr(w.nodes[0].text, "does not hold the key"));
	close_world(&w);
}

static void a_name_that_nobody_has_is_told(void **state) {
	(void)state;
	struct world w;
	open_world(&w, "no-such-relay.invalid");
	wait_for(&w, one_is_down);
	assert_true(strlen(w.nodes[0].text) > 0);
	close_world(&w);
}

static void a_relay_that_ends_is_noticed(void **state) {
	(void)state;
	struct world w;
	open_world(&w, "127.0.0.1");
	wait_for(&w, know_their_mappings);
	assert_int_equal(relay_process_stop(&w.relay), 0);
	w.relay.pid = 0;
	wait_for(&w, one_is_down);
	for (int i = 0; i < 20; i++)
		step(&w);
	assert_int_equal(reach_core_relay(reach_core_of(w.nodes[0].reach)), 0);
	close_world(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_port_of_the_mesh_is_reflected_and_proven),
		cmocka_unit_test(the_port_is_free_when_the_process_is_killed),
		cmocka_unit_test(two_meet_by_an_opening),
		cmocka_unit_test(a_relay_may_have_a_name),
		cmocka_unit_test(another_key_is_refused),
		cmocka_unit_test(a_name_that_nobody_has_is_told),
		cmocka_unit_test(a_relay_that_ends_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
