/* reach_check.c: see reach_check.h. */
#include "worker/join/reach_check.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

enum { AGAIN_US = 500 * RV_US_PER_MS };

/* ---- questions ---- */

static void ask(struct reach_check *c) {
	struct reach_test_request *rq = &c->cfg.request;
	rq->n = c->facts.n;
	for (int i = 0; i < c->facts.n; i++)
		memcpy(rq->addrs[i].addr, c->facts.places[i].addr, sizeof rq->addrs[i].addr);
	c->waits = true;
	c->cfg.ops.ask(c->cfg.ops.ctx, rq);
}

void reach_check_begin(struct reach_check *c, int64_t now_us, const struct reach_check_config *cfg) {
	RV_ASSERT(cfg->port != 0);
	*c = (struct reach_check){.cfg = *cfg,
							  .state = REACH_CHECK_ASKING,
							  .begun_us = now_us,
							  .ask_us = INT64_MAX,
							  .facts = {.port = cfg->port, .router = cfg->router, .mapping = cfg->mapping}};
	ask(c);
}

static void end(struct reach_check *c, const char *why) {
	c->state = REACH_CHECK_IDLE;
	(void)snprintf(c->facts.why, sizeof c->facts.why, "%s", why);
}

static void add_place(struct reach_check *c, enum reach_place_kind kind, const char *host, uint16_t port) {
	struct reach_facts *f = &c->facts;
	struct reach_place p = {.kind = (uint8_t)kind};
	struct address a = {.port = port};
	memcpy(a.host, host, strlen(host) + 1);
	if (port == 0 || f->n == PROBE_MAX_ADDRS || !address_format(&a, p.addr))
		return;
	for (int i = 0; i < f->n; i++)
		if (strcmp(f->places[i].addr, p.addr) == 0)
			return; /* an earlier one of the list explains it */
	f->places[f->n++] = p;
}

/* Lists what to probe: what a person gave, or all ports behind which the worker may be. */
static void list_places(struct reach_check *c) {
	const struct address *given = &c->cfg.given;
	bool elsewhere = given->port != 0 && given->host[0] != '\0' && strcmp(given->host, c->facts.seen) != 0;
	if (given->port != 0)
		add_place(c, REACH_PLACE_GIVEN, elsewhere ? given->host : "", given->port);
	if (elsewhere)
		return;
	add_place(c, REACH_PLACE_MAPPED, "", c->facts.router.mapped);
	add_place(c, REACH_PLACE_OWN, "", c->cfg.port);
	if (strcmp(c->cfg.reflected.host, c->facts.seen) == 0)
		add_place(c, REACH_PLACE_REFLECTED, "", c->cfg.reflected.port);
}

/* Has the addresses tested when all that is to be gathered is there, or late. A machine without a
 * router before it needs not wait for one. */
static void test_if_ready(struct reach_check *c, int64_t now_us) {
	const struct reach_facts *f = &c->facts;
	bool translated = f->local[0] == '\0' || strcmp(f->local, f->seen) != 0;
	bool ready = c->reflected && (f->router.asked || !translated);
	if (c->state != REACH_CHECK_GATHERING || (!ready && now_us - c->gather_us < REACH_GATHER_US))
		return;
	c->state = REACH_CHECK_TESTING;
	list_places(c);
	ask(c);
}

/* ---- answers ---- */

static void begin_to_gather(struct reach_check *c, int64_t now_us, const struct reach_test_reply *reply) {
	struct reach_facts *f = &c->facts;
	memcpy(f->seen, reply->seen, sizeof f->seen);
	f->n_probers = reply->n_probers;
	f->has_relays = reply->n_relays > 0;
	if (f->n_probers == 0) {
		end(c, "");
		return;
	}
	c->state = REACH_CHECK_GATHERING;
	c->gather_us = now_us;
	c->reflected = c->cfg.ops.reflect == NULL || !f->has_relays;
	if (!c->reflected)
		c->cfg.ops.reflect(c->cfg.ops.ctx, reply);
	test_if_ready(c, now_us);
}

