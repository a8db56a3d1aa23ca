/* test_worker_allreduce.c: the all-reduce of real workers (worker/mesh/allreduce.h) over real links
 * with TLS on loopback, in rows and columns: 2 x 2 and 3 x 3 workers end with the lab's bytes, also
 * when one dies on the way. */
#include "net/control/rows_view.h"
#include "tests/common/check.h"
#include "tests/net/mesh_world.h"
#include "worker/mesh/allreduce.h"

#include "base/rng.h"
#include "base/rows.h"
#include "base/slow_lines.h"
#include "outer/committer.h"
#include "outer/recode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX = WORLD_MAX_NODES, CHUNKS = 24, ELEMS = 256, ROUND = 5 };

struct worker {
	struct allreduce *reduce;
	struct document view;
	uint8_t *own;
	bool alive;
	struct rv_hash nodes[2 * CHUNKS + MERKLE_LEVELS]; /* the tree of `own` */
};

static struct world w;
static struct worker workers[MAX];
static struct global_config cfg;
static struct rows_plan plan;
static struct member_ref members[MAX];
static int node_at[MAX]; /* by place */

/* A member that sends values of its own in the place of partial sums or means. */
static struct {
	int node; /* -1: none */
	uint8_t type;
	bool column;
	float value;
	float sum[ELEMS];
	uint8_t mean[2 * ELEMS];
} spoiler = {.node = -1};

/* Signs the sums that the spoiler gives the member instead of its own. */
static void sign_again(int node, uint32_t member, struct reduce_msg *m) {
	static uint8_t bytes[SEAL_BYTES];
	struct seal_scope scope = {.round = m->round, .attempt = m->attempt, .kind = SEAL_SUMS};
	struct merkle_sum sum = {.n = 0};
	struct seal seal;
	int row = 0, j = 0;
	while (member >= plan.first[row + 1])
		row++;
	while (plan.columns[j].first != m->section)
		j++;
	for (uint32_t c = m->section; c < m->section + plan.columns[j].count; c++) {
		if ((int)(c % plan.n_rows) != row)
			continue;
		const struct rv_hash leaf = merkle_leaf(c, spoiler.sum, sizeof spoiler.sum);
		scope.first = sum.n == 0 ? c : scope.first;
		merkle_add(&sum, &leaf);
	}
	const struct rv_hash root = merkle_sum_root(&sum);
	seal_sign(&w.nodes[node].id, &scope, &root, &seal);
	memcpy(bytes, seal.root.b, RV_HASH_BYTES);
	memcpy(bytes + RV_HASH_BYTES, seal.signature, NET_SIG_BYTES);
	m->data = bytes;
}

static void spoil(int node, uint32_t member, struct reduce_msg *m) {
	for (int k = 0; k < ELEMS; k++)
		spoiler.sum[k] = spoiler.value;
	if (node == spoiler.node && spoiler.type == REDUCE_SCATTER && m->type == REDUCE_SUMS)
		sign_again(node, member, m);
	if (node != spoiler.node || m->type != spoiler.type || m->column != spoiler.column)
		return;
	assert_ok(cfg.codec->encode(cfg.codec, spoiler.sum, ELEMS, spoiler.mean, &et));
	const bool sums = m->type == REDUCE_SCATTER;
	m->data = sums ? (const uint8_t *)spoiler.sum : spoiler.mean;
	m->data_bytes = (uint32_t)(sums ? sizeof spoiler.sum : cfg.codec->encoded_bytes(cfg.codec, ELEMS));
}

/* ---- as worker/mesh/meshlink.c ---- */

static bool next_frame(struct node *n, uint32_t member, bool bulk, struct peers_message *out) {
	struct worker *me = &workers[n->member];
	struct reduce_msg m;
	if (!(bulk ? allreduce_send : allreduce_send_control)(me->reduce, w.now_us, member, &m))
		return false;
	spoil((int)n->member, member, &m);
	*out = (struct peers_message){
		.header = frame_reduce_encode(&m, frame_run_tag(w.run_id)), .part = {m.data}, .part_bytes = {m.data_bytes}};
	return true;
}

static bool next_message(void *ctx, uint32_t member, struct peers_message *out) {
	return next_frame(ctx, member, true, out);
}

