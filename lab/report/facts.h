/* facts.h: the options of a run: those in its run.conf, and those that a sweep adds. */
#ifndef RV_LAB_REPORT_FACTS_H
#define RV_LAB_REPORT_FACTS_H

#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>

enum { FACTS_MAX = 256, FACTS_MAX_FILE_BYTES = 64 << 10 };

struct report_facts {
	char *text; /* "name\0value\0" n times; NULL: there is no run.conf */
	int n;
	bool in_sweep;
	char replicas_mode[16]; /* of a sweep; "": not known */
};

/* Reads DIR/run.conf and DIR/sweep.json, as far as they are there. Lines that are no options are
 * skipped; values are clean (clean_text.h). RV_E_RANGE, RV_E_CORRUPT, RV_E_IO name the file; *out
 * is then as if it were not there. */
enum rv_err report_facts_read(const char *dir, struct report_facts *out, struct rv_errtext *et);
void report_facts_release(struct report_facts *f);

/* Returns the value of an option, borrowed; NULL: it is not there. */
const char *report_fact(const struct report_facts *f, const char *name);
/* Returns it as a number; `otherwise` if it is not there, or no number. */
double report_fact_number(const struct report_facts *f, const char *name, double otherwise);

/* Goes over all facts, one after the other. */
struct facts_cursor {
	const char *at;
	int left;
	const char *name, *value; /* of the one that facts_next went to */
};
struct facts_cursor facts_begin(const struct report_facts *f);
bool facts_next(struct facts_cursor *c); /* returns false behind the last */

/* Returns false for options that change no result (where it goes, what it is called, how many run
 * at a time), for the seed, and for `data`: text is known by its content (report_run.data), not by
 * its path. */
bool report_fact_counts(const char *name);
/* Compares as a reader would sort: by the first option that counts and differs, H and the number of
 * rounds aside; numbers by value. Returns < 0, 0 or > 0: a total order. */
int report_facts_compare(const struct report_facts *a, const struct report_facts *b);
/* Returns the hash of all facts that count; `but_rounds`: without H and the number of rounds. */
struct rv_hash report_facts_hash(const struct report_facts *f, bool but_rounds);

#endif
