/* sim_oracle.c: what must hold at every step, judged independently of the cores.
 *
 * - A document is announced only on durable facts, numbers only grow, and one number is one
 *   document.
 * - A round is committed once; its digest is that of the mean over the roster's contributions,
 *   computed here; or of what a lying owner gave, where nobody can know (sim_oracle_given.c).
 * - No inner step is counted in two commits of a fragment.
 * - A worker that applied round r, or installed a snapshot, has the run's state of that round, bit
 *   for bit; unless a bit of it was flipped: then it is named, and nobody else is; once the
 *   majority's full hash is known it contributes nothing before it has installed a snapshot; and it
 *   does not end so. (A low bit may fade: the outer step rounds it away. What was told of the state
 *   before, wrong, stays wrong, and the worker resyncs all the same.)
 * - A member keeps its number. Bytes sent are those of the formula (when nothing went wrong). */
#include "sim.h"

#include "base/assert.h"
#include "base/chain.h"

#include <stdlib.h>
#include <string.h>

/* ---- contributions ---- */

/* What the process that said `boot` of a member gave for a round: the same in every attempt. */
static struct sim_contribution *contribution_of(const struct sim *s, uint64_t round, uint32_t member, uint64_t boot) {
	for (struct sim_contribution *c = s->oracle.contributions; c != NULL; c = c->next)
		if (c->round == round && c->member == member && c->boot == boot)
			return c;
	return NULL;
}

static struct sim_contribution *contribution_new(struct sim *s, const struct sim_worker *w, uint64_t boot) {
	struct sim_contribution *c = sim_alloc(sizeof *c);
	*c = (struct sim_contribution){.round = w->reduce_round,
								   .boot = boot,
								   .member = w->member,
								   .host = w->host,
								   .bytes = sim_alloc(s->max_payload),
								   .left = s->opt.feedback > 0 ? sim_alloc(s->opt.n_params * sizeof *c->left) : NULL,
								   .next = s->oracle.contributions};
	s->oracle.contributions = c;
	return c;
}

void oracle_contribution(struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	const struct document *d = round_document(w->core);
	uint64_t snapshot_round = d->snapshot_round;
	if (w->told_wrong >> snapshot_round & 1)
		sim_fail(s, "w%d: contributes to round %llu, although its full hash of round %llu is not the majority's", host,
				 (unsigned long long)w->reduce_round, (unsigned long long)snapshot_round);
	const uint64_t boot = d->members[document_find(d, w->member)].boot;
	struct sim_contribution *c = contribution_of(s, w->reduce_round, w->member, boot);
	const bool again = c != NULL;
	if (!again)
		c = contribution_new(s, w, boot);
	if (again && memcmp(c->bytes, w->participant.encoded, sim_payload(s, c->round)) != 0)
		sim_fail(s, "w%d: gives another contribution to round %llu in attempt %u", host, (unsigned long long)c->round,
				 w->reduce_attempt);
	memcpy(c->bytes, w->participant.encoded, sim_payload(s, c->round));
	c->progress = w->own_progress;
	if (s->opt.feedback == 0)
		return;
	memcpy(c->left, s->oracle.residuals[host].next, s->opt.n_params * sizeof *c->left);
	c->losses = s->oracle.residuals[host].losses;
}

/* ---- commits ---- */

/* Each inner step is counted once in each fragment. */
static void count_steps(struct sim *s, const struct sim_contribution *c) {
	struct sim_oracle *o = &s->oracle;
	for (int i = 0; i < c->progress.n; i++) {
		size_t id = (size_t)c->progress.ids[i] * SIM_MAX_FRAGMENTS + c->round % s->opt.fragments;
		while (id >= o->cap_counted[c->host]) {
			size_t cap = o->cap_counted[c->host] * 2 + 256;
			o->counted[c->host] = realloc(o->counted[c->host], cap * sizeof(uint16_t));
			RV_ASSERT(o->counted[c->host] != NULL);
			memset(o->counted[c->host] + o->cap_counted[c->host], 0,
				   (cap - o->cap_counted[c->host]) * sizeof(uint16_t));
			o->cap_counted[c->host] = cap;
		}
		uint16_t *counted = &o->counted[c->host][id];
		if (*counted != 0)
			sim_fail(s, "step %u of w%d counts twice: in the commits of rounds %d and %llu", c->progress.ids[i],
					 c->host, *counted - 1, (unsigned long long)c->round);
		*counted = (uint16_t)(c->round + 1);
	}
}