static bool next_control(void *ctx, uint32_t member, struct peers_message *out) {
	return next_frame(ctx, member, false, out);
}

static enum rv_err on_message(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	const struct node *n = ctx;
	struct reduce_msg m;
	if (!frame_is_reduce(h->type))
		return RV_OK;
	frame_reduce_decode(h, body, &m);
	return allreduce_receive(workers[n->member].reduce, w.now_us, member, &m, et);
}

static void on_part(void *ctx, uint32_t member, bool bulk) {
	allreduce_part(workers[((struct node *)ctx)->member].reduce, w.now_us, member, bulk);
}

static void on_link_up(void *ctx, uint32_t member) {
	allreduce_link_up(workers[((struct node *)ctx)->member].reduce, w.now_us, member);
}

static void on_link_down(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text) {
	if (why == RV_E_PROTOCOL || why == RV_E_CORRUPT)
		fail_msg("%s", text);
	allreduce_link_down(workers[((struct node *)ctx)->member].reduce, w.now_us, member, fatal);
}

static void on_trouble(void *ctx, enum rv_err why, const char *text) {
	(void)ctx;
	(void)why;
	(void)text;
}

static void tweak(struct peers_config *c, int node) {
	(void)node;
	c->owner = (struct peers_owner){.ctx = c->owner.ctx,
									.next_message = next_message,
									.next_control = next_control,
									.on_message = on_message,
									.on_part = on_part,
									.on_link_up = on_link_up,
									.on_link_down = on_link_down,
									.on_trouble = on_trouble};
}

static void tick_all(void *self) {
	(void)self;
	for (int i = 0; i < w.n; i++) {
		if (!workers[i].alive)
			continue;
		allreduce_tick(workers[i].reduce, w.now_us);
		peers_pump(w.nodes[i].peers, w.now_us);
	}
}

/* ---- the workers ---- */

static void make_contribution(int i) {
	float x[ELEMS];
	struct rv_rng rng = rv_rng_of((uint64_t)i, 9);
	workers[i].own = malloc(chunking_total_bytes(&cfg.chunks, cfg.codec));
	assert_non_null(workers[i].own);
	for (uint32_t c = 0; c < CHUNKS; c++) {
		for (int k = 0; k < ELEMS; k++)
			x[k] = (float)rv_rng_double(&rng) - 0.5f;
		assert_ok(cfg.codec->encode(cfg.codec, x, ELEMS,
									workers[i].own + chunking_offset_bytes(&cfg.chunks, cfg.codec, c), &et));
	}
	committer_tree(&cfg.chunks, cfg.codec, workers[i].own, workers[i].nodes);
}

static void begin_world(int n, int row_size) {
	static struct mean_residual no_residual;
	cfg = (struct global_config){.n = CHUNKS * ELEMS,
								 .chunks = chunking_of(CHUNKS * ELEMS, ELEMS),
								 .codec = &codec_int8,
								 .merge = &merge_clipped,
								 .merge_params = {.clip = 1.25}};
	world_init(&w, n, tweak);
	world_actor(&w, tick_all, NULL);
	for (int i = 0; i < n; i++) {
		const struct allreduce_config c = {.global = &cfg,
										   .mean_residual = &no_residual,
										   .self_member = (uint32_t)i,
										   .silence = {.silent = 4000, .ping = 1000, .withheld = 8000},
										   .seals = seal_ed25519(&w.nodes[i].id)};
		workers[i] = (struct worker){.alive = true};
		assert_ok(allreduce_new(&c, &workers[i].reduce, &et));
		make_contribution(i);
	}
	plan = (struct rows_plan){.n_rows = (uint8_t)rows_choose(n, row_size), .members = members};
	for (int row = 0; row <= plan.n_rows; row++)
		plan.first[row] = (uint16_t)rows_first(n, plan.n_rows, row);
	rows_plan_columns(&plan, CHUNKS, n / plan.n_rows);
	for (int i = 0; i < n; i++) {
		members[i] = w.nodes[i].ref;
		members[i].weight = 1 + (uint32_t)i % 3;
		node_at[i] = i;
	}
	for (int row = 0; row < plan.n_rows; row++)
		plan.since[row] = 1;
}

