/* facts.h: facts about a file, as one JSON object. */
#ifndef RV_LAB_FACTS_H
#define RV_LAB_FACTS_H

#include "base/hash.h"

#include <jansson.h>

/* Adds the members of the object that jansson's json_pack makes of `format` and the values. */
void facts_put(json_t *facts, const char *format, ...);
/* Sets `key` to the hash in hexadecimal. */
void facts_put_hash(json_t *facts, const char *key, const struct rv_hash *h);
/* Sets `version`, and a remark if it is newer than `known`, the version that this program reads. */
void facts_put_version(json_t *facts, uint32_t version, uint32_t known);

#endif
