/* weights.h: a model's parameters in common file formats, read and written.
 *
 * A *directory* is a Hugging Face one: config.json, the weights in model.safetensors or in several
 * files behind model.safetensors.index.json, tokenizer files. A *file* is one safetensors file;
 * Rivulet writes the run's configuration into its metadata, so that the file alone suffices to
 * evaluate and to sample. Tensors with model_tensor.hf_transposed are (in, out) on disk and (out,
 * in) in the flat block. Files are untrusted: see safetensors.h. */
#ifndef RV_TRAIN_FILES_WEIGHTS_H
#define RV_TRAIN_FILES_WEIGHTS_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"
#include "train/model/model.h"

#define WEIGHTS_FILE        "model.safetensors"
#define WEIGHTS_INDEX_FILE  "model.safetensors.index.json"
#define WEIGHTS_CONFIG_FILE "config.json"

/* The position of the weights in their run. */
struct weights_origin {
	uint64_t round, step, tokens;
	struct rv_hash state; /* global_full_hash, or zero */
};

/* Weights to be written. */
struct weights_source {
	const struct run_config *cfg;
	const struct model_layout *layout;
	const float *params; /* (layout->n_params), host memory */
	struct weights_origin origin;
	/* Source of the directory's tokenizer (hf_tokenizer_write); NULL: unknown, or bytes. */
	const char *tokenizer_file;
	/* Hugging Face directory that the model came from, perhaps the one written: its config.json and
	 * other files are kept where they still apply (hf_origin.h). NULL or missing: none. */
	const char *origin_dir;
	struct rv_errtext *warning; /* why the directory has no tokenizer; "": it has. May be NULL */
	enum dtype dtype;           /* type of the tensors on disk */
	uint64_t max_file_bytes;    /* size above which there are several files and an index; 0: one file */
};

/* Writes a directory that `transformers` loads: config.json, weights, tokenizer.json,
 * tokenizer_config.json, generation_config.json. Creates it if need be, and replaces files of these
 * names, each atomically, the weights first. A missing, damaged, unknown or foreign tokenizer is no
 * fault: w->warning explains it. */
enum rv_err weights_save_directory(const char *dir, const struct weights_source *w, struct rv_errtext *et);

/* Reads the configuration of a directory or file into *c: all fields, validated, from a file that
 * Rivulet wrote; from config.json the model's (call run_config_defaults first). Returns
 * RV_E_NOTFOUND, RV_E_IO, RV_E_CORRUPT, or RV_E_UNSUPPORTED with the reason. */
enum rv_err weights_load_config(const char *where, struct run_config *c, struct rv_errtext *et);
/* Reads the position of the weights in their run; zero if Rivulet did not write the files. Returns
 * RV_E_NOTFOUND, RV_E_IO or RV_E_CORRUPT. */
enum rv_err weights_load_origin(const char *where, struct weights_origin *o, struct rv_errtext *et);
/* Loads the weights for the model of `c`, F32, BF16 or F16 tensors, into new memory: *layout
 * (model_layout_release) and *params (its n_params, zero padding; the caller frees it), allocated
 * after the headers proved these shapes. Returns RV_E_CORRUPT, naming a tensor that is missing,
 * superfluous, of another shape or not finite, RV_E_NOMEM, and what model_layout_init returns; both
 * are then empty. */
enum rv_err weights_load(const char *where, const struct run_config *c, struct model_layout *layout, float **params,
						 struct rv_errtext *et);

/* Returns run_config.init_hash: H("rivulet weights" | n | H(piece 0) | H(piece 1) ...), with the
 * pieces of theta in a state's full hash (outer/global.h), so that fetched weights are checked
 * piece by piece. */
struct rv_hash weights_hash(const float *params, size_t n);
struct rv_hash weights_hash_of(size_t n, const struct rv_hash *piece_hashes);

#endif