static void end_world(void) {
	world_release(&w);
	for (int i = 0; i < w.n; i++) {
		allreduce_free(workers[i].reduce);
		free(workers[i].own);
	}
}

/* A roster of one row, of which rows_view makes no document. */
static void view_one_row(struct document *d) {
	d->n_rows = 1;
	d->n_members = d->n_roster = plan.first[1];
	memcpy(d->members, members, d->n_members * sizeof members[0]);
	for (d->n_ranges = 0; d->n_ranges < plan.n_columns; d->n_ranges++) {
		const struct rows_column *c = &plan.columns[d->n_ranges];
		d->ranges[d->n_ranges] = (struct owner_range){c->first, c->count, c->owner[0]};
	}
	d->n_chunks = CHUNKS;
}

static void follow(int place, uint32_t attempt) {
	const int i = node_at[place];
	struct worker *me = &workers[i];
	struct member_ref linked[DOCUMENT_MAX_LINKED];
	memset(&me->view, 0, sizeof me->view);
	me->view.phase = RUN_REDUCE;
	me->view.round = ROUND;
	me->view.attempt = attempt;
	if (plan.n_rows > 1)
		rows_view(&plan, place, &me->view);
	else
		view_one_row(&me->view);
	peers_allow(w.nodes[i].peers, w.now_us, linked, document_linked(&me->view, linked));
	if (attempt == 1)
		assert_ok(allreduce_start(me->reduce, w.now_us, &me->view,
								  &(struct allreduce_inputs){.own = me->own, .own_nodes = me->nodes}, &et));
	else
		assert_ok(allreduce_restart(me->reduce, w.now_us, &me->view, &et));
	for (uint32_t m = 0; m < (uint32_t)w.n; m++)
		if (peers_linked(w.nodes[i].peers, m))
			allreduce_link_up(me->reduce, w.now_us, m);
}

/* Each has committed to its contribution as its codec makes it. */
static void commit_all(void) {
	static uint8_t sent[CHUNKS * ELEMS * sizeof(float)];
	static float values[ELEMS];
	for (int p = 0; p < plan.first[plan.n_rows]; p++) {
		const struct codec *as = global_sent_as(&cfg, members[p].codec);
		struct rv_hash nodes[2 * CHUNKS + MERKLE_LEVELS];
		assert_ok(recode_vector(&cfg.chunks, cfg.codec, as, workers[node_at[p]].own, sent, values, &et));
		committer_tree(&cfg.chunks, as, sent, nodes);
		members[p].contribution.root = merkle_root(nodes, CHUNKS);
	}
}

static void follow_all(uint32_t attempt) {
	commit_all();
	for (int place = 0; place < plan.first[plan.n_rows]; place++)
		follow(place, attempt);
}

static bool all_done(struct world *world, void *ctx) {
	(void)ctx;
	for (int i = 0; i < world->n; i++)
		if (workers[i].alive && !allreduce_done(workers[i].reduce))
			return false;
	return true;
}

/* Sets what each place sends: its contribution as its codec. */
static void make_sent(uint8_t *sent[MAX], const struct codec *codecs[MAX], float *values) {
	for (int p = 0; p < plan.first[plan.n_rows]; p++) {
		codecs[p] = global_sent_as(&cfg, members[p].codec);
		sent[p] = malloc(chunking_total_bytes(&cfg.chunks, cfg.codec));
		assert_ok(recode_vector(&cfg.chunks, cfg.codec, codecs[p], workers[node_at[p]].own, sent[p], values, &et));
	}
}

/* The mean of a chunk of a roster of one row, of those that contribute to it. */
static void mean_in_a_row(uint32_t c, uint8_t *const *sent, const struct codec *const *codecs, float *scratch,
						  uint8_t *want) {
	struct merge_rule rule = global_merge(&cfg);
	const struct codec *used[MAX];
	const uint8_t *in[MAX];
	uint32_t weights[MAX];
	int n = 0;
	for (int p = 0; p < plan.first[1]; p++) {
		if (!slow_contributes(members[p].part, members[p].member, ROUND, c))
			continue;
		in[n] = sent[p] + chunking_offset_bytes(&cfg.chunks, codecs[p], c);
		used[n] = codecs[p];
		weights[n++] = members[p].weight;
	}
	rule.codecs = used;
	assert_ok(merge_chunk(&rule, in, weights, n, ELEMS, scratch, NULL, want, NULL, &et));
}

