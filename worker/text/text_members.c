/* text_members.c: see text_members.h. */
#include "worker/text/text_members.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A range that a member sends. */
struct member_ask {
	uint32_t ask; /* 0: free */
	uint32_t bytes, got, told;
	bool none;
	uint8_t *buffer; /* (bytes) */
};

struct member_answer {
	bool is_there;
	struct text_member_event event;
};

struct text_members {
	pthread_mutex_t lock; /* all below */
	void (*wake_thread)(void *ctx);
	void *thread_ctx;
	void (*wake_mesh)(void *ctx); /* NULL: there are no members yet */
	void *mesh_ctx;
	struct text_asker asker;
	bool changed; /* links did */
	struct member_set linked, lost;
	struct member_ask asks[TEXT_MEMBER_ASKS];
	struct member_answer answers[TEXT_ASKER_MEMBERS];
};

static void lock(struct text_members *m) {
	(void)pthread_mutex_lock(&m->lock);
}

static void unlock(struct text_members *m) {
	(void)pthread_mutex_unlock(&m->lock);
}

struct text_members *text_members_new(void (*wake)(void *ctx), void *ctx) {
	struct text_members *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	(void)pthread_mutex_init(&m->lock, NULL);
	m->wake_thread = wake;
	m->thread_ctx = ctx;
	return m;
}

void text_members_free(struct text_members *m) {
	if (!m)
		return;
	for (int i = 0; i < TEXT_MEMBER_ASKS; i++)
		free(m->asks[i].buffer);
	(void)pthread_mutex_destroy(&m->lock);
	free(m);
}

static struct member_ask *find(struct text_members *m, uint32_t ask) {
	for (int i = 0; i < TEXT_MEMBER_ASKS; i++)
		if (m->asks[i].ask == ask)
			return &m->asks[i];
	return NULL;
}

/* ---- what members answer: inside text_asker_receive, under the lock ---- */

static void on_bytes(void *ctx, uint32_t ask, uint32_t at, const uint8_t *bytes, uint32_t n) {
	struct text_members *m = ctx;
	struct member_ask *a = find(m, ask);
	RV_ASSERT(a && at == a->got && n <= a->bytes - at);
	memcpy(a->buffer + at, bytes, n);
	a->got += n;
	if (a->got == a->bytes)
		m->wake_thread(m->thread_ctx);
}

static void on_none(void *ctx, uint32_t ask) {
	struct text_members *m = ctx;
	find(m, ask)->none = true;
	m->wake_thread(m->thread_ctx);
}

static void on_held(void *ctx, uint32_t member, const uint64_t *files, int n, uint64_t held) {
	struct text_members *m = ctx;
	int at = 0;
	while (m->answers[at].is_there)
		at++;
	RV_ASSERT(at < TEXT_ASKER_MEMBERS); /* one question of a member at a time, until its answer was taken */
	m->answers[at].is_there = true;
	struct text_member_event *e = &m->answers[at].event;
	*e = (struct text_member_event){.type = TEXT_MEMBER_HELD, .member = member, .n = n, .held = held};
	memcpy(e->files, files, (size_t)n * sizeof *files);
	m->wake_thread(m->thread_ctx);
}

/* ---- the thread of the mesh ---- */

void text_members_meet(struct text_members *m, uint64_t run_tag, void (*wake)(void *ctx), void *ctx) {
	const struct text_asker_owner owner = {.ctx = m, .on_bytes = on_bytes, .on_none = on_none, .on_held = on_held};
	lock(m);
	text_asker_init(&m->asker, run_tag, &owner);
	m->wake_mesh = wake;
	m->mesh_ctx = ctx;
	m->changed = true;
	unlock(m);
	m->wake_thread(m->thread_ctx);
}

void text_members_link_up(struct text_members *m, uint32_t member) {
	lock(m);
	(void)member_set_add(&m->linked, member);
	m->changed = true;
	unlock(m);
	m->wake_thread(m->thread_ctx);
}

static void forget_answer(struct text_members *m, uint32_t member) {
	for (int i = 0; i < TEXT_ASKER_MEMBERS; i++)
		if (m->answers[i].event.member == member)
			m->answers[i].is_there = false;
}

void text_members_link_down(struct text_members *m, uint32_t member) {
	lock(m);
	member_set_remove(&m->linked, member);
	(void)member_set_add(&m->lost, member);
	text_asker_link_down(&m->asker, member);
	forget_answer(m, member);
	m->changed = true;
	unlock(m);
	m->wake_thread(m->thread_ctx);
}

