/* status.c: the run as JSON, for the dashboard and `status`. Without details it contains nothing
 * that helps to reach or to recognize a worker: no addresses, keys or hashes of its own text, nor
 * which members share a house. docs/privacy.md names every field that anybody reads. Fields are
 * only ever added: scripts read them. */
#include "coordinator/service/internal.h"

#include "base/clock.h"
#include "base/hex.h"
#include "base/version.h"

#include <string.h>

enum { ROUNDS_SHOWN = 400 };

static const char *const run_phases[] = {
	[RUN_WAITING] = "waiting", [RUN_OPEN] = "training", [RUN_REDUCE] = "averaging", [RUN_DONE] = "done"};
static const char *const worker_phases[] = {
	[WORKER_SYNCING] = "syncing",    [WORKER_TRAINING] = "training", [WORKER_READY] = "ready",
	[WORKER_REDUCING] = "averaging", [WORKER_VOTED] = "voted",       [WORKER_LEAVING] = "leaving"};
static const char *const levels[] = {
	[RV_DEBUG] = "debug", [RV_INFO] = "info", [RV_WARN] = "warn", [RV_ERROR] = "error"};

static json_t *hex_string(const uint8_t *data, size_t n) {
	char text[2 * NET_KEY_BYTES + 1];
	rv_hex_encode(data, n, text);
	return json_string(text);
}

static void set_int(json_t *o, const char *key, uint64_t v) {
	(void)json_object_set_new(o, key, json_integer(v < INT64_MAX ? (json_int_t)v : INT64_MAX));
}

static void set_real(json_t *o, const char *key, double v) {
	(void)json_object_set_new(o, key, json_real(v));
}

/* Returns null, or the names of what it cannot store. */
static json_t *storage_json(uint8_t set) {
	char what[SERVICE_STORAGE_BYTES];
	if (set == 0)
		return json_null();
	service_storage_text(set, what);
	json_t *o = json_object();
	(void)json_object_set_new(o, "fails", json_string(what));
	(void)json_object_set_new(o, "full", json_boolean(set & REPORT_STORAGE_FULL));
	return o;
}

/* Returns null, or the owners' measurements of its last contribution. */
static json_t *contribution_json(const struct outlier *m) {
	if (!m->last.measured)
		return json_null();
	json_t *o = json_object();
	set_int(o, "round", m->round);
	set_real(o, "norm", m->last.norm);
	set_real(o, "cosine", m->last.cosine);
	set_real(o, "clipped", m->last.clipped);
	return o;
}

/* Returns the ways in which it has differed from the others for some rounds. */
static json_t *outlier_json(const struct outlier *m) {
	static const char *const names[] = {
		[SERVICE_ODD_LOSS] = "loss", [SERVICE_ODD_CLIPPED] = "clipped", [SERVICE_ODD_COSINE] = "cosine"};
	json_t *a = json_array();
	for (int what = 0; what < SERVICE_ODDITIES; what++)
		if (m->odd[what].named)
			(void)json_array_append_new(a, json_string(names[what]));
	return a;
}

/* Returns the numbers of the members in a set of slots. */
static json_t *set_json(const struct service *s, const uint64_t *set) {
	json_t *a = json_array();
	const bool any = !set_is_empty(set, core_words(s->core));
	for (int k = 0; any && k < core_here(s->core); k++) {
		uint32_t slot = core_nth(s->core, k);
		if (set_has(set, slot))
			(void)json_array_append_new(a, json_integer(core_number(s->core, slot)));
	}
	return a;
}

/* Returns how it meets each other member, as far as it has reported: by number. */
static json_t *paths_json(const struct report *last) {
	json_t *o = json_object();
	char number[16];
	for (int i = 0; i < last->n_paths; i++) {
		(void)snprintf(number, sizeof number, "%u", last->paths[i].member);
		(void)json_object_set_new(o, number, json_string(path_name(last->paths[i].path)));
	}
	return o;
}

