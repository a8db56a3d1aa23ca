/* trainer.h: counts the pieces of text, trains a vocabulary, writes tokenizer.json.
 *
 * GPT-2's pattern cuts the pieces. The file is a byte-level BPE in the Hugging Face layout with one
 * special token, <|endoftext|>, which has the last id. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TRAINER_H
#define RV_TRAIN_TEXT_TOKENIZER_TRAINER_H

#include "train/text/tokenizer/bpe_train.h"

/* Counts the pieces of text, one counter per thread, merged at the end. Returns RV_E_NOMEM;
 * piece_counter_add what piece_counts_add and pretokenizer_run return. */
struct piece_counter;
enum rv_err piece_counter_new(struct piece_counter **out, struct rv_errtext *et);
void piece_counter_free(struct piece_counter *c); /* NULL is fine */
enum rv_err piece_counter_add(struct piece_counter *c, const uint8_t *text, size_t n, struct rv_errtext *et);
struct piece_counts *piece_counter_counts(struct piece_counter *c); /* borrowed */

/* Size of the smallest vocabulary: the bytes and <|endoftext|>. */
enum { TRAINER_MIN_VOCAB = BPE_TRAIN_MIN_TOKENS + 1 };

/* Trains a vocabulary of `vocab` tokens including <|endoftext|> and returns its tokenizer.json in
 * *json (NUL-terminated; the caller frees it). Returns what bpe_train returns. */
enum rv_err trainer_make_json(const struct piece_counts *pieces, uint32_t vocab, bpe_train_progress *progress,
							  void *ctx, char **json, struct rv_errtext *et);

#endif
