/* windows.c: what is where, and what is on its way. */
#include "train/windows.h"

#include "base/assert.h"

#include <stdlib.h>

/* Memory of one section at a time. */
struct window {
	float *at; /* backend memory; NULL: it does not exist */
	size_t floats;
	int section; /* held, or on its way; MODEL_NO_SECTION */
	bool moves;  /* an exchange of it was started, and is not ordered: `mark` */
	struct comm_mark mark;
};

struct windows {
	struct model *m;
	struct backend *be;
	struct comm *comm;
	int n, rank;
	struct comm_slice slice;
	const float *theta; /* of the slice; NULL: weights are whole */
	float *grad;        /* of the slice */
	struct window weights[WINDOWS], grads[WINDOWS];
	struct model_holder holder;
	bool adds;    /* the slice has gradients of this step */
	bool careful; /* the host waits for exchanges */
	bool failed;  /* an exchange of this pass failed */
};

void windows_sizes(const struct model_layout *l, size_t floats[WINDOWS]) {
	const int behind = model_sections(&l->layers) - 1;
	floats[0] = model_section_begin(l, 1);
	floats[1] = floats[2] = l->layers.layer_elems;
	floats[WINDOWS - 1] = l->n_params - model_section_begin(l, behind);
}

static int sections(const struct windows *w) {
	return model_sections(&w->m->layout.layers);
}

static int window_of(const struct windows *w, int section) {
	if (section == 0)
		return 0;
	return section == sections(w) - 1 ? WINDOWS - 1 : 1 + section % 2;
}

static size_t begin_of(const struct windows *w, int section) {
	return model_section_begin(&w->m->layout, section);
}

/* Returns the part of a section that device `rank` owns. */
static struct comm_slice owned(const struct windows *w, int section, int rank) {
	const struct comm_slice s = comm_slice_of(w->m->layout.n_params, w->n, rank);
	const size_t begin = begin_of(w, section), end = begin_of(w, section + 1);
	const size_t from = s.begin > begin ? s.begin : begin, to = s.end < end ? s.end : end;
	return (struct comm_slice){from, from < to ? to : from};
}

/* Makes operations see the window's exchange. */
static void settle(struct windows *w, struct window *k) {
	if (!k->moves)
		return;
	if (w->careful)
		w->failed = !comm_wait(w->comm) || w->failed;
	else
		comm_order(w->comm, k->mark);
	k->moves = false;
}

static void note_exchange(struct windows *w, struct window *k) {
	k->mark = comm_mark(w->comm);
	k->moves = true;
}

/* ---- weights ---- */

/* Starts the gathering of a section's weights, unless they are there or on their way. */
static void gather(struct windows *w, int section) {
	struct window *k = &w->weights[window_of(w, section)];
	const size_t begin = begin_of(w, section);
	if (k->section == section)
		return;
	RV_ASSERT(!k->moves);
	k->section = section;
	for (int rank = 0; rank < w->n; rank++) {
		const struct comm_slice s = owned(w, section, rank);
		float *part = k->at + (s.begin - begin);
		if (rank == w->rank && s.begin < s.end)
			w->be->ops->add_scaled(w->be, part, 0, 1, w->theta + (s.begin - w->slice.begin), NULL, s.end - s.begin);
		comm_start_broadcast(w->comm, part, s.end - s.begin, rank);
	}
	note_exchange(w, k);
}

/* Returns the section that a pass uses behind this one; MODEL_NO_SECTION: none that is not
 * there. */
static int next_of(const struct windows *w, int section, bool backward) {
	if (backward)
		return section > 1 ? section - 1 : MODEL_NO_SECTION;
	return section + 1 < sections(w) ? section + 1 : MODEL_NO_SECTION;
}

static void hold_weights(struct windows *w, int section, bool backward) {
	const int next = next_of(w, section, backward);
	gather(w, section);
	settle(w, &w->weights[window_of(w, section)]);
	if (next != MODEL_NO_SECTION)
		gather(w, next);
}

static const float *weights_at(void *ctx, size_t offset) {
	const struct windows *w = ctx;
	const int section = model_section_of(&w->m->layout, offset);
	const struct window *k = &w->weights[window_of(w, section)];
	RV_ASSERT(k->section == section && !k->moves);
	return k->at + (offset - begin_of(w, section));
}

/* ---- gradients ---- */

/* Adds the sums of the window's section to the slice, so that the window is free. */
static void collect(struct windows *w, struct window *k) {
	if (k->section == MODEL_NO_SECTION)
		return;
	settle(w, k);
	const struct comm_slice s = owned(w, k->section, w->rank);
	if (s.begin < s.end)
		w->be->ops->add_scaled(w->be, w->grad + (s.begin - w->slice.begin), w->adds ? 1 : 0, 1,
							   k->at + (s.begin - begin_of(w, k->section)), NULL, s.end - s.begin);
	k->section = MODEL_NO_SECTION;
}

static float *gradients_at(void *ctx, size_t offset) {
	const struct windows *w = ctx;
	const int section = model_section_of(&w->m->layout, offset);
	const struct window *k = &w->grads[window_of(w, section)];
	RV_ASSERT(k->section == MODEL_NO_SECTION);
	return k->at + (offset - begin_of(w, section));
}

