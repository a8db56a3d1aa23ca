/* summary.h: the results of a sweep's cells: summary.csv, and a table for people. */
#ifndef RV_LAB_SWEEP_SUMMARY_H
#define RV_LAB_SWEEP_SUMMARY_H

#include "lab/run/run_record.h"
#include "lab/sweep/grid.h"

#include <stdio.h>

/* States of a cell. DIVERGED: values became NaN or infinite, which is a result: the cell is
 * complete. */
enum sweep_state { SWEEP_WAITING, SWEEP_RUNNING, SWEEP_DONE, SWEEP_DIVERGED, SWEEP_FAILED };

/* One row. Values are NaN, counts 0, while unknown. */
struct sweep_row {
	char id[SWEEP_ID_BYTES], label[SWEEP_LABEL_BYTES];
	char method[16], outer[32], codec[32], replicas_mode[16], section[SWEEP_SECTION_BYTES];
	int64_t workers, steps_per_round, rounds, seed, batch;
	enum sweep_state state;
	uint64_t done_rounds, tokens, bytes_sent;
	uint64_t diverged_round;                 /* counted from 1; 0: it has not diverged */
	double loss, average_loss, replica_loss; /* held-out: of the result, the replicas' mean, one replica */
	double delta_cosine, delta_norm;         /* of the workers' outer gradients: means over rounds */
	double codec_error, codec_cosine;        /* loss of encoding: means over rounds */
	double wall_s;
	char data[RECORD_DATA_BYTES], program[RECORD_PROGRAM_BYTES]; /* of the record, or else the cell */
	uint64_t heldout_tokens;                                     /* under the loss; 0: unknown */
};

/* Writes the row of a cell that has not begun. */
void sweep_row_of_cell(const struct sweep_cell *c, struct sweep_row *row);
/* Reads DIR/ID/metrics.jsonl, if there is one: its progress, and SWEEP_DONE or SWEEP_DIVERGED if it
 * is complete; an ended one that lacks lines of its rounds is not. */
void sweep_row_update(struct sweep_row *row, const char *dir);
bool sweep_row_is_complete(const struct sweep_row *row);

/* Print all rows: as RFC 4180 with a header line, and as a table. */
void sweep_summary_csv(const struct sweep_row *rows, int n, FILE *out);
void sweep_summary_table(const struct sweep_row *rows, int n, FILE *out);

#endif
