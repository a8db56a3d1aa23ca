/* text_mirror.c: see text_mirror.h. */
#include "worker/text/text_mirror.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum rv_err read_variable(const char *name, char *out, size_t cap, struct rv_errtext *et) {
	const char *value = getenv(name);
	const size_t n = value ? strlen(value) : 0;
	if (n >= cap)
		return rv_fail(et, RV_E_RANGE, "%s of the environment: %zu bytes, at most %zu", name, n, cap - 1);
	memcpy(out, value ? value : "", n + 1);
	return RV_OK;
}

/* Reports whether it is an http or https URL with a host. */
static bool is_web(const char *url) {
	const size_t n = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
	return n > 0 && url[n] != '/' && url[n] != '\0';
}

/* Removes slashes from the end. */
static void trim(char *url) {
	for (size_t n = strlen(url); n > 0 && url[n - 1] == '/'; n--)
		url[n - 1] = '\0';
}

enum rv_err text_keys_read(struct text_keys *out, struct rv_errtext *et) {
	*out = (struct text_keys){0};
	RV_TRY(read_variable("AWS_ENDPOINT_URL", out->endpoint, sizeof out->endpoint, et));
	RV_TRY(read_variable("AWS_REGION", out->region, sizeof out->region, et));
	if (!out->region[0])
		RV_TRY(read_variable("AWS_DEFAULT_REGION", out->region, sizeof out->region, et));
	RV_TRY(read_variable("AWS_ACCESS_KEY_ID", out->id, sizeof out->id, et));
	RV_TRY(read_variable("AWS_SECRET_ACCESS_KEY", out->secret, sizeof out->secret, et));
	RV_TRY(read_variable("AWS_SESSION_TOKEN", out->token, sizeof out->token, et));
	if (!out->region[0])
		(void)snprintf(out->region, sizeof out->region, "us-east-1");
	if (out->endpoint[0] && !is_web(out->endpoint))
		return rv_fail(et, RV_E_INVALID, "AWS_ENDPOINT_URL = %.200s: must begin with https:// or http://",
					   out->endpoint);
	trim(out->endpoint);
	return RV_OK;
}

static enum rv_err check_bytes(const char *text, struct rv_errtext *et) {
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f || *at == '?' || *at == '#')
			return rv_fail(et, RV_E_INVALID,
						   "mirror %.200s: it names a directory: no query, no fragment, no byte that must be quoted",
						   text);
	return RV_OK;
}

static bool is_bucket_name(const char *name, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("-._", name[i]))
			return false;
	return n > 0;
}

static enum rv_err parse_store(const char *text, const struct text_keys *keys, struct text_mirror *out,
							   struct rv_errtext *et) {
	const char *bucket = text + strlen("s3://");
	int n;
	if (!is_bucket_name(bucket, strcspn(bucket, "/")))
		return rv_fail(et, RV_E_INVALID, "mirror %.200s: must be s3://BUCKET/PREFIX", text);
	out->is_store = true;
	out->is_own = keys->endpoint[0] != '\0';
	out->is_signed = out->is_own && keys->id[0] && keys->secret[0];
	if (out->is_own)
		n = snprintf(out->url, sizeof out->url, "%s/%s", keys->endpoint, bucket);
	else
		n = snprintf(out->url, sizeof out->url, "https://s3.%s.amazonaws.com/%s", keys->region, bucket);
	return n > 0 && (size_t)n < sizeof out->url ? RV_OK : rv_fail(et, RV_E_RANGE, "mirror %.200s: too long", text);
}

enum rv_err text_mirror_parse(const char *text, const struct text_keys *keys, struct text_mirror *out,
							  struct rv_errtext *et) {
	*out = (struct text_mirror){0};
	RV_TRY(check_bytes(text, et));
	if (strncmp(text, "s3://", 5) == 0) {
		RV_TRY(parse_store(text, keys, out, et));
	} else {
		if (!is_web(text))
			return rv_fail(et, RV_E_INVALID, "mirror %.200s: must begin with https://, http:// or s3://", text);
		const int n = snprintf(out->url, sizeof out->url, "%s", text);
		if (n < 0 || (size_t)n >= sizeof out->url)
			return rv_fail(et, RV_E_RANGE, "mirror %.200s: too long", text);
	}
	trim(out->url);
	return RV_OK;
}

/* Reads a number of at most 18 digits, and the byte behind it. */
static bool number(const char **at, char behind, uint64_t *out) {
	enum { DIGITS = 18 };
	int n = 0;
	*out = 0;
	for (; isdigit((unsigned char)**at) && n < DIGITS; n++, (*at)++)
		*out = *out * 10 + (uint64_t)(**at - '0');
	if (n == 0 || **at != behind)
		return false;
	*at += behind != '\0';
	return true;
}

bool text_content_range(const char *value, uint64_t *first, uint64_t *last, uint64_t *total) {
	if (strncmp(value, "bytes ", 6) != 0)
		return false;
	value += 6;
	if (!number(&value, '-', first) || !number(&value, '/', last) || *last < *first)
		return false;
	*total = UINT64_MAX;
	return strcmp(value, "*") == 0 || (number(&value, '\0', total) && *last < *total);
}