/* Starts the sums of a section whose gradients are final. */
static void reduce(struct windows *w, int section) {
	struct window *k = &w->grads[window_of(w, section)];
	RV_ASSERT(k->section == MODEL_NO_SECTION);
	k->section = section;
	for (int rank = 0; rank < w->n; rank++) {
		const struct comm_slice s = owned(w, section, rank);
		comm_start_reduce(w->comm, k->at + (s.begin - begin_of(w, section)), s.end - s.begin, rank);
	}
	note_exchange(w, k);
}

static void on_gradients(void *ctx, size_t begin, size_t end) {
	struct windows *w = ctx;
	const int section = model_section_of(&w->m->layout, begin);
	RV_ASSERT(begin == begin_of(w, section) && end == begin_of(w, section + 1));
	reduce(w, section);
}

/* ---- passes ---- */

static void enter(void *ctx, int section, bool backward) {
	struct windows *w = ctx;
	if (w->theta)
		hold_weights(w, section, backward);
	if (backward)
		collect(w, &w->grads[window_of(w, section)]);
}

void windows_begin_step(struct windows *w) {
	for (int i = 0; i < WINDOWS; i++) {
		RV_ASSERT(!w->weights[i].moves && w->grads[i].section == MODEL_NO_SECTION);
		w->weights[i].section = MODEL_NO_SECTION;
	}
	w->adds = false;
}

void windows_begin(struct windows *w, bool careful) {
	w->careful = careful;
	w->failed = false;
	w->m->holder = &w->holder;
	w->m->on_gradients = on_gradients;
	w->m->on_gradients_ctx = w;
}

/* Forgets what a failed exchange may have left anywhere. */
static void forget(struct windows *w) {
	for (int i = 0; i < WINDOWS; i++) {
		w->weights[i].section = MODEL_NO_SECTION;
		w->be->ops->zero(w->be, w->grads[i].at, w->grads[i].floats * sizeof(float));
	}
}

bool windows_end(struct windows *w) {
	w->failed = !comm_wait(w->comm) || w->failed;
	for (int i = 0; i < WINDOWS; i++) {
		w->weights[i].moves = w->grads[i].moves = false;
		collect(w, &w->grads[i]);
	}
	w->adds = true;
	w->m->holder = NULL;
	w->m->on_gradients = NULL;
	if (w->failed)
		forget(w);
	return !w->failed;
}

/* Sums nothing in place of a section's gradients. */
static void reduce_nothing(struct windows *w, int section) {
	const struct window *k = &w->grads[window_of(w, section)];
	w->be->ops->zero(w->be, k->at, k->floats * sizeof(float));
	reduce(w, section);
}

void windows_idle(struct windows *w, bool backward) {
	for (int s = 0; s < sections(w); s++)
		enter(w, s, false);
	for (int s = sections(w) - 1; s >= 1 && backward; s--) {
		enter(w, s, true);
		reduce_nothing(w, s);
	}
	if (backward)
		reduce_nothing(w, 0);
}

/* ---- memory ---- */

static enum rv_err alloc_windows(struct windows *w, struct window *list, const char *what, struct rv_errtext *et) {
	size_t floats[WINDOWS];
	windows_sizes(&w->m->layout, floats);
	for (int i = 0; i < WINDOWS; i++) {
		void *p = NULL;
		const enum rv_err e = w->be->ops->alloc(w->be, floats[i] * sizeof(float), &p, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "a window of %s, %zu parameters", what, floats[i]);
		list[i].at = p;
		list[i].floats = floats[i];
	}
	return RV_OK;
}

enum rv_err windows_new(struct model *m, struct comm_slice slice, const float *theta, float *grad, struct windows **out,
						struct rv_errtext *et) {
	*out = NULL;
	struct windows *w = calloc(1, sizeof *w);
	if (!w)
		return rv_fail(et, RV_E_NOMEM, "no memory for the windows of a device");
	*w = (struct windows){.m = m, .be = m->be, .slice = slice, .theta = theta, .grad = grad};
	for (int i = 0; i < WINDOWS; i++)
		w->weights[i].section = w->grads[i].section = MODEL_NO_SECTION;
	w->holder = (struct model_holder){
		.ctx = w, .enter = enter, .weights = theta ? weights_at : NULL, .gradients = gradients_at};
	enum rv_err e = alloc_windows(w, w->grads, "gradients", et);
	if (e == RV_OK && theta)
		e = alloc_windows(w, w->weights, "weights", et);
	if (e != RV_OK) {
		windows_free(w);
		return e;
	}
	*out = w;
	return RV_OK;
}

void windows_free(struct windows *w) {
	if (!w)
		return;
	for (int i = 0; i < WINDOWS; i++) {
		if (w->weights[i].at)
			w->be->ops->free(w->be, w->weights[i].at);
		if (w->grads[i].at)
			w->be->ops->free(w->be, w->grads[i].at);
	}
	free(w);
}

void windows_join(struct windows *w, struct comm *comm, int n, int rank) {
	w->comm = comm;
	w->n = n;
	w->rank = rank;
}

void windows_weights(const struct windows *w, const float *params[WEIGHT_ALLOCATIONS]) {
	_Static_assert((int)WINDOWS <= (int)WEIGHT_ALLOCATIONS, "each window of weights has its bf16 copy");
	for (int i = 0; i < WINDOWS; i++)
		params[i] = w->weights[i].at;
}
