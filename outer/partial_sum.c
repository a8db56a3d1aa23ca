/* partial_sum.c: see partial_sum.h. */
#include "outer/partial_sum.h"

#include "base/assert.h"

#include <stdbool.h>
#include <string.h>

enum { VALUE = sizeof(float), BITS = 8 };

static size_t map_bytes(size_t bits) {
	return (bits + BITS - 1) / BITS;
}

static uint32_t bits_at(const uint8_t *sum, size_t i) {
	uint32_t bits;
	memcpy(&bits, sum + i * VALUE, VALUE);
	return bits;
}

/* Returns byte `b` of the map of n values. */
static uint8_t map_byte(const uint8_t *sum, size_t n, size_t b) {
	unsigned byte = 0;
	for (size_t i = b * BITS; i < n && i < (b + 1) * BITS; i++)
		byte |= (unsigned)(bits_at(sum, i) != 0) << i % BITS;
	return (uint8_t)byte;
}

/* Returns the length of the sparse form. */
static size_t sparse_bytes(const uint8_t *sum, size_t n) {
	size_t bytes = map_bytes(map_bytes(n));
	for (size_t b = 0; b < map_bytes(n); b++) {
		const uint8_t map = map_byte(sum, n, b);
		bytes += (map != 0) + VALUE * (size_t)__builtin_popcount(map);
	}
	return bytes;
}

size_t partial_sum_pack(const uint8_t *sum, size_t n, uint8_t *out) {
	const size_t bytes = sparse_bytes(sum, n), top = map_bytes(map_bytes(n));
	RV_ASSERT(n > 0);
	if (bytes >= n * VALUE) {
		memcpy(out, sum, n * VALUE);
		return n * VALUE;
	}
	size_t maps = top;
	memset(out, 0, top);
	for (size_t b = 0; b < map_bytes(n); b++) {
		const uint8_t map = map_byte(sum, n, b);
		if (map == 0)
			continue;
		out[b / BITS] |= (uint8_t)(1u << b % BITS);
		out[maps++] = map;
	}
	size_t at = maps;
	for (size_t i = 0; i < n; i++) {
		if (bits_at(sum, i) == 0)
			continue;
		memcpy(out + at, sum + i * VALUE, VALUE);
		at += VALUE;
	}
	RV_ASSERT(at == bytes);
	return bytes;
}

/* ---- back ---- */

static bool has_bit(const uint8_t *map, size_t i) {
	return map[i / BITS] >> i % BITS & 1;
}

/* Returns true if bits are set that stand for nothing: `bits` of the map count. */
static bool is_overlong(const uint8_t *map, size_t bits) {
	for (size_t i = bits; i < map_bytes(bits) * BITS; i++)
		if (has_bit(map, i))
			return true;
	return false;
}

/* Counts the bytes of the map that follow, and the values behind them. RV_E_CORRUPT: they are not
 * what `bytes` bytes hold. */
static enum rv_err measure(const uint8_t *in, size_t bytes, size_t n, size_t *maps, struct rv_errtext *et) {
	const size_t top = map_bytes(map_bytes(n));
	size_t values = 0;
	*maps = 0;
	if (bytes < top || is_overlong(in, map_bytes(n)))
		return rv_fail(et, RV_E_CORRUPT, "partial sum: %zu bytes for %zu values, or bits of values past them", bytes,
					   n);
	for (size_t b = 0; b < map_bytes(n); b++)
		*maps += has_bit(in, b);
	if (bytes < top + *maps)
		return rv_fail(et, RV_E_CORRUPT, "partial sum: %zu bytes, with a map of %zu", bytes, top + *maps);
	for (size_t k = 0; k < *maps; k++)
		values += (size_t)__builtin_popcount(in[top + k]);
	if (bytes != top + *maps + values * VALUE)
		return rv_fail(et, RV_E_CORRUPT, "partial sum: %zu bytes, must be %zu for %zu values that are not zero", bytes,
					   top + *maps + values * VALUE, values);
	return RV_OK;
}

/* Sets the values of byte `b` of the map, which is `map`; returns how many bytes of `in` they took,
 * 0 if one of them is zero. */
static size_t put_values(uint8_t *sum, size_t b, uint8_t map, const uint8_t *in) {
	size_t at = 0;
	for (size_t i = 0; i < BITS; i++) {
		if (!(map >> i & 1))
			continue;
		if (bits_at(in + at, 0) == 0)
			return 0;
		memcpy(sum + (b * BITS + i) * VALUE, in + at, VALUE);
		at += VALUE;
	}
	return at;
}

enum rv_err partial_sum_unpack(const uint8_t *in, size_t bytes, size_t n, uint8_t *sum, struct rv_errtext *et) {
	const size_t top = map_bytes(map_bytes(n));
	size_t maps;
	RV_ASSERT(n > 0);
	if (bytes > n * VALUE || (bytes == n * VALUE && sparse_bytes(in, n) < bytes))
		return rv_fail(et, RV_E_CORRUPT, "partial sum: %zu bytes for %zu values: there is a shorter form", bytes, n);
	if (bytes == n * VALUE) {
		memcpy(sum, in, bytes);
		return RV_OK;
	}
	RV_TRY(measure(in, bytes, n, &maps, et));
	const uint8_t *map = in + top, *value = map + maps;
	memset(sum, 0, n * VALUE);
	for (size_t b = 0; b < map_bytes(n); b++) {
		if (!has_bit(in, b))
			continue;
		const bool past = (b + 1) * BITS > n && is_overlong(map, n - b * BITS);
		const size_t taken = *map != 0 && !past ? put_values(sum, b, *map, value) : 0;
		if (taken == 0)
			return rv_fail(et, RV_E_CORRUPT,
						   "partial sum: a zero among values %zu to %zu that are not, or values past %zu", b * BITS,
						   b * BITS + BITS - 1, n);
		map++;
		value += taken;
	}
	return RV_OK;
}
