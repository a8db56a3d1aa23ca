/* tokenizer.h: text to tokens and back.
 *
 * The contents of the file (or the name "bytes") select one of three kinds:
 *   bytes        256 tokens, the bytes themselves; no file
 *   huggingface  tokenizer.json with a byte-level BPE model (GPT-2's and Llama 3's pre-tokenizers)
 *   tiktoken     ranks, one `base64 rank` a line; the pattern and special tokens go by name
 *
 * decode(encode(x)) == x for any bytes x, or the NFC of x (tokenizer_normalizes). Encoding cuts
 * text into runs of well-formed UTF-8 and of other bytes; the former go through the pre-tokenizer
 * as whole texts, each of the latter is one piece. On well-formed text the tokens are those of the
 * reference implementations called without adding special tokens.
 *
 * Files are not trusted: loading refuses more than TOKENIZER_MAX_FILE_BYTES, 2^20 tokens or 64 KiB
 * in a token, and names duplicate or missing ids, duplicate tokens and merges of unknown tokens. It
 * refuses with RV_E_UNSUPPORTED what would lose text or is not byte-level BPE (other normalizers,
 * add_prefix_space, lstrip, byte_fallback, ...). */
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

struct tokenizer; /* read-only: any number of threads may share it */
struct encoder;   /* working memory of one thread, about 5 MiB: piece cache, matcher, merge lists */

/* Opens `where`: "bytes", or a file. `pattern` is for tiktoken files: "cl100k_base", "gpt2",
 * "llama3", "o200k_base", a regular expression (then without special tokens), or "auto" (by the
 * number of ranks). tokenizer_free frees *out, NULL on failure. Returns RV_E_NOTFOUND, RV_E_IO,
 * RV_E_NOMEM, RV_E_INVALID, RV_E_RANGE or RV_E_UNSUPPORTED, naming file and item. */
enum rv_err tokenizer_open(const char *where, const char *pattern, struct tokenizer **out, struct rv_errtext *et);
/* Opens a tokenizer file in memory, which is not kept; `where` is its name in error texts. */
enum rv_err tokenizer_load(const char *where, const uint8_t *data, size_t n, const char *pattern,
						   struct tokenizer **out, struct rv_errtext *et);
void tokenizer_free(struct tokenizer *t); /* NULL is fine */

const char *tokenizer_kind(const struct tokenizer *t);
/* Returns the number that all ids are below: the least vocabulary of a model. */
uint32_t tokenizer_vocab(const struct tokenizer *t);
/* Returns H of the file's bytes, a run's tokenizer_hash; zero for "bytes". */
const struct rv_hash *tokenizer_hash(const struct tokenizer *t);
/* Returns H of everything that determines the tokens of a text: kind, file and pattern. */
struct rv_hash tokenizer_identity(const struct tokenizer *t);
/* Reports whether encoding brings text into NFC first (a "normalizer" of tokenizer.json). Decoding
 * then gives the text in NFC; otherwise it gives the bytes that were encoded. */
bool tokenizer_normalizes(const struct tokenizer *t);
/* Returns the id of the special (added) token `text`, or TOKENIZER_NO_TOKEN. */
uint32_t tokenizer_special(const struct tokenizer *t, const char *text);
/* Returns <|endoftext|> or <|end_of_text|>, which ends a document, or TOKENIZER_NO_TOKEN. */
uint32_t tokenizer_end_of_text(const struct tokenizer *t);

/* Makes an encoder for one thread; `t` must outlive it. Returns RV_E_NOMEM. */
enum rv_err encoder_new(const struct tokenizer *t, struct encoder **out, struct rv_errtext *et);
void encoder_free(struct encoder *e); /* NULL is fine */

/* SPECIALS_AS_TEXT encodes "<|endoftext|>" as 13 ordinary characters: right for foreign text.
 * SPECIALS_RECOGNISED encodes it as one token, leftmost first, longest among those. Added tokens
 * that are not special (tokenizer.json only) are recognised either way. */
enum specials { SPECIALS_AS_TEXT, SPECIALS_RECOGNISED };

/* Appends the tokens of text[0, n) to `out`. Returns RV_E_RANGE if n > TOKENIZER_MAX_TEXT_BYTES or
 * the pattern takes too many steps, or RV_E_NOMEM; `out` may then hold some of the tokens. */
enum rv_err tokenizer_encode(struct encoder *e, const uint8_t *text, size_t n, enum specials specials,
							 struct token_list *out, struct rv_errtext *et);

/* Appends the bytes of n tokens. Returns RV_E_RANGE, naming the first invalid id, or RV_E_NOMEM. */
enum rv_err tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct byte_list *out,
							 struct rv_errtext *et);

/* Returns how many bytes of text a token stands for, the divisor from loss per token to bits per
 * byte; 0 for special tokens and invalid ids. */
uint32_t tokenizer_token_bytes(const struct tokenizer *t, uint32_t id);

#endif
