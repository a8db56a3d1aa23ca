/* test_e2e_reach.c: where members are. The pages that everybody may read do not tell it; who cannot
 * be reached is told, with what helps. */
#include "rounds.h"
#include "tests/common/check.h"

#include <ctype.h>
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 3, PAGE_BYTES = 4 << 20, NEEDLE_BYTES = 80, UNREACHABLE_ROUNDS = 3 };

static const char run_of_three[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 3\n"
								   "min-workers = 2\nsteps-per-round = 2\nrounds = 100000\nsnapshot-every = 4\n"
								   "grace-ms = 2000\nsilence-ms = 8000\n";

/* ---- pages ---- */

struct page {
	char text[PAGE_BYTES];
	size_t n;
};

static size_t take(char *data, size_t size, size_t n, void *page) {
	struct page *p = page;
	assert_true(p->n + size * n < sizeof p->text);
	memcpy(p->text + p->n, data, size * n);
	p->n += size * n;
	p->text[p->n] = '\0';
	return size * n;
}

/* As a browser gets it: without a certificate of its own. */
static void get(const struct e2e *e, const char *path, struct page *p) {
	char url[128];
	CURL *c = curl_easy_init();
	p->n = 0;
	snprintf(url, sizeof url, "https://%s%s", e->listen, path);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, p);
	CURLcode rc = curl_easy_perform(c);
	if (rc != CURLE_OK)
		fail_msg("%s: %s", url, curl_easy_strerror(rc));
	curl_easy_cleanup(c);
}

/* ---- what they must not hold ---- */

static bool is_word(int c) {
	return isalnum(c) || c == '_' || c == '.';
}

/* Not as a part of a longer word or number. */
static bool holds_word(const char *text, const char *word) {
	size_t n = strlen(word);
	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		if ((at == text || !is_word(at[-1])) && !is_word(at[n]))
			return true;
	return false;
}

struct secrets {
	char words[2 + WORKERS][NEEDLE_BYTES]; /* the address, the host's name, every port */
	int n;
};

static void add(struct secrets *s, const char *word) {
	snprintf(s->words[s->n++], NEEDLE_BYTES, "%s", word);
}

static void learn_secrets(struct e2e *e, struct secrets *s) {
	char host[NEEDLE_BYTES] = "", port[16];
	*s = (struct secrets){.n = 0};
	add(s, "127.0.0.1");
	assert_int_equal(gethostname(host, sizeof host - 1), 0);
	add(s, host);
	for (int i = 0; i < WORKERS; i++) {
		json_t *j = e2e_wait_event(&e->workers[i], "started", NULL, 0, NULL);
		snprintf(port, sizeof port, "%d", (int)e2e_int(j, "port"));
		json_decref(j);
		add(s, port);
	}
}

static void check_string(const char *text, const struct secrets *s) {
	for (int i = 0; i < s->n; i++)
		if (holds_word(text, s->words[i]))
			fail_msg("everybody reads '%s' in: %s", s->words[i], text);
}

/* Sets a bit of `found` for each of the words that a text holds. Texts alone: a number may be equal
 * to a port. */
static void find_in_json(const json_t *j, const struct secrets *s, unsigned *found) {
	const char *key;
	const json_t *value;
	size_t i;
	for (int k = 0; k < s->n; k++)
		if (json_is_string(j) && holds_word(json_string_value(j), s->words[k]))
			*found |= 1U << k;
	json_array_foreach(j, i, value) find_in_json(value, s, found);
	json_object_foreach((json_t *)j, key, value) {
		check_string(key, s);
		find_in_json(value, s, found);
	}
}

static unsigned find_in_status(const struct e2e *e, const struct secrets *s, struct page *p) {
	unsigned found = 0;
	get(e, "/v1/status", p);
	json_t *status = json_loadb(p->text, p->n, 0, NULL);
	assert_non_null(status);
	find_in_json(status, s, &found);
	json_decref(status);
	return found;
}

/* What a text says of a round, or of bytes, may be equal to a port once, but not in each of several
 * rounds: a secret is told if one word stands in all of them. */
static void check_status(const struct e2e *e, const struct secrets *s, struct page *p) {
	enum { LOOKS = 4 };
	unsigned found = find_in_status(e, s, p);
	for (int i = 1; i < LOOKS && found; i++) {
		const int64_t round = e2e_latest_round(e, 0);
		json_decref(e2e_wait_event(&e->workers[0], "round", "round", round + 1, NULL));
		found &= find_in_status(e, s, p);
	}
	for (int i = 0; i < s->n; i++)
		if (found >> i & 1)
			fail_msg("everybody reads '%s' in: %s", s->words[i], p->text);
}