/* Finds each participant's contribution, counts its steps, and computes the mean. */
static bool reference_mean(struct sim *s, struct sim_roster *r, uint8_t *out) {
	const struct sim_contribution **from = sim_alloc((size_t)r->n * sizeof(const struct sim_contribution *));
	bool ok = roster_settle(s, r);
	for (int i = 0; i < r->n && ok; i++) {
		from[i] = contribution_of(s, r->round, r->of[i].member, r->of[i].boot);
		if (from[i] == NULL) {
			sim_fail(s, "round %llu attempt %u is committed without a contribution of member %u",
					 (unsigned long long)r->round, r->attempt, r->of[i].member);
			ok = false;
			break;
		}
		count_steps(s, from[i]);
		oracle_commits_residual(s, from[i], &r->of[i].form);
		s->stats.sent_less += r->of[i].form.codec != 0 || r->of[i].form.part != 0;
	}
	ok = ok && oracle_mean(s, r, from, out);
	free(from);
	return ok;
}

static bool same_participants(const struct core_record *rec, const struct sim_roster *r) {
	bool same = rec->n_members == r->n;
	for (int i = 0; i < r->n && same; i++)
		same = rec->members[i] == r->of[i].member;
	return same;
}

static void forget_contributions(struct sim_oracle *o) {
	while (o->contributions != NULL) {
		struct sim_contribution *c = o->contributions;
		o->contributions = c->next;
		free(c->bytes);
		free(c->left);
		free(c);
	}
}

/* The state of every round, as it must be. */
static void remember_state(struct sim *s) {
	struct sim_oracle *o = &s->oracle;
	size_t bytes = s->opt.n_params * sizeof(float);
	uint64_t r = o->n_committed;
	o->chain[r] = o->global.chain;
	o->full[r] = global_full_hash(&o->global);
	o->theta[r] = sim_alloc(bytes);
	o->v[r] = sim_alloc(bytes);
	memcpy(o->theta[r], o->global.theta, bytes);
	memcpy(o->v[r], o->global.state[0], bytes);
}

void oracle_init(struct sim *s) {
	struct sim_oracle *o = &s->oracle;
	RV_ASSERT(global_init(&o->global, &s->global_config, s->theta0, NULL) == RV_OK);
	means_oracle_init(s);
	o->last_document = sim_alloc(NET_MAX_DOCUMENT_BYTES);
	remember_state(s);
	for (int h = 0; h < SIM_MAX_WORKERS; h++)
		o->member_of[h] = NET_NO_MEMBER;
	memset(o->host_of, 0xff, sizeof o->host_of);
	for (int h = 0; h < s->opt.n_workers; h++) {
		o->residuals[h].left = sim_alloc(s->opt.n_params * sizeof(float));
		o->residuals[h].next = sim_alloc(s->opt.n_params * sizeof(float));
	}
}

static void count_rows(struct sim *s, const struct sim_roster *r) {
	s->stats.commits_in_rows += r->n_rows > 1;
	for (int row = 0; row < r->n_rows; row++)
		s->stats.rows_left_out += r->rows[row].weight == 0;
}

static void on_commit(struct sim *s, const struct core_record *rec) {
	struct sim_oracle *o = &s->oracle;
	unsigned long long round = rec->round;
	struct sim_roster *r = roster_of(s, rec->round, rec->attempt);
	if (rec->round != o->n_committed)
		sim_fail(s, "round %llu is committed after %llu rounds", round, (unsigned long long)o->n_committed);
	else if (r == NULL || !r->announced || !same_participants(rec, r))
		sim_fail(s, "round %llu is committed over another roster than was announced", round);
	oracle_stranded_commit(s, rec->round);
	if (s->failed)
		return;
	uint8_t *mean = sim_alloc(s->max_payload);
	if (reference_mean(s, r, mean)) {
		struct rv_hash digest = global_digest(&o->global, rec->round, mean);
		if (!rv_hash_equal(&digest, &rec->digest) && given_explains(s, r, &rec->digest, mean))
			digest = rec->digest;
		if (!rv_hash_equal(&digest, &rec->digest))
			sim_fail(s, "the digest of round %llu attempt %u is not that of the mean over its roster", round,
					 rec->attempt);
		RV_ASSERT(global_apply(&o->global, mean, &digest, NULL) == RV_OK);
		means_oracle_commit(s, r);
		o->digest[o->n_committed] = digest;
		s->plan->committed_us[o->n_committed] = s->now_us;
		o->n_committed++;
		remember_state(s);
		if (!rv_hash_equal(&rec->chain, &o->global.chain))
			sim_fail(s, "the chain of round %llu does not follow from its digest", round);
	}
	free(mean);
	forget_contributions(o);
	memset(o->in_last, 0, sizeof o->in_last);
	for (int i = 0; i < r->n; i++)
		o->in_last[oracle_host_of(s, r->of[i].member)] = true;
	oracle_leases_commit(s, rec);
	count_rows(s, r);
	s->stats.commits++;
	s->stats.commits_with_all += r->n == s->opt.n_workers;
	sim_say(s, SIM_COORDINATOR, "round %llu is committed in attempt %u over %d", round, rec->attempt, r->n);
}

