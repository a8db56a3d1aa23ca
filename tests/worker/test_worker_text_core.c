/* test_worker_text_core.c: which range is asked of whom, in virtual time: mirrors that are fast,
 * slow, cut their answers, ask for pauses, lie, fall silent, vanish or lack files. What has to come
 * out: the right bytes while one honest source stays, soon, and blame only for liars. */
#include "base/rng.h"
#include "tests/common/check.h"
#include "worker/text/text_core.h"

#include <stdlib.h>
#include <string.h>

enum {
	FILES = 12,
	RANGES = 5,
	SOURCES = 6,
	MEMBER = 100,
	STALL_US = 10 * 1000 * 1000,
	TICK_US = 20 * 1000,
	S = 1000 * 1000
};

enum temper { HONEST, LIAR, SILENT, CUTTER, BUSY, EMPTY, DEAD, SHORT, QUIET };

struct job {
	bool used;
	struct text_request q;
	uint32_t at;
	double bytes;
};

struct source {
	enum temper temper;
	double bytes_per_us;
	struct job jobs[16];
	uint64_t given, asked, questions;
	uint64_t lacks; /* of a member: a bit for each file */
	int blamed;
};

struct world {
	void *memory;
	struct text_core *core;
	int64_t now;
	int n_sources;
	struct source at[SOURCES];
	bool wrong[FILES][RANGES]; /* what is stored of it */
	int64_t done_us[FILES];
	int n_done, n_wrong;
	struct rv_rng rng;
};

static uint64_t bytes_of(uint64_t file) {
	return (uint64_t)(RANGES - 1) * TEXT_RANGE_BYTES + 1024 + file;
}

static struct world *world_new(void) {
	struct world *w = calloc(1, sizeof *w);
	const struct text_core_config cfg = {.ranges_max = RANGES, .stall_us = STALL_US};
	w->memory = malloc(text_core_bytes(&cfg));
	memset(w->memory, 0xa5, text_core_bytes(&cfg));
	w->core = text_core_init(w->memory, &cfg, 0);
	return w;
}

static void world_free(struct world *w) {
	free(w->memory);
	free(w);
}

/* Source i, a member, has number MEMBER + i. */
static int add(struct world *w, enum text_source_kind kind, enum temper temper, double mb_per_s) {
	w->at[w->n_sources] = (struct source){.temper = temper, .bytes_per_us = mb_per_s};
	if (kind == TEXT_MEMBER)
		assert_int_equal(text_core_member(w->core, w->now, MEMBER + (uint32_t)w->n_sources, true), w->n_sources);
	else
		assert_int_equal(text_core_add(w->core, kind), w->n_sources);
	return w->n_sources++;
}

static void want(struct world *w, int first, int n, bool urgent) {
	struct text_need needs[FILES];
	for (int i = 0; i < n; i++)
		needs[i] = (struct text_need){
			.id = (uint64_t)(first + i), .bytes = bytes_of((uint64_t)(first + i)), .urgent = urgent && i == 0};
	text_core_want(w->core, w->now, needs, n);
}

static void judge(struct world *w, uint64_t file) {
	bool good = true;
	int liars[TEXT_SOURCES_MAX];
	for (int r = 0; r < RANGES; r++)
		good = good && !w->wrong[file][r];
	const int n = text_core_verdict(w->core, w->now, file, good, liars);
	for (int i = 0; i < n; i++)
		w->at[liars[i]].blamed++;
	w->n_wrong += !good;
	if (good) {
		w->done_us[file] = w->now;
		w->n_done++;
	}
}

/* The range under way of a job has come. */
static void arrive(struct world *w, struct source *s, struct job *j) {
	const bool lies = s->temper == LIAR;
	const struct text_arrival a =
		text_core_arrived(w->core, w->now, j->q.id, lies ? 666 : j->q.file * RANGES + j->q.first + j->at);
	if (a.keep)
		w->wrong[a.file][a.range] = lies;
	j->bytes = 0;
	j->used = !a.ended;
	j->at++;
	if (a.complete)
		judge(w, a.file);
}

static void work(struct world *w, struct source *s, struct job *j, int jobs) {
	if (s->temper == SILENT || s->temper == DEAD)
		return;
	const uint32_t whole = text_core_range_bytes(bytes_of(j->q.file), j->q.first + j->at);
	const double more = s->bytes_per_us * TICK_US / jobs;
	s->given += (uint64_t)more;
	j->bytes += more;
	if (j->bytes >= whole) {
		arrive(w, s, j);
		return;
	}
	if (s->temper != QUIET)
		text_core_progress(w->core, w->now, j->q.id, (uint32_t)j->bytes);
	if (s->temper == CUTTER && j->bytes > 300e3) {
		j->used = false;
		text_core_failed(w->core, w->now, j->q.id, TEXT_CUT, 0);
	}
}

