/* pattern_space.h: a pattern in which \s is Unicode's White_Space also for PCRE2. Inner part of pretokenizer.c. */
#ifndef RV_WORKER_TOKENIZER_PATTERN_SPACE_H
#define RV_WORKER_TOKENIZER_PATTERN_SPACE_H

#include "worker/tokenizer/buffers.h"

#include <stdbool.h>

/* Appends the pattern to `out` with every \s and \S written so that U+180E (a space for PCRE2, none for Unicode since
 * 6.3) is not a space. *changed: there was one. RV_E_NOMEM. */
enum rv_err pattern_exact_space(const char *pattern, size_t n, struct byte_list *out, bool *changed,
								struct rv_errtext *et);

#endif