static void on_snapshot(struct sim *s, const struct core_record *rec) {
	if (rec->round > s->oracle.n_committed || !rv_hash_equal(&rec->digest, &s->oracle.full[rec->round]))
		sim_fail(s, "a false snapshot of round %llu is vouched for", (unsigned long long)rec->round);
	s->oracle.snapshot_round = rec->round;
}

void oracle_record(struct sim *s, const struct core_record *rec) {
	moves_record(s, rec);
	if (rec->type == CORE_ROSTER)
		roster_record(s, rec);
	else if (rec->type == CORE_COMMIT)
		on_commit(s, rec);
	else if (rec->type == CORE_SNAPSHOT)
		on_snapshot(s, rec);
	else if (rec->type == CORE_ROLLBACK)
		oracle_rollback(s, rec);
}

/* ---- documents ---- */

/* What it says of before its snapshot. */
static void check_older(struct sim *s, const struct document *d) {
	const struct sim_oracle *o = &s->oracle;
	uint64_t from = document_reaches_to(d);
	if (d->n_older > 0 && !rv_hash_equal(&d->older_chain, &o->chain[from]))
		sim_fail(s, "document %llu: a chain of round %llu that is not the run's", (unsigned long long)d->seq,
				 (unsigned long long)from);
	for (uint64_t round = from; round < d->snapshot_round; round++)
		if (!rv_hash_equal(document_digest(d, round), &o->digest[round]))
			sim_fail(s, "round %llu is announced with two digests", (unsigned long long)round);
	for (int i = 0; i < d->n_kept_snapshots; i++)
		if (d->kept_snapshots[i].round > 0 &&
			!rv_hash_equal(&d->kept_snapshots[i].hash, &o->full[d->kept_snapshots[i].round]))
			sim_fail(s, "document %llu: a kept snapshot that is not the run's", (unsigned long long)d->seq);
}

static void check_commits(struct sim *s, const struct document *d) {
	const struct sim_oracle *o = &s->oracle;
	if (d->round > o->n_committed) {
		sim_fail(s, "the commit of round %llu is announced before it is durable", (unsigned long long)d->round - 1);
		return;
	}
	if (!rv_hash_equal(&d->chain, &o->chain[d->round]) ||
		!rv_hash_equal(&d->snapshot_chain, &o->chain[d->snapshot_round]))
		sim_fail(s, "document %llu: a chain that is not the run's", (unsigned long long)d->seq);
	for (int i = 0; i < d->n_log; i++)
		if (!rv_hash_equal(&d->log[i], &o->digest[d->snapshot_round + (uint64_t)i]))
			sim_fail(s, "round %llu is announced with two digests",
					 (unsigned long long)d->snapshot_round + (unsigned)i);
	if (d->snapshot_round > 0 && !rv_hash_equal(&d->snapshot_hash, &o->full[d->snapshot_round]))
		sim_fail(s, "document %llu: a snapshot that is not the run's", (unsigned long long)d->seq);
	check_older(s, d);
}

/* What the document says to all alike. */
static uint64_t head_of(const struct document *d) {
	struct rv_hasher h;
	rv_hash_init(&h);
	const uint64_t numbers[] = {d->phase,  d->term,          d->round,           d->attempt,  d->snapshot_round,
								d->n_log,  d->n_kept_rounds, d->deadline_ms,     d->n_chunks, d->n_roster,
								d->n_rows, d->banned.n,      d->slow_deadline_ms};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		rv_hash_u64(&h, numbers[i]);
	uint64_t head;
	const struct rv_hash hash = rv_hash_final(&h);
	memcpy(&head, hash.b, sizeof head);
	return head;
}

