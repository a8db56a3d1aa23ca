/* bench_report.h: what every benchmark prints: one JSON line per case, then a table. */
#ifndef RV_BENCH_BENCH_REPORT_H
#define RV_BENCH_BENCH_REPORT_H

enum { BENCH_NAME_BYTES = 64, BENCH_MAX_CASES = 64 };

struct bench_case {
	char name[BENCH_NAME_BYTES], peer_name[BENCH_NAME_BYTES], unit[16];
	double ours, peer; /* peer: NAN when it is not there */
	double ratio;      /* above 1: ours is better; NAN without a peer */
};

struct bench_report {
	const char *bench;
	struct bench_case cases[BENCH_MAX_CASES];
	int n_cases;
};

/* Records a case and prints its JSON line: {"bench","case","ours","peer","unit","ratio"}. Less is better (times,
 * bytes): the ratio is peer / ours. */
void bench_less_is_better(struct bench_report *r, const char *name, const char *peer_name, double ours, double peer,
						  const char *unit);
/* The same where more is better (rates): the ratio is ours / peer. */
void bench_more_is_better(struct bench_report *r, const char *name, const char *peer_name, double ours, double peer,
						  const char *unit);
/* Says on stderr when other processes keep the machine busy: figures taken then are not to be trusted. */
void bench_warn_if_busy(void);
/* The table of all cases. A peer that is not there is said so. */
void bench_print_table(const struct bench_report *r);

#endif
