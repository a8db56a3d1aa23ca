/* hf_fields.h: typed fields of Hugging Face's config.json, untrusted, for the families that read
 * one. The first mistyped field, or one that we would compute differently, is kept as the fault;
 * later reads do not matter. Options have the ranges (hf_config.h). null counts as missing. */
#ifndef RV_TRAIN_MODEL_HF_FIELDS_H
#define RV_TRAIN_MODEL_HF_FIELDS_H

#include "base/err.h"
#include "base/run_config.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct hf_fields {
	const json_t *json; /* an object; borrowed */
	json_t *read;       /* the requested keys; owned */
	enum rv_err err;    /* the first fault, which config_from_hf returns: RV_E_CORRUPT or RV_E_UNSUPPORTED */
	struct rv_errtext *et;
};

/* Starts reading `json`, borrowed. hf_end frees the reader's memory and returns the first fault. */
struct hf_fields hf_begin(const json_t *json, struct rv_errtext *et);
enum rv_err hf_end(struct hf_fields *f);

bool hf_has(struct hf_fields *f, const char *key);
/* Return the value, or `fallback`, the default of transformers. Integers are within [0, 2^31). */
int64_t hf_int(struct hf_fields *f, const char *key, int64_t fallback);
int64_t hf_positive_int(struct hf_fields *f, const char *key, int64_t fallback); /* 0 is refused */
double hf_real(struct hf_fields *f, const char *key, double fallback);
bool hf_bool(struct hf_fields *f, const char *key, bool fallback);
/* Returns a string, borrowed from the JSON, never NULL. */
const char *hf_string(struct hf_fields *f, const char *key, const char *fallback);
/* Return a value that must be present; RV_E_CORRUPT if it is missing. */
double hf_need_real(struct hf_fields *f, const char *key);
int64_t hf_need_int(struct hf_fields *f, const char *key);
/* Refuses a null field with RV_E_CORRUPT: transformers computes with it, and fails. */
void hf_refuse_null(struct hf_fields *f, const char *key);
/* Refuses with RV_E_UNSUPPORTED and "key": why. */
void hf_refuse(struct hf_fields *f, const char *key, const char *why);
/* Refuse another value than `want`, or another fallback, with RV_E_UNSUPPORTED. */
void hf_expect_bool(struct hf_fields *f, const char *key, bool fallback, bool want);
void hf_expect_int(struct hf_fields *f, const char *key, int64_t fallback, int64_t want);
void hf_expect_real(struct hf_fields *f, const char *key, double fallback, double want); /* compared as fp32 */
/* Refuses an object or list that is not empty. */
void hf_expect_empty(struct hf_fields *f, const char *key);
/* Refuses a string that is not one of `choices`: "a|b". */
void hf_expect_string(struct hf_fields *f, const char *key, const char *fallback, const char *choices);
/* Refuses the first key that was neither read nor null nor known to be harmless (hf_keys.h): it may
 * change what the model computes. */
void hf_refuse_unread(struct hf_fields *f);
/* Refuses "architectures", if present, without one of the choices. */
void hf_expect_architecture(struct hf_fields *f, const char *choices);
/* Returns the fields of the object under `key`, with .json NULL if it is missing or no object (then
 * a fault of `f`). hf_leave passes the part's fault to the whole. */
struct hf_fields hf_enter(struct hf_fields *f, const char *key);
void hf_leave(struct hf_fields *f, struct hf_fields *part);

/* Returns `positions`, or the longest context of a run: where positions are no parameters, a model
 * can be trained on a shorter context. */
int64_t hf_context(int64_t positions);

#endif
