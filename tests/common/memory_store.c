/* memory_store.c: see memory_store.h. */
#include "tests/common/memory_store.h"

#include "base/assert.h"
#include "coordinator/store/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct memory_store *of(struct store *s) {
	return (struct memory_store *)s;
}

static enum rv_err fault(const struct memory_store *m, struct rv_errtext *et) {
	return m->failing == RV_OK ? RV_OK : rv_fail(et, m->failing, "the store says no");
}

/* ---- records ---- */

static void put_stats(struct memory_store *m, const struct commit_stats *stats) {
	if ((size_t)m->n_commits == m->cap_commits) {
		m->cap_commits = m->cap_commits == 0 ? 16 : 2 * m->cap_commits;
		m->stats = realloc(m->stats, m->cap_commits * sizeof *m->stats);
		RV_ASSERT(m->stats != NULL);
	}
	m->stats[m->n_commits++] = *stats;
}

/* Room for `n` more bytes of records. */
static uint8_t *room(struct memory_store *m, size_t n) {
	while (m->cap_bytes - m->n_bytes < n) {
		m->cap_bytes = m->cap_bytes == 0 ? 4096 : 2 * m->cap_bytes;
		m->bytes = realloc(m->bytes, m->cap_bytes);
		RV_ASSERT(m->bytes != NULL);
	}
	return m->bytes + m->n_bytes;
}

static void drop_asker(struct memory_store *m, int i) {
	memmove(&m->askers[i], &m->askers[i + 1], (size_t)(--m->n_askers - i) * sizeof m->askers[0]);
}

static int find_asker(const struct memory_store *m, const uint8_t key[NET_KEY_BYTES]) {
	int i = 0;
	while (i < m->n_askers && memcmp(m->askers[i].key, key, NET_KEY_BYTES) != 0)
		i++;
	return i;
}

static int find_invite(const struct memory_store *m, const struct rv_hash *hash) {
	int i = 0;
	while (i < m->n_invites && !rv_hash_equal(&m->tokens[i], hash))
		i++;
	return i;
}

static struct store_invite invite_at(const struct memory_store *m, int i) {
	struct store_invite in = m->invites[i];
	in.used = 0;
	for (int k = 0; k < m->n_came; k++)
		in.used += m->came[k].invite == in.id;
	return in;
}

/* Counts a member once, however often it is written. */
static void note_came(struct memory_store *m, uint32_t member, int64_t invite) {
	for (int i = 0; i < m->n_came; i++)
		if (m->came[i].member == member)
			return;
	m->came = realloc(m->came, (size_t)(m->n_came + 1) * sizeof *m->came);
	RV_ASSERT(m->came != NULL);
	m->came[m->n_came++] = (struct memory_came){member, invite};
}

static void drop_askers_of(struct memory_store *m, int64_t invite) {
	for (int i = m->n_askers - 1; i >= 0; i--)
		if (m->askers[i].invite == invite)
			drop_asker(m, i);
}

static void spend(struct memory_store *m, const struct core_record *rec) {
	int at = find_invite(m, &rec->token_hash), asker = find_asker(m, rec->key);
	if (asker < m->n_askers)
		drop_asker(m, asker);
	if (at == m->n_invites)
		return;
	note_came(m, rec->member, m->invites[at].id);
	const struct store_invite in = invite_at(m, at);
	if (in.used >= in.uses)
		drop_askers_of(m, in.id);
}

static enum rv_err put(struct store *s, const struct core_record *rec, const struct commit_stats *stats,
					   struct rv_errtext *et) {
	struct memory_store *m = of(s);
	uint8_t bytes[2 + RECORD_MAX_BYTES];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	RV_ASSERT(stats == NULL || rec->type == CORE_COMMIT);
	RV_TRY(fault(m, et));
	rv_write_u16(&w, 0);
	record_encode(rec, &w);
	RV_ASSERT(!w.failed);
	size_t n = rv_writer_len(&w);
	w = rv_writer_of(bytes, 2);
	rv_write_u16(&w, (uint16_t)(n - 2));
	if (m->max_bytes > 0 && m->n_bytes + n > m->max_bytes)
		return rv_fail(et, RV_E_FULL, "the store is full");
	memcpy(room(m, n), bytes, n);
	m->n_bytes += n;
	m->n_records++;
	if (stats != NULL)
		put_stats(m, stats);
	if (rec->type == CORE_MEMBER)
		spend(m, rec);
	while (rec->type == CORE_ROLLBACK && m->n_commits > 0 && m->stats[m->n_commits - 1].round >= rec->round)
		m->n_commits--;
	return RV_OK;
}

static enum rv_err append(struct store *s, const struct core_record *rec, const struct commit_stats *stats,
						  struct rv_errtext *et) {
	RV_TRY(put(s, rec, stats, et));
	of(s)->n_transactions++;
	return RV_OK;
}