/* Returns how many members it meets in which way, as far as it has reported. */
static json_t *meets_json(const struct report *last) {
	json_t *o = json_object();
	int count[PATH_KINDS] = {0};
	for (int i = 0; i < last->n_paths; i++)
		count[path_kind_of(last->paths[i].path)]++;
	for (uint8_t kind = PATH_APART; kind < PATH_KINDS; kind++)
		set_int(o, path_name(kind), (uint64_t)count[kind]);
	return o;
}

/* Returns the numbers of the members that it is linked with in a way that has `flag`. */
static json_t *flagged_json(const struct report *last, uint8_t flag) {
	json_t *a = json_array();
	for (int i = 0; i < last->n_paths; i++)
		if (path_is_open(last->paths[i].path) && (last->paths[i].path & flag) != 0)
			(void)json_array_append_new(a, json_integer(last->paths[i].member));
	return a;
}

/* Returns null if no loss is known: reports and statistics have 0 then. */
static json_t *loss_json(double loss) {
	return loss > 0 ? json_real(loss) : json_null();
}

/* Returns how the member's time was spent since its process first reported here; null before its
 * second report. */
static json_t *time_json(const struct member_time *t) {
	if (t->until_us <= t->since_us)
		return json_null();
	json_t *o = json_object();
	set_int(o, "us", (uint64_t)(t->until_us - t->since_us));
	set_int(o, "compute_us", t->last_compute_us - t->first_compute_us);
	set_int(o, "reduce_us", t->last_reduce_us - t->first_reduce_us);
	return o;
}

/* Writes where the member is seen, and all addresses at which others dial it. */
static void put_addresses(json_t *o, const struct report *rep) {
	json_t *list = json_array();
	for (int i = 0; i < rep->n_candidates; i++) {
		const struct candidate *c = &rep->candidates[i];
		json_t *one = json_object();
		(void)json_object_set_new(one, "kind", json_string(candidate_kind_name(c->kind)));
		(void)json_object_set_new(one, "addr", json_string(c->addr));
		(void)json_array_append_new(list, one);
		if (c->kind == CANDIDATE_SEEN)
			(void)json_object_set_new(o, "addr", json_string(c->addr));
	}
	(void)json_object_set_new(o, "candidates", list);
}

/* Writes how it meets each other member, or, if they are too many for everybody to read, how many
 * of them. The operator alone reads who is in one house with whom. */
static void put_paths(json_t *o, const struct report *last, bool each, bool details) {
	(void)json_object_set_new(o, "meets", meets_json(last));
	if (details)
		(void)json_object_set_new(o, "lan", flagged_json(last, PATH_LAN));
	if (!each && !details)
		return;
	(void)json_object_set_new(o, "paths", paths_json(last));
	(void)json_object_set_new(o, "ipv6", flagged_json(last, PATH_IPV6));
}

