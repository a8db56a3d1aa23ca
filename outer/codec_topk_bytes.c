/* codec_topk_bytes.c: see codec_topk_bytes.h. */
#include "outer/codec_topk_bytes.h"

#include "base/assert.h"

enum {
	LEVEL_BYTES = 2,
	LEVEL_SHIFT = 16,
	ROOM_NUM = 13, /* beyond r + 1 bits: room for 13/8 bits a place */
	ROOM_DEN = 8,
	BYTE = 8,
	/* At least so many bits lie behind any bit in 8 bytes that begin with its own. */
	WINDOW_BITS = 57,
	PLACES_MAX_BYTES = TOPK_GROUP
};

static const struct topk_format *format_of(const struct codec *self) {
	return self->format;
}

/* A group: how many values it has room for, the bits of their places, and offsets in bytes. */
struct parts {
	size_t kept, place_bits, signs, end;
};

static size_t bytes_of(size_t bits) {
	return (bits + BYTE - 1) / BYTE;
}

size_t topk_kept(const struct codec *self, size_t n) {
	return (n * format_of(self)->k + TOPK_GROUP - 1) / TOPK_GROUP;
}

static struct parts parts_of(const struct codec *self, size_t n) {
	struct parts p = {.kept = topk_kept(self, n)};
	const size_t bits = p.kept * (format_of(self)->rice + 1) + (p.kept * ROOM_NUM + ROOM_DEN - 1) / ROOM_DEN;
	p.place_bits = bytes_of(bits) * BYTE;
	p.signs = LEVEL_BYTES + bytes_of(bits);
	p.end = p.signs + bytes_of(p.kept);
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

/* ---- what fits ---- */

/* Returns the bits of the distance before value i. */
static size_t distance_bits(const struct topk_picked *p, size_t i, unsigned rice) {
	const size_t distance = i > 0 ? p->index[i] - p->index[i - 1] - 1u : p->index[0];
	return (distance >> rice) + 1 + rice;
}

static size_t places_bits(const struct topk_picked *p, unsigned rice) {
	size_t bits = 0;
	for (size_t i = 0; i < p->n; i++)
		bits += distance_bits(p, i, rice);
	return bits;
}

/* Drops the value of least magnitude, among equal ones the last. */
static void drop_least(struct topk_picked *p) {
	size_t least = 0;
	for (size_t i = 1; i < p->n; i++)
		if (float_magnitude(p->value[i]) <= float_magnitude(p->value[least]))
			least = i;
	p->n--;
	memmove(p->index + least, p->index + least + 1, (p->n - least) * sizeof p->index[0]);
	memmove(p->value + least, p->value + least + 1, (p->n - least) * sizeof p->value[0]);
}

void topk_fit(const struct codec *self, struct topk_picked *p, size_t n) {
	const size_t room = parts_of(self, n).place_bits;
	while (places_bits(p, format_of(self)->rice) > room)
		drop_least(p);
}

/* ---- writing ---- */

/* Bits to be written, the first in the lowest place. */
struct bits_out {
	uint8_t *at;
	uint64_t bits;
	unsigned n; /* < 32 */
};

static void put_bits(struct bits_out *b, uint32_t value, unsigned n) {
	b->bits |= (uint64_t)value << b->n;
	b->n += n;
	if (b->n < 32)
		return;
	memcpy(b->at, &b->bits, 4);
	b->at += 4;
	b->bits >>= 32;
	b->n -= 32;
}

static void put_distance(struct bits_out *b, unsigned distance, unsigned rice) {
	unsigned zeros = distance >> rice;
	for (; zeros >= 16; zeros -= 16)
		put_bits(b, 0, 16);
	put_bits(b, 1u << zeros | (distance & ((1u << rice) - 1)) << (zeros + 1), zeros + 1 + rice);
}

static void put_places(const struct topk_picked *p, unsigned rice, uint8_t *out) {
	struct bits_out b = {.at = out};
	for (size_t i = 0; i < p->n; i++)
		put_distance(&b, i > 0 ? p->index[i] - p->index[i - 1] - 1u : p->index[0], rice);
	memcpy(b.at, &b.bits, bytes_of(b.n));
}

void topk_write_group(const struct codec *self, const struct topk_picked *p, size_t n, uint8_t *out) {
	const struct parts at = parts_of(self, n);
	const uint16_t level = (uint16_t)(float_bits(p->level) >> LEVEL_SHIFT);
	RV_ASSERT(p->n <= at.kept && places_bits(p, format_of(self)->rice) <= at.place_bits);
	memset(out, 0, at.end);
	memcpy(out, &level, sizeof level);
	put_places(p, format_of(self)->rice, out + LEVEL_BYTES);
	for (size_t i = 0; i < p->n; i++)
		out[at.signs + i / BYTE] = (uint8_t)(out[at.signs + i / BYTE] | (p->value[i] < 0) << (i % BYTE));
}

/* ---- reading ---- */

/* Places that are read. Behind the last byte are zeros, so that a window is always whole. */
struct bits_in {
	uint8_t bytes[PLACES_MAX_BYTES + sizeof(uint64_t)];
	size_t next, n; /* bits */
};

/* Returns the bits from b->next on, WINDOW_BITS of them at least, the first lowest. */
static uint64_t window(const struct bits_in *b) {
	uint64_t bits;
	memcpy(&bits, b->bytes + b->next / BYTE, sizeof bits);
	return bits >> (b->next % BYTE);
}

/* Moves to the next one; returns the number of zeros before it, or SIZE_MAX if there is none. */
static size_t pass_zeros(struct bits_in *b) {
	size_t zeros = 0;
	while (b->next < b->n) {
		const uint64_t bits = window(b);
		const size_t run = bits != 0 ? (size_t)__builtin_ctzll(bits) : WINDOW_BITS;
		zeros += run;
		b->next += run;
		if (bits != 0)
			return zeros;
	}
	return SIZE_MAX;
}

/* Reads the places into p->index, and their number. */
static enum rv_err read_places(const struct codec *self, struct bits_in *b, const struct parts *at, size_t n,
							   size_t first, struct topk_picked *p, struct rv_errtext *et) {
	const unsigned rice = format_of(self)->rice;
	const uint64_t mask = (1u << rice) - 1;
	size_t place = 0;
	for (p->n = 0;; p->n++) {
		const size_t zeros = pass_zeros(b);
		if (zeros == SIZE_MAX)
			return RV_OK;
		if (p->n == at->kept || b->next + 1 + rice > b->n)
			return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: bits behind the %zu places of at most %zu",
						   self->name, first, p->n, at->kept);
		place += (zeros << rice) + (window(b) >> 1 & mask);
		if (place >= n)
			return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: place %zu, there are %zu", self->name, first,
						   place, n);
		p->index[p->n] = (uint16_t)place++;
		b->next += 1 + rice;
	}
}

