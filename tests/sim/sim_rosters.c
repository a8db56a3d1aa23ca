/* sim_rosters.c: rosters: their participants as records state them, and their rows and columns as
 * the members' own documents describe them. Each document shows a part; all of an attempt must be
 * parts of one layout, and that one must follow from the law of base/rows.h and from the attempt
 * before. What a row has become in an attempt in which nobody of it was sent a document follows
 * from `since`: it is what it was. */
#include "sim.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sim_roster *roster_of(const struct sim *s, uint64_t round, uint32_t attempt) {
	struct sim_roster *r = s->oracle.rosters;
	while (r != NULL && (r->round != round || r->attempt != attempt))
		r = r->next;
	return r;
}

static struct sim_roster *roster_new(const struct core_record *rec) {
	struct sim_roster *r = sim_alloc(sizeof *r);
	r->round = rec->round;
	r->attempt = rec->attempt;
	r->n = rec->n_members;
	r->of = sim_alloc((size_t)r->n * sizeof *r->of);
	for (int i = 0; i < r->n; i++)
		r->of[i] = (struct sim_participant){
			.member = rec->members[i], .boot = rec->boots[i], .form = {rec->members[i], rec->codecs[i], rec->parts[i]}};
	return r;
}

static void roster_free(struct sim_roster *r) {
	free(r->of);
	free(r->columns);
	free(r);
}

void rosters_forget(struct sim_oracle *o, uint64_t from_round) {
	struct sim_roster **at = &o->rosters;
	while (*at != NULL) {
		struct sim_roster *r = *at;
		if (r->round < from_round) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		roster_free(r);
	}
}

void roster_record(struct sim *s, const struct core_record *rec) {
	if (roster_of(s, rec->round, rec->attempt) != NULL) {
		sim_fail(s, "two rosters of round %llu attempt %u", (unsigned long long)rec->round, rec->attempt);
		return;
	}
	s->stats.later_attempts += rec->attempt > 1;
	const struct sim_roster *last = s->oracle.rosters;
	s->stats.lost_attempts += rec->attempt > 1 && lies_are_few(s, last) && last->n > 2 && !lies_are_needed(s, last);
	forms_record(s, rec);
	lines_record(s, rec);
	struct sim_roster *r = roster_new(rec);
	r->next = s->oracle.rosters;
	s->oracle.rosters = r;
}

static void complain(struct sim *s, const struct sim_roster *r, int host, const char *what) {
	sim_fail(s, "w%d: its document of round %llu attempt %u %s", host, (unsigned long long)r->round, r->attempt, what);
}

/* ---- one row ---- */

static struct rv_hash hash_of(const struct document *d) {
	struct rv_hasher h;
	rv_hash_init(&h);
	for (int i = 0; i < d->n_members; i++) {
		rv_hash_u64(&h, d->members[i].member);
		rv_hash_u64(&h, d->members[i].weight);
	}
	for (int i = 0; i < d->n_ranges; i++) {
		rv_hash_u64(&h, d->ranges[i].first);
		rv_hash_u64(&h, (uint64_t)d->ranges[i].count << 16 | d->ranges[i].owner);
	}
	return rv_hash_final(&h);
}

static void note_only_row(struct sim *s, const struct document *d, struct sim_roster *r) {
	r->n_rows = 1;
	r->rows[0] = (struct sim_row){.n = (uint16_t)r->n, .since = r->attempt, .known = true};
	for (int i = 0; i < d->n_members; i++) {
		r->of[i].weight = d->members[i].weight;
		r->rows[0].weight += d->members[i].weight;
	}
	for (int i = 0; i < d->n_ranges; i++)
		for (uint32_t c = d->ranges[i].first; c < d->ranges[i].first + d->ranges[i].count; c++) {
			RV_ASSERT(c < SIM_MAX_CHUNKS);
			r->owner[c] = (int16_t)oracle_host_of(s, d->members[d->ranges[i].owner].member);
		}
}

