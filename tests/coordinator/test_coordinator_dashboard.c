/* The dashboard in a real browser, over a service that has committed rounds: the curve is drawn in
 * a narrow window and a wide one, light and dark, the pointer shows a round's figures, nothing is
 * wider than the screen, nothing complains on the console. Skipped where there is no Chromium. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/service/service.h"
#include "coordinator/web/dashboard.h"
#include "tests/common/browser.h"
#include "tests/common/check.h"
#include "tests/common/memory_store.h"
#include "tests/common/scratch.h"

enum { ROUNDS = 40, MEMBERS = 3, MANY = 1024, ROWS = 32, UNKNOWN = 7 /* the loss of that round */ };

static char dir[64];
static struct browser_seen seen;

/* After so many rounds; so many members have joined. */
static struct service *new_service_of(int rounds, uint32_t members) {
	static struct identity run;
	static struct memory_store store;
	const uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	struct service *s = NULL;
	identity_of_seed(seed, &run);
	memory_store_init(&store);
	const struct service_config cfg = {
		.serving = &run, .root = run.key, .config = "rounds = 100\n", .store = &store.store};
	assert_ok(service_new(&cfg, 1000000, &s, &et));
	for (uint32_t m = 0; m < members; m++) {
		struct core_record rec = {.id = m + 1,
								  .type = CORE_MEMBER,
								  .doc_seq = 1,
								  .member = m,
								  .key = {(uint8_t)(m + 1), (uint8_t)((m + 1) >> 8)}};
		assert_ok(service_replay(s, &rec, &et));
	}
	store.stats = calloc(ROUNDS, sizeof *store.stats);
	assert_non_null(store.stats);
	for (int i = 0; i < rounds; i++)
		store.stats[store.n_commits++] = (struct commit_stats){.round = (uint64_t)i,
															   .participants = 3,
															   .tokens = 40,
															   .loss = i == UNKNOWN ? 0 : 5 - 0.05 * i,
															   .duration_us = 2500000,
															   .wall_us = 1000000 * (i + 1)};
	assert_ok(service_load(s, &et));
	memory_store_release(&store); /* it has what it needs */
	return s;
}

static struct service *new_service(int rounds) {
	return new_service_of(rounds, MEMBERS);
}

static void put_json(FILE *f, const char *name, json_t *value) {
	char *text = json_dumps(value, JSON_ENCODE_ANY);
	assert_non_null(text);
	(void)fprintf(f, "const %s = %s;\n", name, text);
	free(text);
	json_decref(value);
}

/* Member 0 has left when the run was done, member 1 before, member 2 is silent. */
static json_t *status_with_leavers(const struct service *s) {
	json_t *status = service_status(s, 2000000, false), *members = json_object_get(status, "members");
	assert_int_equal(json_array_size(members), MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++) {
		json_t *m = json_array_get(members, i);
		(void)json_object_set_new(m, "phase", json_string(i < 2 ? "leaving" : "training"));
		(void)json_object_set_new(m, "silent_s", json_real(60));
		(void)json_object_set_new(m, "round", json_integer(i == 0 ? 100 : 7));
	}
	return status;
}

/* Members 0 and 1 are linked, 0 and 2 through a relay, 1 and 2 do not reach each other. */
static json_t *status_with_links(const struct service *s) {
	json_t *status = service_status(s, 2000000, false), *members = json_object_get(status, "members");
	json_t *const paths[MEMBERS] = {json_pack("{s:s,s:s}", "1", "accepted", "2", "relayed"),
									json_pack("{s:s,s:s}", "0", "dialed", "2", "apart"), json_object()};
	for (size_t i = 0; i < MEMBERS; i++) {
		json_t *m = json_array_get(members, i);
		(void)json_object_set_new(m, "alive", json_true());
		(void)json_object_set_new(m, "phase", json_string("training"));
		(void)json_object_set_new(m, "paths", paths[i]);
	}
	return status;
}

/* Member 1 has a strike, an appeal in vain and two rounds to wait, member 2 one that is over; there
 * is a proof against member 0. */
