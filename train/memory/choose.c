/* choose.c: tries all combinations, each with the largest micro-batch that fits. */
#include "train/memory/choose.h"

#include "train/inner.h"
#include "train/memory/cost.h"

#include <math.h>
#include <stdio.h>

/* How much faster a step has to be, as a share, for moments of 8 bits to be chosen. */
static const double moments8_least_gain = 0.05;
/* How much longer a step may take, as a share, for savings that leave all bits as they are to be
 * preferred to others. */
static const double stream_most_cost = 0.05;

struct search {
	const struct savings_wish *wish;
	struct memory_room room;
	struct memory_request q;
	struct savings best;
	double best_cost; /* INFINITY: none fits so far */
};

static bool fits(struct search *s, int micro_batch) {
	s->q.savings.micro_batch = micro_batch;
	return memory_fit(&s->q, &s->room, NULL) == RV_OK;
}

/* Returns the most sequences that a device may have at a time: the run's batch, and its share of a
 * step. */
static int most_sequences(const struct memory_request *q) {
	const struct savings whole = {.micro_batch = 0};
	const uint64_t batch = (uint64_t)savings_micro_batch(&whole, q->run);
	const uint64_t share = savings_share(q->run, q->device->n);
	return (int)(share < batch ? share : batch);
}

/* Returns the largest micro-batch that fits; 0: none. */
static int largest_micro_batch(struct search *s) {
	int most = most_sequences(&s->q), none = most + 1, some = 0;
	if (s->wish->micro_batch > 0)
		return fits(s, s->wish->micro_batch) ? s->wish->micro_batch : 0;
	if (fits(s, most))
		return most;
	for (none = most; none - some > 1;) {
		const int middle = some + (none - some) / 2;
		if (fits(s, middle))
			some = middle;
		else
			none = middle;
	}
	return some;
}

/* Returns the smallest micro-batch that divides a batch into no more parts than `most` does. */
static int evenly(const struct memory_request *q, int most) {
	const int batch = most_sequences(q), parts = (batch + most - 1) / most;
	return (batch + parts - 1) / parts;
}

static void try_rows(struct search *s, struct savings with, int logits_rows) {
	with.logits_rows = logits_rows;
	s->q.savings = with;
	const int most = largest_micro_batch(s);
	if (most == 0)
		return;
	const struct savings whole = {.micro_batch = 0};
	const int micro = s->wish->micro_batch > 0 ? most : evenly(&s->q, most);
	s->q.savings.micro_batch = micro == savings_micro_batch(&whole, s->q.run) ? 0 : micro;
	struct memory_plan plan;
	if (memory_plan_make(&s->q, &plan, NULL) != RV_OK)
		return;
	const double cost = memory_cost(&s->q, plan.n_params) + (with.moments == MOMENTS_INT8 ? moments8_least_gain : 0);
	if (cost < s->best_cost) {
		s->best = s->q.savings;
		s->best_cost = cost;
	}
}

/* Tries all logits at once, and chunks of fewer and fewer rows. */
static void try(struct search *s, struct savings with) {
	static const int rows[] = {0, 16 * LOGITS_TILE, 4 * LOGITS_TILE, LOGITS_TILE};
	if (s->wish->logits_rows > 0 || !memory_can_chunk(&s->q)) {
		try_rows(s, with, s->wish->logits_rows);
		return;
	}
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i] < most_sequences(&s->q) * s->q.run->context)
			try_rows(s, with, rows[i]);
}

/* Raises the rows of logits of the best savings to what there is room for. */
static void raise_logits(struct search *s) {
	s->q.savings = s->best;
	const int64_t tokens = (int64_t)savings_micro_batch(&s->best, s->q.run) * s->q.run->context;
	while (s->best.logits_rows > 0 && s->wish->logits_rows == 0) {
		const int64_t more = 2 * (int64_t)s->best.logits_rows;
		s->q.savings.logits_rows = more < tokens ? (int)more : 0;
		if (memory_fit(&s->q, &s->room, NULL) != RV_OK)
			return;
		s->best = s->q.savings;
	}
}

/* Returns true if a wish is for that value, or for any and the value is possible. */
static bool takes(int wish, int value, bool possible) {
	return wish == value || (wish == SAVINGS_ANY && possible);
}

/* Tries copies of the state first: they are not slower. */
static void try_streams(struct search *s, struct savings with) {
	for (int stream = 0; stream <= 1; stream++) {
		with.stream = stream;
		s->q.savings = with;
		if (takes(s->wish->stream, stream, !stream || memory_can_stream(&s->q)))
			try(s, with);
	}
}

/* Tries what `with` has, with each division of weights and gradients, and with and without
 * offload. */
