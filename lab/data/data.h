/* data.h: `rivulet data`: publishes text, checks it, shows it, serves it (docs/data.md). */
#ifndef RV_LAB_DATA_H
#define RV_LAB_DATA_H

#include "base/program.h"

#include <stdbool.h>
#include <stdint.h>

struct data_options {
	/* publish */
	char out[400], tokenizer[512], pattern[512], field[128], split[64], separator[128];
	char license[128], description[2048], mirrors[4096];
	int format; /* enum publish_format */
	int64_t shard_tokens, holdout_every;
	/* publish, verify */
	int64_t threads;
	/* inspect */
	int64_t documents;
	/* serve */
	char listen[300];
	int64_t port, connections;
};

/* Carry out `rivulet data publish FILES...`, `verify DIR`, `inspect DIR` and `serve DIR`, and
 * print the result; what they return ends the command. */
enum rv_err data_publish(const struct data_options *o, const char *const *files, int n_files, struct rv_errtext *et);
enum rv_err data_verify(const struct data_options *o, const char *dir, struct rv_errtext *et);
enum rv_err data_inspect(const struct data_options *o, const char *dir, struct rv_errtext *et);
enum rv_err data_serve(const struct data_options *o, const char *dir, struct rv_errtext *et);

#endif
