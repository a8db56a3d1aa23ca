/* sweep_fixture.c: see sweep_fixture.h. */
#include "tests/lab/sweep_fixture.h"

#include <stdio.h>
#include <string.h>

void sweep_fixture_set(struct sweep_fixture *f, const char *name, const char *value) {
	assert_int_equal(rv_options_set(f->table, &f->options, name, value, NULL), RV_OK);
}

void sweep_fixture_init(struct sweep_fixture *f) {
	lab_fixture_init(&f->lab);
	sweep_options_table(f->table, SWEEP_OPTIONS_MAX);
	memset(&f->options, 0, sizeof f->options);
	rv_options_defaults(f->table, &f->options);
	snprintf(f->text, sizeof f->text, "%s/text", f->lab.dir);
	sweep_fixture_set(f, "data", f->text);
	sweep_fixture_set(f, "n-layer", "1");
	sweep_fixture_set(f, "n-embd", "16");
	sweep_fixture_set(f, "n-head", "2");
	sweep_fixture_set(f, "context", "16");
	sweep_fixture_set(f, "holdout-every", "4");
}

void sweep_fixture_release(struct sweep_fixture *f) {
	lab_fixture_release(&f->lab);
}