static json_t *member_json(const struct service *s, const struct core_member_view *v, int64_t now_us, bool details) {
	json_t *o = json_object();
	const struct document *d = core_document(s->core);
	const struct service_member *m = &s->members[v->slot];
	uint64_t apart[CORE_HERE_WORDS];
	bool left_out = core_apart(s->core, v->slot, apart);
	bool seen = v->last_report_us != 0;
	set_int(o, "member", v->member);
	char number[32];
	(void)snprintf(number, sizeof number, "worker %u", v->member);
	(void)json_object_set_new(o, "name", json_string(v->name[0] != '\0' ? v->name : number));
	(void)json_object_set_new(o, "alive", json_boolean(v->alive));
	(void)json_object_set_new(o, "banned", json_boolean(v->banned));
	(void)json_object_set_new(o, "phase", seen ? json_string(worker_phases[v->last->phase]) : json_null());
	(void)json_object_set_new(o, "participant", json_boolean(d->phase == RUN_REDUCE && v->place >= 0));
	(void)json_object_set_new(o, "row", v->row >= 0 ? json_integer(v->row) : json_null());
	(void)json_object_set_new(o, "silent_s",
							  seen ? json_real((double)(now_us - v->last_report_us) / 1e6) : json_null());
	set_int(o, "round", v->last->round);
	set_int(o, "inner_step", v->last->inner_step);
	(void)json_object_set_new(o, "loss", loss_json((double)v->last->loss));
	set_real(o, "tokens_per_s", (double)v->last->tokens_per_s);
	set_int(o, "tx_bytes", v->last->tx_bytes);
	set_int(o, "rx_bytes", v->last->rx_bytes);
	set_int(o, "up_bytes_per_s", v->last->up_bytes_per_s);
	set_int(o, "down_bytes_per_s", v->last->down_bytes_per_s);
	set_int(o, "owned_chunks", v->owned_chunks);
	set_int(o, "n_chunks", v->all_chunks);
	set_int(o, "protocol", v->last->version);
	set_int(o, "compute_us", v->last->compute_us);
	set_int(o, "reduce_us", v->last->reduce_us);
	(void)json_object_set_new(o, "time", time_json(&m->time));
	(void)json_object_set_new(o, "storage", storage_json(v->last->storage));
	(void)json_object_set_new(o, "contribution", contribution_json(&m->outlier));
	(void)json_object_set_new(o, "outlier", outlier_json(&m->outlier));
	(void)json_object_set_new(o, "text", service_member_text_json(s, v->last, details));
	put_paths(o, v->last, service_members_here(s) <= SERVICE_MEMBERS_FEW, details);
	(void)json_object_set_new(o, "reach", seen ? json_string(reach_name(v->last->reach)) : json_null());
	(void)json_object_set_new(o, "apart_from", set_json(s, apart));
	(void)json_object_set_new(o, "left_out", json_boolean(left_out));
	(void)json_object_set_new(o, "slow", service_slow_json(&v->slow));
	(void)json_object_set_new(o, "reputation", service_reputation_json(&v->reputation));
	if (details) {
		(void)json_object_set_new(o, "key", hex_string(v->key, NET_KEY_BYTES));
		put_addresses(o, v->last);
	}
	return o;
}

static json_t *round_json(const struct commit_stats *c) {
	json_t *o = json_object();
	set_int(o, "round", c->round);
	set_int(o, "attempt", c->attempt);
	set_int(o, "participants", c->participants);
	set_int(o, "tokens", c->tokens);
	(void)json_object_set_new(o, "loss", loss_json(c->loss));
	set_real(o, "tokens_per_s", c->tokens_per_s);
	set_int(o, "tx_bytes", c->tx_bytes);
	set_int(o, "compute_us", c->compute_us);
	set_int(o, "reduce_us", c->reduce_us);
	set_int(o, "duration_us", (uint64_t)c->duration_us);
	set_int(o, "wall_us", (uint64_t)c->wall_us);
	return o;
}

/* Returns at most ROUNDS_SHOWN, evenly spaced, always with the last one. */
static json_t *rounds_json(const struct service *s) {
	json_t *a = json_array();
	int n = s->n_history, shown = n < ROUNDS_SHOWN ? n : ROUNDS_SHOWN;
	for (int i = 0; i < shown; i++)
		(void)json_array_append_new(a, round_json(&s->history[(int)((int64_t)(i + 1) * n / shown) - 1]));
	return a;
}

static json_t *news_json(const struct service *s, bool details) {
	json_t *a = json_array();
	uint64_t first = s->n_news > SERVICE_NEWS ? s->n_news - SERVICE_NEWS : 0;
	for (uint64_t i = first; i < s->n_news; i++) {
		const struct news *n = &s->news[i % SERVICE_NEWS];
		json_t *o = json_object();
		set_int(o, "wall_us", (uint64_t)n->wall_us);
		(void)json_object_set_new(o, "level", json_string(levels[n->level]));
		(void)json_object_set_new(o, "text", json_string(n->text));
		if (details && n->detail[0] != '\0')
			(void)json_object_set_new(o, "detail", json_string(n->detail));
		(void)json_array_append_new(a, o);
	}
	return a;
}

/* Returns the seconds until the last commit, from the pace since this coordinator started; null
 * while unknown. */