static void take(struct world *w, int source, const struct text_request *q) {
	struct source *s = &w->at[source];
	s->asked++;
	if (s->temper == BUSY || s->temper == EMPTY || s->temper == SHORT) {
		const enum text_failure why = s->temper == BUSY ? TEXT_BUSY : s->temper == EMPTY ? TEXT_GONE : TEXT_WRONG;
		text_core_failed(w->core, w->now, q->id, why, s->temper == BUSY ? 30 * S : 0);
		return;
	}
	for (int k = 0; k < 16; k++)
		if (!s->jobs[k].used) {
			s->jobs[k] = (struct job){.used = true, .q = *q};
			return;
		}
	fail();
}

static void drop(struct world *w) {
	uint32_t id;
	while (text_core_drop(w->core, &id))
		for (int i = 0; i < w->n_sources; i++)
			for (int k = 0; k < 16; k++)
				if (w->at[i].jobs[k].used && w->at[i].jobs[k].q.id == id)
					w->at[i].jobs[k].used = false;
}

/* A member that lives answers what it is asked. */
static void question(struct world *w, int source) {
	struct source *s = &w->at[source];
	uint64_t files[TEXT_FILES_MAX], held = 0;
	const int n = text_core_question(w->core, w->now, source, files);
	s->questions += n > 0;
	if (n == 0 || s->temper == SILENT || s->temper == DEAD)
		return;
	for (int i = 0; i < n; i++)
		held |= (uint64_t) !(s->lacks >> files[i] & 1) << i;
	text_core_answer(w->core, w->now, source, files, n, held);
}

static void tick(struct world *w) {
	struct text_request q;
	text_core_tick(w->core, w->now);
	for (int i = 0; i < w->n_sources; i++) {
		int jobs = 0;
		for (int k = 0; k < 16; k++)
			jobs += w->at[i].jobs[k].used;
		for (int k = 0; k < 16; k++) {
			drop(w);
			if (w->at[i].jobs[k].used)
				work(w, &w->at[i], &w->at[i].jobs[k], jobs);
		}
	}
	drop(w);
	for (int i = 0; i < w->n_sources; i++) {
		question(w, i);
		while (text_core_send(w->core, w->now, i, &q))
			take(w, i, &q);
	}
	w->now += TICK_US;
}

/* Returns the seconds until `n` files are done. */
static double run(struct world *w, int n, double limit_s) {
	const int64_t end = w->now + (int64_t)(limit_s * S), begin = w->now;
	while (w->n_done < n && w->now < end)
		tick(w);
	if (w->n_done < n)
		fail_msg("%d of %d files after %g s", w->n_done, n, limit_s);
	return (double)(w->now - begin) / S;
}

static void several_sources_add_up(void **state) {
	struct world *w = world_new();
	(void)state;
	add(w, TEXT_MIRROR, HONEST, 2);
	add(w, TEXT_MIRROR, HONEST, 1);
	add(w, TEXT_MEMBER, HONEST, 1);
	want(w, 0, FILES, false);
	const double s = run(w, FILES, 60), least = FILES * 4.0 * 1.048 / 4;
	if (s > least * 1.4)
		fail_msg("%g s, %g s at full speed", s, least);
	for (int i = 1; i < FILES; i++)
		assert_true(w->done_us[i] >= w->done_us[i - 1] - 4 * S); /* in the order of need, about */
	world_free(w);
}

static void the_slow_are_left(void **state) {
	struct world *w = world_new();
	(void)state;
	add(w, TEXT_MIRROR, HONEST, 4);
	const int slow = add(w, TEXT_MIRROR, HONEST, 0.02);
	want(w, 0, FILES, true);
	const double s = run(w, FILES, 60);
	if (s > 18)
		fail_msg("%g s: 13 s from the fast one alone", s);
	assert_true(text_core_source(w->core, w->now, slow).left);
	/* Where only the slow one has a file, it is asked. */
	w->at[0].temper = EMPTY;
	want(w, 0, 1, true);
	w->n_done = 0;
	run(w, 1, 400);
	world_free(w);
}

