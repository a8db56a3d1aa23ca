/* contributions.c: see contributions.h. */
#include "coordinator/service/contributions.h"

#include "coordinator/service/robust.h"

#include <math.h>

_Static_assert((int)ROBUST_MAX >= (int)NET_MAX_ROW, "a row has a median");

/* Figures of one contribution, by one owner each. */
struct figures {
	double norm[NET_MAX_ROW], cosine[NET_MAX_ROW], clipped[NET_MAX_ROW];
};

static bool counts(const struct report *owner, uint32_t owned, int n) {
	return owned > 0 && owner->n_measured == n;
}

/* Returns the median norm that this owner measured. */
static double median_norm(const struct report *owner) {
	double norms[NET_MAX_ROW];
	for (int i = 0; i < owner->n_measured; i++)
		norms[i] = sqrt((double)owner->measured[i].norm2);
	return robust_median(norms, owner->n_measured);
}

double contributions_size(const struct report *const *owners, const uint32_t *owned, int n_owners, int n) {
	double sizes[NET_MAX_ROW];
	int count = 0;
	for (int o = 0; o < n_owners; o++)
		if (counts(owners[o], owned[o], n))
			sizes[count++] = median_norm(owners[o]) / sqrt(owned[o]); /* norms of chunks add in squares */
	return robust_median(sizes, count);
}

void contributions_compare(struct contribution_figures *row, int n, double size, double median) {
	for (int i = 0; i < n; i++)
		row[i].norm = fmin(row[i].norm * (size / median), CONTRIBUTION_NORM_MAX);
}

static double norm_ratio(double norm, double median) {
	if (norm == 0)
		return 0;
	return norm < median * CONTRIBUTION_NORM_MAX ? norm / median : CONTRIBUTION_NORM_MAX;
}

static double cosine(const struct report_measured *m, float mean2) {
	double lengths = sqrt((double)m->norm2) * sqrt((double)mean2);
	return lengths > 0 ? fmin(fmax((double)m->dot / lengths, -1), 1) : 0;
}

static bool measured_any(const struct report *const *owners, const uint32_t *owned, int n_owners, int n, int i) {
	for (int o = 0; o < n_owners; o++)
		if (counts(owners[o], owned[o], n) && owners[o]->measured[i].norm2 > 0)
			return true;
	return false;
}

/* Gathers the figures of participant i; returns how many owners measured it. */
static int gather(const struct report *const *owners, const uint32_t *owned, int n_owners, const uint8_t *parts, int n,
				  int i, struct figures *f) {
	const bool skips = parts[i] > 0 && measured_any(owners, owned, n_owners, n, i);
	const double times = parts[i] > 0 ? parts[i] : 1; /* it contributed to so many times fewer chunks */
	int count = 0;
	for (int o = 0; o < n_owners; o++) {
		const struct report_measured *m = &owners[o]->measured[i];
		if (!counts(owners[o], owned[o], n) || (skips && !(m->norm2 > 0)))
			continue;
		f->norm[count] = norm_ratio(sqrt((double)m->norm2), median_norm(owners[o]));
		f->cosine[count] = cosine(m, owners[o]->mean2);
		f->clipped[count] = fmin(times * (double)m->clipped / owned[o], 1);
		count++;
	}
	return count;
}

void contributions_of(const struct report *const *owners, const uint32_t *owned, int n_owners, const uint8_t *parts,
					  int n, struct contribution_figures *out) {
	struct figures f;
	for (int i = 0; i < n; i++) {
		int count = gather(owners, owned, n_owners, parts, n, i, &f);
		out[i] = (struct contribution_figures){.measured = count > 0,
											   .norm = robust_median(f.norm, count),
											   .cosine = robust_median(f.cosine, count),
											   .clipped = robust_median(f.clipped, count)};
	}
}
