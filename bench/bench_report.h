/* bench_report.h: the output of every benchmark: one JSON line per case, then a table. */
#ifndef RV_BENCH_BENCH_REPORT_H
#define RV_BENCH_BENCH_REPORT_H

enum { BENCH_NAME_BYTES = 64, BENCH_MAX_CASES = 64 };

struct bench_case {
	char name[BENCH_NAME_BYTES], peer_name[BENCH_NAME_BYTES], unit[16];
	double ours, peer; /* peer: NAN if it is missing */
	double ratio;      /* above 1: ours is better; NAN without a peer */
};

struct bench_report {
	const char *bench;
	struct bench_case cases[BENCH_MAX_CASES];
	int n_cases;
};

/* Records a case and prints its JSON line: {"bench","case","ours","peer","unit","ratio"}. For times
 * and bytes, where less is better: the ratio is peer / ours. */
void bench_less_is_better(struct bench_report *r, const char *name, const char *peer_name, double ours, double peer,
						  const char *unit);
/* Does the same for rates, where more is better: the ratio is ours / peer. */
void bench_more_is_better(struct bench_report *r, const char *name, const char *peer_name, double ours, double peer,
						  const char *unit);
/* Warns on stderr if other processes keep the machine busy: figures taken then are unreliable. */
void bench_warn_if_busy(void);
/* Prints the table of all cases; a missing peer is marked. */
void bench_print_table(const struct bench_report *r);

#endif
