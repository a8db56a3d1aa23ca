/* trainer.h: text in, tokenizer.json out: counts the pieces of text, trains, writes the file.
 *
 * Pieces are cut by GPT-2's pattern. The file is a byte-level BPE in the Hugging Face layout with one special token,
 * <|endoftext|>, whose id is the last.
 */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TRAINER_H
#define RV_TRAIN_TEXT_TOKENIZER_TRAINER_H

#include "train/text/tokenizer/bpe_train.h"

/* Counts the pieces of text that is cut into calls; one per thread, merged at the end. RV_E_NOMEM; add: also what
 * piece_counts_add refuses. */
struct piece_counter;
enum rv_err piece_counter_new(struct piece_counter **out, struct rv_errtext *et);
void piece_counter_free(struct piece_counter *c); /* NULL is fine */
enum rv_err piece_counter_add(struct piece_counter *c, const uint8_t *text, size_t n, struct rv_errtext *et);
struct piece_counts *piece_counter_counts(struct piece_counter *c); /* borrowed */

/* The smallest vocabulary: the bytes and <|endoftext|>. */
enum { TRAINER_MIN_VOCAB = BPE_TRAIN_MIN_TOKENS + 1 };

/* Trains a vocabulary of `vocab` tokens, <|endoftext|> among them, and returns the text of its tokenizer.json (*json,
 * free() it; NUL-terminated). What bpe_train refuses. */
enum rv_err trainer_make_json(const struct piece_counts *pieces, uint32_t vocab, bpe_train_progress *progress,
							  void *ctx, char **json, struct rv_errtext *et);

#endif
