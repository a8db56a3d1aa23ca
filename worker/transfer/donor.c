/* donor.c: a queue per peer, a few open files, a few pieces in memory (worker/transfer/donor.h). */
#include "worker/transfer/donor.h"

#include "base/assert.h"

#include <stddef.h>
#include <string.h>

enum {
	SNAPSHOT_SHARE = 10,           /* bytes of the all-reduce per byte of a snapshot */
	REDUCE_QUIET_US = 1000 * 1000, /* it has sent nothing for this long: the line is free */
	READY_US = 100 * 1000,         /* a link without room for this long is not ready */
	CREDIT_MAX_BYTES = 4 * DONOR_SLICE_BYTES,
	RATE_RETRY_US = 10 * 1000
};

/* What a member that is linked has asked for. */
struct waiting {
	bool used;
	uint32_t member;
	int first, n;     /* ring in donor.asked, the oldest first */
	int forgotten;    /* number of the first ones that are no longer wanted */
	uint32_t sent;    /* bytes of the answer to the first one */
	uint64_t served;  /* number of the latest slice it got */
	int64_t ready_us; /* when its link last had room */
};

struct donor {
	struct donor_config cfg;
	int n_waiting;  /* number of `waiting`, from the first, that were ever in use */
	int n_busy;     /* those with something waiting */
	uint64_t clock; /* counts slices */
	struct rate no_cap;
	struct donor_budget budget, inner;
	uint64_t round; /* the open one */
	bool reducing;
	int64_t reduce_us;                   /* when the all-reduce last sent; INT64_MIN: never */
	int64_t snapshot_credit, log_credit; /* bytes that its shares allow */
	uint64_t served_bytes;
	uint8_t body[FRAME_PIECE_BYTES];
	struct member_set askers, limited;
	struct waiting waiting[NET_MAX_PEERS];
	struct frame_fetch asked[NET_MAX_PEERS][DONOR_MAX_WAITING]; /* last: most of it is never touched */
};

size_t donor_size(void) {
	return sizeof(struct donor);
}

struct donor *donor_init(void *memory, const struct donor_config *cfg) {
	struct donor *d = memory;
	RV_ASSERT(cfg->source.find);
	memset(d, 0, offsetof(struct donor, asked));
	d->cfg = *cfg;
	if (d->cfg.cap == NULL)
		d->cfg.cap = &d->no_cap;
	d->budget = cfg->budget;
	d->inner = cfg->inner;
	d->reduce_us = INT64_MIN;
	if (cfg->slice_bytes == 0)
		d->cfg.slice_bytes = DONOR_SLICE_BYTES;
	return d;
}

static struct waiting *find_waiting(struct donor *d, uint32_t member) {
	for (int i = 0; i < d->n_waiting; i++)
		if (d->waiting[i].used && d->waiting[i].member == member)
			return &d->waiting[i];
	return NULL;
}

/* Returns NULL if all places are taken. */
static struct waiting *add_waiting(struct donor *d, uint32_t member) {
	int at = 0;
	while (at < d->n_waiting && d->waiting[at].used)
		at++;
	if (at == NET_MAX_PEERS)
		return NULL;
	d->n_waiting = at < d->n_waiting ? d->n_waiting : at + 1;
	d->waiting[at] = (struct waiting){.used = true, .member = member};
	return &d->waiting[at];
}

static struct frame_fetch *asked_by(struct donor *d, const struct waiting *w) {
	return d->asked[w - d->waiting];
}

static const struct frame_fetch *oldest_of(struct donor *d, const struct waiting *w) {
	return &asked_by(d, w)[w->first];
}

enum rv_err donor_receive(struct donor *d, uint32_t member, const struct frame_header *h, const uint8_t *body,
						  struct rv_errtext *et) {
	struct frame_fetch f;
	RV_TRY(frame_fetch_decode(h, body, &f, et));
	struct waiting *w = find_waiting(d, member);
	if (f.part == FRAME_PART_FORGET) {
		if (w != NULL)
			w->forgotten = w->n;
		return RV_OK;
	}
	if (w == NULL && (w = add_waiting(d, member)) == NULL)
		return rv_fail(et, RV_E_FULL, "%d other members ask this worker for data", (int)NET_MAX_PEERS);
	if (w->n == DONOR_MAX_WAITING)
		return rv_fail(et, RV_E_PROTOCOL, "more than %d FETCHes before the first was answered", DONOR_MAX_WAITING);
	d->n_busy += w->n == 0;
	asked_by(d, w)[(w->first + w->n++) % DONOR_MAX_WAITING] = f;
	(void)member_set_add(&d->askers, member);
	return RV_OK;
}

