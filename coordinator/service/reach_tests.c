/* reach_tests.c: see reach_tests.h. */
#include "coordinator/service/reach_tests.h"

#include "base/assert.h"
#include "base/gcra.h"
#include "net/address.h"

#include <netinet/in.h>
#include <string.h>

void reach_tests_init(struct reach_tests *t, uint64_t first_id) {
	*t = (struct reach_tests){.last_id = first_id};
}

static const struct gcra all_tests = {.each_us = REACH_EVERY_US, .burst = REACH_BURST},
						 of_reports = {.each_us = REACH_EVERY_US, .burst = REACH_BURST - REACH_NEWCOMERS},
						 new_givens = {.each_us = REACH_GIVEN_EVERY_US, .burst = REACH_GIVEN_BURST},
						 given_probes = {.each_us = REACH_GIVEN_PROBE_US, .burst = REACH_GIVEN_PROBES},
						 probes_of_others = {.each_us = REACH_GIVEN_PROBE_US, .burst = REACH_GIVEN_PROBES - 1};

/* ---- sites ---- */

static int family_of(const char *host, struct sockaddr_storage *out) {
	struct address a = {.port = 1};
	socklen_t n;
	memcpy(a.host, host, strnlen(host, sizeof a.host - 1));
	return a.host[0] != '\0' && address_to_socket(&a, out, &n) ? out->ss_family : AF_UNSPEC;
}

bool reach_same_site(const char *a, const char *b) {
	char x[NET_ADDR_BYTES], y[NET_ADDR_BYTES];
	address_site(a, x);
	address_site(b, y);
	return strcmp(x, y) == 0;
}

/* ---- one test ---- */

static bool is_kept(const struct reach_test *t, int64_t now_us) {
	return t->id != 0 && now_us - t->begun_us < REACH_KEPT_US;
}

static bool same_question(const struct reach_question *a, const struct reach_question *b) {
	if (memcmp(a->key, b->key, NET_KEY_BYTES) != 0 || !reach_same_site(a->host, b->host) || a->n != b->n)
		return false;
	for (int i = 0; i < a->n; i++)
		if (strcmp(a->addrs[i].addr, b->addrs[i].addr) != 0)
			return false;
	return true;
}

static bool answers(const struct reach_test *t, int64_t now_us, const struct reach_question *q) {
	return t->id != 0 && now_us - t->begun_us < REACH_SAME_US && same_question(&t->ask, q);
}

/* A result that says more about the worker comes first. */
static int weight(uint8_t result) {
	static const int weights[PROBE_RESULTS] = {
		[PROBE_UNABLE] = 1, [PROBE_SILENT] = 2, [PROBE_REFUSED] = 3, [PROBE_OTHER_KEY] = 4, [PROBE_OPEN] = 5};
	return weights[result];
}

static bool is_done(const struct reach_test *t, int64_t now_us) {
	bool done = true;
	for (int i = 0; i < t->n_probers; i++)
		done = done && t->probers[i].answered;
	return done || now_us - t->begun_us >= REACH_TEST_US;
}

static void report_on(const struct reach_test *t, int64_t now_us, struct reach_finding *out) {
	*out = (struct reach_finding){.n_probers = t->n_probers, .done = is_done(t, now_us)};
	for (int i = 0; i < t->n_probers; i++)
		for (int k = 0; k < t->ask.n; k++)
			if (weight(t->probers[i].results[k]) > weight(out->results[k]))
				out->results[k] = t->probers[i].results[k];
}

/* ---- given addresses ---- */

static struct reach_given *find_given(struct reach_tests *t, const char *addr) {
	for (int i = 0; i < REACH_GIVENS; i++)
		if (strcmp(t->givens[i].addr, addr) == 0)
			return &t->givens[i];
	return NULL;
}

/* Returns the time from which nothing is lost with it: no confirmation, no probe that counts. */
static int64_t ends_us(const struct reach_given *g) {
	int64_t us = g->paid_us;
	for (int i = 0; i < REACH_HOLDERS; i++)
		us = g->holders[i].until_us > us ? g->holders[i].until_us : us;
	return us;
}

