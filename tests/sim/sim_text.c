/* sim_text.c: what the text thread of a worker does, as events, and what its training reads. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum {
	TURN_US = SIM_S / 2,  /* the longest between two turns */
	MEMBERS_US = SIM_S,   /* in which links come up and members answer */
	STALL_US = 10 * SIM_S /* of a request */
};

/* ---- news of the planner ---- */

static void lied(void *ctx, int source, const struct text_file *f) {
	struct sim_text *t = ctx;
	struct sim *s = t->worker->sim;
	s->stats.text_lies++;
	if (!corpus_source_lies(s, t, source))
		sim_fail(s, "w%d: source %d is named as one that gave wrong bytes of shard %llu, and is honest",
				 t->worker->host, source, (unsigned long long)f->i);
}

static void refused(void *ctx, const char *why) {
	const struct sim_text *t = ctx;
	sim_say(t->worker->sim, t->worker->host, "text cannot be kept: %s", why);
}

/* ---- life ---- */

static sim_fire ticks;

static void tick_later(struct sim *s, int host) {
	sim_at(s, s->now_us + TURN_US, host, s->workers[host].life, ticks, NULL);
}

static void ticks(struct sim *s, int host, void *arg) {
	(void)arg;
	corpus_turn(s, host);
	tick_later(s, host);
}

static void open_core(struct sim *s, struct sim_text *t) {
	const struct text_core_config cfg = {.ranges_max = SIM_TEXT_RANGES, .stall_us = STALL_US};
	struct text_planner_ops ops = sim_text_store;
	ops.ctx = t;
	ops.lied = lied;
	ops.refused = refused;
	if (!t->memory)
		t->memory = sim_alloc(text_core_bytes(&cfg));
	t->core = text_core_init(t->memory, &cfg, s->now_us);
	text_planner_init(&t->planner, &ops, t->core, t->held, SIM_TEXT_QUOTA / SIM_TEXT_BYTES);
	for (int i = 0; i < SIM_TEXT_SOURCES; i++)
		RV_ASSERT(text_core_add(t->core, i < SIM_MIRRORS ? TEXT_MIRROR : TEXT_COORDINATOR) == i);
	text_core_expect_members(t->core, MEMBERS_US);
}

void corpus_open(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	if (!s->opt.leases || s->opt.calm || s->opt.hasty)
		return;
	if (!w->text)
		w->text = sim_alloc(sizeof *w->text);
	struct sim_text *t = w->text;
	t->worker = w;
	t->has_read = t->waits = t->dirty = false;
	t->n_read = t->n_wanted = 0;
	memset(t->asks, 0, sizeof t->asks);
	memset(t->linked, 0, sizeof t->linked);
	corpus_store_open(w);
	open_core(s, t);
	t->running = true;
	tick_later(s, host);
}

void corpus_end(struct sim *s, int host, bool power) {
	struct sim_text *t = s->workers[host].text;
	if (!t || !t->running)
		return;
	t->running = false;
	corpus_store_close(s, host, power);
}

void corpus_release(struct sim_worker *w) {
	if (!w->text)
		return;
	if (w->text->running)
		text_shelf_release(&w->text->shelf);
	free(w->text->memory);
	free(w->text);
	w->text = NULL;
}

/* ---- a turn ---- */

static void see_links(struct sim *s, int host) {
	struct sim_text *t = s->workers[host].text;
	for (int h = 0; h < s->opt.n_workers && h < SIM_ORDINARY; h++) {
		const bool linked = h != host && s->workers[host].links[h].up;
		if (linked != t->linked[h])
			(void)text_core_member(t->core, s->now_us, s->workers[h].member, linked);
		t->linked[h] = linked;
	}
}

static void plan(struct sim *s, struct sim_text *t) {
	t->dirty = false;
	text_planner_plan(&t->planner, s->now_us, &t->wait, t->waits, t->wanted, t->n_wanted);
	t->waits = t->waits && !t->wait.is_there;
	t->wait.is_suspect = false;
}