static void the_silent_cut_and_dead_delay_little(void **state) {
	static const enum temper tempers[] = {SILENT, CUTTER, BUSY, EMPTY, SHORT};
	(void)state;
	for (size_t i = 0; i < sizeof tempers / sizeof tempers[0]; i++) {
		struct world *w = world_new();
		const int bad = add(w, TEXT_MIRROR, tempers[i], 4);
		add(w, TEXT_MIRROR, HONEST, 4);
		want(w, 0, FILES, true);
		const double s = run(w, FILES, 60);
		if (s > 24)
			fail_msg("temper %d: %g s: 13 s without it", tempers[i], s);
		if (w->at[bad].asked > 60)
			fail_msg("temper %d: asked %d times", tempers[i], (int)w->at[bad].asked);
		world_free(w);
	}
}

/* A mirror that has nothing of many files is not asked for each of them again and again: with
 * pauses of 0.5, 1, 2 ... s up to 300 about 20 times in an hour. */
static void one_that_lacks_all_is_asked_ever_less_often(void **state) {
	struct world *w = world_new();
	(void)state;
	const int empty = add(w, TEXT_MIRROR, EMPTY, 4);
	want(w, 0, FILES, true);
	for (int64_t i = 0; i < INT64_C(3600) * S / TICK_US; i++)
		tick(w);
	assert_in_range(w->at[empty].asked, 5, 30);
	world_free(w);
}

static void who_asks_for_a_pause_gets_it(void **state) {
	struct world *w = world_new();
	(void)state;
	const int busy = add(w, TEXT_MIRROR, BUSY, 4);
	want(w, 0, 1, true);
	for (int i = 0; i < 29 * S / TICK_US; i++)
		tick(w);
	assert_int_equal(w->at[busy].asked, 1);
	w->at[busy].temper = HONEST;
	run(w, 1, 5);
	world_free(w);
}

static void liars_are_found(void **state) {
	struct world *w = world_new();
	(void)state;
	const int a = add(w, TEXT_MIRROR, HONEST, 2), liar = add(w, TEXT_MEMBER, LIAR, 2);
	add(w, TEXT_MIRROR, HONEST, 2);
	want(w, 0, FILES, true);
	const double s = run(w, FILES, 120);
	if (s > 30)
		fail_msg("%g s: 13 s without the liar", s);
	assert_true(w->at[liar].blamed >= 1 && w->at[a].blamed == 0 && w->at[2].blamed == 0);
	assert_int_equal(text_core_source(w->core, w->now, liar).offences, w->at[liar].blamed);
	world_free(w);
}

static void a_lone_liar_is_blamed_at_once(void **state) {
	struct world *w = world_new();
	(void)state;
	const int liar = add(w, TEXT_MIRROR, LIAR, 2);
	want(w, 0, 1, true);
	for (int i = 0; i < 30 * S / TICK_US; i++)
		tick(w);
	assert_int_equal(w->at[liar].blamed, 1);
	const int honest = add(w, TEXT_MEMBER, HONEST, 2);
	run(w, 1, 10);
	assert_int_equal(w->at[honest].blamed, 0);
	world_free(w);
}

static void the_coordinator_is_last(void **state) {
	struct world *w = world_new();
	(void)state;
	const int coordinator = add(w, TEXT_COORDINATOR, HONEST, 1), mirror = add(w, TEXT_MIRROR, HONEST, 1);
	want(w, 0, 4, true);
	run(w, 4, 60);
	assert_int_equal(w->at[coordinator].asked, 0);
	w->at[mirror].temper = DEAD;
	want(w, 4, 1, true);
	run(w, 5, 60);
	assert_true(w->at[coordinator].asked >= RANGES - 1 && w->at[coordinator].asked <= RANGES);
	world_free(w);
}

/* A member is asked for what it said it holds, and soon after another one has a file. */
static void members_are_asked_what_they_hold(void **state) {
	struct world *w = world_new();
	(void)state;
	const int a = add(w, TEXT_MEMBER, HONEST, 2), b = add(w, TEXT_MEMBER, HONEST, 2);
	w->at[a].lacks = 0xf0f;
	w->at[b].lacks = 0xff8;
	want(w, 0, FILES, true);
	run(w, 7, 60); /* 0..2 of b, 4..7 of a */
	assert_int_equal(w->at[a].asked, 4 * RANGES);
	assert_int_equal(w->at[b].asked, 3 * RANGES);
	for (int i = 0; i < 120 * S / TICK_US; i++)
		tick(w);
	assert_int_equal(w->n_done, 7);
	if (w->at[a].questions > 60)
		fail_msg("%d questions in two minutes", (int)w->at[a].questions);
	w->at[b].lacks = 0;
	run(w, FILES, 90);
	assert_int_equal(w->at[a].asked, 4 * RANGES);
	/* What it promised it need not have: it is asked again after a while only. */
	w->at[b].temper = EMPTY;
	const uint64_t asked = w->at[b].asked;
	want(w, 0, 1, true);
	for (int i = 0; i < 60 * S / TICK_US; i++)
		tick(w);
	assert_in_range(w->at[b].asked - asked, 2, 3 * 20);
	world_free(w);
}

