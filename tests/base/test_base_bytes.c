/* Cursors: little-endian layout, round trips, and truncation at every byte. */
#include "base/bytes.h"
#include "tests/common/check.h"

#include <math.h>
#include <string.h>

static void layout_is_little_endian(void **state) {
	(void)state;
	uint8_t b[64];
	struct rv_writer w = rv_writer_of(b, sizeof b);
	rv_write_u8(&w, 0x01);
	rv_write_u16(&w, 0x0302);
	rv_write_u32(&w, 0x07060504u);
	rv_write_u64(&w, 0x0f0e0d0c0b0a0908ull);
	rv_write_str(&w, "ab");
	static const uint8_t want[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 2, 0, 'a', 'b'};
	assert_false(w.failed);
	assert_int_equal(rv_writer_len(&w), sizeof want);
	assert_memory_equal(b, want, sizeof want);
}

/* Writes one of everything, as a message would be. */
static size_t write_all(void *data, size_t cap, bool *failed) {
	struct rv_writer w = rv_writer_of(data, cap);
	rv_write_u8(&w, 0xff);
	rv_write_u16(&w, 0xffff);
	rv_write_u32(&w, UINT32_MAX);
	rv_write_u64(&w, UINT64_MAX);
	rv_write_u32(&w, 0x80000000u); /* -0.0f */
	rv_write_u64(&w, 1);           /* 5e-324 */
	rv_write_str(&w, "");
	rv_write_str(&w, "stream");
	rv_write_bytes(&w, "xyz", 3);
	*failed = w.failed;
	return rv_writer_len(&w);
}

static bool read_all(const void *data, size_t n) {
	struct rv_reader r = rv_reader_of(data, n);
	char empty[1], name[7], tail[3];
	bool same = rv_read_u8(&r) == 0xff;
	same &= rv_read_u16(&r) == 0xffff;
	same &= rv_read_u32(&r) == UINT32_MAX;
	same &= rv_read_u64(&r) == UINT64_MAX;
	float f = rv_read_f32(&r);
	same &= f == 0 && signbit(f) != 0;
	same &= rv_read_f64(&r) == 5e-324;
	rv_read_str(&r, empty, sizeof empty);
	rv_read_str(&r, name, sizeof name);
	same &= strcmp(name, "stream") == 0;
	rv_read_copy(&r, tail, sizeof tail);
	same &= memcmp(tail, "xyz", 3) == 0;
	return same && rv_reader_done(&r);
}

static void everything_survives_a_round_trip(void **state) {
	(void)state;
	uint8_t b[128];
	bool failed;
	size_t n = write_all(b, sizeof b, &failed);
	assert_false(failed);
	assert_true(read_all(b, n));
	b[n] = 0;
	assert_false(read_all(b, n + 1)); /* a trailing byte */
}

static void truncation_fails_at_every_length(void **state) {
	(void)state;
	uint8_t whole[128], part[128];
	bool failed;
	size_t n = write_all(whole, sizeof whole, &failed);
	for (size_t cap = 0; cap < n; cap++) {
		assert_false(read_all(whole, cap));
		memset(part, 0xee, sizeof part);
		assert_true(write_all(part, cap, &failed) <= cap);
		assert_true(failed);
		for (size_t i = cap; i < sizeof part; i++)
			assert_int_equal(part[i], 0xee);
	}
}

static void a_failed_reader_stays_failed(void **state) {
	(void)state;
	const uint8_t b[4] = {1, 2, 3, 4};
	struct rv_reader r = rv_reader_of(b, sizeof b);
	assert_int_equal(rv_read_u64(&r), 0);
	assert_false(rv_reader_ok(&r));
	assert_int_equal(rv_reader_left(&r), 0);
	assert_int_equal(rv_read_u8(&r), 0);
	assert_null(rv_read_span(&r, 0));
	uint8_t out[3] = {9, 9, 9};
	rv_read_copy(&r, out, 3);
	assert_int_equal(out[0] | out[1] | out[2], 0);
	assert_true(rv_read_f32(&r) == 0 && rv_read_f64(&r) == 0);
}

static void sizes_near_the_end_of_memory_do_not_wrap(void **state) {
	(void)state;
	uint8_t b[4] = {0};
	struct rv_reader r = rv_reader_of(b, sizeof b);
	assert_null(rv_read_span(&r, SIZE_MAX));
	assert_false(rv_reader_ok(&r));
	struct rv_writer w = rv_writer_of(b, sizeof b);
	rv_write_bytes(&w, b, SIZE_MAX);
	assert_true(w.failed);
	assert_int_equal(rv_writer_len(&w), 0);
}

static void a_failed_writer_stays_failed(void **state) {
	(void)state;
	uint8_t b[4];
	struct rv_writer w = rv_writer_of(b, sizeof b);
	rv_write_u64(&w, 1);
	rv_write_u8(&w, 1);
	assert_true(w.failed);
	assert_int_equal(rv_writer_len(&w), 0);
}

static void empty_cursors_work(void **state) {
	(void)state;
	struct rv_reader r = rv_reader_of(NULL, 0);
	assert_true(rv_reader_done(&r));
	assert_non_null(rv_read_span(&r, 0));
	assert_int_equal(rv_read_u8(&r), 0);
	struct rv_writer w = rv_writer_of(NULL, 0);
	rv_write_bytes(&w, NULL, 0);
	assert_false(w.failed);
	assert_int_equal(rv_writer_len(&w), 0);
	rv_write_u8(&w, 1);
	assert_true(w.failed);
}

static void read_string(const char *bytes, size_t n, size_t cap, bool want_ok, const char *want) {
	char out[16];
	memset(out, '?', sizeof out);
	struct rv_reader r = rv_reader_of(bytes, n);
	rv_read_str(&r, out, cap);
	assert_int_equal(rv_reader_ok(&r), want_ok);
	assert_string_equal(out, want);
}

static void strings_are_bounded_and_clean(void **state) {
	(void)state;
	read_string("\3\0abc", 5, 4, true, "abc");
	read_string("\3\0abc", 5, 3, false, ""); /* no room for the NUL */
	read_string("\4\0abc", 5, 16, false, "");
	read_string("\377\377abc", 5, 16, false, "");
	read_string("\3\0a\0c", 5, 16, false, "");
	read_string("\3\0a\nc", 5, 16, false, "");
	read_string("\3\0a\033c", 5, 16, false, "");
	read_string("\3\0a\177c", 5, 16, false, "");
	read_string("\2\0\303\244", 4, 16, true, "\303\244"); /* UTF-8 is fine */
	read_string("\1", 1, 16, false, "");
}

static void long_strings_are_refused_by_the_writer(void **state) {
	(void)state;
	static char text[65537], out[65540];
	memset(text, 'a', 65536);
	struct rv_writer w = rv_writer_of(out, sizeof out);
	rv_write_str(&w, text);
	assert_true(w.failed);
	text[65535] = '\0';
	w = rv_writer_of(out, sizeof out);
	rv_write_str(&w, text);
	assert_false(w.failed);
	assert_int_equal(rv_writer_len(&w), 65537);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_is_little_endian),
		cmocka_unit_test(everything_survives_a_round_trip),
		cmocka_unit_test(truncation_fails_at_every_length),
		cmocka_unit_test(a_failed_reader_stays_failed),
		cmocka_unit_test(sizes_near_the_end_of_memory_do_not_wrap),
		cmocka_unit_test(a_failed_writer_stays_failed),
		cmocka_unit_test(empty_cursors_work),
		cmocka_unit_test(strings_are_bounded_and_clean),
		cmocka_unit_test(long_strings_are_refused_by_the_writer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