static json_t *eta_json(const struct service *s, int64_t now_us) {
	const struct document *d = core_document(s->core);
	if (d->phase == RUN_DONE)
		return json_real(0);
	if (s->rounds_here < 2)
		return json_null();
	int from = s->n_history - (s->rounds_here < 16 ? (int)s->rounds_here : 16);
	double pace = (double)(s->history[s->n_history - 1].wall_us - s->history[from].wall_us) /
				  (double)(s->n_history - 1 - from) / 1e6;
	double into = (double)(now_us - s->last_commit_us) / 1e6;
	double left = pace * (double)(d->final_round - d->round) - (into < pace ? into : pace);
	return json_real(left);
}

static void set_totals(const struct service *s, json_t *o) {
	double tokens_per_s = 0;
	int alive = 0;
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		if (!v.alive)
			continue;
		alive++;
		tokens_per_s += (double)v.last->tokens_per_s;
	}
	set_int(o, "alive", (uint64_t)alive);
	set_real(o, "tokens_per_s", tokens_per_s);
	set_int(o, "total_tokens", s->total_tokens);
	(void)json_object_set_new(o, "loss", loss_json(s->n_history > 0 ? s->history[s->n_history - 1].loss : 0));
	(void)json_object_set_new(o, "heldout", service_heldout_json(s));
}

/* Returns member numbers; empty unless the run waits for workers. */
static json_t *missing_json(const struct service *s) {
	uint64_t missing[CORE_HERE_WORDS];
	if (s->waiting_since_us == INT64_MAX)
		return json_array();
	service_missing(s, missing);
	return set_json(s, missing);
}

/* Returns null, or why the run stands still though there are workers: no member has the state of
 * its round. */
static json_t *not_held_json(const struct service *s, bool details) {
	struct core_kept kept;
	char command[640];
	core_kept(s->core, &kept);
	if (kept.state == CORE_STATE_HELD)
		return json_null();
	json_t *o = json_object();
	set_int(o, "round", kept.round);
	(void)json_object_set_new(o, "lost", json_boolean(kept.state == CORE_STATE_LOST));
	(void)json_object_set_new(o, "held_last_by", set_json(s, kept.last_held));
	(void)json_object_set_new(o, "absent", set_json(s, kept.absent));
	(void)json_object_set_new(o, "behind", set_json(s, kept.behind));
	(void)json_object_set_new(o, "best_round", kept.has_best ? json_integer((json_int_t)kept.best_round) : json_null());
	(void)json_object_set_new(o, "best_held_by", set_json(s, kept.best_held));
	(void)json_object_set_new(o, "ahead", json_boolean(kept.ahead));
	(void)json_object_set_new(o, "complete", json_boolean(service_is_over(s, &kept)));
	service_rollback_command(s, &kept, details ? s->cfg.dir : NULL, command, sizeof command);
	(void)json_object_set_new(o, "command", json_string(command));
	return o;
}

/* Writes when the attempt under way closes, and what an exchange should take (slow-members). */
static void set_deadlines(const struct service *s, int64_t now_us, json_t *o) {
	static const char *const policies[] = {
		[SLOW_WAIT] = "wait", [SLOW_SKIP] = "skip", [SLOW_COARSER] = "coarser", [SLOW_PART] = "part"};
	const struct document *d = core_document(s->core);
	const int64_t closes_us = core_attempt_closes_us(s->core);
	const bool runs = d->phase == RUN_REDUCE && closes_us != INT64_MAX;
	(void)json_object_set_new(o, "deadline_ms", runs ? json_integer(d->deadline_ms) : json_null());
	(void)json_object_set_new(o, "closes_in_s", runs ? json_real((double)(closes_us - now_us) / 1e6) : json_null());
	(void)json_object_set_new(o, "slow_members", json_string(policies[s->run.slow_members]));
	const uint32_t slow_ms = core_slow_deadline_ms(s->core);
	(void)json_object_set_new(o, "slow_deadline_ms", slow_ms > 0 ? json_integer(slow_ms) : json_null());
}

int service_members_here(const struct service *s) {
	return core_here(s->core);
}

