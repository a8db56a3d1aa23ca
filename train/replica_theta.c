/* replica_theta.c: weights of a replica, wherever its parts have them, read and set by the host. */
#include "train/replica.h"

#include "base/assert.h"
#include "train/replica_internal.h"

bool replica_is_on_device(const struct replica *r) {
	return r->on_device;
}

const float *replica_theta(struct replica *r) {
	replica_end_update(r);
	if (!r->mirror)
		return r->parts[0].theta;
	replica_get_part(r, 0, r->n, r->mirror);
	return r->mirror;
}

float *replica_device_theta(struct replica *r, struct backend **be) {
	*be = r->parts[0].be;
	return r->on_device && r->zero != ZERO_WEIGHTS ? r->parts[0].theta : NULL;
}

void replica_draw_theta0(struct replica *r) {
	const struct model *m = r->parts[0].model;
	if (r->zero == ZERO_WEIGHTS) {
		model_init_host_params(&m->layout, r->mirror, (uint64_t)r->cfg.seed, r->on_device ? 0 : m->be->threads);
		replica_set_theta(r, r->mirror);
		return;
	}
	model_init_params(m, r->parts[0].theta, (uint64_t)r->cfg.seed);
	if (r->n_parts == 1)
		return;
	const float *drawn = replica_theta(r);
	for (int i = 1; i < r->n_parts; i++)
		r->parts[i].be->ops->upload(r->parts[i].be, r->parts[i].theta, drawn, r->n * sizeof *drawn);
}

/* Returns what of [at, at + n) a part has. */
static struct comm_slice held_of(const struct replica *r, const struct replica_part *p, size_t at, size_t n) {
	const struct comm_slice held = replica_part_held(r, p);
	const size_t from = held.begin > at ? held.begin : at, to = held.end < at + n ? held.end : at + n;
	return (struct comm_slice){from, from < to ? to : from};
}

void replica_set_part(struct replica *r, size_t at, size_t n, const float *values) {
	RV_ASSERT(at <= r->n && n <= r->n - at);
	replica_end_update(r);
	for (int i = 0; i < r->n_parts; i++) {
		const struct replica_part *p = &r->parts[i];
		const struct comm_slice s = held_of(r, p, at, n);
		if (s.begin < s.end)
			p->be->ops->upload(p->be, replica_part_theta(r, p, s.begin), values + (s.begin - at),
							   (s.end - s.begin) * sizeof *values);
	}
}

void replica_set_theta(struct replica *r, const float *theta) {
	replica_set_part(r, 0, r->n, theta);
}

void replica_get_part(struct replica *r, size_t at, size_t n, float *values) {
	const int holders = r->zero == ZERO_WEIGHTS ? r->n_parts : 1;
	RV_ASSERT(at <= r->n && n <= r->n - at);
	replica_end_update(r);
	for (int i = 0; i < holders; i++) {
		const struct replica_part *p = &r->parts[i];
		const struct comm_slice s = held_of(r, p, at, n);
		if (s.begin < s.end)
			p->be->ops->download(p->be, values + (s.begin - at), replica_part_theta(r, p, s.begin),
								 (s.end - s.begin) * sizeof *values);
	}
}

void replica_shift_part(struct replica *r, size_t at, size_t n, const float *from, const float *to) {
	float chunk[REPLICA_SHIFT_MAX];
	RV_ASSERT(n <= REPLICA_SHIFT_MAX);
	replica_get_part(r, at, n, chunk);
	for (size_t i = 0; i < n; i++)
		chunk[i] += to[i] - from[i];
	replica_set_part(r, at, n, chunk);
}

/* Returns what of [at, at + n) lies in a part's gradient: all in the first one's, or a slice in
 * each. */
static struct comm_slice laid_of(const struct replica *r, int index, size_t at, size_t n) {
	const struct comm_slice s = r->parts[index].slice;
	if (r->zero == ZERO_MOMENTS)
		return (struct comm_slice){at, index == 0 ? at + n : at};
	const size_t from = s.begin > at ? s.begin : at, to = s.end < at + n ? s.end : at + n;
	return (struct comm_slice){from, from < to ? to : from};
}

void replica_lay_by(struct replica *r, const float *values) {
	replica_end_update(r);
	for (int i = 0; i < r->n_parts; i++) {
		const struct replica_part *p = &r->parts[i];
		const struct comm_slice s = laid_of(r, i, 0, r->n);
		if (s.begin < s.end)
			p->be->ops->upload(p->be, replica_part_grad(r, p, s.begin), values + s.begin,
							   (s.end - s.begin) * sizeof *values);
	}
}

void replica_laid_by(struct replica *r, size_t at, size_t n, float *values) {
	RV_ASSERT(at <= r->n && n <= r->n - at);
	for (int i = 0; i < r->n_parts; i++) {
		const struct replica_part *p = &r->parts[i];
		const struct comm_slice s = laid_of(r, i, at, n);
		if (s.begin < s.end)
			p->be->ops->download(p->be, values + (s.begin - at), replica_part_grad(r, p, s.begin),
								 (s.end - s.begin) * sizeof *values);
	}
}
