/* print.h: the output of `rivulet simulate`: tables for people, one JSON object a line for
 * programs. */
#ifndef RV_LAB_SIMULATE_PRINT_H
#define RV_LAB_SIMULATE_PRINT_H

#include "lab/simulate/simulate.h"
#include "lab/simulate/tables.h"

#include <jansson.h>

/* A run and its result. */
struct simulate_answer {
	struct simulate_run run; /* its rate is given, or solved for */
	struct simulate_result result;
	double steps;   /* inner steps of the whole run */
	bool reachable; /* false: no line suffices; run and result are those of an unlimited one */
};

/* Prints `line`, which it takes, as one line. RV_E_NOMEM if it is NULL, RV_E_IO. */
enum rv_err simulate_print_line(json_t *line, struct rv_errtext *et);
/* Prints the comparison with a published table; ends with "N of C exact, M within one grid point".
 * All print to stdout; RV_E_IO, RV_E_NOMEM. */
enum rv_err simulate_print_table(const struct published_table *t, bool json, struct rv_errtext *et);
enum rv_err simulate_print_answer_json(const struct simulate_answer *a, struct rv_errtext *et);
/* Print the lines above the answers (`solved`: their rates were solved for), and one answer. */
void simulate_print_head(const struct simulate_answer *first, bool solved);
void simulate_print_answer(const struct simulate_answer *a);

#endif
