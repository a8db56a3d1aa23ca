/* bench_report.c: see bench_report.h. */
#include "bench/bench_report.h"

#include "base/assert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BUSY_LOAD 0.7

static void print_number(const char *key, double value, int digits, const char *end) {
	if (isnan(value))
		printf("\"%s\": null%s", key, end);
	else
		printf("\"%s\": %.*g%s", key, digits, value, end);
}

static void record(struct bench_report *r, const struct bench_case *c) {
	RV_ASSERT(r->n_cases < BENCH_MAX_CASES);
	r->cases[r->n_cases++] = *c;
	printf("{\"bench\": \"%s\", \"case\": \"%s vs %s\", ", r->bench, c->name, c->peer_name);
	print_number("ours", c->ours, 5, ", ");
	print_number("peer", c->peer, 5, ", ");
	printf("\"unit\": \"%s\", ", c->unit);
	print_number("ratio", c->ratio, 4, "}\n");
	fflush(stdout);
}

static struct bench_case case_of(const char *name, const char *peer_name, double ours, double peer, const char *unit) {
	struct bench_case c = {.ours = ours, .peer = peer};
	snprintf(c.name, sizeof c.name, "%s", name);
	snprintf(c.peer_name, sizeof c.peer_name, "%s", peer_name);
	snprintf(c.unit, sizeof c.unit, "%s", unit);
	return c;
}

void bench_less_is_better(struct bench_report *r, const char *name, const char *peer_name, double ours, double peer,
						  const char *unit) {
	struct bench_case c = case_of(name, peer_name, ours, peer, unit);
	c.ratio = peer / ours;
	record(r, &c);
}

void bench_more_is_better(struct bench_report *r, const char *name, const char *peer_name, double ours, double peer,
						  const char *unit) {
	struct bench_case c = case_of(name, peer_name, ours, peer, unit);
	c.ratio = ours / peer;
	record(r, &c);
}

void bench_warn_if_busy(void) {
	double load;
	if (getloadavg(&load, 1) == 1 && load > BUSY_LOAD)
		fprintf(stderr, "warning: load average %.1f: other processes are running, the figures will be off\n", load);
}

void bench_print_table(const struct bench_report *r) {
	printf("\n%-40s %-16s %12s %12s %-8s %7s\n", r->bench, "peer", "ours", "peer's", "unit", "ratio");
	for (int i = 0; i < r->n_cases; i++) {
		const struct bench_case *c = &r->cases[i];
		printf("%-40s %-16s %12.5g ", c->name, c->peer_name, c->ours);
		if (isnan(c->peer))
			printf("%12s %-8s\n", "missing", c->unit);
		else
			printf("%12.5g %-8s %6.2fx\n", c->peer, c->unit, c->ratio);
	}
}
