/* sweep_fixture.h: the options of a sweep whose cells are tiny runs on the text of a
 * lab_fixture. */
#ifndef RV_TESTS_LAB_SWEEP_FIXTURE_H
#define RV_TESTS_LAB_SWEEP_FIXTURE_H

#include "lab/sweep/grid.h"
#include "tests/lab/lab_fixture.h"

struct sweep_fixture {
	struct lab_fixture lab;
	char text[300]; /* the path of its text */
	struct rv_option table[SWEEP_OPTIONS_MAX];
	struct sweep_options options;
};

/* The defaults, but for the data and a model of one layer of 16 channels. */
void sweep_fixture_init(struct sweep_fixture *f);
void sweep_fixture_release(struct sweep_fixture *f);
/* As the command line would. */
void sweep_fixture_set(struct sweep_fixture *f, const char *name, const char *value);

#endif