/* Each member has its own document: one number is one document of it, and to all the same state. */
static void check_own(struct sim *s, int host, const struct document *d, const uint8_t *bytes, size_t n) {
	struct sim_told *told = &s->oracle.told[host];
	const struct rv_hash hash = rv_hash_of(bytes, n);
	if (d->seq == told->seq && !rv_hash_is_zero(&told->hash) && !rv_hash_equal(&told->hash, &hash))
		sim_fail(s, "two documents of w%d have the number %llu", host, (unsigned long long)d->seq);
	if (d->seq == s->oracle.last_seq && s->oracle.last_document_bytes > 0 && head_of(d) != s->oracle.last_head)
		sim_fail(s, "document %llu says something else to w%d than to others", (unsigned long long)d->seq, host);
	*told = (struct sim_told){.seq = d->seq, .hash = hash};
}

void oracle_document(struct sim *s, int host, const uint8_t *bytes, size_t n, bool own) {
	struct sim_oracle *o = &s->oracle;
	if (n == o->last_document_bytes && memcmp(bytes, o->last_document, n) == 0)
		return;
	struct document *d = s->doc;
	struct rv_errtext et = {0};
	if (document_decode(bytes, n, d, &et) != RV_OK)
		sim_fail(s, "a document that cannot be read: %s", et.text);
	else if (d->seq < o->last_seq)
		sim_fail(s, "document %llu is announced after document %llu", (unsigned long long)d->seq,
				 (unsigned long long)o->last_seq);
	else if (d->seq == o->last_seq && o->last_document_bytes > 0 && !own)
		sim_fail(s, "two documents have the number %llu", (unsigned long long)d->seq);
	else
		check_commits(s, d);
	if (!s->failed && own)
		check_own(s, host, d, bytes, n);
	if (!s->failed && d->phase == RUN_REDUCE)
		roster_document(s, host, d);
	sim_say(s, SIM_COORDINATOR, "announces document %llu: phase %d, round %llu attempt %u, snapshot %llu, %d members",
			(unsigned long long)d->seq, d->phase, (unsigned long long)d->round, d->attempt,
			(unsigned long long)d->snapshot_round, d->n_members);
	o->last_seq = d->seq;
	o->last_head = own ? head_of(d) : 0;
	memcpy(o->last_document, bytes, n);
	o->last_document_bytes = n;
}

/* ---- workers ---- */

static bool is_the_runs(const struct sim *s, const struct global_state *g) {
	const struct sim_oracle *o = &s->oracle;
	size_t bytes = s->opt.n_params * sizeof(float);
	return g->round <= o->n_committed && memcmp(g->theta, o->theta[g->round], bytes) == 0 &&
		   memcmp(g->state[0], o->v[g->round], bytes) == 0;
}

struct rv_hash oracle_full_hash_of(const struct sim *s, const struct global_state *g) {
	const struct sim_oracle *o = &s->oracle;
	bool known = is_the_runs(s, g) && rv_hash_equal(&g->chain, &o->chain[g->round]);
	return known ? o->full[g->round] : global_full_hash(g);
}

void oracle_applied(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct global_state *g = &w->global;
	if (w->term != s->oracle.term)
		return; /* it does not know yet that its rounds were taken back */
	bool right = is_the_runs(s, g);
	bool same_chain = g->round <= s->oracle.n_committed && rv_hash_equal(&g->chain, &s->oracle.chain[g->round]);
	if (!same_chain || (!right && host != s->flip_victim))
		sim_fail(s, "w%d: its state of round %llu is not the run's", host, (unsigned long long)g->round);
	if (!right && !w->flipped) /* a process that loads what a former one wrote */
		w->flipped_at = g->round;
	s->stats.faded += w->flipped && right;
	w->flipped = !right;
}

bool oracle_is_wrong(const struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	return w->flipped || w->told_wrong != 0;
}

void oracle_installed(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	if (w->term == s->oracle.term && !is_the_runs(s, &w->global))
		sim_fail(s, "w%d: installed a state of round %llu that is not the run's", host,
				 (unsigned long long)w->global.round);
	s->stats.resynced += oracle_is_wrong(s, host);
	w->flipped = false;
	w->told_wrong = 0;
	w->told_attempt = 0; /* what it gave before that may be in a mean */
}