/* Writes what is of the run, but its members, history and events. */
static void put_run(const struct service *s, int64_t now_us, bool details, json_t *o) {
	const struct document *d = core_document(s->core);
	(void)json_object_set_new(o, "run", hex_string(s->cfg.run_id, NET_RUN_ID_BYTES));
	(void)json_object_set_new(o, "about", service_about_json(s));
	(void)json_object_set_new(o, "software", json_sprintf("rivulet %s", rv_version()));
	(void)json_object_set_new(o, "phase", json_string(run_phases[d->phase]));
	set_int(o, "round", d->round);
	set_int(o, "rounds_total", d->final_round);
	set_int(o, "attempt", d->attempt);
	set_int(o, "term", d->term);
	set_int(o, "term_round", d->term_round);
	(void)json_object_set_new(o, "not_held", not_held_json(s, details));
	set_int(o, "seq", d->seq);
	(void)json_object_set_new(o, "chain", hex_string(d->chain.b, RV_HASH_BYTES));
	set_int(o, "snapshot_round", d->snapshot_round);
	set_int(o, "min_workers", (uint64_t)s->run.min_workers);
	set_int(o, "data_shards", s->run.data_hash[0] ? 0 : (uint64_t)s->run.data_shards); /* 0: leases */
	set_int(o, "steps_per_round", (uint64_t)s->run.steps_per_round);
	set_deadlines(s, now_us, o);
	double waiting_s = service_waiting_s(s, now_us);
	(void)json_object_set_new(o, "waiting_s", waiting_s >= 0 ? json_real(waiting_s) : json_null());
	(void)json_object_set_new(o, "missing", missing_json(s));
	set_int(o, "pending", (uint64_t)service_count_waiting(s));
	(void)json_object_set_new(o, "store_full", json_boolean(s->store_full));
	set_real(o, "up_s", (double)(now_us - s->started_us) / 1e6);
	set_int(o, "wall_us", (uint64_t)rv_clock_wall_us());
	(void)json_object_set_new(o, "eta_s", eta_json(s, now_us));
	(void)json_object_set_new(o, "relay", service_relay_json(s));
	(void)json_object_set_new(o, "text", service_text_json(s));
	(void)json_object_set_new(o, "audits", service_audits_json(s));
	(void)json_object_set_new(o, "scores", service_scores_json(s));
	(void)json_object_set_new(o, "proofs", service_proofs_json(s));
	set_int(o, "relays", d->n_relays);
	set_totals(s, o);
}

/* Returns up to `most` members, by ascending number from `from` on; *next: the first that is left,
 * else NET_NO_MEMBER. */
static json_t *members_json(const struct service *s, int64_t now_us, bool details, uint32_t from, int most,
							uint32_t *next) {
	json_t *a = json_array();
	*next = NET_NO_MEMBER;
	for (int k = 0, n = 0; k < core_here(s->core) && *next == NET_NO_MEMBER; k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		if (v.member < from)
			continue;
		if (n++ < most)
			(void)json_array_append_new(a, member_json(s, &v, now_us, details));
		else
			*next = v.member;
	}
	return a;
}

json_t *service_status(const struct service *s, int64_t now_us, bool details) {
	uint32_t next;
	json_t *o = json_object();
	if (o == NULL)
		return NULL;
	put_run(s, now_us, details, o);
	(void)json_object_set_new(o, "members", members_json(s, now_us, details, 0, NET_MAX_HERE, &next));
	(void)json_object_set_new(o, "history", rounds_json(s));
	(void)json_object_set_new(o, "events", news_json(s, details));
	return o;
}

json_t *service_status_page(const struct service *s, int64_t now_us, uint32_t from) {
	uint32_t next;
	json_t *o = json_object();
	if (o == NULL)
		return NULL;
	if (from == 0)
		put_run(s, now_us, true, o);
	(void)json_object_set_new(o, "members", members_json(s, now_us, true, from, SERVICE_PAGE_MEMBERS, &next));
	(void)json_object_set_new(o, "members_next", next != NET_NO_MEMBER ? json_integer(next) : json_null());
	if (from > 0)
		return o;
	(void)json_object_set_new(o, "history", rounds_json(s));
	(void)json_object_set_new(o, "events", news_json(s, true));
	return o;
}