bool text_members_send(struct text_members *m, uint32_t member, struct peers_message *out) {
	lock(m);
	const bool sends = text_asker_send(&m->asker, member, out);
	unlock(m);
	return sends;
}

enum rv_err text_members_receive(struct text_members *m, uint32_t member, const struct frame_header *h,
								 const uint8_t *body, struct rv_errtext *et) {
	lock(m);
	const enum rv_err e = text_asker_receive(&m->asker, member, h, body, et);
	unlock(m);
	return e;
}

/* ---- the text thread ---- */

bool text_members_links(struct text_members *m, bool *meets, struct member_set *linked, struct member_set *lost) {
	lock(m);
	const bool changed = m->changed;
	*meets = m->wake_mesh != NULL;
	if (changed) {
		*linked = m->linked;
		*lost = m->lost;
		m->lost = (struct member_set){0};
		m->changed = false;
	}
	unlock(m);
	return changed;
}

/* What is asked of a link that is gone would be asked of the next one, of which the core does not
 * know. */
static bool is_current(const struct text_members *m, uint32_t member) {
	return member_set_has(&m->linked, member) && !member_set_has(&m->lost, member);
}

bool text_members_may_question(struct text_members *m, uint32_t member) {
	lock(m);
	const bool may = is_current(m, member);
	unlock(m);
	return may;
}

bool text_members_may_request(struct text_members *m, uint32_t member) {
	lock(m);
	const bool may = is_current(m, member) && find(m, 0) && text_asker_has_room(&m->asker, member);
	unlock(m);
	return may;
}

void text_members_question(struct text_members *m, uint32_t member, const uint64_t *files, int n) {
	lock(m);
	const bool asked = !is_current(m, member) || text_asker_question(&m->asker, member, files, n);
	RV_ASSERT(asked); /* every source has a place */
	unlock(m);
	m->wake_mesh(m->mesh_ctx);
}

enum rv_err text_members_request(struct text_members *m, uint32_t member, const struct text_request *q, uint32_t bytes,
								 struct rv_errtext *et) {
	uint8_t *buffer = malloc(bytes);
	if (!buffer)
		return rv_fail(et, RV_E_NOMEM, "no memory for text of a member");
	lock(m);
	struct member_ask *a = find(m, 0);
	RV_ASSERT(a && q->n == 1);
	*a = (struct member_ask){.ask = q->id, .bytes = bytes, .buffer = buffer};
	if (is_current(m, member))
		text_asker_request(&m->asker, member, q->id, q->file, q->first, bytes);
	unlock(m);
	m->wake_mesh(m->mesh_ctx);
	return RV_OK;
}

static void release(struct member_ask *a) {
	free(a->buffer);
	*a = (struct member_ask){0};
}

void text_members_cancel(struct text_members *m, uint32_t ask) {
	lock(m);
	struct member_ask *a = find(m, ask);
	if (a && ask != 0) {
		text_asker_cancel(&m->asker, ask);
		release(a);
	}
	unlock(m);
	if (m->wake_mesh)
		m->wake_mesh(m->mesh_ctx);
}

/* Writes the event of an ask. Returns false if nothing is new. */
static bool tell(struct member_ask *a, struct text_member_event *out) {
	if (a->ask == 0 || (!a->none && a->got == a->told))
		return false;
	*out = (struct text_member_event){.type = TEXT_MEMBER_PROGRESS, .ask = a->ask, .bytes = a->got};
	a->told = a->got;
	if (!a->none && a->got < a->bytes)
		return true;
	out->type = a->none ? TEXT_MEMBER_NONE : TEXT_MEMBER_RANGE;
	if (!a->none) {
		out->range = a->buffer;
		a->buffer = NULL;
	}
	release(a);
	return true;
}

static bool next_answer(struct text_members *m, struct text_member_event *out) {
	for (int i = 0; i < TEXT_ASKER_MEMBERS; i++)
		if (m->answers[i].is_there) {
			*out = m->answers[i].event;
			m->answers[i].is_there = false;
			return true;
		}
	return false;
}

bool text_members_next(struct text_members *m, struct text_member_event *out) {
	lock(m);
	bool any = next_answer(m, out);
	for (int i = 0; i < TEXT_MEMBER_ASKS && !any; i++)
		any = tell(&m->asks[i], out);
	unlock(m);
	return any;
}
