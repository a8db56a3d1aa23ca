/* inspect.h: the kind and contents of a file or directory, as one JSON object: "kind" and "path"
 * first, then the facts. Files are not trusted: each is read by the reader that the rest of Rivulet
 * uses, with its limits. */
#ifndef RV_LAB_INSPECT_H
#define RV_LAB_INSPECT_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"
#include "train/model/model.h"

#include <jansson.h>

/* Writes a new object to *out; the caller decrefs it. RV_E_INVALID: an unknown kind; the faults of
 * its reader. */
enum rv_err inspect_path(const char *path, json_t **out, struct rv_errtext *et);

/* Prints one line of JSON, or a table for people. */
void inspect_print(const json_t *facts, bool table);

/* ---- one for each kind ---- */

/* Each adds to `facts`, which has "kind" and "path" already, and returns its reader's faults. */
enum rv_err inspect_safetensors(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_index(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_config(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_model_directory(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_tokenizer(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_shard(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_published(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_gguf(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_worker(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_metrics(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_state_file(const char *path, json_t *facts, struct rv_errtext *et);
/* Reads run.conf of a worker, of the lab, or for new-run (ours.c). */
enum rv_err inspect_run_conf(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_coordinator(const char *path, json_t *facts, struct rv_errtext *et);
/* Reads a store.db, or a backup: both are SQLite files. */
enum rv_err inspect_store(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_sweep(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_sweep_cell(const char *path, json_t *facts, struct rv_errtext *et);
enum rv_err inspect_trace(const char *path, json_t *facts, struct rv_errtext *et);
#define INSPECT_SWEEP_FILE "summary.csv"

/* Reads a GGUF file from its start: all before the tensors must be in `bytes`. RV_E_CORRUPT,
 * RV_E_UNSUPPORTED. */
enum rv_err inspect_gguf_header(const uint8_t *bytes, size_t n, json_t *facts, struct rv_errtext *et);

/* ---- shared by several ---- */

/* Adds the model's options that matter to its family. */
void inspect_put_model(json_t *facts, const struct run_config *c);
/* Returns the text of a shape: "12 x 34". */
json_t *inspect_shape(const uint64_t *dims, int n);

#endif