/* A store that is full with one of them takes none. */
static enum rv_err append_many(struct store *s, int n, store_give *give, const void *ctx, struct rv_errtext *et) {
	struct memory_store *m = of(s);
	struct core_record rec;
	enum { MEMBER_MAX_BYTES = 1024 };
	if (m->max_bytes > 0 && m->n_bytes + (size_t)n * MEMBER_MAX_BYTES > m->max_bytes)
		return rv_fail(et, RV_E_FULL, "the store is full");
	for (int i = 0; i < n; i++) {
		give(ctx, i, &rec);
		enum rv_err e = put(s, &rec, NULL, et);
		RV_ASSERT(e == RV_OK || i == 0);
		RV_TRY(e);
	}
	m->n_transactions++;
	return RV_OK;
}

static enum rv_err each(struct store *s, store_take *take, void *ctx, struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	struct rv_reader r = rv_reader_of(m->bytes, m->n_bytes);
	while (rv_reader_left(&r) > 0) {
		struct core_record rec;
		uint16_t n = rv_read_u16(&r);
		const uint8_t *bytes = rv_read_span(&r, n);
		RV_ASSERT(bytes != NULL);
		RV_TRY(record_decode(bytes, n, &rec, et));
		RV_TRY(take(ctx, &rec, et));
	}
	return RV_OK;
}

/* Looks for the last MEMBER or AWAY record of a member. */
struct lookup {
	const uint8_t *key;
	uint32_t member;
	struct core_record *out;
	bool found;
};

static enum rv_err keep_if_its(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	struct lookup *l = ctx;
	(void)et;
	if (rec->type != CORE_MEMBER && rec->type != CORE_AWAY)
		return RV_OK;
	if (l->key != NULL ? memcmp(rec->key, l->key, NET_KEY_BYTES) != 0 : rec->member != l->member)
		return RV_OK;
	core_record_copy(l->out, rec);
	l->found = rec->type == CORE_AWAY;
	return RV_OK;
}

static enum rv_err away(struct store *s, const uint8_t *key, uint32_t member, struct core_record *out, bool *found,
						struct rv_errtext *et) {
	struct lookup l = {.key = key, .member = member, .out = out};
	RV_TRY(each(s, keep_if_its, &l, et));
	*found = l.found;
	return RV_OK;
}

static enum rv_err keep_last(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	(void)et;
	*(struct core_record *)ctx = *rec;
	return RV_OK;
}

struct core_record memory_store_last(struct memory_store *m) {
	struct core_record rec;
	enum rv_err e = each(&m->store, keep_last, &rec, NULL);
	RV_ASSERT(m->n_records > 0 && e == RV_OK);
	return rec;
}

static enum rv_err commits(struct store *s, struct commit_stats *out, int cap, int *n, struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	(void)et;
	*n = m->n_commits < cap ? m->n_commits : cap;
	if (*n > 0)
		memcpy(out, m->stats + m->n_commits - *n, (size_t)*n * sizeof *out);
	return RV_OK;
}

static enum rv_err total_tokens(struct store *s, uint64_t *tokens, struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	(void)et;
	*tokens = 0;
	for (int i = 0; i < m->n_commits; i++)
		*tokens += m->stats[i].tokens;
	return RV_OK;
}

/* ---- invites ---- */

static enum rv_err invite_add(struct store *s, const struct rv_hash *hash, const struct store_invite *in,
							  struct rv_errtext *et) {
	struct memory_store *m = of(s);
	RV_TRY(fault(m, et));
	RV_ASSERT(m->n_invites < MEMORY_STORE_TOKENS);
	m->invites[m->n_invites] = *in;
	m->invites[m->n_invites].id = m->n_invites + 1;
	m->tokens[m->n_invites++] = *hash;
	return RV_OK;
}

static enum rv_err invite_find(struct store *s, const struct rv_hash *hash, struct store_invite *out, bool *found,
							   struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	int i = find_invite(m, hash);
	(void)et;
	*found = i < m->n_invites;
	if (*found)
		*out = invite_at(m, i);
	return RV_OK;
}

static enum rv_err invite_get(struct store *s, int64_t id, struct store_invite *out, bool *found,
							  struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	(void)et;
	*found = id >= 1 && id <= m->n_invites;
	if (*found)
		*out = invite_at(m, (int)id - 1);
	return RV_OK;
}

static enum rv_err invites(struct store *s, struct store_invite *out, int cap, int *n, struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	(void)et;
	*n = 0;
	for (int i = m->n_invites - 1; i >= 0 && *n < cap; i--)
		out[(*n)++] = invite_at(m, i);
	return RV_OK;
}

