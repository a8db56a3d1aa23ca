/* report_fixture.h: directories as a sweep leaves them, without training anything. */
#ifndef RV_TESTS_LAB_REPORT_FIXTURE_H
#define RV_TESTS_LAB_REPORT_FIXTURE_H

#include "lab/report/report.h"
#include "train/metrics.h"

enum { REPORT_FIXTURE_RUNS = 12, REPORT_FIXTURE_HOSTILE = 8 };
#define REPORT_FIXTURE_SD 0.01

extern const struct report_line report_fixture_line; /* 100 Mbit/s, 20 ms */
/* Names that mean something to HTML, JavaScript, JSON, CSV, spreadsheets, terminals. */
extern const char *const report_fixture_hostile[REPORT_FIXTURE_HOSTILE];

/* The loss at the end: 0.1 more for each doubling of H, 0.01 for each seed. */
double report_fixture_loss(uint64_t h, int seed);
/* PLACE/ID/{metrics.jsonl, run.conf, sweep.json} of a run with four workers that has ended. */
void report_fixture_cell(const char *place, const char *id, const char *method, uint64_t h, int seed, const char *name);
/* The same, of DiLoCo, diverged in that round. */
void report_fixture_diverged(const char *place, const char *id, uint64_t h, int seed, int round);
/* Data-parallel, and H of 4, 16, 64; three seeds each. */
void report_fixture_sweep(const char *place);
/* PLACE/ID/FILE with this text; NULL: without the file. */
void report_fixture_file(const char *place, const char *id, const char *file, const char *text);

#endif