static void check_only_row(struct sim *s, int host, const struct document *d, struct sim_roster *r) {
	const struct rv_hash hash = hash_of(d);
	bool same = d->n_members == r->n;
	for (int i = 0; i < d->n_members && same; i++)
		same = d->members[i].member == r->of[i].member && d->members[i].boot == r->of[i].boot &&
			   forms_agree(&r->of[i], &d->members[i]);
	if (!same)
		complain(s, r, host, "has another roster than its record");
	else if (r->announced && !rv_hash_equal(&hash, &r->hash))
		complain(s, r, host, "has another roster or ownership map than an earlier one");
	else if (!r->announced)
		note_only_row(s, d, r);
	r->hash = hash;
}

/* ---- rows: what all documents say alike ---- */

/* The law of base/rows.h, computed another way. */
static int rows_expected(int n, int row_size) {
	int rows = (int)fmin(round(sqrt(n)), floor(n / 4.0)); /* no row is shorter than four if that can be */
	while (rows * row_size < n)
		rows++;
	return n <= row_size ? 1 : rows < NET_MAX_ROWS ? rows : NET_MAX_ROWS;
}

/* Returns the first attempt since the round was opened, anew after a roster of none. */
static uint32_t opened_at(const struct sim *s, const struct sim_roster *r) {
	uint32_t attempt = r->attempt;
	for (const struct sim_roster *p = r; p != NULL && p->n > 0; p = roster_of(s, r->round, attempt - 1))
		attempt = p->attempt;
	return attempt;
}

/* Returns the latest earlier attempt since then of which a document was sent; NULL: none. */
static struct sim_roster *before(const struct sim *s, const struct sim_roster *r) {
	for (uint32_t attempt = r->attempt - 1, first = opened_at(s, r); attempt >= first; attempt--) {
		struct sim_roster *p = roster_of(s, r->round, attempt);
		if (p != NULL && p->announced)
			return p;
	}
	return NULL;
}

/* Returns true if no roster came in between of which nobody was sent a document. */
static bool is_next(const struct sim *s, const struct sim_roster *r) {
	const struct sim_roster *p = roster_of(s, r->round, r->attempt - 1);
	return p == NULL || p->announced || p->n == 0;
}

/* Returns true if rows and columns are those of the earlier attempt. */
static bool goes_on(const struct sim_roster *p, const struct sim_roster *r) {
	bool same = p != NULL && p->n_rows == r->n_rows && p->n_columns == r->n_columns;
	for (int j = 0; j < r->n_columns && same; j++)
		same = p->columns[j].first == r->columns[j].first && p->columns[j].count == r->columns[j].count;
	return same;
}

static void begin_rows(struct sim *s, int host, const struct document *d, struct sim_roster *r) {
	uint32_t next = 0;
	r->n_rows = d->n_rows;
	r->n_columns = d->n_ranges;
	r->columns = sim_alloc(d->n_ranges * sizeof *r->columns);
	for (int row = 0; row < r->n_rows; row++)
		r->rows[row] = (struct sim_row){.weight = d->row_weights[row], .since = d->row_since[row]};
	for (int j = 0; j < r->n_columns; j++) {
		r->columns[j] = (struct sim_column){.first = d->ranges[j].first, .count = d->ranges[j].count};
		memset(r->columns[j].owner, 0xff, sizeof r->columns[j].owner);
		if (r->columns[j].first != next || r->columns[j].count == 0)
			complain(s, r, host, "has columns that leave chunks out, or share them");
		next += r->columns[j].count;
	}
	if (next != global_round_chunks(&s->global_config, r->round).n_chunks)
		complain(s, r, host, "has columns of another number of chunks than the round's");
	if (is_next(s, r) && !goes_on(before(s, r), r) && r->n_rows != rows_expected(r->n, s->opt.row_size))
		complain(s, r, host, "has another number of rows than its participants make");
	s->stats.rosters_in_rows++;
}