static json_t *status_with_strikes(const struct service *s) {
	json_t *status = service_status(s, 2000000, false), *members = json_object_get(status, "members");
	json_t *const reputations[MEMBERS] = {
		json_pack("{s:i,s:i,s:n,s:n,s:b}", "rounds", 40, "strikes", 0, "reason", "quarantined_until", "appealed", 0),
		json_pack("{s:i,s:i,s:s,s:i,s:b}", "rounds", 0, "strikes", 2, "reason", "training", "quarantined_until", 42,
				  "appealed", 1),
		json_pack("{s:i,s:i,s:s,s:i,s:b}", "rounds", 9, "strikes", 1, "reason", "evaded", "quarantined_until", 40,
				  "appealed", 0)};
	for (size_t i = 0; i < MEMBERS; i++) {
		json_t *m = json_array_get(members, i);
		assert_int_equal(json_integer_value(json_object_get(json_object_get(m, "reputation"), "strikes")), 0);
		assert_non_null(json_object_get(json_object_get(m, "reputation"), "appealed"));
		(void)json_object_set_new(m, "alive", json_true());
		(void)json_object_set_new(m, "phase", json_string("training"));
		(void)json_object_set_new(m, "reputation", reputations[i]);
	}
	(void)json_object_set_new(status, "round", json_integer(40));
	(void)json_object_set_new(status, "audits",
							  json_pack("{s:i,s:i,s:i,s:i}", "right", 7, "wrong", 1, "unresolved", 2, "open", 0));
	(void)json_object_set_new(status, "scores",
							  json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "worthy", 9, "worthless", 2, "evaded", 3,
										"unresolved", 0, "open", 1, "appeals", 2, "lifted", 1));
	(void)json_object_set_new(status, "proofs",
							  json_pack("[{s:i,s:i,s:i,s:i}]", "member", 0, "round", 12, "attempt", 1, "chunk", 3));
	return status;
}

/* Members of 32 rows and one of none, each with 62 links. */
static json_t *status_of_many(const struct service *s) {
	json_t *status = service_status(s, 2000000, false), *members = json_object_get(status, "members");
	assert_int_equal(json_array_size(members), MANY);
	for (size_t i = 0; i < MANY; i++) {
		json_t *m = json_array_get(members, i);
		assert_null(json_object_get(m, "paths"));
		(void)json_object_set_new(m, "alive", json_true());
		(void)json_object_set_new(m, "phase", json_string("training"));
		(void)json_object_set_new(m, "row", i > 0 ? json_integer((json_int_t)i % ROWS) : json_null());
		(void)json_object_set_new(m, "meets", json_pack("{s:i,s:i,s:i}", "dialed", 30, "accepted", 31, "apart", 1));
	}
	return status;
}

/* The page that the coordinator serves, with the coordinator's replies where it would ask for them,
 * and then a pointer on the first mark. */
