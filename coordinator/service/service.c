/* service.c: requests in, replies out, and between them: records made durable before anything of
 * them is announced. */
#include "coordinator/service/internal.h"
#include "coordinator/service/report_bounds.h"
#include "coordinator/store/record_points.h"

#include "base/assert.h"
#include "base/capped.h"
#include "base/chain.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/run_silence.h"
#include "outer/global.h"
#include "outer/slow_codecs.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum {
	RETRY_US = RV_US_PER_S /* a full disk is tried again after that */
};

/* ---- life ---- */

static void fill_chunk_bytes(const struct run_config *run, const struct global_config *g, struct core_config *out) {
	const struct codec *sent = global_sent(g);
	const struct slow_codecs slow = slow_codecs_of(run);
	out->sent_chunk_bytes = sent->encoded_bytes(sent, g->chunks.chunk_elems);
	out->mean_chunk_bytes = g->codec->encoded_bytes(g->codec, g->chunks.chunk_elems);
	const bool is_mean = out->mean_chunk_bytes > out->sent_chunk_bytes;
	out->chunk_bytes = is_mean ? out->mean_chunk_bytes : out->sent_chunk_bytes;
	out->n_slow_codecs = slow.n;
	for (int i = 0; i < slow.n; i++) {
		out->slow_codecs[i] = slow.step[i]->id;
		out->slow_chunk_bytes[i] = slow.step[i]->encoded_bytes(slow.step[i], g->chunks.chunk_elems);
	}
}

/* In a run that carries its text members read what is leased to them. */
static enum rv_err fill_leases(const struct run_config *run, struct core_config *out, struct rv_errtext *et) {
	const uint64_t step = rv_mul_capped((uint64_t)run->batch, (uint64_t)run->grad_accum);
	const uint64_t steps = (uint64_t)(run->steps_per_round + run_config_overlap(run));
	const uint64_t own = rv_mul_capped(step, (uint64_t)run->steps_per_round);
	if (run->data_hash[0] == '\0')
		return RV_OK;
	out->lease_round = rv_mul_capped(step, steps);
	out->lease_tokens = (uint64_t)run->context;
	out->lease_slack = step > own / 2 ? step : own / 2;
	if (out->lease_round > UINT32_MAX / LEASE_ROUNDS)
		return rv_fail(et, RV_E_RANGE,
					   "a round of %" PRIu64 " sequences a member, at most %u with data-hash: lower batch, grad-accum "
					   "or steps-per-round",
					   out->lease_round, UINT32_MAX / LEASE_ROUNDS);
	return RV_OK;
}

/* Returns the share in millionths; 1 at least, as the run's audits are on. */
static uint32_t millionths(double share) {
	const double n = share * 1e6 + 0.5;
	return n < 1 ? 1 : (uint32_t)n;
}

static enum rv_err fill_audits(const struct service *s, struct core_config *out, struct rv_errtext *et) {
	out->audit_chunks = run_config_is_audited(&s->run) ? (uint32_t)s->run.audit_chunks : 0;
	out->audit_window = (uint32_t)s->run.audit_window;
	out->audit_rollback = s->run.audit_rollback;
	out->audit_ppm = run_config_is_scored(&s->run) ? millionths(s->run.audit_training) : 0;
	out->repeat_ppm = run_config_is_repeated(&s->run) ? millionths(s->run.audit_repeat) : 0;
	out->probation = (uint32_t)s->run.probation;
	if (s->cfg.serving == NULL || !run_config_keeps_contributions(&s->run)) /* or it is only read: nothing is drawn */
		return RV_OK;
	return service_load_audit_key(s->cfg.store, &out->audit_secret, et);
}

