/* token_cache_trim.h: removes entries of the token cache. Inner part of token_cache.c. */
#ifndef RV_TRAIN_TEXT_TOKEN_CACHE_TRIM_H
#define RV_TRAIN_TEXT_TOKEN_CACHE_TRIM_H

#include <stdint.h>

#define TOKEN_CACHE_PREFIX "tokens-"

/* Removes the files that tokenizing writes, and the directory if it is then empty, unless a process
 * is making the entry. Mapped files stay readable. */
void token_cache_remove(const char *entry);
/* Removes the least recently used entries of `dir`, but never `keep`, until they are at most
 * max_bytes together. A later call retries what could not be removed. */
void token_cache_trim(const char *dir, const char *keep, uint64_t max_bytes);

#endif
