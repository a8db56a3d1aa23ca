/* metrics.c: GET /metrics, the Prometheus text format 0.0.4. Labels are the numbers of the members
 * in memory: a series each. */
#include "coordinator/service/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void head(FILE *f, const char *name, const char *type, const char *help) {
	(void)fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(FILE *f, const char *name, const char *type, const char *help, double v) {
	head(f, name, type, help);
	(void)fprintf(f, "%s %.17g\n", name, v);
}

/* A value of a member, by name. NaN: the member has none, and there is no sample. */
struct series {
	const char *name, *type, *help;
	double (*value)(const struct core_member_view *v);
};

static double value_up(const struct core_member_view *v) {
	return v->alive;
}
static double value_loss(const struct core_member_view *v) {
	return v->last->loss > 0 ? (double)v->last->loss : NAN;
}
static double value_tokens_per_s(const struct core_member_view *v) {
	return (double)v->last->tokens_per_s;
}
static double value_tx(const struct core_member_view *v) {
	return (double)v->last->tx_bytes;
}
static double value_rx(const struct core_member_view *v) {
	return (double)v->last->rx_bytes;
}
static double value_up_rate(const struct core_member_view *v) {
	return (double)v->last->up_bytes_per_s;
}
static double value_down_rate(const struct core_member_view *v) {
	return (double)v->last->down_bytes_per_s;
}
static double value_share(const struct core_member_view *v) {
	return v->all_chunks > 0 ? (double)v->owned_chunks / v->all_chunks : 0;
}
static double value_compute(const struct core_member_view *v) {
	return (double)v->last->compute_us / 1e6;
}
static double value_reduce(const struct core_member_view *v) {
	return (double)v->last->reduce_us / 1e6;
}
static double value_storage(const struct core_member_view *v) {
	return v->last->storage != 0;
}
static double value_disk_full(const struct core_member_view *v) {
	return (v->last->storage & REPORT_STORAGE_FULL) != 0;
}

static const struct series all_series[] = {
	{"rivulet_member_up", "gauge", "1 if the member reported lately", value_up},
	{"rivulet_member_loss", "gauge", "Mean training loss of its last steps, nats per token", value_loss},
	{"rivulet_member_tokens_per_second", "gauge", "Its training speed", value_tokens_per_s},
	{"rivulet_member_sent_bytes_total", "counter", "Sent to peers since its process started", value_tx},
	{"rivulet_member_received_bytes_total", "counter", "Received from peers since its process started", value_rx},
	{"rivulet_member_line_up_bytes_per_second", "gauge", "Its bandwidth upwards in all-reduces; 0: unknown",
	 value_up_rate},
	{"rivulet_member_line_down_bytes_per_second", "gauge", "The same, downwards", value_down_rate},
	{"rivulet_member_ownership_ratio", "gauge", "The part of the vector that it averaged in the last all-reduce",
	 value_share},
	{"rivulet_member_compute_seconds_total", "counter", "Spent in inner steps since its process started",
	 value_compute},
	{"rivulet_member_storage_failing", "gauge", "1 while it cannot store all its state", value_storage},
	{"rivulet_member_storage_full", "gauge", "1 while that is because its disk is full", value_disk_full},
	{"rivulet_member_reduce_seconds_total", "counter", "Spent in all-reduces since its process started", value_reduce},
};

/* Returns the norm of a measured contribution. */
static double contribution_norm(const struct outlier *m) {
	return m->last.norm;
}
static double contribution_cosine(const struct outlier *m) {
	return m->last.cosine;
}
static double contribution_clipped(const struct outlier *m) {
	return m->last.clipped;
}

