/* The dashboard in a real browser, over a service that has committed rounds: the curve is drawn in
 * a narrow window and a wide one, light and dark, the pointer shows a round's figures, nothing is
 * wider than the screen, nothing complains on the console. Skipped where there is no Chromium. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/service/service.h"
#include "coordinator/web/dashboard.h"
#include "tests/common/browser.h"
#include "tests/common/memory_store.h"

enum { ROUNDS = 40, UNKNOWN = 7 /* the loss of that round */ };

static char dir[] = "/tmp/rivulet-dashboard-XXXXXX";
static struct browser_seen seen;

static struct service *new_service(void) {
	static struct identity run;
	static struct memory_store store;
	const uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	struct service *s = NULL;
	struct rv_errtext et = {0};
	identity_of_seed(seed, &run);
	memory_store_init(&store);
	const struct service_config cfg = {.run = &run, .config = "rounds = 100\n", .store = &store.store};
	if (service_new(&cfg, 1000000, &s, &et) != RV_OK)
		fail_msg("%s", et.text);
	store.stats = calloc(ROUNDS, sizeof *store.stats);
	assert_non_null(store.stats);
	for (int i = 0; i < ROUNDS; i++)
		store.stats[store.n_commits++] = (struct commit_stats){.round = (uint64_t)i,
															   .participants = 3,
															   .tokens = 40,
															   .loss = i == UNKNOWN ? 0 : 5 - 0.05 * i,
															   .duration_us = 2500000,
															   .wall_us = 1000000 * (i + 1)};
	assert_int_equal(service_load(s, &et), RV_OK);
	memory_store_release(&store); /* it has what it needs */
	return s;
}

static void put_json(FILE *f, const char *name, json_t *value) {
	char *text = json_dumps(value, JSON_ENCODE_ANY);
	assert_non_null(text);
	(void)fprintf(f, "const %s = %s;\n", name, text);
	free(text);
	json_decref(value);
}

/* The page that the coordinator serves, with the coordinator's replies where it would ask for them,
 * and then a pointer on the first mark. */
static void write_page(const struct service *s) {
	char path[sizeof dir + 16], *chart = service_loss_chart(s, 300);
	assert_non_null(chart);
	snprintf(path, sizeof path, "%s/page.html", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("<!DOCTYPE html><script>\n", f);
	put_json(f, "told", service_status(s, 2000000, false));
	put_json(f, "picture", json_string(chart));
	(void)fputs(
		"window.fetch = async url => ({ ok: true, json: async () => told, text: async () => picture });\n"
		"setTimeout(() => {\n"
		"	const mark = document.querySelector('circle'), box = mark.getBoundingClientRect();\n"
		"	mark.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.x, clientY: box.y }));\n"
		"	const root = document.documentElement, line = document.querySelector('polyline');\n"
		"	root.dataset.overflow = root.scrollWidth - root.clientWidth;\n"
		"	root.dataset.drawn = line.getBoundingClientRect().width > root.clientWidth / 2;\n"
		"}, 3000);\n</script>\n",
		f);
	assert_int_equal(fwrite(dashboard_html, 1, dashboard_html_bytes, f), dashboard_html_bytes);
	assert_int_equal(fclose(f), 0);
	free(chart);
}

static void look(int width, bool dark) {
	browser_look(dir, "page.html", width, dark, &seen);
	assert_null(strstr(seen.complaints, "CONSOLE"));
	assert_non_null(strstr(seen.dom, "data-overflow=\"0\""));
	assert_non_null(strstr(seen.dom, "data-drawn=\"true\""));
	assert_non_null(strstr(seen.dom, ">round 0: loss 5.0000, 3 participants, 2.50 s</div>"));
	assert_null(strstr(seen.dom, "round 7: ")); /* its loss is not known */
	assert_non_null(strstr(seen.dom, "round 8: loss 4.6000"));
}

static void test_the_page_draws_the_curve(void **state) {
	(void)state;
	browser_need();
	struct service *s = new_service();
	write_page(s);
	service_free(s);
	look(500, false);
	look(1280, true);
}

static int set_up(void **state) {
	(void)state;
	return mkdtemp(dir) == NULL;
}

static int tear_down(void **state) {
	char command[sizeof dir + 16];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command); /* NOLINT(cert-env33-c): a test's own command */
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_page_draws_the_curve)};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