static void check_head(struct sim *s, int host, const struct document *d, const struct sim_roster *r) {
	bool same = d->n_rows == r->n_rows && d->n_ranges == r->n_columns && d->n_roster == r->n;
	for (int row = 0; row < r->n_rows && same; row++)
		same = d->row_weights[row] == r->rows[row].weight && d->row_since[row] == r->rows[row].since;
	for (int j = 0; j < r->n_columns && same; j++)
		same = d->ranges[j].first == r->columns[j].first && d->ranges[j].count == r->columns[j].count;
	if (!same)
		complain(s, r, host, "describes other rows or columns than another member's");
}

/* ---- rows: the one that a document shows ---- */

/* A row that has the sums of an earlier attempt is of the same processes, with the same weights. */
static void check_unchanged(struct sim *s, int host, struct sim_roster *r, int row) {
	struct sim_roster *p = before(s, r);
	const struct sim_row *now = &r->rows[row];
	if (now->since < opened_at(s, r) || now->since > r->attempt)
		complain(s, r, host, "says that a row has changed in no attempt since the round was opened");
	if (s->failed || now->since == r->attempt || p == NULL || now->since > p->attempt)
		return; /* it has no sums, or changed in an attempt of which nobody knew */
	if (!goes_on(p, r) || p->rows[row].since != now->since) {
		complain(s, r, host, "keeps the sums of a row that has changed since, or was another one");
		return;
	}
	const struct sim_row *then = &p->rows[row];
	bool same = !then->known || then->n == now->n;
	for (int i = 0; i < now->n && same && then->known; i++) {
		const struct sim_participant *a = &p->of[then->first + i], *b = &r->of[now->first + i];
		same = a->member == b->member && a->boot == b->boot && a->weight == b->weight;
	}
	if (!same)
		complain(s, r, host, "keeps the sums of a row whose participants have changed");
}

static bool has_only_lost(const struct sim_roster *p, const struct sim_roster *r, int row) {
	const struct sim_row *now = &r->rows[row], *then = &p->rows[row];
	for (int i = 0, at = 0; i < now->n && then->known; i++, at++) {
		while (at < then->n && p->of[then->first + at].member != r->of[now->first + i].member)
			at++;
		if (at == then->n)
			return false;
	}
	return true;
}

/* Rows that go on only lose participants; all others are about as long. */
static bool is_as_laid(const struct sim *s, const struct sim_roster *r, int row) {
	const struct sim_roster *p = before(s, r);
	const int n = r->rows[row].n;
	bool even = n == r->n / r->n_rows || n == (r->n + r->n_rows - 1) / r->n_rows;
	return even || !is_next(s, r) || (goes_on(p, r) && has_only_lost(p, r, row));
}

/* Returns true if the round was opened again before this attempt, or for the first time: rows are
 * laid out anew. */
static bool is_laid_anew(const struct sim *s, const struct sim_roster *r) {
	const struct sim_roster *p = roster_of(s, r->round, r->attempt - 1);
	return r->attempt == 1 || (p != NULL && p->n == 0);
}

/* A row of which fewer than half are left is out of the mean. */
static bool is_enough(const struct sim *s, struct sim_roster *r, int row) {
	const struct sim_roster *p = before(s, r);
	struct sim_row *now = &r->rows[row];
	if (is_laid_anew(s, r))
		now->laid = now->n;
	else if (goes_on(p, r) && has_only_lost(p, r, row) && p->rows[row].known)
		now->laid = p->rows[row].laid;
	return 2 * now->n >= now->laid;
}

static bool note_members(const struct document *d, struct sim_roster *r) {
	struct sim_row *row = &r->rows[d->row];
	uint32_t weight = 0;
	row->first = d->members[0].place;
	row->n = d->n_members;
	for (int i = 0; i < d->n_members; i++) {
		const struct member_ref *m = &d->members[i];
		const int place = row->first + i;
		if (place >= r->n || m->place != place || m->row != d->row || r->of[place].member != m->member ||
			r->of[place].boot != m->boot || !forms_agree(&r->of[place], m))
			return false;
		r->of[place].weight = m->weight;
		weight += m->weight;
	}
	return weight == row->weight;
}

static bool are_in_order(const struct sim_roster *r) {
	int next = 0;
	for (int row = 0; row < r->n_rows; row++) {
		if (r->rows[row].known && r->rows[row].first < next)
			return false;
		next = r->rows[row].known ? r->rows[row].first + r->rows[row].n : next;
	}
	return next <= r->n;
}

