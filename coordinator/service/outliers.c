/* outliers.c: logs members whose contribution or loss is far from those of the others. Decides
 * nothing. One odd round may be chance: a member is logged after OUTLIER_ROUNDS rounds. */
#include "coordinator/service/contributions.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/robust.h"

#include "base/assert.h"
#include "outer/codec.h"

#include <inttypes.h>
#include <math.h>

/* Least distance from the median where all others are alike. */
#define LOSS_LEAST   0.5  /* nats a token */
#define LOSS_SHARE   0.25 /* ... or this share of the median */
#define COSINE_LEAST 0.2
/* Honest contributions of slow lines, in the lab (docs/benchmarks.md): a sparse one has 0.24 to 0.9
 * of the others' cosine, and up to twice their norm; a part with error feedback has what the rounds
 * before did not send: one of k chunks up to k times their norm. */
#define SPARSE_COSINE 0.125
#define LESS_NORM     4.0
/* Honest ones on other text are up to half as large again for some rounds (./dev attack). */
#define CLIPPED_NORM  2.0
#define CLIPPED_LEAST 0.5 /* share of its chunks from which a contribution counts as scaled down */

/* Figures of a round's participants: medians, and each one's distance. */
struct round_figures {
	int n;
	uint32_t slots[NET_MAX_ROSTER];
	struct contribution_figures of[NET_MAX_ROSTER];
	bool sparse[NET_MAX_ROSTER]; /* sent by a sparse codec, unlike others */
	uint8_t parts[NET_MAX_ROSTER];
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

/* Judges the size of a contribution, and the direction of one that is sparse unlike the others, by
 * what its form lets one expect: the values that it sends are its largest, and with error feedback
 * those of several rounds. */
static void judge_form(struct round_figures *f, int i) {
	const struct contribution_figures *c = &f->of[i];
	const bool less = f->sparse[i] || f->parts[i] > 0;
	if (!c->measured)
		return;
	const double most = less ? fmax(LESS_NORM, f->parts[i]) : CLIPPED_NORM;
	f->odd[i][SERVICE_ODD_CLIPPED] = c->clipped >= CLIPPED_LEAST && c->norm >= most;
	if (f->sparse[i])
		f->odd[i][SERVICE_ODD_COSINE] = c->cosine < SPARSE_COSINE * f->median_cosine;
}

/* Judges the measured contributions over the whole roster. The median is that of the contributions
 * which are not sparse unlike the others. */
static void judge_contributions(struct round_figures *f) {
	double cosines[NET_MAX_ROSTER];
	int whose[NET_MAX_ROSTER], n = 0;
	for (int i = 0; i < f->n; i++) {
		if (!f->of[i].measured || f->sparse[i])
			continue;
		whose[n] = i;
		cosines[n++] = f->of[i].cosine;
	}
	if (n < ROBUST_LEAST)
		return;
	f->median_cosine = robust_median(cosines, n);
	for (int k = 0; k < n; k++)
		f->odd[whose[k]][SERVICE_ODD_COSINE] =
			cosines[k] < f->median_cosine && robust_is_far(cosines, n, k, COSINE_LEAST);
	for (int i = 0; i < f->n; i++)
		judge_form(f, i);
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

/* A row of the roster: the figures of its participants, and its owners' reports. */
struct row_figures {
	int first, n, n_owners;
	const struct report *owners[NET_MAX_ROW];
	uint32_t owned[NET_MAX_ROW];
};

static void add_participant(const struct core_record *rec, const struct core_member_view *v, struct row_figures *row) {
	row->n++;
	if (v->last->phase != WORKER_VOTED || v->last->round != rec->round || v->last->attempt != rec->attempt)
		return;
	row->owners[row->n_owners] = v->last;
	row->owned[row->n_owners++] = v->owned_chunks;
}

/* Returns true if the codec sends a few of the values. */
static bool codec_is_sparse(uint8_t id) {
	for (int i = 0; codec_registry[i]; i++)
		if (codec_registry[i]->id == id)
			return codec_facts[i].facts & CODEC_SPARSE;
	return false;
}

/* Fills in the figures of a row, whose owners measured its contributions only. */
static void judge_row(struct round_figures *f, struct row_figures *row, double *size) {
	RV_ASSERT(row->n <= NET_MAX_ROW);
	contributions_of(row->owners, row->owned, row->n_owners, f->parts + row->first, row->n, f->of + row->first);
	*size = contributions_size(row->owners, row->owned, row->n_owners, row->n);
}

/* Makes the norms of all rows relative to the median of the rows. */
static void compare_rows(struct round_figures *f, const int *first, const double *size, int n_rows) {
	double known[NET_MAX_ROWS];
	int n = 0;
	for (int row = 0; row < n_rows; row++)
		if (size[row] > 0)
			known[n++] = size[row];
	const double median = robust_median(known, n);
	for (int row = 0; row < n_rows && n_rows > 1; row++)
		if (size[row] > 0)
			contributions_compare(f->of + first[row], first[row + 1] - first[row], size[row], median);
}

static void gather(const struct service *s, const struct core_record *rec, struct round_figures *f) {
	struct row_figures row = {.n = 0};
	int first[NET_MAX_ROWS + 1] = {0}, n_rows = 0, last = -1;
	double size[NET_MAX_ROWS];
	f->n = rec->n_members;
	for (int i = 0; i < f->n; i++) {
		const struct core_member_view v = core_view(s->core, (uint32_t)core_find(s->core, rec->members[i]));
		f->slots[i] = v.slot;
		f->loss[i] = (double)v.last->loss;
		f->sparse[i] = rec->codecs[i] != 0 && codec_is_sparse(rec->codecs[i]);
		f->parts[i] = rec->parts[i];
		if (i > 0 && v.row != last) {
			judge_row(f, &row, &size[n_rows++]);
			row = (struct row_figures){.first = i};
			first[n_rows] = i;
		}
		last = v.row;
		add_participant(rec, &v, &row);
	}
	judge_row(f, &row, &size[n_rows++]);
	first[n_rows] = f->n;
	RV_ASSERT(n_rows <= NET_MAX_ROWS);
	compare_rows(f, first, size, n_rows);
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