void oracle_full_hash(struct sim *s, int host, uint64_t round, const struct rv_hash *hash) {
	struct sim_worker *w = &s->workers[host];
	if (w->term == s->oracle.term && !rv_hash_equal(hash, &s->oracle.full[round]))
		w->told_wrong |= UINT64_C(1) << round;
}

void oracle_wrong_state(struct sim *s, int host, const char *text) {
	if (s->workers[host].term == s->oracle.term && !oracle_is_wrong(s, host))
		sim_fail(s, "w%d: takes its own state for wrong: %s", host, text);
	sim_say(s, host, "%s", text);
}

void oracle_finished(struct sim *s, int host) {
	enum { TIME_TO_VERIFY_US = 60 * SIM_S };
	const struct sim_worker *w = &s->workers[host];
	bool had_time = s->healed && s->now_us - s->healed_us > TIME_TO_VERIFY_US;
	if (w->flipped && (had_time || round_end_verified(w->core)))
		sim_fail(s, "w%d: ends with a bit flipped since round %llu", host, (unsigned long long)w->flipped_at);
}

void oracle_named(struct sim *s, uint32_t member) {
	s->stats.named++;
	if (lies_at(s, oracle_host_of(s, member)))
		return;
	if (s->flip_victim == SIM_NOBODY || s->oracle.member_of[s->flip_victim] != member)
		sim_fail(s, "member %u is named for its full hash, but no bit of it was flipped", member);
}

void oracle_member(struct sim *s, int host, uint32_t member) {
	uint32_t *known = &s->oracle.member_of[host];
	if (*known != NET_NO_MEMBER && *known != member)
		sim_fail(s, "w%d was member %u and is member %u now", host, *known, member);
	*known = member;
	RV_ASSERT(member < SIM_MAX_WORKERS); /* each key joins once */
	s->oracle.host_of[member] = (int16_t)host;
}

int oracle_host_of(const struct sim *s, uint32_t member) {
	return member < SIM_MAX_WORKERS ? s->oracle.host_of[member] : SIM_NOBODY;
}

void oracle_bytes(struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	struct reduce_info info = grid_info(w->reduce);
	if (info.tx_bytes != w->expected_tx || info.resent_bytes != 0)
		sim_fail(s, "w%d sent %llu bytes in round %llu, the formula says %llu", host, (unsigned long long)info.tx_bytes,
				 (unsigned long long)w->reduce_round, (unsigned long long)w->expected_tx);
}

/* The file is there, is what the run committed, and can be had from there. */
static bool on_another_disk(const struct sim *s, int host, enum file_kind kind, uint64_t round) {
	for (int h = 0; h < s->opt.n_workers; h++) {
		bool other = h != host && !(homes_is_closed(s, h) && homes_is_closed(s, host));
		const struct sim_file *f = other ? disk_find(&s->workers[h].disk, kind, round) : NULL;
		if (f != NULL && !f->unsynced && files_is_the_runs(s, f))
			return true;
	}
	return false;
}

bool oracle_others_hold_the_run(const struct sim *s, int host) {
	const struct sim_oracle *o = &s->oracle;
	if (disk_find(&s->workers[host].disk, FILE_LOG, o->n_committed) != NULL)
		return false; /* a vote that is on its way */
	if (o->snapshot_round > 0 && !on_another_disk(s, host, FILE_SNAPSHOT, o->snapshot_round))
		return false;
	for (uint64_t r = o->snapshot_round; r < o->n_committed; r++)
		if (!on_another_disk(s, host, FILE_LOG, r))
			return false;
	return true;
}

void oracle_release(struct sim *s) {
	struct sim_oracle *o = &s->oracle;
	for (uint64_t r = 0; r <= o->n_committed; r++) {
		free(o->theta[r]);
		free(o->v[r]);
	}
	free(o->last_document);
	means_oracle_release(s);
	given_release(s);
	oracle_leases_release(s);
	forget_contributions(o);
	rosters_forget(o, 0);
	for (int h = 0; h < SIM_MAX_WORKERS; h++) {
		free(o->counted[h]);
		free(o->residuals[h].left);
		free(o->residuals[h].next);
	}
	global_release(&o->global);
}