static void note_row(struct sim *s, int host, const struct document *d, struct sim_roster *r) {
	if (d->row >= r->n_rows || d->n_members == 0 || r->rows[d->row].weight == 0 || !note_members(d, r)) {
		complain(s, r, host, "has a row that does not agree with the record");
		return;
	}
	r->rows[d->row].known = true;
	if (!are_in_order(r) || !is_as_laid(s, r, d->row))
		complain(s, r, host, "has a row that is not in its place, or too long, or has gained participants");
	if (!is_enough(s, r, d->row))
		complain(s, r, host, "has a row of which fewer than half are left");
	check_unchanged(s, host, r, d->row);
}

static void check_row(struct sim *s, int host, const struct document *d, const struct sim_roster *r) {
	const struct sim_row *row = &r->rows[d->row];
	bool same = d->n_members == row->n;
	for (int i = 0; i < row->n && same; i++) {
		const struct sim_participant *p = &r->of[row->first + i];
		const struct member_ref *m = &d->members[i];
		same = m->place == row->first + i && m->member == p->member && m->boot == p->boot && m->weight == p->weight &&
			   forms_agree(p, m);
	}
	if (!same)
		complain(s, r, host, "has another row than that of a neighbour");
}

/* ---- rows: owners ---- */

static void note_owner(struct sim *s, int host, struct sim_roster *r, int j, int row, uint32_t member) {
	uint32_t *owner = &r->columns[j].owner[row];
	if (*owner != NET_NO_MEMBER && *owner != member)
		complain(s, r, host, "names another owner of a column than another member's");
	*owner = member;
}

static bool is_of_row(const struct sim_roster *r, const struct member_ref *m, int row) {
	return m->row == row && m->place < r->n && r->of[m->place].member == m->member;
}

/* The owners of the column that the host has, in the other rows. */
static void check_section(struct sim *s, int host, const struct document *d, struct sim_roster *r, int j, int k) {
	for (int row = 0; row < r->n_rows && !s->failed; row++) {
		const uint8_t i = d->sections[k].owner[row];
		bool none = row == d->row || r->rows[row].weight == 0;
		if (none != (i == NET_NO_OWNER) || (!none && (i >= d->n_column || !is_of_row(r, &d->column[i], row))))
			complain(s, r, host, "has a section without its owners");
		else if (!none)
			note_owner(s, host, r, j, row, d->column[i].member);
	}
}

static void check_owners(struct sim *s, int host, const struct document *d, struct sim_roster *r) {
	const int self = document_find(d, s->oracle.member_of[host]);
	int own = 0;
	for (int j = 0; j < d->n_ranges && !s->failed; j++) {
		const int owner = d->ranges[j].owner;
		if (owner >= d->n_members) {
			complain(s, r, host, "has a column that nobody in its row owns");
			return;
		}
		note_owner(s, host, r, j, d->row, d->members[owner].member);
		if (owner != self)
			continue;
		bool there = own < d->n_sections && d->sections[own].first == d->ranges[j].first &&
					 d->sections[own].count == d->ranges[j].count;
		if (there)
			check_section(s, host, d, r, j, own);
		else
			complain(s, r, host, "lacks a section of a column that is its own");
		own++;
	}
	if (own != d->n_sections && !s->failed)
		complain(s, r, host, "has sections that are not its own");
}

static void check_rows(struct sim *s, int host, const struct document *d, struct sim_roster *r) {
	if (r->n_rows == 0)
		begin_rows(s, host, d, r);
	check_head(s, host, d, r);
	if (s->failed)
		return;
	if (d->row >= r->n_rows || !r->rows[d->row].known)
		note_row(s, host, d, r);
	else
		check_row(s, host, d, r);
	if (!s->failed)
		check_owners(s, host, d, r);
}

