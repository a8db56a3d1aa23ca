/* token_cache_trim.h: removes entries of the token cache. Inner part of token_cache.c. */
#ifndef RV_TRAIN_TEXT_TOKEN_CACHE_TRIM_H
#define RV_TRAIN_TEXT_TOKEN_CACHE_TRIM_H

#include <stdint.h>

#define TOKEN_CACHE_PREFIX "tokens-"

/* Removes the files that tokenizing writes, and the directory if nothing else is in it. Who has them mapped keeps them.
 * An entry that a process is making is left alone. */
void token_cache_remove(const char *entry);
/* While the entries of `dir` are larger than max_bytes together, removes the one that was not used for the longest
 * time, never `keep`. What cannot be removed stays: the next call tries again. */
void token_cache_trim(const char *dir, const char *keep, uint64_t max_bytes);

#endif