/* The lab's bytes: merge_roster over the plan. */
static void check_results(void) {
	struct merge_rule rule = global_merge(&cfg);
	const struct codec *codecs[MAX];
	uint8_t *sent[MAX];
	struct merge_layout l = {.n_rows = plan.n_rows};
	const int n = plan.first[plan.n_rows];
	uint32_t weights[MAX];
	uint8_t want[2 * ELEMS];
	for (int row = 0; row < plan.n_rows; row++)
		l.length[row] = plan.first[row + 1] - plan.first[row];
	float *scratch = malloc(merge_roster_scratch(&rule, &l, ELEMS) * sizeof *scratch);
	make_sent(sent, codecs, scratch);
	rule.codecs = codecs;
	for (uint32_t c = 0; c < CHUNKS; c++) {
		const size_t at = chunking_offset_bytes(&cfg.chunks, cfg.codec, c);
		const uint8_t *in[MAX];
		for (int p = 0; p < n; p++) {
			in[p] = sent[p] + chunking_offset_bytes(&cfg.chunks, codecs[p], c);
			weights[p] = members[p].weight;
		}
		if (plan.n_rows > 1)
			assert_ok(merge_roster(&rule, &l, in, weights, ELEMS, scratch, NULL, want, &et));
		else
			mean_in_a_row(c, sent, codecs, scratch, want);
		for (int p = 0; p < n; p++)
			assert_memory_equal(allreduce_reduced(workers[node_at[p]].reduce) + at, want,
								cfg.codec->encoded_bytes(cfg.codec, ELEMS));
	}
	for (int p = 0; p < n; p++)
		free(sent[p]);
	free(scratch);
}

static void test_rows_end_with_the_labs_bytes(void **state) {
	(void)state;
	for (int side = 2; side <= 3; side++) {
		begin_world(side * side, side);
		assert_int_equal(plan.n_rows, side);
		follow_all(1);
		assert_true(world_until(&w, all_done, NULL));
		check_results();
		for (int i = 0; i < w.n; i++) {
			const struct reduce_info info = allreduce_info(workers[i].reduce);
			assert_int_equal(info.world, side * side);
			assert_int_equal(allreduce_row_members(workers[i].reduce), side);
			assert_true(allreduce_measured(workers[i].reduce)->norm2[0] > 0);
			assert_int_equal(allreduce_stands_out(workers[i].reduce), -1);
			/* Nobody is linked beyond its row and column. */
			int links = 0;
			for (uint32_t m = 0; m < (uint32_t)w.n; m++)
				links += peers_linked(w.nodes[i].peers, m);
			assert_int_equal(links, 2 * (side - 1));
		}
		end_world();
	}
}

/* ---- slow lines ---- */

/* Codecs in rows; in one row also parts, of which one participant sends none. */
static void test_slow_members_send_less(void **state) {
	(void)state;
	static const uint8_t codecs[] = {0, 3, 8, 0, 9, 3, 0, 0, 7}, parts[] = {2, 0, 3, 0};
	for (int n = 4; n <= 9; n += 5) {
		begin_world(n, n == 4 ? 4 : 3);
		for (int i = 0; i < n; i++) {
			members[i].codec = codecs[i];
			members[i].part = n == 4 ? parts[i] : 0;
		}
		follow_all(1);
		assert_true(world_until(&w, all_done, NULL));
		check_results();
		const uint64_t whole = allreduce_info(workers[n == 4 ? 3 : 0].reduce).tx_bytes;
		assert_true(allreduce_info(workers[2].reduce).tx_bytes < whole);
		end_world();
	}
}