void roster_document(struct sim *s, int host, const struct document *d) {
	struct sim_roster *r = roster_of(s, d->round, d->attempt);
	if (r == NULL) {
		sim_fail(s, "the roster of round %llu attempt %u is announced before it is durable",
				 (unsigned long long)d->round, d->attempt);
		return;
	}
	if (d->n_rows > 1)
		check_rows(s, host, d, r);
	else if (r->n_rows > 1)
		complain(s, r, host, "has one row, and another member's has several");
	else
		check_only_row(s, host, d, r);
	r->announced = true;
}

/* ---- the whole ---- */

static int place_of(const struct sim_roster *r, uint32_t member) {
	for (int i = 0; i < r->n; i++)
		if (r->of[i].member == member)
			return i;
	return -1;
}

/* Nobody of the row was sent a document of this attempt: it is what it was in an earlier one. */
static bool inherit(const struct sim *s, struct sim_roster *r, int row) {
	struct sim_row *to = &r->rows[row];
	for (uint32_t attempt = r->attempt - 1; attempt >= to->since && attempt > 0; attempt--) {
		const struct sim_roster *p = roster_of(s, r->round, attempt);
		if (p == NULL || p->n_rows != r->n_rows || !p->rows[row].known)
			continue;
		const int at = place_of(r, p->of[p->rows[row].first].member);
		if (at < 0 || at + p->rows[row].n > r->n)
			return false;
		to->first = (uint16_t)at;
		to->n = p->rows[row].n;
		for (int i = 0; i < to->n; i++)
			r->of[at + i].weight = p->of[p->rows[row].first + i].weight;
		return to->known = true;
	}
	return false;
}

bool roster_settle(struct sim *s, struct sim_roster *r) {
	int n = 0;
	for (int row = 0; row < r->n_rows; row++) {
		if (r->rows[row].weight > 0 && !r->rows[row].known && !inherit(s, r, row)) {
			sim_fail(s, "round %llu attempt %u is committed, and nobody of row %d was sent it",
					 (unsigned long long)r->round, r->attempt, row);
			return false;
		}
		n += r->rows[row].weight > 0 ? r->rows[row].n : 0;
	}
	if (n != r->n)
		sim_fail(s, "round %llu attempt %u has %d participants, and %d in its rows", (unsigned long long)r->round,
				 r->attempt, r->n, n);
	return !s->failed;
}

int roster_row_owner(const struct sim *s, const struct sim_roster *r, int host, uint32_t chunk) {
	if (r->n_rows <= 1)
		return roster_encoder(s, r, chunk);
	const int place = place_of(r, s->oracle.member_of[host]);
	int j = 0, row = 0;
	while (chunk >= r->columns[j].first + r->columns[j].count)
		j++;
	while (row < r->n_rows &&
		   (!r->rows[row].known || place < r->rows[row].first || place >= r->rows[row].first + r->rows[row].n))
		row++;
	if (row == r->n_rows || r->columns[j].owner[row] == NET_NO_MEMBER)
		return SIM_NOBODY;
	return oracle_host_of(s, r->columns[j].owner[row]);
}

/* The final owner of a chunk is in row c mod rows if that one is in the mean, else in one of those
 * that are, by the rest. */
static int encoding_row(const struct sim_roster *r, uint32_t chunk) {
	int rows[NET_MAX_ROWS], n = 0;
	for (int row = 0; row < r->n_rows; row++)
		if (r->rows[row].weight > 0)
			rows[n++] = row;
	const int first = (int)(chunk % (uint32_t)r->n_rows);
	if (r->rows[first].weight > 0)
		return first;
	return n > 0 ? rows[chunk / (uint32_t)r->n_rows % (uint32_t)n] : 0;
}

int roster_encoder(const struct sim *s, const struct sim_roster *r, uint32_t chunk) {
	if (r->n_rows <= 1)
		return r->announced ? r->owner[chunk] : SIM_NOBODY;
	int j = 0;
	while (chunk >= r->columns[j].first + r->columns[j].count)
		j++;
	const uint32_t member = r->columns[j].owner[encoding_row(r, chunk)];
	return member == NET_NO_MEMBER ? SIM_NOBODY : oracle_host_of(s, member);
}