static void try_places(struct search *s, struct savings with) {
	const struct savings_wish *w = s->wish;
	for (int zero = ZERO_MOMENTS; zero <= ZERO_WEIGHTS; zero++)
		for (int offload = 0; offload <= 1; offload++) {
			with.zero = (enum zero)zero;
			with.offload = offload;
			if (takes(w->zero, zero, zero == ZERO_MOMENTS || memory_can_divide(&s->q)) &&
				takes(w->offload, offload, !offload || memory_can_offload(&s->q)))
				try_streams(s, with);
		}
}

static bool search_in(struct search *s) {
	const struct savings_wish *w = s->wish;
	const bool has_moments8 = inner_registry[s->q.run->inner]->has_moments8;
	s->best_cost = INFINITY;
	for (int moments = MOMENTS_FP32; moments <= MOMENTS_INT8; moments++)
		for (int recompute = RECOMPUTE_NONE; recompute <= RECOMPUTE_BLOCK; recompute++)
			if (takes(w->recompute, recompute, true) &&
				takes(w->moments, moments, moments == MOMENTS_FP32 || has_moments8))
				try_places(s,
						   (struct savings){.recompute = (enum recompute)recompute, .moments = (enum moments)moments});
	const bool found = s->best_cost < INFINITY;
	if (found)
		raise_logits(s);
	return found;
}

/* Returns what `wish` fixes, and no savings beyond. */
static struct savings least_of(const struct savings_wish *wish) {
	return (struct savings){.micro_batch = wish->micro_batch,
							.logits_rows = wish->logits_rows,
							.recompute = wish->recompute == SAVINGS_ANY ? RECOMPUTE_NONE : wish->recompute,
							.moments = wish->moments == SAVINGS_ANY ? MOMENTS_FP32 : wish->moments,
							.offload = wish->offload == 1,
							.zero = wish->zero == SAVINGS_ANY ? ZERO_MOMENTS : (enum zero)wish->zero,
							.stream = wish->stream == 1};
}

static bool fits_with(struct search *s, struct savings with) {
	s->q.savings = with;
	s->best = with;
	return memory_fit(&s->q, &s->room, NULL) == RV_OK;
}

/* Returns true if rounds are long beside the time that the disk takes for a state. */
static bool streams_in_passing(const struct search *s) {
	struct memory_plan plan;
	return memory_plan_make(&s->q, &plan, NULL) == RV_OK && memory_cost(&s->q, plan.n_params) <= stream_most_cost;
}

/* Other savings than streams change the last bits, or more: where there is room without them, none
 * is made, unless rounds are so short that the disk would be waited for. */
static bool fits_without(struct search *s) {
	struct savings least = least_of(s->wish);
	if (fits_with(s, least))
		return true;
	least.stream = s->wish->stream != 0;
	return fits_with(s, least) && (s->wish->stream == 1 || streams_in_passing(s));
}

bool savings_choose(const struct memory_request *q, const struct savings_wish *wish, const struct memory_room *room,
					struct savings *out) {
	struct search s = {.wish = wish, .room = *room, .q = *q};
	s.room.swap = 0;
	bool found = fits_without(&s) || search_in(&s);
	s.room.swap = room->swap;
	found = found || (room->swap > 0 && search_in(&s));
	*out = found ? s.best : least_of(wish);
	return found;
}

void savings_choose_logits(const struct memory_request *q, const struct memory_room *room, struct savings *out) {
	const struct savings_wish any = SAVINGS_WISH_ANY;
	struct search s = {.wish = &any, .room = *room, .q = *q, .best = q->savings};
	*out = q->savings;
	if (!memory_can_chunk(q) || out->logits_rows > 0 || memory_fit(q, room, NULL) == RV_OK)
		return;
	s.q.savings.logits_rows = s.best.logits_rows = LOGITS_TILE;
	if (memory_fit(&s.q, room, NULL) != RV_OK)
		return; /* its refusal names what else would fit */
	raise_logits(&s);
	*out = s.best;
}

void savings_text(const struct savings *s, char *out, size_t cap) {
	char recompute[32] = "", micro[32] = "", zero[16] = "", logits[32] = "";
	if (s->recompute != RECOMPUTE_NONE)
		(void)snprintf(recompute, sizeof recompute, " --recompute %s", recompute_name(s->recompute));
	if (s->micro_batch > 0)
		(void)snprintf(micro, sizeof micro, " --micro-batch %d", s->micro_batch);
	if (s->logits_rows > 0)
		(void)snprintf(logits, sizeof logits, " --logits %d", s->logits_rows);
	if (s->zero != ZERO_MOMENTS)
		(void)snprintf(zero, sizeof zero, " --zero %d", 1 + (int)s->zero);
	char all[SAVINGS_TEXT_BYTES];
	(void)snprintf(all, sizeof all, "%s%s%s%s%s%s%s", recompute, micro, logits,
				   s->moments == MOMENTS_INT8 ? " --moments int8" : "", s->offload ? " --offload yes" : "", zero,
				   s->stream ? " --stream-state yes" : "");
	(void)snprintf(out, cap, "%s", all[0] ? all + 1 : "");
}