/* A codec that is finer than the run's, or none: the document is refused. */
static void test_an_unknown_codec_is_refused(void **state) {
	(void)state;
	begin_world(4, 2);
	for (uint8_t codec = 2; codec < 255; codec = codec == 2 ? 200 : 255) {
		struct rv_errtext text = {0};
		members[1].codec = codec;
		memset(&workers[0].view, 0, sizeof workers[0].view);
		workers[0].view.phase = RUN_REDUCE;
		workers[0].view.round = ROUND;
		workers[0].view.attempt = 1;
		rows_view(&plan, 0, &workers[0].view);
		assert_int_equal(
			allreduce_start(workers[0].reduce, 0, &workers[0].view,
							&(struct allreduce_inputs){.own = workers[0].own, .own_nodes = workers[0].nodes}, &text),
			RV_E_INVALID);
		assert_non_null(strstr(text.text, "no codec that is coarser than the run's, int8"));
	}
	end_world();
}

/* ---- a death ---- */

static bool is_accused(struct world *world, void *ctx) {
	const uint32_t dead = *(const uint32_t *)ctx;
	for (int i = 0; i < world->n; i++) {
		uint32_t silent[NET_MAX_ROW];
		const int n = workers[i].alive ? allreduce_silent_members(workers[i].reduce, silent) : 0;
		for (int k = 0; k < n; k++) {
			assert_int_equal(silent[k], dead);
			return true;
		}
	}
	return false;
}

/* Leaves `dead` out of the plan; the first of its row owns its column. */
static void bury(int dead) {
	int row = 0;
	while (dead >= plan.first[row + 1])
		row++;
	const int index = dead - plan.first[row], n = plan.first[plan.n_rows];
	for (int j = 0; j < plan.n_columns; j++) {
		uint8_t *owner = &plan.columns[j].owner[row];
		*owner = *owner == index ? 0 : (uint8_t)(*owner - (*owner > index));
	}
	memmove(&members[dead], &members[dead + 1], (size_t)(n - dead - 1) * sizeof members[0]);
	memmove(&node_at[dead], &node_at[dead + 1], (size_t)(n - dead - 1) * sizeof node_at[0]);
	for (int r = row + 1; r <= plan.n_rows; r++)
		plan.first[r]--;
	plan.since[row] = 2;
}

static void test_an_owner_dies(void **state) {
	(void)state;
	uint32_t dead = 4;
	begin_world(9, 3);
	follow_all(1);
	for (int i = 0; i < 12; i++) /* some links are up, some chunks are there */
		world_step(&w);
	workers[dead].alive = false;
	world_stop(&w, (int)dead);
	assert_true(world_until(&w, is_accused, &dead));
	bury((int)dead);
	follow_all(2);
	assert_true(world_until(&w, all_done, NULL));
	assert_int_equal(allreduce_info(workers[0].reduce).world, 8);
	check_results();
	end_world();
}

/* ---- what no limited contributions give ---- */

/* Its receivers accuse the sender, and nobody accuses one that passed on what was in its limits. */
static void test_sums_and_means_beyond_the_limit_are_refused(void **state) {
	(void)state;
	static const struct {
		uint8_t type;
		bool column;
	} kinds[] = {{REDUCE_SCATTER, true}, {REDUCE_GATHER, true}, {REDUCE_GATHER, false}};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		uint32_t liar = 4;
		begin_world(9, 3);
		spoiler.node = (int)liar;
		spoiler.type = kinds[i].type;
		spoiler.column = kinds[i].column;
		spoiler.value = 1e30f;
		follow_all(1);
		assert_true(world_until(&w, is_accused, &liar));
		spoiler.node = -1;
		end_world();
	}
}

/* And those that get the mean say where it stands out. */
static void test_large_sums_within_the_limit_are_added(void **state) {
	(void)state;
	begin_world(9, 3);
	spoiler.node = 4;
	spoiler.type = REDUCE_SCATTER;
	spoiler.column = true;
	spoiler.value = 1e4f;
	follow_all(1);
	assert_true(world_until(&w, all_done, NULL));
	spoiler.node = -1;
	const struct rows_column *spoiled = plan.columns; /* the liar's */
	while (plan.first[1] + spoiled->owner[1] != 4)
		spoiled++;
	int n = 0;
	for (int i = 0; i < w.n; i++) {
		const int64_t chunk = allreduce_stands_out(workers[i].reduce);
		assert_true(chunk < 0 || (uint32_t)chunk - spoiled->first < spoiled->count);
		n += chunk >= 0;
	}
	assert_true(n >= 6); /* all but final owners, who name no mean of their own */
	end_world();
}