/* The coordinator waits until members have said what they hold, but not for silent ones. */
static void the_coordinator_waits_for_members(void **state) {
	(void)state;
	for (int silent = 0; silent < 2; silent++) {
		struct world *w = world_new();
		text_core_expect_members(w->core, S);
		const int coordinator = add(w, TEXT_COORDINATOR, HONEST, 1);
		want(w, 0, 1, false);
		for (int i = 0; i < S / 2 / TICK_US; i++)
			tick(w);
		assert_int_equal(w->at[coordinator].asked, 0); /* a link may come up */
		const int member = add(w, TEXT_MEMBER, silent ? SILENT : HONEST, 2);
		run(w, 1, 30);
		assert_int_equal(w->at[coordinator].asked, silent ? RANGES : 0);
		assert_int_equal(w->at[member].asked, silent ? 0 : RANGES);
		world_free(w);
	}
}

/* A member that has a doubted file alone must not hold it up by sending drops. */
static void who_drips_is_left(void **state) {
	struct world *w = world_new();
	(void)state;
	const int coordinator = add(w, TEXT_COORDINATOR, HONEST, 1);
	const int liar = add(w, TEXT_MEMBER, LIAR, 4), drip = add(w, TEXT_MEMBER, HONEST, 4);
	want(w, 0, 1, true);
	while (w->n_wrong == 0)
		tick(w);
	w->at[liar].temper = DEAD;
	(void)text_core_member(w->core, w->now, MEMBER + (uint32_t)liar, false);
	drop(w);
	w->at[drip].bytes_per_us = 1e-3;
	run(w, 1, 120);
	assert_true(w->at[coordinator].asked >= RANGES);
	assert_int_equal(w->at[drip].blamed, 0);
	world_free(w);
}

/* More members than places come and go: each is a source while it is linked, and what one did is
 * not another's fault. */
static void places_of_members_are_used_again(void **state) {
	struct world *w = world_new();
	uint64_t files[TEXT_FILES_MAX];
	(void)state;
	want(w, 0, 2, true);
	for (uint32_t i = 0; i < TEXT_SOURCES_MAX; i++)
		assert_int_equal(text_core_member(w->core, 0, MEMBER + i, true), (int)i);
	assert_int_equal(text_core_member(w->core, 0, MEMBER + 90, true), -1);
	assert_int_equal(text_core_question(w->core, 0, 7, files), 2);
	assert_int_equal(text_core_question(w->core, 0, 7, files), 0);
	text_core_answer(w->core, 0, 7, files, 2, 3);
	struct text_request q;
	assert_true(text_core_send(w->core, 0, 7, &q));
	assert_int_equal(text_core_member_of(w->core, q.source), MEMBER + 7);
	(void)text_core_arrived(w->core, 1, q.id, 666);
	assert_true(text_core_send(w->core, 1, 7, &q));
	text_core_failed(w->core, 2, q.id, TEXT_WRONG, 0);
	assert_int_equal(text_core_member(w->core, 3, MEMBER + 7, false), 7);
	/* One that lied keeps its place while it is left alone. */
	assert_int_equal(text_core_member(w->core, 4, MEMBER + 90, true), -1);
	assert_int_equal(text_core_member(w->core, 61 * S, MEMBER + 90, true), 7);
	assert_int_equal(text_core_source(w->core, 61 * S, 7).offences, 0);
	assert_int_equal(text_core_source_of(w->core, MEMBER + 7), -1);
	assert_int_equal(text_core_question(w->core, 61 * S, 7, files), 2);
	world_free(w);
}

/* It serves many in turn: a range takes 26 s, and nothing is heard of it before it is whole. */
static void a_coordinator_that_serves_many_is_waited_for(void **state) {
	struct world *w = world_new();
	(void)state;
	const int coordinator = add(w, TEXT_COORDINATOR, QUIET, 0.04);
	want(w, 0, 1, true);
	run(w, 1, 120);
	assert_int_equal(w->at[coordinator].asked, RANGES);
	world_free(w);
}

