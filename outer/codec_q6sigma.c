/* codec_q6sigma.c: eight bits per value by a codebook of 256 entries that spans six standard deviations of the chunk,
 * as the all-reduce of prime does (OpenDiLoCo, arXiv 2407.07852); for comparison. The format is in codec.h. */
#include "outer/codec.h"
#include "outer/float_bits.h"

#include <math.h>

enum { ENTRIES = 256, MIDDLE = 128, BOOK_BYTES = ENTRIES * 4 };

#define SIGMAS 6.0

/* The values to be encoded: a, or a - b. */
struct source {
	const float *a, *b;
};

static float value_at(const struct source *s, size_t i) {
	return s->b ? s->a[i] - s->b[i] : s->a[i];
}

/* Where the buckets lie. Sums in double, in order: the same on every machine. */
struct buckets {
	double mean, width; /* width 0: one bucket */
};

static enum rv_err measure(const struct source *s, size_t n, struct buckets *k, struct rv_errtext *et) {
	double sum = 0, squares = 0;
	for (size_t i = 0; i < n; i++) {
		const float x = value_at(s, i);
		if (!float_is_finite(x))
			return rv_fail(et, RV_E_RANGE, "q6sigma encode: value %zu is %g; only finite numbers can be sent", i,
						   (double)x);
		sum += (double)x;
	}
	k->mean = n ? sum / (double)n : 0;
	for (size_t i = 0; i < n; i++) {
		const double off = (double)value_at(s, i) - k->mean;
		squares += off * off;
	}
	k->width = n > 1 ? SIGMAS * sqrt(squares / (double)(n - 1)) / ENTRIES : 0;
	return RV_OK;
}

static uint8_t bucket_of(const struct buckets *k, float x) {
	if (!(k->width > 0))
		return MIDDLE;
	const double at = rint(((double)x - k->mean) / k->width) + MIDDLE;
	return (uint8_t)(at < 0 ? 0 : at > ENTRIES - 1 ? ENTRIES - 1 : at);
}

static enum rv_err encode_source(const struct source *s, size_t n, uint8_t *out, struct rv_errtext *et) {
	struct buckets k = {0};
	RV_TRY(measure(s, n, &k, et));
	double sum[ENTRIES] = {0};
	uint32_t count[ENTRIES] = {0};
	uint8_t *code = out + BOOK_BYTES;
	for (size_t i = 0; i < n; i++) {
		const float x = value_at(s, i);
		code[i] = bucket_of(&k, x);
		sum[code[i]] += (double)x;
		count[code[i]]++;
	}
	for (size_t j = 0; j < ENTRIES; j++) {
		const float entry = count[j] ? (float)(sum[j] / count[j]) : 0;
		memcpy(out + j * sizeof entry, &entry, sizeof entry);
	}
	return RV_OK;
}

static size_t q6sigma_encoded_bytes(size_t n) {
	return n ? BOOK_BYTES + n : 0;
}

static enum rv_err q6sigma_encode(const float *x, size_t n, uint8_t *out, struct rv_errtext *et) {
	return n ? encode_source(&(struct source){.a = x}, n, out, et) : RV_OK;
}

static enum rv_err q6sigma_encode_delta(const float *a, const float *b, size_t n, uint8_t *out, struct rv_errtext *et) {
	return n ? encode_source(&(struct source){.a = a, .b = b}, n, out, et) : RV_OK;
}

/* The codebook (ENTRIES), all of it finite, whether used or not. */
static enum rv_err read_book(const uint8_t *in, float *book, struct rv_errtext *et) {
	memcpy(book, in, BOOK_BYTES);
	for (int j = 0; j < ENTRIES; j++)
		if (!float_is_finite(book[j]))
			return rv_fail(et, RV_E_CORRUPT, "q6sigma: entry %d of the codebook is %g, must be finite", j,
						   (double)book[j]);
	return RV_OK;
}

static enum rv_err q6sigma_decode(const uint8_t *in, size_t n, float *x, struct rv_errtext *et) {
	float book[ENTRIES];
	if (n == 0)
		return RV_OK;
	RV_TRY(read_book(in, book, et));
	for (size_t i = 0; i < n; i++)
		x[i] = book[in[BOOK_BYTES + i]];
	return RV_OK;
}

static enum rv_err q6sigma_decode_add(const uint8_t *in, size_t n, float weight, float *acc, struct rv_errtext *et) {
	float book[ENTRIES];
	if (n == 0)
		return RV_OK;
	RV_TRY(read_book(in, book, et));
	for (size_t i = 0; i < n; i++)
		acc[i] = acc[i] + weight * book[in[BOOK_BYTES + i]];
	return RV_OK;
}

const struct codec codec_q6sigma = {
	.name = "q6sigma",
	.id = 5,
	.block = 1,
	.encoded_bytes = q6sigma_encoded_bytes,
	.encode = q6sigma_encode,
	.encode_delta = q6sigma_encode_delta,
	.decode = q6sigma_decode,
	.decode_add = q6sigma_decode_add,
};