bool donor_busy(const struct donor *d) {
	return d->n_busy > 0;
}

void donor_link_down(struct donor *d, uint32_t member) {
	struct waiting *w = find_waiting(d, member);
	if (w == NULL)
		return;
	d->n_busy -= w->n > 0;
	w->used = false;
	member_set_remove(&d->askers, member);
}

const struct member_set *donor_askers(const struct donor *d) {
	return &d->askers;
}

/* ---- how much, and whose turn ---- */

void donor_set_round(struct donor *d, uint64_t round, bool reducing) {
	d->round = round;
	d->reducing = reducing;
}

static void add_credit(int64_t *credit, size_t bytes) {
	*credit += (int64_t)bytes;
	if (*credit > CREDIT_MAX_BYTES)
		*credit = CREDIT_MAX_BYTES;
}

void donor_reduce_sent(struct donor *d, int64_t now_us, size_t bytes) {
	if (now_us - REDUCE_QUIET_US > d->reduce_us)
		d->snapshot_credit = d->log_credit = 0; /* it begins */
	d->reduce_us = now_us;
	add_credit(&d->snapshot_credit, bytes / SNAPSHOT_SHARE);
	add_credit(&d->log_credit, bytes);
}

static bool reduce_sends(const struct donor *d, int64_t now_us) {
	return d->reducing && d->reduce_us != INT64_MIN && now_us - d->reduce_us < REDUCE_QUIET_US;
}

static bool is_limited(const struct donor *d, int64_t now_us) {
	return rate_is_capped(d->cfg.cap) || reduce_sends(d, now_us);
}

/* Returns the credit that the oldest request of `w` draws on. */
static int64_t *credit_of(struct donor *d, const struct waiting *w) {
	return oldest_of(d, w)->kind == FRAME_FETCH_LOG ? &d->log_credit : &d->snapshot_credit;
}

/* Returns the budget that it draws on. */
static struct donor_budget *budget_of(struct donor *d, const struct waiting *w) {
	return oldest_of(d, w)->kind == FRAME_FETCH_INNER ? &d->inner : &d->budget;
}

static bool line_is_free(struct donor *d, int64_t now_us, const struct waiting *w) {
	return rate_allowed(d->cfg.cap, now_us) > 0 && (!reduce_sends(d, now_us) || *credit_of(d, w) > 0);
}

/* Returns true if another member has waited longer, whose link has room and which draws on the same
 * credit. */
static bool is_passed_over(struct donor *d, int64_t now_us, const struct waiting *self) {
	for (int i = 0; i < d->n_waiting; i++) {
		const struct waiting *w = &d->waiting[i];
		bool rivals = w->used && w->n > 0 && (!reduce_sends(d, now_us) || credit_of(d, w) == credit_of(d, self));
		if (rivals && w->served < self->served && now_us - w->ready_us < READY_US)
			return true;
	}
	return false;
}

static int64_t later(int64_t a, int64_t b) {
	return a > b ? a : b;
}

/* Returns when only its link keeps the member from its next answer. */
static int64_t allowed_us(struct donor *d, int64_t now_us, const struct waiting *w) {
	int64_t at = later(rate_ready_us(d->cfg.cap), donor_budget_ready_us(budget_of(d, w), w->member));
	at = later(at, d->cfg.source.ready_us(d->cfg.source.ctx));
	if (reduce_sends(d, now_us) && *credit_of(d, w) <= 0)
		at = later(at, d->reduce_us + REDUCE_QUIET_US);
	return at;
}

int64_t donor_deadline_us(struct donor *d, int64_t now_us) {
	int64_t first = INT64_MAX;
	for (int i = 0; d->n_busy > 0 && i < d->n_waiting; i++) {
		const struct waiting *w = &d->waiting[i];
		if (w->used && w->n > 0 && allowed_us(d, now_us, w) < first)
			first = allowed_us(d, now_us, w);
	}
	if (first > now_us) /* or no member waits */
		return first;
	return is_limited(d, now_us) ? now_us + RATE_RETRY_US
								 : INT64_MAX; /* a link was not ready, or it was not its turn */
}

/* ---- answers ---- */

