/* mesh_world.c: see mesh_world.h. */
#include "mesh_world.h"
#include "tests/common/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t the_round = 7;

static bool next_message(void *ctx, uint32_t member, struct peers_message *out) {
	struct node *n = ctx;
	struct reduce_msg m = {.round = the_round, .attempt = 1};
	if (n->pings[member] > 0) {
		n->pings[member]--;
		m.type = REDUCE_PING;
	} else if (n->bulk[member] > 0) {
		n->bulk[member]--;
		m.type = REDUCE_SCATTER;
		m.chunk = n->next_chunk[member]++;
		m.data = n->bulk_body;
		m.data_bytes = n->bulk_bytes;
	} else {
		return false;
	}
	out->header = frame_reduce_encode(&m, frame_run_tag(n->cfg.run_id));
	out->part[0] = m.data;
	out->part_bytes[0] = m.data_bytes;
	return true;
}

static bool next_control(void *ctx, uint32_t member, struct peers_message *out) {
	struct node *n = ctx;
	return n->pings[member] > 0 && next_message(ctx, member, out);
}

static bool is_awaited(void *ctx, uint32_t member) {
	const struct node *n = ctx;
	return n->awaited[member];
}

static double part_left(void *ctx, uint32_t member) {
	const struct node *n = ctx;
	return n->of_bulk[member] > 0 ? (double)n->bulk[member] / n->of_bulk[member] : 1;
}

static enum rv_err on_message(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	struct node *n = ctx;
	if (n->answer != RV_OK)
		return rv_fail(et, n->answer, "this owner takes no %s", frame_type_name(h->type));
	if (h->type == FRAME_PING) {
		n->got_pings[member]++;
		n->bulk_at_ping[member] = n->got_bulk[member];
	} else if (h->type == FRAME_SCATTER) {
		const struct node *from = &n->world->nodes[member];
		if (h->chunk != n->got_bulk[member] || h->body_bytes != from->bulk_bytes ||
			memcmp(body, from->bulk_body, h->body_bytes) != 0)
			n->bad_body = true;
		n->got_bulk[member]++;
	}
	if (n->ban_on_message)
		peers_ban(n->peers, n->world->now_us, &(struct banned){1, {member}});
	return RV_OK;
}

static void on_part(void *ctx, uint32_t member, bool bulk) {
	((struct node *)ctx)->parts[member] += bulk;
}

static void on_link_up(void *ctx, uint32_t member) {
	struct node *n = ctx;
	n->ups[member]++;
	assert_true(peers_linked(n->peers, member));
}

static void on_link_down(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text) {
	struct node *n = ctx;
	n->downs[member]++;
	n->fatals[member] += fatal;
	n->down_why[member] = why;
	snprintf(n->down_text[member], sizeof n->down_text[member], "%s", text);
	assert_false(peers_linked(n->peers, member));
}

static void on_trouble(void *ctx, enum rv_err why, const char *text) {
	struct node *n = ctx;
	n->troubles++;
	n->trouble_why = why;
	snprintf(n->trouble_text, sizeof n->trouble_text, "%s", text);
}

void world_start(struct world *w, int i) {
	struct node *n = &w->nodes[i];
	struct rv_errtext et = {0};
	enum rv_err e = peers_new(&n->cfg, &n->peers, &et);
	if (e != RV_OK)
		fail_msg("peers_new: %s", et.text);
	n->ref.member = n->member;
	n->ref.weight = 1;
	memcpy(n->ref.key, n->id.key, NET_KEY_BYTES);
	n->ref.n_candidates = 1;
	snprintf(n->ref.candidates[0].addr, sizeof n->ref.candidates[0].addr, "127.0.0.1:%u", peers_port(n->peers));
}

void world_stop(struct world *w, int i) {
	peers_free(w->nodes[i].peers);
	w->nodes[i].peers = NULL;
}

static void node_init(struct world *w, int i, void (*tweak)(struct peers_config *, int)) {
	struct node *n = &w->nodes[i];
	uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)(i + 1), 0x51};
	*n = (struct node){.world = w, .member = (uint32_t)i};
	identity_of_seed(seed, &n->id);
	n->cfg = (struct peers_config){.identity = &n->id,
								   .self_member = n->member,
								   .listen = "127.0.0.1:0",
								   .silent_us = WORLD_NEVER_US,
								   .owner = {.ctx = n,
											 .next_message = next_message,
											 .next_control = next_control,
											 .is_awaited = is_awaited,
											 .part_left = part_left,
											 .on_message = on_message,
											 .on_part = on_part,
											 .on_link_up = on_link_up,
											 .on_link_down = on_link_down,
											 .on_trouble = on_trouble}};
	memcpy(n->cfg.run_id, w->run_id, NET_RUN_ID_BYTES);
	memcpy(n->cfg.serving_key, w->run.key, NET_KEY_BYTES);
	ticket_sign(&w->run, w->run_id, n->member, n->id.key, n->cfg.ticket);
	n->cfg.pipe = w->memory != NULL ? &w->pipe : NULL;
	if (tweak != NULL)
		tweak(&n->cfg, i);
	world_start(w, i);
}

