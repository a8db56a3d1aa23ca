/* book.c: see book.h. */
#include "net/mesh/book.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gcra.h"

#include <string.h>

enum { PAUSES = 5 }; /* doubled: 30 s << 5 is more than the longest */
static const int64_t first_pause_us = INT64_C(30) * RV_US_PER_S, last_pause_us = INT64_C(900) * RV_US_PER_S;
static const struct gcra packets = {.each_us = INT64_C(30) * RV_US_PER_S, .burst = 40};

static bool is_same(const struct address *a, const struct address *b) {
	return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static struct book_entry *find(const struct book *b, const struct address *at) {
	for (int i = 0; i < b->n; i++)
		if (is_same(&b->entries[i].at, at))
			return (struct book_entry *)&b->entries[i];
	return NULL;
}

/* ---- what documents say ---- */

static void add(struct book *b, const struct book_entry *e) {
	if (b->n < NET_MAX_CANDIDATES && find(b, &e->at) == NULL)
		b->entries[b->n++] = *e;
}

/* Adds what is stated and known, or new. */
static void add_stated(struct book *b, const struct book *old, const struct candidate_ref *c, bool answered) {
	struct book_entry e = {.kind = c->kind};
	if (address_parse(c->addr, &e.at, NULL) != RV_OK)
		return;
	const struct book_entry *known = find(old, &e.at);
	if (known != NULL) {
		e = *known;
		e.kind = c->kind;
	}
	if (e.answered == answered)
		add(b, &e);
}

static bool is_stated(const struct candidate_ref *list, int n, const struct address *at) {
	struct address stated;
	for (int i = 0; i < n; i++)
		if (address_parse(list[i].addr, &stated, NULL) == RV_OK && is_same(&stated, at))
			return true;
	return false;
}

static enum book_news compare(const struct book *old, const struct book *now) {
	int kept = 0;
	for (int i = 0; i < now->n; i++)
		kept += find(old, &now->entries[i].at) != NULL;
	if (kept == now->n)
		return now->n == 0 && old->n > 0 ? BOOK_MOVED : BOOK_SAME;
	return kept == 0 && old->n > 0 ? BOOK_MOVED : BOOK_CHANGED;
}

/* Those that answered come first, the latest before the others. The pass goes on: a member that
 * states another address all the time gets no dial without the pause. */
enum book_news book_set(struct book *b, const struct candidate_ref *list, int n) {
	const struct book old = *b;
	RV_ASSERT(n >= 0);
	b->n = 0;
	for (int i = 0; i < old.n; i++)
		if (old.entries[i].answered && is_stated(list, n, &old.entries[i].at))
			add(b, &old.entries[i]);
	for (int i = 0; i < n; i++)
		add_stated(b, &old, &list[i], false);
	return compare(&old, b);
}

/* ---- dialing ---- */

static bool may_dial(const struct book_entry *e, enum address_reach met) {
	return address_is_dialable(&e->at, met) ||
		   (e->kind == CANDIDATE_PRIVATE && address_reach(&e->at) == ADDRESS_PRIVATE);
}

static int64_t ready_us(const struct book *b, const struct book_entry *e) {
	int64_t paid_us = gcra_ready_us(&packets, b->paid_us);
	if (e->answered)
		return 0;
	return e->ready_us > paid_us ? e->ready_us : paid_us;
}

const struct book_entry *book_next(const struct book *b, int64_t now_us, enum address_reach met) {
	for (int i = b->turn; i < b->n; i++)
		if (may_dial(&b->entries[i], met) && ready_us(b, &b->entries[i]) <= now_us)
			return &b->entries[i];
	return NULL;
}

int64_t book_ready_us(const struct book *b, enum address_reach met) {
	int64_t first_us = INT64_MAX;
	for (int i = 0; i < b->n; i++)
		if (may_dial(&b->entries[i], met) && ready_us(b, &b->entries[i]) < first_us)
			first_us = ready_us(b, &b->entries[i]);
	return first_us;
}

void book_dialed(struct book *b, const struct book_entry *e, int64_t now_us) {
	ptrdiff_t at = e - b->entries;
	RV_ASSERT(at >= 0 && at < b->n);
	b->entries[at].dialed_us = now_us;
	b->turn = (int)at + 1;
}

/* Returns how often TCP sends the first packet of a connection in that time, at most: Linux repeats
 * it every second since 6.5 (tcp_syn_linear_timeouts), and twice as late each time before. */
static int packets_in(int64_t us) {
	int64_t n = 1 + us / RV_US_PER_S;
	return n < BOOK_FREE_PACKETS ? (int)n : BOOK_FREE_PACKETS;
}

void book_failed(struct book *b, const struct address *at, int64_t now_us, double jitter) {
	struct book_entry *e = find(b, at);
	if (e == NULL || e->answered)
		return;
	int n = packets_in(now_us - e->dialed_us);
	for (int i = 0; i < n; i++)
		gcra_count(&packets, &b->paid_us, now_us);
	bool was_free = e->packets < BOOK_FREE_PACKETS;
	e->packets = (uint8_t)(e->packets + n < BOOK_FREE_PACKETS ? e->packets + n : BOOK_FREE_PACKETS);
	if (e->packets < BOOK_FREE_PACKETS)
		return;
	if (!was_free && e->pauses < PAUSES)
		e->pauses++;
	int64_t pause_us = first_pause_us << e->pauses;
	e->ready_us = now_us + (int64_t)(jitter * (double)(pause_us < last_pause_us ? pause_us : last_pause_us));
}

void book_rewind(struct book *b) {
	b->turn = 0;
}

void book_answered(struct book *b, const struct address *at) {
	struct book_entry *e = find(b, at);
	if (e == NULL)
		return;
	struct book_entry first = *e;
	first.answered = true;
	first.packets = first.pauses = 0;
	memmove(b->entries + 1, b->entries, (size_t)(e - b->entries) * sizeof first);
	b->entries[0] = first;
}

bool book_has_answered(const struct book *b, const struct address *at) {
	const struct book_entry *e = find(b, at);
	return e != NULL && e->answered;
}

bool book_is_proven(const struct book *b) {
	for (int i = 0; i < b->n; i++)
		if (b->entries[i].answered)
			return true;
	return false;
}

bool book_is_brief(const struct book_entry *e) {
	return !e->answered && (e->packets == 0 || e->packets == BOOK_FREE_PACKETS);
}

/* ---- events ---- */

void book_forgive(struct book *b) {
	b->turn = 0;
	for (int i = 0; i < b->n; i++) {
		b->entries[i].packets = b->entries[i].pauses = 0;
		b->entries[i].ready_us = 0;
	}
}

void book_retry(struct book *b) {
	b->turn = 0;
	for (int i = 0; i < b->n; i++)
		b->entries[i].ready_us = 0;
}

const struct address *book_too_narrow(const struct book *b, enum address_reach met) {
	for (int i = 0; i < b->n; i++)
		if (may_dial(&b->entries[i], met))
			return NULL;
	return b->n > 0 ? &b->entries[0].at : NULL;
}