static enum rv_err read_level(const struct codec *self, const uint8_t *in, size_t first, struct topk_picked *p,
							  struct rv_errtext *et) {
	uint16_t level;
	memcpy(&level, in, sizeof level);
	const uint32_t bits = (uint32_t)level << LEVEL_SHIFT;
	const bool valid = bits >= FLOAT_LEAST_NORMAL_BITS && bits <= TOPK_LEVEL_MAX_BITS;
	p->level = float_of_bits(bits);
	if (p->n > 0 ? valid : bits == 0)
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: level %a of %zu values", self->name, first,
				   (double)p->level, p->n);
}

/* Sets the values, and checks that no sign is behind the last. */
static enum rv_err read_signs(const struct codec *self, const uint8_t *signs, size_t bytes, size_t first,
							  struct topk_picked *p, struct rv_errtext *et) {
	unsigned behind = p->n % BYTE != 0 ? (unsigned)signs[p->n / BYTE] >> (p->n % BYTE) : 0;
	for (size_t i = bytes_of(p->n); i < bytes; i++)
		behind |= signs[i];
	if (behind != 0)
		return rv_fail(et, RV_E_CORRUPT, "%s values from %zu on: more signs than the %zu that are sent", self->name,
					   first, p->n);
	for (size_t i = 0; i < p->n; i++)
		p->value[i] = float_of_bits(float_bits(p->level) | (uint32_t)(signs[i / BYTE] >> (i % BYTE) & 1) << 31);
	return RV_OK;
}

enum rv_err topk_read_group(const struct codec *self, const uint8_t *in, size_t n, size_t at, struct topk_picked *p,
							struct rv_errtext *et) {
	const struct parts parts = parts_of(self, n);
	struct bits_in b;
	RV_ASSERT(parts.place_bits / BYTE <= PLACES_MAX_BYTES);
	in += topk_group_at(self, at);
	b.next = 0;
	b.n = parts.place_bits;
	memcpy(b.bytes, in + LEVEL_BYTES, b.n / BYTE);
	memset(b.bytes + b.n / BYTE, 0, sizeof(uint64_t));
	RV_TRY(read_places(self, &b, &parts, n, at, p, et));
	RV_TRY(read_level(self, in, at, p, et));
	return read_signs(self, in + parts.signs, parts.end - parts.signs, at, p, et);
}