static bool is_confirmed(const struct reach_given *g, int64_t now_us) {
	bool is = false;
	for (int i = 0; i < REACH_HOLDERS; i++)
		is = is || g->holders[i].until_us > now_us;
	return is;
}

/* Returns true if the worker, or its site unless a member reports it, has brought as many as it
 * may. */
static bool brought_enough(const struct reach_tests *t, int64_t now_us, const struct reach_question *q) {
	int by_key = 0, by_site = 0;
	for (int i = 0; i < REACH_GIVENS; i++) {
		const struct reach_given *g = &t->givens[i];
		if (g->addr[0] == '\0' || ends_us(g) <= now_us)
			continue;
		by_key += memcmp(g->key, q->key, NET_KEY_BYTES) == 0;
		by_site += !is_confirmed(g, now_us) && reach_same_site(g->host, q->host);
	}
	return by_key >= REACH_GIVENS_EACH || (!q->of_report && by_site >= REACH_GIVENS_EACH);
}

/* Makes a place for an address that is new to the run, in place of the one that ended first. NULL:
 * there are too many new ones, or none has ended. */
static struct reach_given *add_given(struct reach_tests *t, int64_t now_us, const struct reach_question *q) {
	struct reach_given *g = &t->givens[0];
	for (int i = 1; i < REACH_GIVENS; i++)
		if (ends_us(&t->givens[i]) < ends_us(g))
			g = &t->givens[i];
	if (ends_us(g) > now_us || brought_enough(t, now_us, q) || !gcra_take(&new_givens, &t->given_paid_us, now_us))
		return NULL;
	*g = (struct reach_given){.addr = ""};
	memcpy(g->addr, q->addrs[0].addr, sizeof g->addr);
	memcpy(g->key, q->key, sizeof g->key);
	memcpy(g->host, q->host, sizeof g->host);
	return g;
}

/* Returns the limit on probes of it for the sake of `key`: where others hold it, one less. */
static const struct gcra *limit_of(const struct reach_given *g, const uint8_t key[NET_KEY_BYTES]) {
	bool held = false;
	for (int i = 0; i < REACH_HOLDERS; i++) {
		const struct reach_holder *h = &g->holders[i];
		if (h->until_us != 0 && memcmp(h->key, key, NET_KEY_BYTES) == 0)
			return &given_probes;
		held = held || h->until_us != 0;
	}
	return held ? &probes_of_others : &given_probes;
}

/* Returns how many probers may dial it now, at most `wanted`, and accounts for them. */
static int pay_given(struct reach_tests *t, int64_t now_us, const struct reach_question *q, int wanted) {
	struct reach_given *g = find_given(t, q->addrs[0].addr);
	if (g == NULL)
		g = add_given(t, now_us, q);
	int n = 0;
	while (g != NULL && n < wanted && gcra_take(limit_of(g, q->key), &g->paid_us, now_us))
		n++;
	return n;
}

/* Returns the place of the holder `key`: its own, a free one, or that of the one that lapsed first.
 * NULL: others hold them all. */
static struct reach_holder *place_of(struct reach_given *g, int64_t now_us, const uint8_t key[NET_KEY_BYTES]) {
	struct reach_holder *first = &g->holders[0];
	for (int i = 0; i < REACH_HOLDERS; i++) {
		struct reach_holder *h = &g->holders[i];
		if (h->until_us != 0 && memcmp(h->key, key, NET_KEY_BYTES) == 0)
			return h;
		if (h->until_us < first->until_us)
			first = h;
	}
	return first->until_us <= now_us ? first : NULL;
}

