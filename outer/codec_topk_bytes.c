/* codec_topk_bytes.c: see codec_topk_bytes.h. */
#include "outer/codec_topk_bytes.h"

enum {
	LEVELS_BYTES = 2 * sizeof(float),
	COUNT_BYTES = 2,
	INDEX_BITS = 12,
	CODE_BITS = 2,
	CODE_HIGH = 1,
	CODE_MINUS = 2,
	BYTE = 8
};

/* Offsets of the parts of a group, in bytes; `kept`: its number of places for values. */
struct parts {
	size_t kept, count, indices, values, end;
};

static size_t bytes_of(size_t n, size_t bits) {
	return (n * bits + BYTE - 1) / BYTE;
}

size_t topk_kept(const struct codec *self, size_t n) {
	return (n * ((const struct topk_format *)self->format)->k + TOPK_GROUP - 1) / TOPK_GROUP;
}

static struct parts parts_of(const struct codec *self, size_t n) {
	struct parts p = {.kept = topk_kept(self, n), .count = LEVELS_BYTES};
	p.indices = p.count + COUNT_BYTES;
	p.values = p.indices + bytes_of(p.kept, INDEX_BITS);
	p.end = p.values + bytes_of(p.kept, CODE_BITS);
	return p;
}

size_t topk_group_len(size_t n, size_t at) {
	return n - at < TOPK_GROUP ? n - at : TOPK_GROUP;
}

size_t topk_group_at(const struct codec *self, size_t at) {
	return at / TOPK_GROUP * parts_of(self, TOPK_GROUP).end;
}

size_t topk_encoded_bytes(const struct codec *self, size_t n) {
	const size_t rest = n % TOPK_GROUP;
	return topk_group_at(self, n) + (rest > 0 ? parts_of(self, rest).end : 0);
}

/* ---- fields of 12 and 2 bits ---- */

static void put_index(uint8_t *indices, size_t i, unsigned index) {
	uint8_t *at = indices + i / 2 * 3;
	if (i % 2 == 0) {
		at[0] = (uint8_t)index;
		at[1] = (uint8_t)(index >> 8); /* the high half is the next index, written later */
	} else {
		at[1] = (uint8_t)(at[1] | (index & 15) << 4);
		at[2] = (uint8_t)(index >> 4);
	}
}

static unsigned get_index(const uint8_t *indices, size_t i) {
	const uint8_t *at = indices + i / 2 * 3;
	return i % 2 == 0 ? at[0] | (at[1] & 15u) << 8 : at[1] >> 4 | (unsigned)at[2] << 4;
}

static unsigned get_code(const uint8_t *codes, size_t i) {
	return codes[i / 4] >> (i % 4 * CODE_BITS) & 3;
}

/* Returns true if the bits from `used` on of `bytes` bytes are 0. */
static bool zero_behind(const uint8_t *at, size_t used, size_t bytes) {
	if (used % BYTE != 0 && at[used / BYTE] >> (used % BYTE) != 0)
		return false;
	for (size_t i = (used + BYTE - 1) / BYTE; i < bytes; i++)
		if (at[i] != 0)
			return false;
	return true;
}

/* ---- writing ---- */

void topk_write_group(const struct codec *self, const struct topk_picked *p, size_t n, uint8_t *out) {
	const struct parts at = parts_of(self, n);
	memset(out, 0, at.end);
	memcpy(out, &p->level[1], sizeof(float));
	memcpy(out + sizeof(float), &p->level[0], sizeof(float));
	out[at.count] = (uint8_t)p->n;
	out[at.count + 1] = (uint8_t)(p->n >> 8);
	for (size_t i = 0; i < p->n; i++) {
		put_index(out + at.indices, i, p->index[i]);
		const unsigned code = (p->high[i] ? CODE_HIGH : 0u) | (p->value[i] < 0 ? CODE_MINUS : 0u);
		out[at.values + i / 4] = (uint8_t)(out[at.values + i / 4] | code << (i % 4 * CODE_BITS));
	}
}

/* ---- reading ---- */

static enum rv_err read_indices(const struct codec *self, const uint8_t *in, const struct parts *at, size_t n,
								size_t first, struct topk_picked *p, struct rv_errtext *et) {
	p->n = in[at->count] | (size_t)in[at->count + 1] << 8;
	if (p->n > at->kept)
		return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: %zu are sent, at most %zu of %zu can be", self->name,
					   first, p->n, at->kept, n);
	for (size_t i = 0; i < p->n; i++) {
		const unsigned index = get_index(in + at->indices, i);
		if (index >= n)
			return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: index %u, there are %zu", self->name, first, index,
						   n);
		if (i > 0 && index <= p->index[i - 1])
			return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: index %u after %u: must ascend", self->name, first,
						   index, (unsigned)p->index[i - 1]);
		p->index[i] = (uint16_t)index;
	}
	if (!zero_behind(in + at->indices, p->n * INDEX_BITS, at->values - at->indices))
		return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: more indices than the %zu that are sent", self->name,
					   first, p->n);
	return RV_OK;
}

/* Checks the levels, given how many values are sent as each. */
static enum rv_err check_levels(const struct codec *self, const struct topk_picked *p, const size_t used[2],
								size_t first, struct rv_errtext *et) {
	const float low = p->level[0], high = p->level[1];
	const bool none = float_bits(high) == 0 && float_bits(low) == 0 && p->n == 0;
	const bool one = float_bits(low) == 0 && used[0] == 0;
	const bool two = block_scale_valid(low, TOPK_LEVEL_MAX) && low < high && used[0] > 0;
	if (none || (block_scale_valid(high, TOPK_LEVEL_MAX) && used[1] > 0 && (one || two)))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: levels %a and %a, used %zu and %zu times", self->name,
				   first, (double)low, (double)high, used[0], used[1]);
}

static enum rv_err read_levels(const struct codec *self, const uint8_t *in, const struct parts *at, size_t first,
							   struct topk_picked *p, struct rv_errtext *et) {
	size_t used[2] = {0};
	memcpy(&p->level[1], in, sizeof(float));
	memcpy(&p->level[0], in + sizeof(float), sizeof(float));
	for (size_t i = 0; i < p->n; i++) {
		const unsigned code = get_code(in + at->values, i);
		const float level = p->level[code & CODE_HIGH];
		p->value[i] = code & CODE_MINUS ? -level : level;
		used[code & CODE_HIGH]++;
	}
	if (!zero_behind(in + at->values, p->n * CODE_BITS, at->end - at->values))
		return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: more codes than the %zu that are sent", self->name,
					   first, p->n);
	return check_levels(self, p, used, first, et);
}

enum rv_err topk_read_group(const struct codec *self, const uint8_t *in, size_t n, size_t at, struct topk_picked *p,
							struct rv_errtext *et) {
	const struct parts parts = parts_of(self, n);
	in += topk_group_at(self, at);
	RV_TRY(read_indices(self, in, &parts, n, at, p, et));
	return read_levels(self, in, &parts, at, p, et);
}
