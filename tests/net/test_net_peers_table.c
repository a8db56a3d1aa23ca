/* The mesh's members by number: any number, more of them over time than it remembers, and guests
 * that make way for those that the document names. */
#include <stdio.h>
#include <string.h>

#include "tests/common/check.h"
#include "tests/net/mesh_world.h"

enum { NODES = 3 };
static const uint32_t first = 4000000000u;

static int ups[NODES], downs[NODES], messages[NODES];
static enum rv_err down_why;

static int index_of(uint32_t member) {
	assert_in_range(member, first, first + NODES - 1);
	return (int)(member - first);
}

static bool next_message(void *ctx, uint32_t member, struct peers_message *out) {
	(void)ctx, (void)member, (void)out;
	return false;
}

static enum rv_err on_message(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	(void)ctx, (void)h, (void)body, (void)et;
	messages[index_of(member)]++;
	return RV_OK;
}

static void on_link_up(void *ctx, uint32_t member) {
	(void)ctx;
	ups[index_of(member)]++;
}

static void on_link_down(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text) {
	(void)ctx, (void)fatal, (void)text;
	downs[index_of(member)]++;
	down_why = why;
}

/* Gives the node a number of ten digits, with a ticket for it. */
static void number_high(struct peers_config *cfg, int node) {
	static const uint8_t run_seed[IDENTITY_SEED_BYTES] = {0x77}; /* as in mesh_world.c */
	struct identity run;
	identity_of_seed(run_seed, &run);
	cfg->self_member = first + (uint32_t)node;
	ticket_sign(&run, cfg->run_id, cfg->self_member, cfg->identity->key, cfg->ticket);
	cfg->owner = (struct peers_owner){.ctx = cfg->owner.ctx,
									  .next_message = next_message,
									  .on_message = on_message,
									  .on_link_up = on_link_up,
									  .on_link_down = on_link_down};
}

static struct member_ref ref_of(const struct world *w, int node) {
	struct member_ref m = w->nodes[node].ref;
	m.member = first + (uint32_t)node;
	return m;
}

static void allow(struct world *w, int at, int node) {
	const struct member_ref m = ref_of(w, node);
	peers_allow(w->nodes[at].peers, w->now_us, &m, 1);
}

static bool are_linked(struct world *w, void *nodes) {
	const int *n = nodes;
	return peers_linked(w->nodes[n[0]].peers, first + (uint32_t)n[1]) &&
		   peers_linked(w->nodes[n[1]].peers, first + (uint32_t)n[0]);
}

static void open_world(struct world *w) {
	memset(ups, 0, sizeof ups);
	memset(downs, 0, sizeof downs);
	world_init_in_memory(w, NODES, number_high);
}

static void members_of_ten_digits_link(void **state) {
	(void)state;
	struct world w;
	uint32_t list[NET_MAX_PEERS];
	open_world(&w);
	allow(&w, 0, 1);
	allow(&w, 1, 0);
	assert_true(world_until(&w, are_linked, (int[]){0, 1}));
	assert_int_equal(peers_list(w.nodes[0].peers, list), 1);
	assert_int_equal(list[0], first + 1);
	assert_true(path_is_open((uint8_t)peers_path(w.nodes[0].peers, first + 1)));
	assert_int_equal(peers_path(w.nodes[0].peers, first + 2), PATH_NONE);
	assert_false(peers_linked(w.nodes[0].peers, 1) || peers_linked(w.nodes[0].peers, NET_NO_MEMBER));
	allow(&w, 2, 0); /* node 0 knows its ticket only */
	assert_true(world_until(&w, are_linked, (int[]){0, 2}));
	assert_int_equal(peers_list(w.nodes[0].peers, list), 2);
	peers_ban(w.nodes[0].peers, w.now_us, &(struct banned){1, {first + 2}});
	assert_false(peers_linked(w.nodes[0].peers, first + 2));
	assert_int_equal(down_why, RV_E_AUTH);
	assert_true(peers_linked(w.nodes[0].peers, first + 1));
	world_release(&w);
}

/* Names `n` members from `number` on, at addresses where nobody listens. */
static void name_strangers(struct world *w, int at, uint32_t number, int n) {
	static struct member_ref refs[2 * NET_MAX_PEERS];
	for (int i = 0; i < n; i++) {
		refs[i] = (struct member_ref){.member = number + (uint32_t)i, .n_candidates = 1};
		snprintf(refs[i].candidates[0].addr, NET_ADDR_BYTES, "127.0.0.1:%d", 1 + i);
		memcpy(refs[i].key, &refs[i].member, sizeof refs[i].member);
	}
	peers_allow(w->nodes[at].peers, w->now_us, refs, n);
}

static bool lists(const struct world *w, int at, uint32_t member) {
	uint32_t list[NET_MAX_PEERS];
	bool found = false;
	for (int i = 0, n = peers_list(w->nodes[at].peers, list); i < n; i++)
		found |= list[i] == member;
	return found;
}

/* Those that are no longer named make way, the ones first that were named longest ago. */
static void more_members_over_time_than_it_remembers(void **state) {
	(void)state;
	struct world w;
	uint32_t list[NET_MAX_PEERS];
	open_world(&w);
	for (uint32_t k = 0; k < 20; k++) {
		name_strangers(&w, 0, 1000 * k, NET_MAX_ROW);
		world_advance(&w, 100 * 1000);
		int n = peers_list(w.nodes[0].peers, list);
		assert_int_equal(n, (k + 1) * NET_MAX_ROW < NET_MAX_PEERS ? (k + 1) * NET_MAX_ROW : NET_MAX_PEERS);
		for (int i = 1; i < n; i++)
			assert_true(list[i - 1] < list[i]);
		assert_true(lists(&w, 0, 1000 * k) && lists(&w, 0, 1000 * k + NET_MAX_ROW - 1));
	}
	assert_true(lists(&w, 0, 1000 * 18) && !lists(&w, 0, 1000 * 14));
	world_release(&w);
}

/* A guest keeps its link while there is room, and makes way for a member that is named. */
static void guests_make_way(void **state) {
	(void)state;
	struct world w;
	open_world(&w);
	allow(&w, 2, 0);
	assert_true(world_until(&w, are_linked, (int[]){0, 2}));
	name_strangers(&w, 0, 7, NET_MAX_PEERS - 1);
	world_advance(&w, 100 * 1000);
	assert_true(peers_linked(w.nodes[0].peers, first + 2));
	name_strangers(&w, 0, 7, NET_MAX_PEERS);
	assert_false(peers_linked(w.nodes[0].peers, first + 2));
	assert_int_equal(down_why, RV_E_FULL);
	assert_true(lists(&w, 0, 7 + NET_MAX_PEERS - 1));
	int before = ups[2];
	world_advance(&w, 2 * 1000 * 1000);
	assert_int_equal(ups[2], before);            /* it comes again, and there is no room */
	name_strangers(&w, 0, 7, NET_MAX_PEERS + 9); /* more than it deals with: the first ones */
	assert_true(lists(&w, 0, 7) && !lists(&w, 0, 7 + NET_MAX_PEERS));
	world_release(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_of_ten_digits_link),
		cmocka_unit_test(more_members_over_time_than_it_remembers),
		cmocka_unit_test(guests_make_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
