/* inspect.h: what a file or a directory is, and what is in it, as one JSON object: "kind" and "path" first, then what
 * there is to say. Files are not trusted: each reader is the one that the rest of Rivulet uses, with its limits.
 */
#ifndef RV_LAB_INSPECT_H
#define RV_LAB_INSPECT_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"
#include "train/model/model.h"

#include <jansson.h>

/* *out: a new object. RV_E_INVALID: nothing that we know; what the reader of its kind refuses. */
enum rv_err inspect_path(const char *path, json_t **out, struct rv_errtext *et);

/* One line of JSON, or a table for people. */
void inspect_print(const json_t *facts, bool table);

/* ---- one for each kind ----------------------------------------------------------------------------------------------
 *
 * They add to `facts`, which has "kind" and "path" already. What the reader of the kind refuses. */

enum rv_err inspect_safetensors(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_index(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_config(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_model_directory(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_tokenizer(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_shard(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_gguf(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_worker(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_metrics(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_state_file(const char *path, json_t *facts, struct rv_errtext *et);
/* ours.c. run.conf: of a worker, of the lab, or what new-run is given. */
enum rv_err inspect_run_conf(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_coordinator(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_sweep(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_sweep_cell(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_trace(const char *path, json_t *facts, struct rv_errtext *et);
#define INSPECT_SWEEP_FILE "summary.csv"

/* The bytes of a GGUF file from its start: all before the tensors must be there. RV_E_CORRUPT, RV_E_UNSUPPORTED. */
enum rv_err inspect_gguf_header(const uint8_t *bytes, size_t n, json_t *facts, struct rv_errtext *et);

/* ---- what several of them say ---- */

/* The model's options that matter to its family. */
void inspect_put_model(json_t *facts, const struct run_config *c);
/* "12 x 34" of a shape. */
json_t *inspect_shape(const uint64_t *dims, int n);

#endif
