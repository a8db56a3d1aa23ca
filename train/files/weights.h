/* weights.h: a model's parameters in the files of the ecosystem, read and written.
 *
 * A *directory* is a Hugging Face one: config.json, the weights in model.safetensors or in several files behind
 * model.safetensors.index.json, tokenizer files. A *file* is one safetensors file; what Rivulet writes has the run's
 * configuration in its metadata, so that the file alone is enough to evaluate and to sample.
 * Tensors that model_tensor.hf_transposed marks are (in, out) on disk; the flat block is (out, in): they are transposed
 * on the way. Files are not trusted: see safetensors.h.
 */
#ifndef RV_TRAIN_FILES_WEIGHTS_H
#define RV_TRAIN_FILES_WEIGHTS_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"
#include "train/model/model.h"

#define WEIGHTS_FILE        "model.safetensors"
#define WEIGHTS_INDEX_FILE  "model.safetensors.index.json"
#define WEIGHTS_CONFIG_FILE "config.json"

/* Where the weights stand in their run. */
struct weights_origin {
	uint64_t round, step, tokens;
	struct rv_hash state; /* global_full_hash, or zero */
};

/* What to write. */
struct weights_source {
	const struct run_config *cfg;
	const struct model_layout *layout;
	const float *params; /* (layout->n_params), host memory */
	struct weights_origin origin;
	/* What hf_tokenizer_write makes of it goes into the directory; NULL: none is known. A run on bytes needs none. */
	const char *tokenizer_file;
	/* The Hugging Face directory that the model came from, which may be the one written: what config.json and the files
	 * beside it say there, and is still true, is kept (hf_origin.h). NULL, or no such directory: nothing is. */
	const char *origin_dir;
	struct rv_errtext *warning; /* why there is no tokenizer in the directory; "": there is. NULL: not asked */
	enum dtype dtype;           /* of the tensors on disk */
	uint64_t max_file_bytes;    /* more than one file, and an index, when the weights are larger; 0: one file */
};

/* One file, atomically. RV_E_IO, RV_E_FULL, RV_E_NOMEM. */
enum rv_err weights_save_file(const char *path, const struct weights_source *w, struct rv_errtext *et);
/* A directory that `transformers` loads: config.json, weights, tokenizer.json, tokenizer_config.json,
 * generation_config.json. It is made if need be; files of these names in it are replaced, each atomically, the weights
 * first. A tokenizer that is gone, damaged, another than the run's or unknown is told in w->warning, and no fault:
 * RV_OK then too. */
enum rv_err weights_save_directory(const char *dir, const struct weights_source *w, struct rv_errtext *et);

/* `where`: a directory or a file as above. Sets the fields of *c that it says: of a file that Rivulet wrote all of
 * them, validated; of config.json the model's, the others stay as they are (call run_config_defaults first).
 * RV_E_NOTFOUND, RV_E_IO; RV_E_CORRUPT; RV_E_UNSUPPORTED names what of config.json we do not compute. */
enum rv_err weights_load_config(const char *where, struct run_config *c, struct rv_errtext *et);
/* Where the weights stood in their run; all zero when Rivulet did not write the files. RV_E_NOTFOUND, RV_E_IO,
 * RV_E_CORRUPT. */
enum rv_err weights_load_origin(const char *where, struct weights_origin *o, struct rv_errtext *et);
/* Fills params (layout->n_params, host memory; padding becomes zero) from F32, BF16 or F16 tensors. RV_E_CORRUPT names
 * a tensor that is missing, superfluous, of another shape or not finite. */
enum rv_err weights_load(const char *where, const struct model_ops *family, const struct model_layout *layout,
						 float *params, struct rv_errtext *et);

/* The same for the model of `c`, into memory of its own: *layout (model_layout_release) and *params (its n_params, to
 * be free()d). What c claims costs no memory before the files were seen to hold tensors of these shapes. RV_E_NOMEM,
 * what model_layout_init and weights_load refuse; *layout and *params are then empty. */
enum rv_err weights_load_new(const char *where, const struct run_config *c, struct model_layout *layout, float **params,
							 struct rv_errtext *et);

/* What run_config.init_hash is: H("rivulet weights" | n | H(piece 0) | H(piece 1) ...), the pieces those of theta in a
 * state's full hash (outer/global.h): so whoever lacks the weights can check them piece by piece. */
struct rv_hash weights_hash(const float *params, size_t n);
struct rv_hash weights_hash_of(size_t n, const struct rv_hash *piece_hashes);

#endif
