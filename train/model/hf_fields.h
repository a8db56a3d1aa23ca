/* hf_fields.h: typed fields of Hugging Face's config.json, for the families that read one. Nothing in it is trusted:
 * the first field that is of the wrong type or that we would compute differently is kept as the fault, and what is read
 * after it does not matter. Ranges are the options' (hf_config.h). A field that is null is as one that is missing. */
#ifndef RV_TRAIN_MODEL_HF_FIELDS_H
#define RV_TRAIN_MODEL_HF_FIELDS_H

#include "base/err.h"
#include "base/run_config.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct hf_fields {
	const json_t *json; /* an object; borrowed */
	json_t *read;       /* the keys that were asked for; owned */
	enum rv_err err;    /* of the first fault: what config_from_hf returns. RV_E_CORRUPT, RV_E_UNSUPPORTED */
	struct rv_errtext *et;
};

/* Starts reading `json`, which is borrowed. hf_end releases what the reading took and returns the first fault. */
struct hf_fields hf_begin(const json_t *json, struct rv_errtext *et);
enum rv_err hf_end(struct hf_fields *f);

bool hf_has(struct hf_fields *f, const char *key);
/* The value, or `fallback`: what transformers takes when the field is missing. Integers within [0, 2^31). */
int64_t hf_int(struct hf_fields *f, const char *key, int64_t fallback);
int64_t hf_positive_int(struct hf_fields *f, const char *key, int64_t fallback); /* 0 is refused */
double hf_real(struct hf_fields *f, const char *key, double fallback);
bool hf_bool(struct hf_fields *f, const char *key, bool fallback);
/* Never NULL; borrowed from the JSON. */
const char *hf_string(struct hf_fields *f, const char *key, const char *fallback);
/* The same, and RV_E_CORRUPT when the field is missing. */
double hf_need_real(struct hf_fields *f, const char *key);
int64_t hf_need_int(struct hf_fields *f, const char *key);
/* RV_E_CORRUPT when the field is there and null: what transformers computes with, and fails. */
void hf_refuse_null(struct hf_fields *f, const char *key);
/* RV_E_UNSUPPORTED: "key": why. */
void hf_refuse(struct hf_fields *f, const char *key, const char *why);
/* RV_E_UNSUPPORTED when the value, or the fallback, is not what is wanted. */
void hf_expect_bool(struct hf_fields *f, const char *key, bool fallback, bool want);
void hf_expect_int(struct hf_fields *f, const char *key, int64_t fallback, int64_t want);
void hf_expect_real(struct hf_fields *f, const char *key, double fallback, double want); /* compared as fp32 */
/* An object without members, or a list without, when it is there. */
void hf_expect_empty(struct hf_fields *f, const char *key);
/* choices: "a|b". */
void hf_expect_string(struct hf_fields *f, const char *key, const char *fallback, const char *choices);
/* Refuses the first key that was not asked for, is not null and is not known to be harmless (hf_keys.h): it may change
 * what the model computes. */
void hf_refuse_unread(struct hf_fields *f);
/* "architectures", when there is one, must name one of the choices. */
void hf_expect_architecture(struct hf_fields *f, const char *choices);
/* The fields of the object under `key`; .json is NULL when it is missing, and `f` has the fault when it is no object.
 * Faults of the part are those of the whole after hf_leave. */
struct hf_fields hf_enter(struct hf_fields *f, const char *key);
void hf_leave(struct hf_fields *f, struct hf_fields *part);

/* A context of `positions` tokens, or the longest that a run may have: where positions are no parameters, a model that
 * could read more can be trained on less. */
int64_t hf_context(int64_t positions);

/* Copies a name into one of run_config's char arrays. */
#define HF_SET_NAME(field, value) ((void)snprintf((field), sizeof(field), "%s", (value)))

#endif