/* Remembers what the probers of a given address have said so far, for the worker that asked. */
static void confirm(struct reach_tests *t, int64_t now_us, const struct reach_test *test) {
	struct reach_given *g = test->ask.given ? find_given(t, test->ask.addrs[0].addr) : NULL;
	struct reach_holder *h = g != NULL ? place_of(g, now_us, test->ask.key) : NULL;
	bool open = false, less = false;
	for (int i = 0; i < test->n_probers; i++) {
		uint8_t result = test->probers[i].results[0];
		open = open || result == PROBE_OPEN;
		less = less || (result != PROBE_OPEN && result != PROBE_UNABLE && result != PROBE_NOT_KNOWN);
	}
	if (h == NULL || (!open && !less))
		return;
	if (open && !less) {
		memcpy(h->key, test->ask.key, NET_KEY_BYTES);
		h->until_us = now_us + REACH_CONFIRMED_US;
	} else if (memcmp(h->key, test->ask.key, NET_KEY_BYTES) == 0)
		*h = (struct reach_holder){.until_us = 0};
}

bool reach_tests_confirmed(const struct reach_tests *t, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						   const char *addr) {
	for (int i = 0; i < REACH_GIVENS; i++)
		for (int k = 0; k < REACH_HOLDERS && strcmp(t->givens[i].addr, addr) == 0; k++) {
			const struct reach_holder *h = &t->givens[i].holders[k];
			if (h->until_us > now_us && memcmp(h->key, key, NET_KEY_BYTES) == 0)
				return true;
		}
	return false;
}

/* ---- a new test ---- */

/* Returns the free place, or that of the oldest test that has ended; NULL: none has. */
static struct reach_test *find_place(struct reach_tests *t, int64_t now_us) {
	struct reach_test *oldest = NULL;
	for (int i = 0; i < REACH_TESTS; i++) {
		struct reach_test *test = &t->tests[i];
		if (!is_kept(test, now_us))
			return test;
		if (is_done(test, now_us) && (oldest == NULL || test->begun_us < oldest->begun_us))
			oldest = test;
	}
	return oldest;
}

static int count_of_site(const struct reach_tests *t, int64_t now_us, const char *host) {
	int n = 0;
	for (int i = 0; i < REACH_TESTS; i++)
		n += is_kept(&t->tests[i], now_us) && reach_same_site(t->tests[i].ask.host, host);
	return n;
}

/* Returns true if `a` is the better prober of an address of that family: it has it too, as far as
 * is known, and has not dialed for longer. */
static bool is_better(const struct reach_tests *t, int family, const struct reach_helper *a,
					  const struct reach_helper *b) {
	struct sockaddr_storage sa;
	bool a_has = family_of(a->host, &sa) == family, b_has = family_of(b->host, &sa) == family;
	return a_has != b_has ? a_has : t->used_us[a->member] < t->used_us[b->member];
}

/* Chooses up to REACH_PROBERS members, of different sites; `picked` may be NULL. Returns how
 * many. */
static int pick(const struct reach_tests *t, const struct reach_question *q, const struct reach_helper *helpers,
				int n_helpers, const struct reach_helper *picked[REACH_PROBERS]) {
	struct sockaddr_storage sa;
	int family = family_of(q->host, &sa), n = 0;
	for (; n < REACH_PROBERS; n++) {
		const struct reach_helper *best = NULL;
		for (int i = 0; i < n_helpers; i++) {
			const struct reach_helper *h = &helpers[i];
			RV_ASSERT(h->member < NET_MAX_HERE);
			bool is_other =
				!reach_same_site(h->host, q->host) && (n == 0 || !reach_same_site(h->host, picked[0]->host));
			if (is_other && (best == NULL || is_better(t, family, h, best)))
				best = h;
		}
		if (best == NULL)
			break;
		picked[n] = best;
	}
	return n;
}