static void drop_all(struct sim_text *t) {
	uint32_t id;
	while (text_core_drop(t->core, &id))
		for (int i = 0; i < TEXT_ASKS_MAX; i++)
			if (t->asks[i].id == id)
				t->asks[i].id = 0;
}

/* Sources of members come and go: numbers that are no member's now get nothing to do. */
static void ask_all(struct sim *s, int host) {
	struct sim_text *t = s->workers[host].text;
	uint64_t files[TEXT_FILES_MAX];
	struct text_request q;
	for (int i = 0; i < SIM_TEXT_SOURCES; i++)
		while (text_core_send(t->core, s->now_us, i, &q))
			corpus_source_ask(s, host, &q);
	for (int h = 0; h < SIM_ORDINARY; h++) {
		const int source = t->linked[h] ? text_core_source_of(t->core, s->workers[h].member) : -1;
		const int n = source < 0 ? 0 : text_core_question(t->core, s->now_us, source, files);
		if (n > 0)
			corpus_source_question(s, host, source, files, n);
		while (source >= 0 && text_core_send(t->core, s->now_us, source, &q))
			corpus_source_ask(s, host, &q);
	}
}

void corpus_turn(struct sim *s, int host) {
	struct sim_text *t = s->workers[host].text;
	if (!t || !t->running || s->failed)
		return;
	see_links(s, host);
	if (t->dirty || text_planner_is_due(&t->planner, s->now_us))
		plan(s, t);
	text_core_tick(t->core, s->now_us);
	drop_all(t);
	ask_all(s, host);
	drop_all(t);
}

/* ---- reading ---- */

static uint64_t shard_of(uint64_t position) {
	return position / SIM_SHARD_SEQUENCES % SIM_SHARDS;
}

void corpus_wants(struct sim *s, int host, const struct reading *r) {
	struct sim_text *t = s->workers[host].text;
	if (!t || !t->running)
		return;
	t->waits = false;
	t->n_read = t->n_wanted = 0;
	for (int i = 0; i < r->n; i++)
		for (uint64_t k = 0; k < r->pieces[i].count && t->n_wanted < TEXT_FILES_MAX; k++) {
			const uint64_t shard = shard_of(r->pieces[i].begin + k);
			bool is_in = false;
			for (int at = 0; at < t->n_wanted; at++)
				is_in |= t->wanted[at] == shard;
			if (!is_in)
				t->wanted[t->n_wanted++] = shard;
		}
	t->dirty = true;
	corpus_turn(s, host);
}

static bool is_here(const struct sim_text *t, uint64_t shard) {
	const struct sim_shard *f = corpus_store_find(t, shard);
	return f && f->whole && corpus_store_is_right(f);
}

/* Waits for a shard that is not here, or that the reader found damaged. */
static void wait_for(struct sim *s, int host, uint64_t shard) {
	struct sim_text *t = s->workers[host].text;
	if (t->waits && t->wait.file.i == shard)
		return;
	t->waits = true;
	t->wait = (struct text_wait){.file = {.kind = TEXT_SHARD, .i = shard}, .is_suspect = true};
	t->dirty = true;
	s->stats.text_waits++;
	corpus_turn(s, host);
}

bool corpus_reads_step(struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	const struct reading *r = &w->replica.reading;
	struct sim_text *t = w->text;
	if (!t || !t->running)
		return true;
	for (; t->n_read < SIM_SEQUENCES; t->n_read++) {
		const uint64_t next = w->replica.next + (uint64_t)t->n_read;
		if (!reading_has(r, next, 1))
			return true; /* its leases end before this step */
		const uint64_t shard = shard_of(reading_position(r, next));
		if (!is_here(t, shard))
			wait_for(s, host, shard);
		if (!is_here(t, shard))
			return false;
		t->has_read = true;
		t->read_shard = shard;
	}
	t->n_read = 0;
	return true;
}
