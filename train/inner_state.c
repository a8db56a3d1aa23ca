/* inner_state.c: see inner_state.h. */
#include "train/inner_state.h"

#include "base/assert.h"
#include "train/replica_internal.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "vectors are stored as they lie in memory");

size_t inner_state_bytes(size_t n) {
	return INNER_HEAD_BYTES + 2 * n * sizeof(float);
}

uint32_t inner_state_pieces(size_t n) {
	return (uint32_t)((inner_state_bytes(n) + INNER_PIECE_BYTES - 1) / INNER_PIECE_BYTES);
}

size_t inner_piece_bytes(size_t n, uint32_t i) {
	const size_t at = (size_t)i * INNER_PIECE_BYTES, left = inner_state_bytes(n) - at;
	RV_ASSERT(i < inner_state_pieces(n));
	return left < INNER_PIECE_BYTES ? left : INNER_PIECE_BYTES;
}

bool inner_state_is_there(const struct replica *r) {
	return r->moments == MOMENTS_FP32;
}

/* Values [at, at + n) of both moments, one after the other, in one part. */
struct stretch {
	size_t at, n;   /* in the moment */
	size_t first;   /* in `values` */
	float *in_part; /* device memory */
	struct backend *on;
};

/* Returns what of values [at, at + n) of both moments one after the other is in moment `which` of
 * part `p`. */
static struct stretch stretch_of(const struct replica *r, const struct replica_part *p, int which, size_t at,
								 size_t n) {
	const size_t base = (size_t)which * r->n, begin = base + p->updated.begin, end = base + p->updated.end;
	const size_t from = begin > at ? begin : at, to = end < at + n ? end : at + n;
	struct stretch s = {.on = replica_part_updater(p)};
	if (from >= to)
		return s;
	s.n = to - from;
	s.first = from - at;
	s.in_part = (float *)(which == 0 ? p->m : p->v) + (from - begin);
	return s;
}

static void get_moments(const struct replica *r, size_t at, size_t n, uint8_t *out) {
	const int parts = r->inner->whole_matrices ? 1 : r->n_parts;
	for (int i = 0; i < parts; i++) {
		RV_ASSERT(!r->parts[i].host_step.pending); /* its moments would be half of a step */
		for (int which = 0; which < 2; which++) {
			const struct stretch s = stretch_of(r, &r->parts[i], which, at, n);
			if (s.n > 0)
				s.on->ops->download(s.on, out + s.first * sizeof(float), s.in_part, s.n * sizeof(float));
		}
	}
}

static void set_moments(const struct replica *r, size_t at, size_t n, const uint8_t *from) {
	for (int i = 0; i < r->n_parts; i++)
		for (int which = 0; which < 2; which++) {
			const struct stretch s = stretch_of(r, &r->parts[i], which, at, n);
			if (s.n > 0)
				s.on->ops->upload(s.on, s.in_part, from + s.first * sizeof(float), s.n * sizeof(float));
		}
}

void inner_state_read(const struct replica *r, size_t at, size_t n, uint8_t *out) {
	uint8_t head[INNER_HEAD_BYTES];
	RV_ASSERT(inner_state_is_there(r) && at <= inner_state_bytes(r->n) && n <= inner_state_bytes(r->n) - at);
	RV_ASSERT(at % sizeof(float) == 0 && n % sizeof(float) == 0);
	memcpy(head, &r->adam_steps, sizeof head);
	const size_t of_head = at >= sizeof head ? 0 : n < sizeof head - at ? n : sizeof head - at;
	memcpy(out, head + at, of_head);
	if (n > of_head)
		get_moments(r, (at + of_head - sizeof head) / sizeof(float), (n - of_head) / sizeof(float), out + of_head);
}

/* ---- what training may leave ---- */

/* Larger ones are of no gradient that a loss of a finite model has. */
static const float moment_most = 1e15f, square_most = 1e30f;

/* Returns the most that a mean of gradients is, times the root of that of their squares: of AdamW,
 * whose decays bound it by Cauchy and Schwarz; 0: nothing bounds it. */
static double most_over_root(const struct replica *r) {
	const double b1 = r->cfg.beta1, b2 = r->cfg.beta2;
	if (r->inner != &inner_adamw || b1 * b1 >= b2)
		return 0;
	return (1 - b1) / sqrt((1 - b2) * (1 - b1 * b1 / b2));
}

bool inner_state_is_sane(const struct replica *r, const uint8_t *inner) {
	enum { ROUNDING = 2 };
	const float *m = (const float *)(const void *)(inner + INNER_HEAD_BYTES), *v = m + r->n;
	const double over = most_over_root(r);
	for (size_t i = 0; i < r->n; i++) {
		if (!(fabsf(m[i]) <= moment_most) || !(v[i] >= 0 && v[i] <= square_most))
			return false;
		if (over > 0 && fabs((double)m[i]) > ROUNDING * over * sqrt((double)v[i]) + r->cfg.eps)
			return false;
	}
	return true;
}

/* ---- exchange ---- */

static void exchange_theta(struct replica *r, struct inner_other *o) {
	enum { AT_ONCE = INNER_PIECE_BYTES / (int)sizeof(float) };
	for (size_t at = 0, n; at < r->n; at += n) {
		n = r->n - at < AT_ONCE ? r->n - at : AT_ONCE;
		replica_get_part(r, at, n, (float *)(void *)o->room);
		replica_set_part(r, at, n, o->theta + at);
		memcpy(o->theta + at, o->room, n * sizeof(float));
	}
}

static void exchange_moments(struct replica *r, struct inner_other *o) {
	enum { AT_ONCE = INNER_PIECE_BYTES / (int)sizeof(float) };
	uint8_t *moments = o->inner + INNER_HEAD_BYTES;
	for (size_t at = 0, n; at < 2 * r->n; at += n) {
		n = 2 * r->n - at < AT_ONCE ? 2 * r->n - at : AT_ONCE;
		get_moments(r, at, n, o->room);
		set_moments(r, at, n, moments + at * sizeof(float));
		memcpy(moments + at * sizeof(float), o->room, n * sizeof(float));
	}
}

static void exchange_u64(uint64_t *a, uint64_t *b) {
	const uint64_t was = *a;
	*a = *b;
	*b = was;
}

void inner_exchange(struct replica *r, struct inner_other *o) {
	const struct reading reading = r->reading;
	const bool has_reading = r->has_reading;
	uint64_t updates;
	RV_ASSERT(inner_state_is_there(r) && r->n_kept == 0);
	replica_settle(r);
	exchange_theta(r, o);
	exchange_moments(r, o);
	memcpy(&updates, o->inner, sizeof updates);
	exchange_u64(&r->adam_steps, &updates);
	memcpy(o->inner, &updates, sizeof updates);
	exchange_u64(&r->global_step, &o->global_step);
	exchange_u64(&r->cursor, &o->next);
	r->reading = o->reading;
	r->has_reading = o->has_reading;
	o->reading = reading;
	o->has_reading = has_reading;
}