static enum rv_err begin(struct reach_tests *t, int64_t now_us, const struct reach_question *q,
						 const struct reach_helper *const *picked, int n, struct reach_test **out,
						 struct rv_errtext *et) {
	struct reach_test *test = find_place(t, now_us);
	const struct gcra *limit = q->of_report ? &of_reports : &all_tests;
	*out = NULL;
	if (count_of_site(t, now_us, q->host) >= REACH_PER_SITE)
		return rv_fail(et, RV_E_BUSY, "too many reachability tests from this address: wait ten minutes");
	if (test == NULL || gcra_ready_us(limit, t->paid_us) > now_us)
		return rv_fail(et, RV_E_BUSY, "too many reachability tests at once: wait a minute");
	if (q->given)
		n = pay_given(t, now_us, q, n);
	if (n == 0)
		return rv_fail(et, RV_E_BUSY, "%s was probed within the hour, or too many other addresses were",
					   q->addrs[0].addr);
	gcra_count(limit, &t->paid_us, now_us);
	*test = (struct reach_test){.id = ++t->last_id, .ask = *q, .begun_us = now_us, .n_probers = (uint8_t)n};
	for (int i = 0; i < n; i++) {
		test->probers[i] = (struct reach_prober){.member = picked[i]->member};
		t->used_us[picked[i]->member] = now_us;
	}
	*out = test;
	return RV_OK;
}

enum rv_err reach_tests_ask(struct reach_tests *t, int64_t now_us, const struct reach_question *q,
							const struct reach_helper *helpers, int n_helpers, struct reach_finding *out,
							struct rv_errtext *et) {
	const struct reach_helper *picked[REACH_PROBERS];
	struct reach_test *test = NULL;
	RV_ASSERT(q->n <= PROBE_MAX_ADDRS && (!q->given || q->n == 1));
	for (int i = 0; i < REACH_TESTS && test == NULL && q->n > 0; i++)
		if (answers(&t->tests[i], now_us, q))
			test = &t->tests[i];
	if (test == NULL) {
		int n = pick(t, q, helpers, n_helpers, picked);
		*out = (struct reach_finding){.n_probers = (uint8_t)n, .done = true};
		if (n == 0 || q->n == 0)
			return RV_OK;
		RV_TRY(begin(t, now_us, q, picked, n, &test, et));
	}
	report_on(test, now_us, out);
	return RV_OK;
}

/* ---- probers ---- */

static bool waits_for(const struct reach_test *t, int64_t now_us, uint32_t member) {
	bool waits = false;
	for (int i = 0; t->id != 0 && i < t->n_probers; i++)
		waits = waits || (t->probers[i].member == member && !t->probers[i].answered);
	return waits && now_us - t->begun_us < REACH_TEST_US;
}

/* Returns the oldest test after number `id` that waits for the member; NULL: none. */
static const struct reach_test *find_next(const struct reach_tests *t, int64_t now_us, uint32_t member, uint64_t id) {
	const struct reach_test *first = NULL;
	for (int i = 0; i < REACH_TESTS; i++) {
		const struct reach_test *test = &t->tests[i];
		if (test->id > id && waits_for(test, now_us, member) && (first == NULL || test->id < first->id))
			first = test;
	}
	return first;
}

bool reach_tests_next(const struct reach_tests *t, int64_t now_us, uint32_t member, struct probes *out) {
	const struct reach_test *test;
	uint64_t id = 0;
	out->n = 0;
	while (out->n < PROBES_AT_ONCE && (test = find_next(t, now_us, member, id)) != NULL) {
		struct probe *p = &out->list[out->n++];
		*p = (struct probe){.id = id = test->id, .n = test->ask.n};
		memcpy(p->key, test->ask.key, NET_KEY_BYTES);
		memcpy(p->addrs, test->ask.addrs, sizeof p->addrs);
	}
	return out->n > 0;
}

static void take_one(struct reach_tests *t, int64_t now_us, struct reach_test *test, uint32_t member,
					 const struct probed *probed) {
	for (int k = 0; k < test->n_probers; k++) {
		struct reach_prober *p = &test->probers[k];
		if (p->member != member || p->answered)
			continue;
		p->answered = true;
		memcpy(p->results, probed->results, sizeof p->results);
		confirm(t, now_us, test);
	}
}

void reach_tests_take(struct reach_tests *t, int64_t now_us, uint32_t member, const struct probed_list *probed) {
	for (int i = 0; i < probed->n; i++) {
		const struct probed *r = &probed->list[i];
		for (int k = 0; k < REACH_TESTS; k++)
			if (t->tests[k].id == r->id && r->id != 0 && r->n == t->tests[k].ask.n)
				take_one(t, now_us, &t->tests[k], member, r);
	}
}
