/* text_donor.c: the run's text, given to other members. */
#include "worker/session/internal.h"

#include <stdlib.h>

/* A member reads in one or two shards in a round, and fetches those of three rounds; in a small
 * text it reads from everywhere (train/text/sequence_order.h). */
enum { SHARDS_AT_ONCE = 64, SHARDS_OF_ROUND = 8 };

static struct donor_budget budget_of(const struct manifest *m) {
	const int64_t shard = (int64_t)manifest_shard_bytes(m, 0);
	return donor_budget_of(SHARDS_AT_ONCE / 2 * shard, SHARDS_OF_ROUND * shard);
}

static void wake(void *ctx) {
	http_client_wakeup(((struct session *)ctx)->http);
}

/* Opens the directory that the trainer reads. */
static enum rv_err open_store(struct session *s, struct text_donor_config *cfg, struct rv_errtext *et) {
	struct manifest *m = malloc(sizeof *m);
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "no memory to give text to others");
	enum rv_err e = manifest_read(s->data_path, m, et);
	if (e == RV_OK)
		e = text_donor_store_open(s->data_path, m, wake, s, &s->text_donor_store, et);
	if (e == RV_OK) {
		cfg->source = text_donor_store_source(s->text_donor_store);
		cfg->donor.budget = budget_of(m);
	}
	free(m);
	return e;
}

enum rv_err session_open_text_donor(struct session *s, uint64_t run_tag, struct rv_errtext *et) {
	const struct run_config *run = &s->member.config;
	struct text_donor_config cfg = {.donor = {.run_tag = run_tag, .cap = &s->donate_cap},
									.source = text_donor_store_empty()};
	if (!run->data_hash[0])
		return RV_OK;
	if (session_has_runs_text(s, run))
		RV_TRY(open_store(s, &cfg, et));
	void *memory = malloc(text_donor_size());
	if (!memory)
		return rv_fail(et, RV_E_NOMEM, "no memory to give text to others");
	s->text_donor = text_donor_init(memory, &cfg);
	return RV_OK;
}

void session_meet_members(struct session *s, uint64_t run_tag) {
	if (s->text)
		text_members_meet(text_members_of(s->text), run_tag, wake, s);
}

void session_turn_text_donor(struct session *s, int64_t now_us) {
	if (s->text_donor_store)
		text_donor_store_reap(s->text_donor_store, now_us);
}

uint64_t session_text_given(const struct session *s) {
	return s->text_donor ? donor_bytes(text_donor_pieces(s->text_donor)) : 0;
}

int64_t session_text_donor_deadline_us(struct session *s, int64_t now_us) {
	return s->text_donor ? text_donor_deadline_us(s->text_donor, now_us) : INT64_MAX;
}

void session_close_text_donor(struct session *s) {
	free(s->text_donor);
	s->text_donor = NULL;
	text_donor_store_close(s->text_donor_store);
	s->text_donor_store = NULL;
}