static void take_results(struct reach_check *c, int64_t now_us, const struct reach_test_reply *reply) {
	c->facts.n_probers = reply->n_probers;
	for (int i = 0; i < c->facts.n && i < reply->n; i++)
		c->facts.places[i].result = reply->results[i];
	if (reply->done)
		end(c, "");
	else
		c->ask_us = now_us + AGAIN_US;
}

void reach_check_answer(struct reach_check *c, int64_t now_us, const struct reach_test_reply *reply, bool final,
						const char *why) {
	bool expected = c->waits;
	c->waits = false;
	if (!expected || !reach_check_runs(c))
		return;
	if (reply == NULL && (final || c->state == REACH_CHECK_ASKING))
		end(c, why);
	else if (reply == NULL)
		c->ask_us = now_us + AGAIN_US;
	else if (c->state == REACH_CHECK_ASKING)
		begin_to_gather(c, now_us, reply);
	else
		take_results(c, now_us, reply);
}

void reach_check_reflected(struct reach_check *c, int64_t now_us, const struct address *first,
						   const struct address *second) {
	if (c->state != REACH_CHECK_GATHERING)
		return;
	c->reflected = true;
	if (first->host[0] != '\0' && second->host[0] != '\0') {
		bool same = first->port == second->port && strcmp(first->host, second->host) == 0;
		c->facts.mapping = same ? CHECK_MAPPING_INDEPENDENT : CHECK_MAPPING_DEPENDENT;
	}
	c->cfg.reflected = *first;
	test_if_ready(c, now_us);
}

void reach_check_router(struct reach_check *c, int64_t now_us, const struct reach_router *router) {
	c->facts.router = *router;
	test_if_ready(c, now_us);
}

void reach_check_local(struct reach_check *c, const char *host) {
	(void)snprintf(c->facts.local, sizeof c->facts.local, "%s", host);
}

/* ---- time ---- */

void reach_check_tick(struct reach_check *c, int64_t now_us) {
	if (!reach_check_runs(c))
		return;
	if (now_us - c->begun_us >= REACH_CHECK_US) {
		end(c, "the test did not end in time");
		return;
	}
	test_if_ready(c, now_us);
	if (c->state == REACH_CHECK_TESTING && !c->waits && now_us >= c->ask_us)
		ask(c);
}

int64_t reach_check_deadline_us(const struct reach_check *c) {
	if (!reach_check_runs(c))
		return INT64_MAX;
	int64_t at = c->begun_us + REACH_CHECK_US;
	if (c->state == REACH_CHECK_GATHERING && c->gather_us + REACH_GATHER_US < at)
		at = c->gather_us + REACH_GATHER_US;
	if (c->state == REACH_CHECK_TESTING && !c->waits && c->ask_us < at)
		at = c->ask_us;
	return at;
}

/* ---- what follows ---- */

const struct reach_place *reach_open_place(const struct reach_facts *f) {
	for (int i = 0; i < f->n; i++)
		if (f->places[i].result == PROBE_OPEN)
			return &f->places[i];
	return NULL;
}

static bool was_looked_at(uint8_t result) {
	return result == PROBE_OTHER_KEY || result == PROBE_REFUSED || result == PROBE_SILENT;
}

bool reach_mapping_refuted(const struct reach_facts *f) {
	for (int i = 0; i < f->n; i++)
		if (f->places[i].kind == REACH_PLACE_MAPPED && was_looked_at(f->places[i].result))
			return true;
	return false;
}

enum reach_kind reach_of_facts(const struct reach_facts *f) {
	const struct reach_place *open = reach_open_place(f);
	bool closed = false;
	if (open != NULL)
		return open->kind == REACH_PLACE_MAPPED ? REACH_MAPPED : REACH_DIRECT;
	for (int i = 0; i < f->n; i++)
		closed = closed || was_looked_at(f->places[i].result);
	if (!closed)
		return REACH_NOT_KNOWN;
	return f->mapping == CHECK_MAPPING_INDEPENDENT && f->has_relays ? REACH_PUNCH : REACH_RELAY;
}