static void init(struct world *w, int n, void (*tweak)(struct peers_config *, int), struct memory_net *memory) {
	static const uint8_t run_seed[IDENTITY_SEED_BYTES] = {0x77};
	*w = (struct world){.now_us = 1000000, .n = n, .memory = memory};
	if (memory != NULL)
		w->pipe = memory_pipe(memory);
	memset(w->run_id, 0xa5, sizeof w->run_id);
	identity_of_seed(run_seed, &w->run);
	for (int i = 0; i < n; i++)
		node_init(w, i, tweak);
}

void world_init(struct world *w, int n, void (*tweak)(struct peers_config *, int)) {
	init(w, n, tweak, NULL);
}

void world_init_in_memory(struct world *w, int n, void (*tweak)(struct peers_config *, int)) {
	struct memory_net *memory = calloc(1, sizeof *memory);
	assert_non_null(memory);
	init(w, n, tweak, memory);
}

void world_release(struct world *w) {
	for (int i = 0; i < w->n; i++) {
		peers_free(w->nodes[i].peers);
		free(w->nodes[i].bulk_body);
		identity_release(&w->nodes[i].id);
	}
	identity_release(&w->run);
	if (w->memory != NULL)
		memory_release(w->memory);
	free(w->memory);
}

void world_actor(struct world *w, void (*step)(void *), void *self) {
	assert_true(w->n_actors < WORLD_MAX_ACTORS);
	w->actors[w->n_actors++] = (struct actor){step, self};
}

void world_allow(struct world *w, int at, unsigned nodes) {
	struct member_ref refs[WORLD_MAX_NODES];
	int n = 0;
	for (int i = 0; i < w->n; i++)
		if ((nodes >> i & 1) != 0)
			refs[n++] = w->nodes[i].ref;
	peers_allow(w->nodes[at].peers, w->now_us, refs, n);
}

void world_allow_all(struct world *w) {
	for (int i = 0; i < w->n; i++)
		if (w->nodes[i].peers != NULL)
			world_allow(w, i, (1u << w->n) - 1);
}

void world_step(struct world *w) {
	struct pollfd fds[WORLD_MAX_NODES * PEERS_MAX_FDS];
	int first[WORLD_MAX_NODES], count[WORLD_MAX_NODES], n = 0;
	for (int i = 0; i < w->n; i++) {
		first[i] = n;
		count[i] = w->nodes[i].peers != NULL ? peers_pollfds(w->nodes[i].peers, fds + n, PEERS_MAX_FDS) : 0;
		n += count[i];
	}
	if ((w->memory != NULL ? memory_poll(w->memory, fds, n) : poll(fds, (nfds_t)n, 1)) == 0)
		w->now_us += WORLD_STEP_US;
	for (int i = 0; i < w->n; i++)
		if (w->nodes[i].peers != NULL)
			peers_handle(w->nodes[i].peers, w->now_us, fds + first[i], count[i]);
	for (int i = 0; i < w->n_actors; i++)
		w->actors[i].step(w->actors[i].self);
}

bool world_until(struct world *w, bool (*done)(struct world *, void *), void *ctx) {
	for (int i = 0; i < WORLD_MAX_STEPS && !done(w, ctx); i++)
		world_step(w);
	return done(w, ctx);
}

void world_advance(struct world *w, int64_t us) {
	int64_t end = w->now_us + us;
	while (w->now_us < end) {
		w->now_us += us / 20 + 1;
		world_step(w);
		world_step(w);
	}
}

bool world_all_linked(struct world *w, void *ctx) {
	(void)ctx;
	for (int i = 0; i < w->n; i++)
		for (int j = 0; j < w->n; j++)
			if (i != j && w->nodes[i].peers != NULL && w->nodes[j].peers != NULL &&
				!peers_linked(w->nodes[i].peers, (uint32_t)j))
				return false;
	return true;
}

bool world_trouble(struct world *w, void *node) {
	(void)w;
	return ((struct node *)node)->troubles > 0;
}

bool world_quiet_bulk(struct world *w, void *ctx) {
	(void)ctx;
	for (int i = 0; i < w->n; i++)
		for (int j = 0; j < w->n; j++)
			if (w->nodes[i].bulk[j] > 0 || w->nodes[i].pings[j] > 0 ||
				w->nodes[j].got_bulk[i] != w->nodes[i].next_chunk[j])
				return false;
	return true;
}

int count_fds(void) {
	DIR *dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	int n = 0;
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static void link_all(struct world *w) {
	world_allow_all(w);
	assert_true(world_until(w, world_all_linked, NULL));
}

void world_link(struct world *w, int n) {
	world_init(w, n, NULL);
	link_all(w);
}

void world_link_in_memory(struct world *w, int n) {
	world_init_in_memory(w, n, NULL);
	link_all(w);
}
