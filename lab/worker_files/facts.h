/* facts.h: facts about a file, as one JSON object. */
#ifndef RV_LAB_FACTS_H
#define RV_LAB_FACTS_H

#include "base/hash.h"

#include <jansson.h>

/* Sets `key` to the hash in hexadecimal. */
void facts_put_hash(json_t *facts, const char *key, const struct rv_hash *h);

#endif
