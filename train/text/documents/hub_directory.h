/* hub_directory.h: a directory as Hugging Face's hub has data sets: files in it or, at any depth,
 * in its `data`, of which some are one split ("train-00000-of-00005.parquet"); README.md begins
 * with facts in YAML. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_HUB_DIRECTORY_H
#define RV_TRAIN_TEXT_DOCUMENTS_HUB_DIRECTORY_H

#include "train/text/tokenizer/data_files.h"

enum { HUB_LICENSE_BYTES = 128 };

/* Adds the files that `path` names: of a data set's directory those of `split` ("": "train", or all
 * where names tell no split), in order of names; of anything else what data_files_add() does.
 * `license` gets what README.md states ("": nothing). RV_E_UNSUPPORTED: what save_to_disk wrote,
 * with what to do; RV_E_NOTFOUND: no files of this split, the text lists those that are there; the
 * faults of data_files_add. */
enum rv_err hub_directory_add(struct data_files *d, const char *path, const char *split,
							  char license[static HUB_LICENSE_BYTES], struct rv_errtext *et);

/* Finds `license: NAME`, also as the first item of a list, in the YAML at the start of a README.md
 * of n bytes. "" where there is none. Exposed for tests. */
void hub_license(const char *text, size_t n, char license[static HUB_LICENSE_BYTES]);

#endif
