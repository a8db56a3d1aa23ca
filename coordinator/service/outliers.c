/* outliers.c: logs members whose contribution or loss is far from those of the others. Decides
 * nothing. One odd round may be chance: a member is logged after OUTLIER_ROUNDS rounds. */
#include "coordinator/service/contributions.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/robust.h"

#include <inttypes.h>
#include <math.h>

/* Least distance from the median where all others are alike. */
#define LOSS_LEAST    0.5  /* nats a token */
#define LOSS_SHARE    0.25 /* ... or this share of the median */
#define COSINE_LEAST  0.2
#define CLIPPED_LEAST 0.5 /* share of its chunks from which a contribution counts as scaled down */

/* Figures of a round's participants: medians, and each one's distance. */
struct round_figures {
	int n;
	uint32_t slots[NET_MAX_ROSTER];
	struct contribution of[NET_MAX_ROSTER];
	bool odd[NET_MAX_ROSTER][SERVICE_ODDITIES];
	double loss[NET_MAX_ROSTER], median_loss, median_cosine;
};

/* ---- oddities ---- */

/* Judges the known losses. */
static void judge_losses(struct round_figures *f) {
	double known[NET_MAX_ROSTER];
	int whose[NET_MAX_ROSTER], n = 0;
	for (int i = 0; i < f->n; i++) {
		if (!(f->loss[i] > 0))
			continue;
		whose[n] = i;
		known[n++] = f->loss[i];
	}
	f->median_loss = robust_median(known, n);
	for (int k = 0; k < n; k++)
		f->odd[whose[k]][SERVICE_ODD_LOSS] = robust_is_far(known, n, k, fmax(LOSS_LEAST, LOSS_SHARE * f->median_loss));
}

static void judge_contributions(struct round_figures *f) {
	double cosines[NET_MAX_ROSTER];
	if (f->n < ROBUST_LEAST || !f->of[0].measured)
		return;
	for (int i = 0; i < f->n; i++)
		cosines[i] = f->of[i].cosine;
	f->median_cosine = robust_median(cosines, f->n);
	for (int i = 0; i < f->n; i++) {
		f->odd[i][SERVICE_ODD_CLIPPED] = f->of[i].clipped >= CLIPPED_LEAST;
		f->odd[i][SERVICE_ODD_COSINE] = cosines[i] < f->median_cosine && robust_is_far(cosines, f->n, i, COSINE_LEAST);
	}
}

/* ---- the log ---- */

static void tell_odd(struct service *s, const struct round_figures *f, int i, enum service_oddity what) {
	const uint32_t m = core_number(s->core, f->slots[i]);
	if (what == SERVICE_ODD_LOSS)
		service_tell(s, RV_WARN, "outlier_loss",
					 "member %u: its loss is far from the others': %.3g, median %.3g, for %d rounds: other text than "
					 "the run's, broken hardware, or a lie",
					 m, f->loss[i], f->median_loss, SERVICE_ODD_ROUNDS);
	else if (what == SERVICE_ODD_CLIPPED)
		service_tell(s, RV_WARN, "outlier_clipped",
					 "member %u: its contribution is scaled down: %.3g median norms, in %.0f %% of the chunks, for %d "
					 "rounds: more steps, other text, broken hardware, or an attack",
					 m, f->of[i].norm, 100 * f->of[i].clipped, SERVICE_ODD_ROUNDS);
	else
		service_tell(s, RV_WARN, "outlier_cosine",
					 "member %u: its contribution points elsewhere: cosine %.2f with the mean, median %.2f, for %d "
					 "rounds: other text, broken hardware, no training, or an attack",
					 m, f->of[i].cosine, f->median_cosine, SERVICE_ODD_ROUNDS);
}

static void tell_usual(struct service *s, uint32_t member, enum service_oddity what) {
	static const char *const figures[] = {[SERVICE_ODD_LOSS] = "loss is",
										  [SERVICE_ODD_CLIPPED] = "contribution's size is",
										  [SERVICE_ODD_COSINE] = "contribution's direction is"};
	service_tell(s, RV_INFO, "outlier_over", "member %u: its %s like the others' again", member, figures[what]);
}

/* Counts odd rounds up, usual ones down: logs at SERVICE_ODD_ROUNDS, and clears at 0. */
static void count(struct service *s, const struct round_figures *f, int i, enum service_oddity what) {
	struct oddity *o = &s->members[f->slots[i]].outlier.odd[what];
	if (f->odd[i][what] && o->rounds < SERVICE_ODD_ROUNDS)
		o->rounds++;
	else if (!f->odd[i][what] && o->rounds > 0)
		o->rounds--;
	if (o->rounds == SERVICE_ODD_ROUNDS && !o->named) {
		o->named = true;
		tell_odd(s, f, i, what);
	} else if (o->rounds == 0 && o->named) {
		o->named = false;
		tell_usual(s, core_number(s->core, f->slots[i]), what);
	}
}

/* ---- a commit ---- */

/* In several rows each owner measures its own only: the figures of all are those of a single
 * row. */
static void gather(const struct service *s, const struct core_record *rec, struct round_figures *f) {
	const struct report *owners[NET_MAX_ROW];
	uint32_t owned[NET_MAX_ROW];
	int n_owners = 0;
	f->n = rec->n_members;
	for (int i = 0; i < f->n; i++) {
		const struct core_member_view v = core_view(s->core, (uint32_t)core_find(s->core, rec->members[i]));
		f->slots[i] = v.slot;
		f->loss[i] = (double)v.last->loss;
		if (f->n > NET_MAX_ROW || v.last->phase != WORKER_VOTED || v.last->round != rec->round ||
			v.last->attempt != rec->attempt)
			continue;
		owners[n_owners] = v.last;
		owned[n_owners++] = v.owned_chunks;
	}
	if (f->n <= NET_MAX_ROW)
		contributions_of(owners, owned, n_owners, f->n, f->of);
}

void service_watch_outliers(struct service *s, const struct core_record *rec) {
	struct round_figures f = {.n = 0};
	gather(s, rec, &f);
	judge_losses(&f);
	judge_contributions(&f);
	for (int i = 0; i < f.n; i++) {
		struct outlier *o = &s->members[f.slots[i]].outlier;
		o->last = f.of[i];
		o->round = rec->round;
		for (int what = 0; what < SERVICE_ODDITIES; what++)
			if (f.n >= ROBUST_LEAST)
				count(s, &f, i, (enum service_oddity)what);
	}
}