/* Norms show nothing in a row of two: its owner compares with its own contribution. */
static void test_a_contribution_to_a_row_of_two_has_a_limit(void **state) {
	(void)state;
	uint32_t liar = 3;
	float x[ELEMS];
	begin_world(4, 2);
	assert_int_equal(plan.n_rows, 2);
	for (uint32_t c = 0; c < CHUNKS; c++) {
		for (int k = 0; k < ELEMS; k++)
			x[k] = 1e20f;
		assert_ok(cfg.codec->encode(cfg.codec, x, ELEMS,
									workers[liar].own + chunking_offset_bytes(&cfg.chunks, cfg.codec, c), &et));
	}
	committer_tree(&cfg.chunks, cfg.codec, workers[liar].own, workers[liar].nodes);
	follow_all(1);
	assert_true(world_until(&w, is_accused, &liar));
	end_world();
}

/* A document without a section for a column that this worker owns is refused, with its reason. */
static void test_a_view_without_its_sections_is_refused(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	begin_world(4, 2);
	struct document *d = &workers[0].view;
	memset(d, 0, sizeof *d);
	d->phase = RUN_REDUCE;
	d->round = ROUND;
	d->attempt = 1;
	rows_view(&plan, 0, d);
	d->n_sections = 0;
	assert_int_equal(allreduce_start(workers[0].reduce, 1, d,
									 &(struct allreduce_inputs){.own = workers[0].own, .own_nodes = workers[0].nodes},
									 &et),
					 RV_E_INVALID);
	assert_non_null(strstr(et.text, "owns 1 columns in its row, and 0 are described"));
	assert_false(allreduce_running(workers[0].reduce));
	end_world();
}

/* ---- address space ---- */

static size_t address_space_bytes(void) {
	FILE *f = fopen("/proc/self/statm", "re");
	size_t pages = 0;
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu", &pages), 1);
	(void)fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A lone worker, with a limit of address space (ulimit -v) that has room for itself and not for 64
 * others: so it goes on where memory is not overcommitted, too. */
static void test_address_space_is_for_those_that_are_there(void **state) {
	(void)state;
	enum { VALUES = 1 << 23, OTHERS = 5 };
	static struct mean_residual no_residual;
	static struct document d;
	struct rlimit before, limit;
	begin_world(1, 2);
	cfg.n = VALUES;
	cfg.chunks = chunking_of(VALUES, 1 << 16);
	const size_t payload = chunking_total_bytes(&cfg.chunks, cfg.codec);
	uint8_t *own = calloc(1, payload);
	const struct allreduce_config c = {
		.global = &cfg, .mean_residual = &no_residual, .silence = {.silent = 4000, .ping = 1000, .withheld = 8000}};
	struct allreduce *a;
	assert_ok(allreduce_new(&c, &a, &et));
	d = (struct document){
		.phase = RUN_REDUCE, .round = ROUND, .attempt = 1, .n_rows = 1, .n_members = 1, .n_roster = 1};
	d.n_chunks = cfg.chunks.n_chunks;
	d.members[0] = members[0];
	d.ranges[d.n_ranges++] = (struct owner_range){0, d.n_chunks, 0};
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	limit = before;
	limit.rlim_cur = address_space_bytes() + OTHERS * payload;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	const enum rv_err e = allreduce_start(a, 0, &d, &(struct allreduce_inputs){.own = own}, NULL);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(e, RV_OK);
	assert_true(allreduce_done(a));
	allreduce_free(a);
	free(own);
	end_world();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_members_send_less),
		cmocka_unit_test(test_an_unknown_codec_is_refused),
		cmocka_unit_test(test_rows_end_with_the_labs_bytes),
		cmocka_unit_test(test_an_owner_dies),
		cmocka_unit_test(test_sums_and_means_beyond_the_limit_are_refused),
		cmocka_unit_test(test_large_sums_within_the_limit_are_added),
		cmocka_unit_test(test_a_contribution_to_a_row_of_two_has_a_limit),
		cmocka_unit_test(test_a_view_without_its_sections_is_refused),
		cmocka_unit_test(test_address_space_is_for_those_that_are_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