/* Training waits for a file of which a slow source has the last range. */
static void what_training_waits_for_comes_first(void **state) {
	struct world *w = world_new();
	(void)state;
	const int slow = add(w, TEXT_MIRROR, HONEST, 0.05);
	struct text_need one = {.id = 0, .bytes = bytes_of(0)};
	text_core_want(w->core, 0, &one, 1);
	tick(w); /* it has been asked for the first two ranges */
	assert_int_equal(w->at[slow].asked, 2);
	add(w, TEXT_MIRROR, HONEST, 2);
	want(w, 0, FILES, true);
	run(w, 1, 60);
	if (w->done_us[0] == 0 || w->done_us[0] > 8 * S)
		fail_msg("the first file came after %g s", (double)w->done_us[0] / S);
	world_free(w);
}

static void a_source_of_whole_files_gets_one_request(void **state) {
	struct world *w = world_new();
	(void)state;
	const int whole = add(w, TEXT_MIRROR, HONEST, 4);
	text_core_whole(w->core, whole);
	want(w, 0, 3, true);
	run(w, 3, 30);
	assert_int_equal(w->at[whole].asked, 3);
	world_free(w);
}

static void what_is_on_the_disk_is_not_asked_for(void **state) {
	struct world *w = world_new();
	uint8_t held[RANGES] = {1, 1, 0, 1, 1};
	(void)state;
	const int mirror = add(w, TEXT_MIRROR, HONEST, 4);
	want(w, 0, 1, true);
	assert_false(text_core_resume(w->core, 0, held));
	run(w, 1, 5);
	assert_int_equal(w->at[mirror].asked, 1);
	/* A part of it is damaged, the mirror is not to blame. */
	want(w, 1, 1, true);
	w->wrong[1][0] = true;
	assert_false(text_core_resume(w->core, 1, held));
	run(w, 2, 20);
	assert_int_equal(w->at[mirror].blamed, 0);
	world_free(w);
}

/* Whatever happens, the files come once an honest source stays; wants change meanwhile. */
static void a_random_world_ends_well(void **state) {
	(void)state;
	for (uint64_t seed = 0; seed < 150; seed++) {
		struct world *w = world_new();
		w->rng = rv_rng_of(seed, 0);
		for (int i = 0; i < SOURCES; i++)
			add(w, (enum text_source_kind)rv_rng_below(&w->rng, 3), (enum temper)rv_rng_below(&w->rng, 8),
				0.1 + (double)rv_rng_below(&w->rng, 40) / 10);
		want(w, 0, FILES / 2, true);
		for (int i = 0; i < 40 * S / TICK_US; i++) {
			const int who = (int)rv_rng_below(&w->rng, SOURCES);
			if (rv_rng_below(&w->rng, 50) == 0)
				w->at[who].temper = (enum temper)rv_rng_below(&w->rng, 8);
			if (rv_rng_below(&w->rng, 100) == 0) {
				text_core_here(w->core, w->now, who, rv_rng_below(&w->rng, 2) == 0);
				drop(w);
			}
			if (rv_rng_below(&w->rng, 100) == 0)
				w->at[who].lacks = rv_rng_u64(&w->rng);
			if (rv_rng_below(&w->rng, 400) == 0)
				want(w, (int)rv_rng_below(&w->rng, FILES), 1, true);
			tick(w);
		}
		for (int i = 0; i < SOURCES; i++)
			w->at[i].temper = i % 2 == 0 ? HONEST : w->at[i].temper;
		w->at[0].lacks = 0;
		text_core_here(w->core, w->now, 0, false); /* it is asked again what it holds */
		drop(w);
		text_core_here(w->core, w->now, 0, true);
		w->n_done = 0;
		want(w, 0, FILES, true);
		run(w, FILES, 6 * 3600);
		world_free(w);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_sources_add_up),
		cmocka_unit_test(the_slow_are_left),
		cmocka_unit_test(the_silent_cut_and_dead_delay_little),
		cmocka_unit_test(one_that_lacks_all_is_asked_ever_less_often),
		cmocka_unit_test(who_asks_for_a_pause_gets_it),
		cmocka_unit_test(liars_are_found),
		cmocka_unit_test(a_lone_liar_is_blamed_at_once),
		cmocka_unit_test(the_coordinator_is_last),
		cmocka_unit_test(members_are_asked_what_they_hold),
		cmocka_unit_test(the_coordinator_waits_for_members),
		cmocka_unit_test(who_drips_is_left),
		cmocka_unit_test(places_of_members_are_used_again),
		cmocka_unit_test(a_coordinator_that_serves_many_is_waited_for),
		cmocka_unit_test(what_training_waits_for_comes_first),
		cmocka_unit_test(a_source_of_whole_files_gets_one_request),
		cmocka_unit_test(what_is_on_the_disk_is_not_asked_for),
		cmocka_unit_test(a_random_world_ends_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