static enum rv_err fill_core_config(const struct service *s, struct core_config *out, struct rv_errtext *et) {
	const struct run_silence silence = run_silence_of(&s->run);
	struct global_config g;
	RV_TRY(global_config_of_run(&s->run, &s->run_hash, &g, et));
	const uint32_t max_here = s->cfg.max_here > 0 ? s->cfg.max_here : NET_MAX_HERE;
	*out = (struct core_config){.max_here = max_here,
								.max_roster = max_here < NET_MAX_ROSTER ? max_here : NET_MAX_ROSTER,
								.row_size = (uint32_t)s->run.row_size,
								.run_hash = s->run_hash,
								.final_round = (uint64_t)s->run.rounds,
								.min_workers = (uint32_t)s->run.min_workers,
								.fragments = (uint32_t)s->run.fragments,
								.weight_by_tokens = s->run.weight_by_tokens,
								.keeps_owners = s->run.mean_feedback > 0,
								.equal_ownership = s->run.ownership == OWNERSHIP_EQUAL,
								.slow_members = s->run.slow_members,
								.slow_deadline_us = s->run.slow_deadline_ms * RV_US_PER_MS,
								.grace_us = s->run.grace_ms * RV_US_PER_MS,
								.liveness_us = silence.dead * RV_US_PER_MS,
								.silent_us = silence.silent * RV_US_PER_MS,
								.withheld_us = silence.withheld * RV_US_PER_MS,
								.suspect_gather_us = silence.gather * RV_US_PER_MS};
	memcpy(out->run_id, s->cfg.run_id, sizeof out->run_id);
	RV_TRY(fill_audits(s, out, et));
	out->seals = seal_ed25519(NULL);
	out->n_relays = s->cfg.n_relays;
	memcpy(out->relays, s->cfg.relays, sizeof out->relays);
	for (uint32_t fragment = 0; fragment < fragments_count(&g.fragments); fragment++)
		out->n_chunks[fragment] = global_round_chunks(&g, fragment).n_chunks;
	fill_chunk_bytes(&s->run, &g, out);
	out->inner_bytes = 2 * sizeof(float) * (uint64_t)g.n; /* both moments */
	out->sum_bytes = merge_partial_bytes(g.chunks.chunk_elems);
	report_bounds_tokens(&s->run, out);
	return fill_leases(&s->run, out, et);
}