static int by_number(const void *a, const void *b) {
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static enum rv_err invite_members(struct store *s, int64_t id, uint32_t *out, int cap, int *n, struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	(void)et;
	*n = 0;
	for (int i = 0; i < m->n_came && *n < cap; i++)
		if (m->came[i].invite == id)
			out[(*n)++] = m->came[i].member;
	qsort(out, (size_t)*n, sizeof *out, by_number);
	return RV_OK;
}

static enum rv_err invite_revoke(struct store *s, int64_t id, int64_t wall_us, bool *found, struct rv_errtext *et) {
	struct memory_store *m = of(s);
	RV_TRY(fault(m, et));
	*found = id >= 1 && id <= m->n_invites;
	if (*found && m->invites[id - 1].revoked_us == 0)
		m->invites[id - 1].revoked_us = wall_us;
	drop_askers_of(m, id);
	return RV_OK;
}

/* In the order in which they asked: nobody asks earlier than those before. */
static enum rv_err asker_put(struct store *s, const struct store_asker *a, struct rv_errtext *et) {
	struct memory_store *m = of(s);
	int i = find_asker(m, a->key);
	RV_TRY(fault(m, et));
	RV_ASSERT(i < STORE_ASKERS_MAX);
	m->n_askers += i == m->n_askers;
	m->askers[i] = *a;
	return RV_OK;
}

static enum rv_err asker_drop(struct store *s, const uint8_t key[NET_KEY_BYTES], struct rv_errtext *et) {
	struct memory_store *m = of(s);
	int i = find_asker(m, key);
	RV_TRY(fault(m, et));
	if (i < m->n_askers)
		drop_asker(m, i);
	return RV_OK;
}

static enum rv_err askers(struct store *s, struct store_asker out[STORE_ASKERS_MAX], int *n, struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	(void)et;
	*n = m->n_askers;
	memcpy(out, m->askers, (size_t)*n * sizeof *out);
	return RV_OK;
}

/* ---- what the run is ---- */

static enum rv_err run(struct store *s, uint8_t run_id[NET_RUN_ID_BYTES], char config[NET_MAX_CONFIG_BYTES],
					   struct rv_errtext *et) {
	const struct memory_store *m = of(s);
	(void)et;
	memcpy(run_id, m->run_id, NET_RUN_ID_BYTES);
	(void)snprintf(config, NET_MAX_CONFIG_BYTES, "%s", m->config != NULL ? m->config : "");
	return RV_OK;
}

static struct memory_setting *find(struct memory_store *m, const char *name) {
	int i = 0;
	while (i < m->n_settings && strcmp(m->settings[i].name, name) != 0)
		i++;
	return i < m->n_settings ? &m->settings[i] : NULL;
}

static enum rv_err set(struct store *s, const char *name, const char *value, struct rv_errtext *et) {
	struct memory_store *m = of(s);
	RV_TRY(fault(m, et));
	struct memory_setting *at = find(m, name);
	if (at == NULL) {
		RV_ASSERT(m->n_settings < MEMORY_STORE_SETTINGS);
		at = &m->settings[m->n_settings++];
	}
	(void)snprintf(at->name, sizeof at->name, "%s", name);
	(void)snprintf(at->value, sizeof at->value, "%s", value);
	return RV_OK;
}

static enum rv_err get(struct store *s, const char *name, char *out, size_t cap, struct rv_errtext *et) {
	const struct memory_setting *at = find(of(s), name);
	size_t n = at != NULL ? strlen(at->value) : 0;
	if (n >= cap)
		return rv_fail(et, RV_E_CORRUPT, "'%s' has %zu bytes, at most %zu", name, n, cap - 1);
	memcpy(out, at != NULL ? at->value : "", n + 1);
	return RV_OK;
}

static enum rv_err copy(struct store *s, const char *path, struct rv_errtext *et) {
	(void)s;
	return rv_fail(et, RV_E_UNSUPPORTED, "%s: a store in memory has no file to copy", path);
}

static void close_store(struct store *s) {
	memory_store_release(of(s));
}

void memory_store_init(struct memory_store *m) {
	static const struct store_ops ops = {.close = close_store,
										 .append = append,
										 .append_many = append_many,
										 .each = each,
										 .away = away,
										 .commits = commits,
										 .total_tokens = total_tokens,
										 .invite_add = invite_add,
										 .invite_find = invite_find,
										 .invite_get = invite_get,
										 .invites = invites,
										 .invite_members = invite_members,
										 .invite_revoke = invite_revoke,
										 .asker_put = asker_put,
										 .asker_drop = asker_drop,
										 .askers = askers,
										 .run = run,
										 .set = set,
										 .get = get,
										 .copy = copy};
	memset(m, 0, sizeof *m);
	m->store.ops = &ops;
}

void memory_store_release(struct memory_store *m) {
	free(m->bytes);
	free(m->stats);
	free(m->came);
	memory_store_init(m);
}
