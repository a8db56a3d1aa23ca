/* tokenizer.h: text to tokens and back.
 *
 * Three kinds, told apart by what the file holds (or the name "bytes"):
 *   bytes        256 tokens, the bytes themselves; no file
 *   huggingface  tokenizer.json with a byte-level BPE model (GPT-2's and Llama 3's pre-tokenizers)
 *   tiktoken     ranks, one `base64 rank` a line; the pattern and special tokens go by name
 *
 * decode(encode(x)) == x for any bytes x. Text is cut into runs of well-formed UTF-8 and runs of other bytes; the
 * former go through the pre-tokenizer as if they were the whole text, each of the latter is one piece. On well-formed
 * text the tokens are those of the reference implementations called without adding special tokens.
 *
 * Files are not trusted: at most TOKENIZER_MAX_FILE_BYTES, 2^20 tokens of at most 64 KiB; duplicate or missing ids,
 * duplicate tokens, merges of unknown tokens are refused with a text that names them. What would lose text or is not
 * byte-level BPE (normalizers, add_prefix_space, lstrip, byte_fallback, ...) is RV_E_UNSUPPORTED.
 */
#ifndef RV_TRAIN_TEXT_TOKENIZER_TOKENIZER_H
#define RV_TRAIN_TEXT_TOKENIZER_TOKENIZER_H

#include "base/err.h"
#include "base/hash.h"
#include "train/text/tokenizer/buffers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKENIZER_MAX_FILE_BYTES = 64 << 20, TOKENIZER_MAX_TEXT_BYTES = 1 << 30 };
#define TOKENIZER_NO_TOKEN UINT32_MAX

struct tokenizer; /* read-only: any number of threads */
struct encoder;   /* working memory of one thread: piece cache, matcher, merge lists; about 5 MiB */

/* `where`: "bytes", or a file. `pattern` is for tiktoken files: "cl100k_base", "gpt2", "llama3", "o200k_base", a regular expression
 * (then without special tokens), or "auto" (by the number of ranks). RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM, RV_E_INVALID,
 * RV_E_RANGE, RV_E_UNSUPPORTED, each naming the file and the thing in it. */
enum rv_err tokenizer_open(const char *where, const char *pattern, struct tokenizer **out, struct rv_errtext *et);
/* The same from memory, `where` being its name in error texts. `data` is not kept. */
enum rv_err tokenizer_load(const char *where, const uint8_t *data, size_t n, const char *pattern,
						   struct tokenizer **out, struct rv_errtext *et);
void tokenizer_free(struct tokenizer *t); /* NULL is fine */

const char *tokenizer_kind(const struct tokenizer *t);
/* All ids are below; what a model's vocabulary must have at least. */
uint32_t tokenizer_vocab(const struct tokenizer *t);
/* H of the file's bytes: a run's tokenizer_hash. Zero for "bytes". */
const struct rv_hash *tokenizer_hash(const struct tokenizer *t);
/* H of all that decides what a text becomes: kind, file and pattern. */
struct rv_hash tokenizer_identity(const struct tokenizer *t);
/* Does it bring text into Unicode's form C first (a "normalizer" of tokenizer.json)? Then decoding gives the text in
 * that form; without, it gives exactly the bytes that were encoded. */
bool tokenizer_normalizes(const struct tokenizer *t);
/* The id of a special (added) token by its text, or TOKENIZER_NO_TOKEN. */
uint32_t tokenizer_special(const struct tokenizer *t, const char *text);
/* The token that ends a document, or TOKENIZER_NO_TOKEN: <|endoftext|>, or <|end_of_text|>. */
uint32_t tokenizer_end_of_text(const struct tokenizer *t);

/* Of one thread; borrows `t`. RV_E_NOMEM. */
enum rv_err encoder_new(const struct tokenizer *t, struct encoder **out, struct rv_errtext *et);
void encoder_free(struct encoder *e); /* NULL is fine */

/* SPECIALS_AS_TEXT: "<|endoftext|>" in the text is 13 characters like any others; right for text from elsewhere.
 * SPECIALS_RECOGNISED: special tokens in the text are found, leftmost first and longest among those, and become one
 * token each. Added tokens that are not special (tokenizer.json only) are ordinary words: found either way. */
enum specials { SPECIALS_AS_TEXT, SPECIALS_RECOGNISED };

/* Appends the tokens of `text` to `out`; on a fault `out` may hold some of them. RV_E_RANGE: more than
 * TOKENIZER_MAX_TEXT_BYTES, or a pattern that takes too long on it; RV_E_NOMEM. */
enum rv_err tokenizer_encode(struct encoder *e, const uint8_t *text, size_t n, enum specials specials,
							 struct token_list *out, struct rv_errtext *et);

/* Appends the bytes of tokens. RV_E_RANGE names the first id that is no token and its position. */
enum rv_err tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct byte_list *out,
							 struct rv_errtext *et);

/* How many bytes of text the token stands for: what a loss per token is divided by for bits per byte. 0 for special
 * tokens, which stand for none, and for ids that are no token. */
uint32_t tokenizer_token_bytes(const struct tokenizer *t, uint32_t id);

#endif