static enum rv_err set_up(struct service *s, int64_t now_us, struct rv_errtext *et) {
	struct core_config cc;
	if (strlen(s->cfg.config) >= sizeof s->config)
		return rv_fail(et, RV_E_RANGE, "the run's configuration has more than %zu bytes", sizeof s->config - 1);
	memcpy(s->config, s->cfg.config, strlen(s->cfg.config));
	RV_TRY(run_config_parse(&s->run, "the run's configuration", s->config, et));
	s->run_hash = rv_run_hash(s->cfg.run_id, s->cfg.config);
	RV_TRY(fill_core_config(s, &cc, et));
	void *memory = malloc(core_size(&cc));
	if (memory == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the coordinator's state");
	s->core = core_init(memory, &cc, now_us);
	RV_TRY(delivery_new(s->cfg.serving, (int)cc.max_here, &s->delivery, et));
	s->most_tokens = core_most_tokens(s->core);
	s->most_chunks = core_most_chunks(&cc);
	s->started_us = s->last_commit_us = now_us;
	s->waiting_since_us = INT64_MAX;
	reach_tests_init(&s->reach, (uint64_t)rv_clock_wall_us());
	if (s->cfg.rounds_path == NULL)
		return RV_OK;
	s->rounds = fopen(s->cfg.rounds_path, "ae");
	return s->rounds ? RV_OK : rv_fail_errno(et, errno, "%s: cannot open for appending", s->cfg.rounds_path);
}

enum rv_err service_new(const struct service_config *cfg, int64_t now_us, struct service **out, struct rv_errtext *et) {
	*out = NULL;
	struct service *s = calloc(1, sizeof *s);
	if (s == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the coordinator");
	s->cfg = *cfg;
	enum rv_err e = set_up(s, now_us, et);
	if (e != RV_OK)
		service_free(s);
	else
		*out = s;
	return e;
}

void service_free(struct service *s) {
	if (s == NULL)
		return;
	if (s->rounds != NULL)
		(void)fclose(s->rounds);
	delivery_free(s->delivery);
	free(s->core);
	free(s);
}

/* Forgets who had the slot of a member before, if another one had. */
static void note_slot(struct service *s, uint32_t member) {
	const int slot = core_find(s->core, member);
	struct service_member *m = slot >= 0 ? &s->members[slot] : NULL;
	if (m == NULL || m->member == member + 1)
		return;
	*m = (struct service_member){.member = member + 1};
	offered_relays_forget(&s->offered, (uint32_t)slot);
	delivery_forget(s->delivery, (uint32_t)slot);
}

enum rv_err service_replay(struct service *s, const struct core_record *rec, struct rv_errtext *et) {
	RV_TRY(core_replay(s->core, rec, et));
	if (rec->type == CORE_MEMBER)
		note_slot(s, rec->member);
	return RV_OK;
}

static enum rv_err replay_one(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	return service_replay(ctx, rec, et);
}

enum rv_err service_load(struct service *s, struct rv_errtext *et) {
	struct store *store = s->cfg.store;
	RV_TRY(store->ops->each(store, replay_one, s, et));
	core_replayed(s->core);
	RV_TRY(service_load_about(s, et));
	RV_TRY(service_load_heldout(s, et));
	RV_TRY(store->ops->commits(store, s->history, SERVICE_HISTORY, &s->n_history, et));
	return store->ops->total_tokens(store, &s->total_tokens, et);
}

/* ---- records ---- */

/* Lets the core announce a record of a member that is durable. */
static void announce_member(struct service *s, const struct core_record *rec, int64_t now_us) {
	core_persisted(s->core, rec->id, now_us);
	if (rec->type == CORE_MEMBER)
		note_slot(s, rec->member);
	RECORD_POINT(rec->type, "announced");
	service_tell_record(s, rec);
}

static void give_record(const void *core, int i, struct core_record *out) {
	core_record_at(core, i, out);
}

/* Makes the next `n` records, of members, durable together: one transaction, one fsync. */
static enum rv_err persist_members(struct service *s, int n, int64_t now_us, struct rv_errtext *et) {
	struct core_record rec;
	core_record_at(s->core, 0, &rec);
	RECORD_POINT(rec.type, "before");
	RV_TRY(s->cfg.store->ops->append_many(s->cfg.store, n, give_record, s->core, et));
	RECORD_POINT(rec.type, "durable");
	for (int i = 0; i < n; i++) {
		core_record_at(s->core, 0, &rec);
		announce_member(s, &rec, now_us);
	}
	return RV_OK;
}

static enum rv_err persist(struct service *s, const struct core_record *rec, int64_t now_us, struct rv_errtext *et) {
	struct commit_stats stats = {0};
	bool commit = rec->type == CORE_COMMIT;
	if (commit)
		stats = service_commit_stats(s, rec, now_us);
	RECORD_POINT(rec->type, "before");
	RV_TRY(s->cfg.store->ops->append(s->cfg.store, rec, commit ? &stats : NULL, et));
	RECORD_POINT(rec->type, "durable");
	if (commit) {
		service_watch_outliers(s, rec);
		service_note_first(s, rec);
	}
	core_persisted(s->core, rec->id, now_us);
	RECORD_POINT(rec->type, "announced");
	if (commit) {
		service_note_commit(s, &stats, now_us);
	}
	if (rec->type == CORE_ROLLBACK)
		service_note_rollback(s, rec, now_us);
	service_tell_record(s, rec);
	return RV_OK;
}

/* Makes what waits first durable: one decision, or all records of members before the next one. */
static enum rv_err persist_next(struct service *s, int64_t now_us, struct rv_errtext *et) {
	struct core_record rec;
	int members = core_count_member_records(s->core);
	if (members > 0)
		return persist_members(s, members, now_us, et);
	core_record_at(s->core, 0, &rec);
	return persist(s, &rec, now_us, et);
}

static void store_failed(struct service *s, enum rv_err e, const struct rv_errtext *why) {
	if (e != RV_E_FULL) {
		s->fault = e;
		s->fault_text = *why;
	} else if (!s->store_full) {
		service_tell_operator(s, RV_ERROR, "store_full", why->text,
							  "the coordinator's disk is full: nothing is lost, and it tries again every second");
	}
	s->store_full = e == RV_E_FULL;
}

static void tell_people(struct service *s, int64_t now_us) {
	service_tell_events(s, now_us);
	service_watch_waiting(s, now_us);
}

enum rv_err service_pump(struct service *s, int64_t now_us, struct rv_errtext *et) {
	s->joins_gather = false;
	while (s->fault == RV_OK && core_has_records(s->core)) {
		struct rv_errtext why = {0};
		enum rv_err e = persist_next(s, now_us, &why);
		if (e != RV_OK) {
			store_failed(s, e, &why);
			return rv_fail(et, service_for_the_asker(e), "%s", why.text);
		}
		if (s->store_full)
			service_tell(s, RV_INFO, "store_ok", "the store can be written again");
		s->store_full = false;
	}
	tell_people(s, now_us);
	return service_fault(s, et);
}

/* Makes what must be announced durable; leaves joins that gather to the next tick. */
static void pump_after(struct service *s, int64_t now_us) {
	if (s->joins_gather && !core_has_decision(s->core))
		tell_people(s, now_us);
	else
		(void)service_pump(s, now_us, NULL);
}

enum rv_err service_fault(const struct service *s, struct rv_errtext *et) {
	return s->fault == RV_OK ? RV_OK : rv_fail(et, s->fault, "%s", s->fault_text.text);
}

/* Returns the least time between two looks at all members that reports cause. A look costs a few
 * microseconds a member: so a fraction of the time goes into looks, however many report. */
static int64_t look_pause_us(const struct service *s) {
	enum { PAUSE_US = 10 };
	int n = core_here(s->core);
	return n > NET_MAX_ROW ? (int64_t)n * PAUSE_US : 0;
}

/* Lets the core decide what follows from the reports that it has taken. */
static void look(struct service *s, int64_t now_us) {
	s->look_due = false;
	s->looked_us = now_us;
	core_tick(s->core, now_us);
	service_watch_shards(s);
	pump_after(s, now_us);
}

static void look_soon(struct service *s, int64_t now_us) {
	s->look_due = true;
	if (now_us >= s->looked_us + look_pause_us(s))
		look(s, now_us);
}

void service_tick(struct service *s, int64_t now_us) {
	service_list_relays(s, now_us);
	s->joins_gather = false;
	look(s, now_us);
}

int64_t service_deadline_us(const struct service *s) {
	int64_t at = core_deadline_us(s->core), look_us = s->looked_us + look_pause_us(s);
	at = s->look_due && look_us < at ? look_us : at;
	if (!s->store_full)
		return at;
	int64_t retry = rv_clock_monotonic_us() + RETRY_US;
	return retry < at ? retry : at;
}

/* ---- requests ---- */

enum rv_err service_report(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						   const struct member_sight *sight, const void *body, size_t n, struct rv_errtext *et) {
	struct report rep;
	RV_FAILPOINT("report.before");
	RV_TRY(service_fault(s, et));
	RV_TRY(report_decode(body, n, &rep, et));
	RV_TRY(report_bounds_check(&s->run, &rep, et));
	report_bounds_apply(&rep);
	RV_TRY(service_recall(s, now_us, key, et));
	int slot = service_find_member(s, key);
	if (slot >= 0) /* else the core gives the reason */
		RV_TRY(service_confirm_candidates(s, now_us, (uint32_t)slot, key, sight, &rep, et));
	RV_TRY(core_take_report(s->core, now_us, key, &rep, et));
	service_take_probed(s, now_us, (uint32_t)slot, sight, &rep.probed);
	service_take_offer(s, now_us, (uint32_t)slot, sight, key, rep.offers_relay);
	service_watch_time(s, (uint32_t)slot, &rep, now_us);
	service_watch_storage(s, now_us, (uint32_t)slot);
	service_watch_text(s, now_us, (uint32_t)slot);
	service_take_heldout(s, (uint32_t)slot, &rep);
	/* A report is not acknowledged as durable: it is repeated anyway. */
	look_soon(s, now_us);
	RV_FAILPOINT("report.after");
	return service_fault(s, et);
}

bool service_report_reply(const struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						  struct rv_writer *reply) {
	_Static_assert((int)NOTICE_MAX_BYTES <= (int)SERVICE_REPORT_REPLY_BYTES, "either fits");
	struct notice n;
	if (service_probes(s, now_us, key, reply))
		return true;
	if (!core_notice(s->core, key, &n))
		return false;
	notice_encode(&n, reply);
	RV_ASSERT(!reply->failed);
	return true;
}

void service_listens(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], bool listens) {
	core_take_listens(s->core, now_us, key, listens);
	look_soon(s, now_us);
}

uint64_t service_document_seq(const struct service *s) {
	return core_document(s->core)->seq;
}

/* A held request outlives its member's slot: it ends without news, and the next one brings the
 * member back, or gives the reason why not. */
static enum rv_err refuse_document(struct service *s, const uint8_t *key, struct document_reply *out,
								   struct rv_errtext *et) {
	struct core_record rec;
	bool found = false;
	if (core_find_key(s->core, key) < 0)
		RV_TRY(s->cfg.store->ops->away(s->cfg.store, key, 0, &rec, &found, et));
	if (found && !rec.banned) {
		out->is_away = true;
		return RV_OK;
	}
	return rv_fail(et, RV_E_AUTH,
				   "document: this worker is banned from the run, or its key is no member's: ask the run's "
				   "operator to take the ban back (`unban`), or for an invite link; then start again");
}

enum rv_err service_document(struct service *s, const uint8_t key[NET_KEY_BYTES], const struct document_wish *wish,
							 struct document_reply *out, struct rv_errtext *et) {
	RV_ASSERT(wish->version >= CONTROL_VERSION_MIN && wish->version <= control_version());
	int slot = service_find_member(s, key);
	*out = (struct document_reply){0};
	if (slot < 0)
		return refuse_document(s, key, out, et);
	if (!delivery_needs(s->delivery, (uint32_t)slot, wish, service_document_seq(s)))
		return RV_OK;
	if (!core_document_of(s->core, (uint32_t)slot, &s->document))
		return RV_OK; /* when the store takes its number */
	return delivery_make(s->delivery, (uint32_t)slot, wish, &s->document, out, et);
}

const char *service_run_config(const struct service *s) {
	return s->config;
}

int service_find_member(const struct service *s, const uint8_t key[NET_KEY_BYTES]) {
	int slot = core_find_key(s->core, key);
	return slot >= 0 && core_view(s->core, (uint32_t)slot).banned ? -1 : slot;
}

/* ---- the operator ---- */

/* Takes a member back into memory of which the operator decides, banned or not. */
static enum rv_err recall_number(struct service *s, int64_t now_us, uint32_t member, struct rv_errtext *et) {
	struct core_record rec;
	bool found = false;
	if (core_find(s->core, member) >= 0)
		return RV_OK;
	RV_TRY(s->cfg.store->ops->away(s->cfg.store, NULL, member, &rec, &found, et));
	if (!found)
		return RV_OK; /* the core says why */
	RV_TRY(core_return(s->core, now_us, &rec, et));
	return service_pump(s, now_us, et);
}

enum rv_err service_ban(struct service *s, int64_t now_us, uint32_t member, bool banned, struct rv_errtext *et) {
	RV_TRY(service_fault(s, et));
	RV_TRY(recall_number(s, now_us, member, et));
	RV_TRY(core_ban(s->core, now_us, member, banned, et));
	RV_TRY(service_pump(s, now_us, et));
	const int slot = core_find(s->core, member);
	const char *name = slot >= 0 ? core_view(s->core, (uint32_t)slot).name : "";
	service_tell(s, RV_WARN, banned ? "banned" : "unbanned", "member %u%s%s is %s", member, name[0] ? ", " : "", name,
				 banned ? "banned" : "allowed again");
	return RV_OK;
}

enum rv_err service_rollback(struct service *s, int64_t now_us, uint64_t to_round, bool force,
							 char text[SERVICE_ROLLBACK_BYTES], struct rv_errtext *et) {
	uint64_t proving[CORE_HERE_WORDS];
	struct service_rolled_back r = {.from_round = core_document(s->core)->round};
	RV_TRY(service_fault(s, et));
	RV_TRY(service_pump(s, now_us, et));
	r.unproven = to_round > 0 && core_holders(s->core, to_round, proving) == 0;
	RV_TRY(core_rollback(s->core, now_us, to_round, force, et));
	uint64_t tokens = s->total_tokens;
	RV_TRY(service_pump(s, now_us, et));
	r.tokens = tokens - s->total_tokens;
	service_describe_rollback(s, &r, text);
	return RV_OK;
}

enum rv_err service_copy_store(struct service *s, const char *path, struct rv_errtext *et) {
	RV_TRY(service_fault(s, et));
	RV_FAILPOINT("copy.before");
	enum rv_err e = s->cfg.store->ops->copy(s->cfg.store, path, et);
	RV_FAILPOINT("copy.after");
	return e;
}