static void write_contributions(const struct service *s, FILE *f) {
	static const struct {
		const char *name, *help;
		double (*value)(const struct outlier *m);
	} figures[] = {
		{"rivulet_member_contribution_norm_ratio", "Norm of its last contribution over the median of the roster's",
		 contribution_norm},
		{"rivulet_member_contribution_cosine", "Cosine of its last contribution with the mean", contribution_cosine},
		{"rivulet_member_contribution_clipped_ratio", "The part of its last contribution that was scaled down",
		 contribution_clipped},
	};
	for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++) {
		head(f, figures[k].name, "gauge", figures[k].help);
		for (int i = 0; i < core_here(s->core); i++) {
			const uint32_t slot = core_nth(s->core, i);
			const struct outlier *m = &s->members[slot].outlier;
			if (m->last.measured)
				(void)fprintf(f, "%s{member=\"%u\"} %.17g\n", figures[k].name, core_number(s->core, slot),
							  figures[k].value(m));
		}
	}
}

static void write_outliers(const struct service *s, FILE *f) {
	static const char *const kinds[] = {
		[SERVICE_ODD_LOSS] = "loss", [SERVICE_ODD_CLIPPED] = "clipped", [SERVICE_ODD_COSINE] = "cosine"};
	head(f, "rivulet_member_outlier", "gauge", "1 while the member is unlike the others in this for some rounds");
	for (int k = 0; k < core_here(s->core); k++) {
		const uint32_t slot = core_nth(s->core, k);
		for (int what = 0; what < SERVICE_ODDITIES; what++)
			(void)fprintf(f, "rivulet_member_outlier{member=\"%u\",kind=\"%s\"} %d\n", core_number(s->core, slot),
						  kinds[what], s->members[slot].outlier.odd[what].named);
	}
}

static void write_run(const struct service *s, FILE *f, int64_t now_us) {
	const struct document *d = core_document(s->core);
	one(f, "rivulet_round", "gauge", "Rounds committed; the open round has the next number", (double)d->round);
	one(f, "rivulet_rounds", "gauge", "Rounds in the run", (double)d->final_round);
	one(f, "rivulet_phase", "gauge", "1 waiting, 2 training, 3 averaging, 4 done", d->phase);
	one(f, "rivulet_attempt", "gauge", "Attempt of the all-reduce, 0 when there is none", d->attempt);
	one(f, "rivulet_term", "gauge", "How often committed rounds were taken back", (double)d->term);
	struct core_kept kept;
	core_kept(s->core, &kept);
	one(f, "rivulet_state_not_held", "gauge",
		"0 a present member holds the state of the round, 1 the last holders are absent, 2 it is lost", kept.state);
	one(f, "rivulet_tokens_total", "counter", "Tokens of all committed rounds", (double)s->total_tokens);
	const double loss = s->n_history > 0 ? s->history[s->n_history - 1].loss : 0;
	if (loss > 0)
		one(f, "rivulet_loss", "gauge", "Mean training loss of the last committed round, nats per token", loss);
	one(f, "rivulet_joins_refused_total", "counter", "Joins that were refused since this coordinator started",
		(double)s->joins_refused);
	one(f, "rivulet_joins_pending", "gauge", "Computers that wait for the operator's approval",
		service_count_waiting(s));
	one(f, "rivulet_store_full", "gauge", "1 while the disk is full", s->store_full);
	one(f, "rivulet_coordinator_uptime_seconds", "gauge", "Since this process started",
		(double)(now_us - s->started_us) / 1e6);
}

static void member_sample(FILE *f, const struct series *m, const struct core_member_view *v) {
	const double value = m->value(v);
	if (!isnan(value))
		(void)fprintf(f, "%s{member=\"%u\"} %.17g\n", m->name, v->member, value);
}

char *service_metrics(const struct service *s, int64_t now_us) {
	char *text = NULL;
	size_t n_text = 0;
	FILE *f = open_memstream(&text, &n_text);
	if (f == NULL)
		return NULL;
	write_run(s, f, now_us);
	for (size_t k = 0; k < sizeof all_series / sizeof all_series[0]; k++) {
		const struct series *m = &all_series[k];
		head(f, m->name, m->type, m->help);
		for (int i = 0; i < core_here(s->core); i++) {
			const struct core_member_view v = core_view(s->core, core_nth(s->core, i));
			member_sample(f, m, &v);
		}
	}
	write_contributions(s, f);
	write_outliers(s, f);
	service_relay_metrics(s, f);
	service_text_metrics(s, f);
	service_audits_metrics(s, f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