static void write_page(const struct service *s, json_t *status) {
	char path[sizeof dir + 16], *chart = service_loss_chart(s, 300);
	assert_non_null(chart);
	snprintf(path, sizeof path, "%s/page.html", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("<!DOCTYPE html><script>\n", f);
	put_json(f, "told", status);
	put_json(f, "picture", json_string(chart));
	(void)fputs(
		"window.fetch = async url => ({ ok: true, json: async () => told, text: async () => picture });\n"
		"setTimeout(() => {\n"
		"	const mark = document.querySelector('circle'), box = mark.getBoundingClientRect();\n"
		"	mark.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.x, clientY: box.y }));\n"
		"	const root = document.documentElement, line = document.querySelector('polyline');\n"
		"	root.dataset.overflow = root.scrollWidth - root.clientWidth;\n"
		"	const fleet = document.querySelector('.scroll:has(#workers)');\n"
		"	root.dataset.clipped = fleet.scrollWidth - fleet.clientWidth;\n"
		"	root.dataset.members = [...document.querySelectorAll('#workers tr')].map(tr => tr.className + ':' +\n"
		"		tr.children[1].textContent).join();\n"
		"	root.dataset.meetings = document.getElementById('meetings').hidden ? 'hidden' :\n"
		"		[...document.querySelectorAll('#paths tr')].map(tr => [...tr.querySelectorAll('td')].map(td =>\n"
		"			td.firstChild ? td.title.split(': ')[1] : '').join()).join(';');\n"
		"	root.dataset.found = document.getElementById('audits').hidden ? 'hidden' :\n"
		"		[...document.querySelectorAll('#found dd')].map(dd => dd.textContent).join(';');\n"
		"	const cells = [...document.querySelectorAll('#paths td')];\n"
		"	root.dataset.cells = [cells.length, ...[0, 3, 4].map(i => cells[i]?.textContent)].join();\n"
		"	root.dataset.drawn = line.getBoundingClientRect().width > root.clientWidth / 2;\n"
		"}, 3000);\n</script>\n",
		f);
	assert_int_equal(fwrite(dashboard_html, 1, dashboard_html_bytes, f), dashboard_html_bytes);
	assert_int_equal(fclose(f), 0);
	free(chart);
}

static void look(int width, bool dark, const char *expected) {
	browser_look(dir, "page.html", width, dark, &seen);
	assert_null(strstr(seen.complaints, "CONSOLE"));
	assert_non_null(strstr(seen.dom, "data-overflow=\"0\""));
	assert_non_null(strstr(seen.dom, "data-clipped=\"0\"")); /* the times of workers, its last column */
	assert_non_null(strstr(seen.dom, "data-drawn=\"true\""));
	assert_non_null(strstr(seen.dom, expected));
	assert_non_null(strstr(seen.dom, ">round 1: loss 5.0000, 3 participants, 2.50 s</div>"));
	assert_null(strstr(seen.dom, "round 8: ")); /* its loss is not known */
	assert_non_null(strstr(seen.dom, "round 9: loss 4.6000"));
}

static void test_the_page_draws_the_curve(void **state) {
	(void)state;
	browser_need();
	struct service *s = new_service(ROUNDS);
	write_page(s, status_with_leavers(s));
	service_free(s);
	look(500, false, "data-members=\"left:done,left:left,gone:silent for 1 min 0 s\"");
	look(1280, true, "data-meetings=\"hidden\"");
	assert_non_null(strstr(seen.dom, "data-found=\"hidden\""));
}

static void test_the_page_shows_strikes_and_what_audits_found(void **state) {
	(void)state;
	browser_need();
	struct service *s = new_service(ROUNDS);
	write_page(s, status_with_strikes(s));
	service_free(s);
	look(500, true,
		 "data-members=\":training,:training · 2 strikes: two auditors found its training worthless; out before round "
		 "43,:training · a strike: its auditors did not reach it, and rounds went on with them\"");
	look(1280, false,
		 "data-found=\"7 right, 1 wrong, 2 without a result, 0 under way;9 worthy, 2 worthless, 3 kept away, 0 "
		 "without a result, 1 under way;2, of which 1 lifted a strike;member 0 signed two lists of means in round 13, "
		 "attempt 1; they differ from chunk 3 on\"");
}

static void test_the_page_shows_how_workers_meet(void **state) {
	(void)state;
	browser_need();
	struct service *s = new_service(ROUNDS);
	write_page(s, status_with_links(s));
	service_free(s);
	look(1280, false,
		 "data-meetings=\",one dials the other,through a relay;one dials the other,,do not reach each other;"
		 "through a relay,do not reach each other,\"");
}

/* No tick between rounds, and so none without a number. */
static void test_the_axis_has_whole_rounds_only(void **state) {
	(void)state;
	for (int rounds = 2; rounds <= 12; rounds++) {
		struct service *s = new_service(rounds);
		char *chart = service_loss_chart(s, 1280), last[16];
		assert_non_null(chart);
		snprintf(last, sizeof last, ">%d</text>", rounds);
		assert_null(strstr(chart, ">0</text>"));
		assert_true(strstr(chart, ">1</text>") != NULL || rounds > 4);
		assert_null(strstr(chart, "></text>"));
		assert_true(strstr(chart, last) != NULL || rounds > 4);
		free(chart);
		service_free(s);
	}
}

/* A line for each row of the roster, and one for who is in none; not a cell for each two. */
static void test_the_page_of_a_thousand_members_is_short(void **state) {
	(void)state;
	browser_need();
	struct service *s = new_service_of(ROUNDS, MANY);
	write_page(s, status_of_many(s));
	service_free(s);
	browser_look(dir, "page.html", 1280, false, &seen); /* of the DOM its begin, with the attributes */
	assert_null(strstr(seen.complaints, "CONSOLE"));
	assert_non_null(strstr(seen.dom, "data-overflow=\"0\""));
	assert_non_null(strstr(seen.dom, "data-cells=\"165,1,61,1\""));
}

static int set_up(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	return 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_page_draws_the_curve),
									   cmocka_unit_test(test_the_page_shows_how_workers_meet),
									   cmocka_unit_test(test_the_page_shows_strikes_and_what_audits_found),
									   cmocka_unit_test(test_the_page_of_a_thousand_members_is_short),
									   cmocka_unit_test(test_the_axis_has_whole_rounds_only)};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