static bool find(struct donor *d, int64_t now_us, const struct frame_fetch *f, struct frame_piece *out) {
	*out = (struct frame_piece){.of = *f, .encoding = FRAME_RAW};
	return d->cfg.source.find(d->cfg.source.ctx, now_us, out);
}

static void pop(struct waiting *w) {
	RV_ASSERT(w->n > 0);
	w->first = (w->first + 1) % DONOR_MAX_WAITING;
	w->n--;
	w->forgotten -= w->forgotten > 0;
	w->sent = 0;
}

static void put_slice(struct donor *d, struct waiting *w, struct frame_piece *p, struct peers_message *out) {
	uint32_t left = p->total - w->sent;
	p->offset = w->sent;
	p->data += w->sent;
	p->data_bytes = left < d->cfg.slice_bytes ? left : d->cfg.slice_bytes;
	*out = (struct peers_message){.header = frame_piece_encode(p, d->cfg.run_tag, d->body),
								  .part = {d->body, p->data},
								  .part_bytes = {FRAME_PIECE_BYTES, p->data_bytes}};
	w->sent += p->data_bytes;
	if (w->sent == p->total)
		pop(w);
}

static void put_none(struct donor *d, struct waiting *w, const struct frame_fetch *f, struct peers_message *out) {
	*out = (struct peers_message){.header = frame_none_encode(f, d->cfg.run_tag, d->body),
								  .part = {d->body, NULL},
								  .part_bytes = {FRAME_NONE_BYTES, 0}};
	pop(w);
}

/* Returns true if something is left of the member's budget. */
static bool may_be_given(struct donor *d, int64_t now_us, const struct waiting *w) {
	struct donor_budget *b = budget_of(d, w);
	int64_t left = donor_budget_left(b, now_us, d->round, w->member);
	if (left <= 0)
		(void)member_set_add(&d->limited, w->member);
	else if (left >= b->whole_bytes / 4)
		member_set_remove(&d->limited, w->member);
	return left > 0;
}

/* Charges a member's budget for a slice, or a NONE. The last one of an answer brings what looking
 * it up costs at least: a member could have this one read files for next to nothing. `given`: bytes
 * of the answer so far. */
static void charge(struct donor *d, struct donor_budget *b, const struct waiting *w, size_t bytes, uint32_t given) {
	const bool ends = w->sent == 0;
	donor_budget_charge(b, w->member, bytes);
	if (ends && given < d->cfg.least_bytes)
		donor_budget_charge(b, w->member, d->cfg.least_bytes - given);
}

bool donor_send(struct donor *d, int64_t now_us, uint32_t member, struct peers_message *out) {
	struct waiting *w = find_waiting(d, member);
	RV_ASSERT(w == NULL || w->n == 0 || d->n_busy > 0);
	if (w == NULL || w->n == 0) {
		if (!donor_busy(d))
			d->cfg.source.idle(d->cfg.source.ctx);
		return false;
	}
	struct frame_fetch f = *oldest_of(d, w);
	if (w->forgotten == 0 && !d->cfg.source.may_look(d->cfg.source.ctx, now_us, &f))
		return false;
	if (!may_be_given(d, now_us, w))
		return false;
	w->ready_us = now_us;
	if (!line_is_free(d, now_us, w))
		return false;
	if (is_limited(d, now_us) && is_passed_over(d, now_us, w))
		return false;
	int64_t *credit = credit_of(d, w);
	struct donor_budget *budget = budget_of(d, w); /* an answer may be the last of its request */
	const bool looks = w->forgotten == 0;
	const uint32_t before = looks ? w->sent : d->cfg.least_bytes;
	struct frame_piece p;
	if (looks && find(d, now_us, &f, &p) && w->sent < p.total)
		put_slice(d, w, &p, out);
	else
		put_none(d, w, &f, out);
	size_t bytes = FRAME_HEADER_BYTES + out->part_bytes[0] + out->part_bytes[1];
	rate_charge(d->cfg.cap, bytes);
	*credit -= (int64_t)bytes;
	charge(d, budget, w, bytes, before + (uint32_t)out->part_bytes[1]);
	d->served_bytes += bytes;
	w->served = ++d->clock;
	d->n_busy -= w->n == 0;
	return true;
}

const struct member_set *donor_limited(const struct donor *d) {
	return &d->limited;
}

uint64_t donor_bytes(const struct donor *d) {
	return d->served_bytes;
}
