/* run_about.h: what an operator says of a run to those who lend it a computer. It decides nothing,
 * so that it is no part of the configuration that run_hash covers; the coordinator sends it before
 * the configuration, on comment lines that begin with "#: ", which older programs skip. */
#ifndef RV_BASE_RUN_ABOUT_H
#define RV_BASE_RUN_ABOUT_H

#include "base/err.h"
#include "base/options.h"

#include <stdint.h>

struct run_about {
	char name[65], purpose[321], operator_name[129], text_license[129], model_license[129], model_at[201];
	char text_hosts[641]; /* of mirrors of the text: "a.example, b.example" */
	/* No options: */
	double round_s;            /* seconds of the run's latest rounds; 0: not known */
	uint64_t text_bytes;       /* size of the run's text; 0: not known, or there is none */
	uint64_t text_least_bytes; /* what a worker must have room for (train/text/published/least_room.h); 0: not known */
};

enum { RUN_ABOUT_BYTES = 2048 };

/* The options: run-name, purpose, operator, text-license, text-hosts, model-license, model-at. The
 * list ends with name == NULL. */
extern const struct rv_option run_about_options[];

/* Checks that every text is one line that can be read back from a configuration file. RV_E_INVALID
 * names the option. */
enum rv_err run_about_check(const struct run_about *a, struct rv_errtext *et);
/* Writes a line for each text that is not "", and each number that is known. */
void run_about_print(const struct run_about *a, char out[RUN_ABOUT_BYTES]);
/* Reads them from the beginning of a text that a coordinator sent; what is missing is "". Texts
 * lose control characters. Unknown lines, of a newer coordinator, are skipped. */
void run_about_read(const char *text, struct run_about *out);
enum { RUN_ABOUT_MODEL_BYTES = 352 };
/* Writes a sentence, without its full stop, on where the weights of an ended run can be had. */
void run_about_where(const struct run_about *a, char out[RUN_ABOUT_MODEL_BYTES]);
/* Returns where the configuration itself begins: behind those lines. */
const char *run_about_skip(const char *text);

#endif