static void check_pages(const struct e2e *e, const struct secrets *s) {
	static struct page p;
	struct secrets names = {.n = 2, .words = {"127.0.0.1"}};
	memcpy(names.words[1], s->words[1], NEEDLE_BYTES);
	static const char *const texts[] = {"/", "/metrics", "/v1/config", "/v1/status"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		get(e, texts[i], &p);
		check_string(p.text, &names);
	}
	check_status(e, s, &p);
}

static void operate(struct e2e *e, const char *what, const char *member) {
	char dir[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	e2e_run(e, what, (const char *const[]){"rivulet-coordinator", what, "--dir", dir, member, NULL}, 0);
}

static void speak_plainly(struct e2e *e, const char *advertise) {
	e->says_little = true;
	e->worker_args[0] = "--data";
	e->worker_args[1] = e->data;
	e->worker_args[2] = "--listen";
	e->worker_args[3] = "127.0.0.1:0";
	e->worker_args[4] = "--threads=1";
	e->worker_args[5] = advertise;
}

/* Joins, rounds, a death, a return under another port, a ban: what is told of each is scanned. */
static void public_pages_do_not_tell_where_members_are(void **state) {
	static struct e2e e;
	struct secrets s;
	*state = &e;
	e2e_open(&e, run_of_three, WORKERS);
	speak_plainly(&e, NULL);
	e2e_start_workers(&e, WORKERS);
	learn_secrets(&e, &s);
	json_decref(e2e_wait_event(&e.workers[0], "round", "round", 2, NULL));
	check_pages(&e, &s);
	process_signal(&e.workers[2], SIGKILL);
	process_assert_exit(&e.workers[2], 128 + SIGKILL);
	long from = e2e_lines_so_far(&e, 2);
	e2e_start_worker(&e, 2, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[2], "round", NULL, 0, &from));
	operate(&e, "ban", "1");
	process_assert_exit(&e.workers[1], 4);
	operate(&e, "unban", "1");
	check_pages(&e, &s);
	json_t *status = e2e_status(&e); /* the operator's */
	const json_t *member = json_array_get(json_object_get(status, "members"), 0);
	assert_non_null(strstr(e2e_text(member, "addr"), "127.0.0.1:"));
	assert_string_equal(e2e_text(member, "name"), "worker 0");
	json_decref(status);
}

/* ---- who cannot be reached ---- */

static bool says_apart(struct e2e *e, int i, int64_t other) {
	bool found = false;
	json_t *status = e2e_status(e);
	const json_t *member = json_array_get(json_object_get(status, "members"), (size_t)i), *v;
	size_t k;
	json_array_foreach(json_object_get(member, "apart_from"), k, v) found = found || json_integer_value(v) == other;
	json_decref(status);
	return found;
}

/* Two whose address leads nowhere, as behind two routers, in a run without a relay: each reaches
 * the third only. */
static void who_cannot_be_reached_is_told_what_helps(void **state) {
	static struct e2e e;
	long from = 0;
	*state = &e;
	e2e_open(&e, run_of_three, WORKERS);
	process_signal(&e.coordinator, SIGTERM);
	process_assert_exit(&e.coordinator, 0);
	e.coordinator_option = "--no-relay";
	e2e_start_coordinator(&e);
	speak_plainly(&e, NULL);
	e2e_start_worker(&e, 0, NULL, NULL);
	speak_plainly(&e, "--advertise=127.0.0.1:1");
	e2e_start_worker(&e, 1, NULL, NULL);
	e2e_start_worker(&e, 2, NULL, NULL);
	for (int i = 1; i < WORKERS; i++) {
		json_t *j = e2e_wait_event(&e.workers[i], "apart", NULL, 0, i == 2 ? &from : NULL);
		assert_non_null(strstr(e2e_text(j, "text"), "forward TCP port"));
		assert_non_null(strstr(e2e_text(j, "others"), i == 1 ? "member 2" : "member 1"));
		json_decref(j);
	}
	assert_true(says_apart(&e, 1, 2) && says_apart(&e, 2, 1));
	json_t *round = e2e_wait_event(&e.workers[2], "round", "participants", WORKERS, NULL); /* all the same */
	json_decref(round);
	assert_null(e2e_find_event(e.workers[0].log, "apart", NULL, 0, NULL));
	process_signal(&e.workers[2], SIGINT);
	process_assert_exit(&e.workers[2], 0);
	memset(e.worker_args, 0, sizeof e.worker_args);
	e.worker_args[0] = "--advertise="; /* reachable again */
	e2e_start_worker(&e, 2, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[1], "counted", NULL, 0, NULL));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(public_pages_do_not_tell_where_members_are, e2e_teardown),
		cmocka_unit_test_teardown(who_cannot_be_reached_is_told_what_helps, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
