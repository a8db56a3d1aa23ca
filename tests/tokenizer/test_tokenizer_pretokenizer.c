/* Cutting text into pieces: the known patterns by hand, White_Space, and patterns that are wrong or
 * run away. */
#include "tests/common/scratch.h"
#include "tests/tokenizer/tokenizer_fixture.h"

#include "train/text/tokenizer/patterns.h"
#include "train/text/tokenizer/pretokenizer.h"
#include "train/text/tokenizer/stand_ins.h"
#include "train/text/tokenizer/utf8.h"

#include <stdlib.h>
#include <string.h>

struct joined {
	char text[512];
	size_t n;
};

static enum rv_err join(void *ctx, const uint8_t *piece, size_t n, struct rv_errtext *et) {
	struct joined *j = ctx;
	(void)et;
	assert_true(n > 0 && j->n + n + 2 < sizeof j->text);
	memcpy(j->text + j->n, piece, n);
	j->n += n;
	j->text[j->n++] = '|';
	j->text[j->n] = '\0';
	return RV_OK;
}

/* The pieces, with a bar after each, by patterns that follow each other. */
static void cut(const char *const *patterns, const char *text, struct joined *out) {
	struct pretokenizer p = {0};
	struct pretokenizer_scratch *s;
	*out = (struct joined){0};
	for (; *patterns; patterns++)
		assert_ok(pretokenizer_add(&p, *patterns, strlen(*patterns), false, &et));
	assert_ok(pretokenizer_scratch_new(&s, &et));
	assert_ok(pretokenizer_run(&p, s, (const uint8_t *)text, strlen(text), join, out, &et));
	pretokenizer_scratch_free(s);
	pretokenizer_release(&p);
}

static void assert_pieces(const char *pattern, const char *text, const char *wanted) {
	struct joined j;
	cut((const char *const[]){pattern, NULL}, text, &j);
	assert_string_equal(j.text, wanted);
}

static void gpt2_pieces(void **state) {
	(void)state;
	assert_pieces(pattern_gpt2, "Hello world, it's 2026!!", "Hello| world|,| it|'s| 2026|!!|");
	assert_pieces(pattern_gpt2, "a  b\n\nc  ", "a| | b|\n|\n|c|  |");
	assert_pieces(pattern_gpt2, "IT'S", "IT|'|S|");
	assert_pieces(pattern_gpt2, "\xe4\xbd\xa0\xe5\xa5\xbd\xe3\x80\x82", "\xe4\xbd\xa0\xe5\xa5\xbd|\xe3\x80\x82|");
}

static void cl100k_pieces(void **state) {
	(void)state;
	const char *p = known_pattern_find("cl100k_base")->pattern;
	assert_pieces(p, "IT'S 12345\r\n\r\nx", "IT|'S| |123|45|\r\n\r\n|x|");
	assert_pieces(p, "it'\xc5\xbf (yes)\n x", "it|'\xc5\xbf| (|yes|)\n| x|"); /* the long s is an s */
	assert_ptr_equal(known_pattern_of_ranks(100256), known_pattern_find("cl100k_base"));
	assert_null(known_pattern_of_ranks(1));
	assert_null(known_pattern_find("p50k"));
}

static void o200k_pieces(void **state) {
	(void)state;
	const char *p = known_pattern_find("o200k_base")->pattern;
	assert_pieces(p, "HelloWorld they'LL 12345 x;\n/y", "Hello|World| they'LL| |123|45| x|;\n/|y|");
	assert_ptr_equal(known_pattern_of_ranks(199998), known_pattern_find("o200k_base"));
}

static void u180e_is_no_space(void **state) {
	(void)state;
	assert_pieces(pattern_gpt2, "a \xe1\xa0\x8e b", "a| \xe1\xa0\x8e| b|");
	assert_pieces(pattern_gpt2, "a\xc2\x85\xe3\x80\x80\xe2\x80\x83 b", "a|\xc2\x85\xe3\x80\x80\xe2\x80\x83| b|");
}

/* U+1C89 and U+31350 are letters since Unicode 16 and 15, U+11F50 and U+10D40 digits since 15 and
 * 16; U+1C8B is none. */
static void classes_are_those_of_unicode_16(void **state) {
	(void)state;
	assert_pieces(pattern_gpt2, "a\xe1\xb2\x89z", "a\xe1\xb2\x89z|");
	assert_pieces(pattern_gpt2, "a\xf0\xb1\x8d\x90z", "a\xf0\xb1\x8d\x90z|");
	assert_pieces(pattern_gpt2,
				  "1\xf0\x91\xbd\x90"
				  "2",
				  "1\xf0\x91\xbd\x90"
				  "2|");
	assert_pieces(pattern_gpt2,
				  "1\xf0\x90\xb5\x80"
				  "2",
				  "1\xf0\x90\xb5\x80"
				  "2|");
	assert_pieces(pattern_gpt2, "a\xe1\xb2\x8bz", "a|\xe1\xb2\x8b|z|");
}

static void stand_ins_have_the_length_of_what_they_stand_for(void **state) {
	(void)state;
	enum { SURROGATES = 0xd800, AFTER = 0xe000, MOST = 0x110000 };
	int n = 0;
	for (uint32_t c = 0; c < MOST; c = c == SURROGATES - 1 ? AFTER : c + 1) {
		uint8_t text[4];
		size_t len = utf8_encode(c, text);
		if (stand_ins_find(text, len) == len)
			continue;
		stand_ins_put(text, len);
		assert_int_equal(utf8_valid_prefix(text, len), len);
		assert_int_equal(stand_ins_find(text, len), len);
		n++;
	}
	assert_true(n > 800000 && n < 900000);
}

static void patterns_with_unsettled_characters_are_refused(void **state) {
	(void)state;
	struct pretokenizer p = {0};
	struct rv_errtext why = {0};
	const char pattern[] = "a|\xf0\xb2\x8e\xb0"; /* U+323B0 */
	assert_int_equal(pretokenizer_add(&p, pattern, strlen(pattern), true, &why), RV_E_UNSUPPORTED);
	assert_non_null(strstr(why.text, "at byte 2"));
	pretokenizer_release(&p);
}

static void nothing_between_matches_is_lost(void **state) {
	(void)state;
	assert_pieces("b+", "abbcb", "a|bb|c|b|");
	assert_pieces("x", "abc", "abc|");
	assert_pieces("x*", "axb", "a|x|b|"); /* empty matches are none */
	struct joined j;
	cut((const char *const[]){"\\p{N}", " ?\\p{L}+", NULL}, "ab 12 cd", &j);
	assert_string_equal(j.text, "ab| |1|2| cd|");
	cut((const char *const[]){NULL}, "whole text", &j);
	assert_string_equal(j.text, "whole text|");
}

static void wrong_patterns_are_named(void **state) {
	(void)state;
	struct pretokenizer p = {0};
	struct rv_errtext why = {0};
	assert_int_equal(pretokenizer_add(&p, "a(b", 3, false, &why), RV_E_INVALID);
	assert_non_null(strstr(why.text, "a(b"));
	assert_non_null(strstr(why.text, "parenthesis"));
	assert_int_equal(pretokenizer_add(&p, "\\C", 2, false, &why), RV_E_INVALID);
	assert_int_equal(pretokenizer_add(&p, "", 0, false, &why), RV_E_RANGE);
	assert_int_equal(pretokenizer_add(&p, "x", PRETOKENIZER_MAX_PATTERN_BYTES + 1, false, &why), RV_E_RANGE);
	for (int i = 0; i < PRETOKENIZER_MAX_STEPS; i++)
		assert_ok(pretokenizer_add(&p, "(", 1, true, &et));
	assert_int_equal(pretokenizer_add(&p, "x", 1, false, &why), RV_E_RANGE);
	pretokenizer_release(&p);
}

static enum rv_err ignore(void *ctx, const uint8_t *piece, size_t n, struct rv_errtext *et) {
	*(size_t *)ctx += n;
	(void)piece;
	(void)et;
	return RV_OK;
}

static void a_pattern_that_backtracks_without_end_is_stopped(void **state) {
	(void)state;
	struct pretokenizer p = {0};
	struct pretokenizer_scratch *s;
	struct rv_errtext why = {0};
	uint8_t text[4096];
	size_t total = 0;
	memset(text, 'a', sizeof text);
	assert_ok(pretokenizer_add(&p, "(?:a+)+[bc]", 11, false, &et));
	assert_ok(pretokenizer_scratch_new(&s, &et));
	assert_int_equal(pretokenizer_run(&p, s, text, sizeof text, ignore, &total, &why), RV_E_RANGE);
	assert_non_null(strstr(why.text, "4096 bytes"));
	pretokenizer_scratch_free(s);
	pretokenizer_release(&p);
}

static void a_long_run_of_spaces_is_no_such_pattern(void **state) {
	(void)state;
	enum { BYTES = 1 << 20 };
	uint8_t *text = malloc(BYTES);
	assert_non_null(text);
	memset(text, ' ', BYTES);
	text[BYTES - 1] = 'x';
	for (const struct known_pattern *k = known_patterns; k->name; k++) {
		struct pretokenizer p = {0};
		struct pretokenizer_scratch *s;
		size_t total = 0;
		assert_ok(pretokenizer_add(&p, k->pattern, strlen(k->pattern), false, &et));
		assert_ok(pretokenizer_scratch_new(&s, &et));
		assert_ok(pretokenizer_run(&p, s, text, BYTES, ignore, &total, &et));
		assert_int_equal(total, BYTES);
		pretokenizer_scratch_free(s);
		pretokenizer_release(&p);
	}
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpt2_pieces),
		cmocka_unit_test(cl100k_pieces),
		cmocka_unit_test(u180e_is_no_space),
		cmocka_unit_test(o200k_pieces),
		cmocka_unit_test(classes_are_those_of_unicode_16),
		cmocka_unit_test(stand_ins_have_the_length_of_what_they_stand_for),
		cmocka_unit_test(patterns_with_unsettled_characters_are_refused),
		cmocka_unit_test(nothing_between_matches_is_lost),
		cmocka_unit_test(wrong_patterns_are_named),
		cmocka_unit_test(a_pattern_that_backtracks_without_end_is_stopped),
		cmocka_unit_test(a_long_run_of_spaces_is_no_such_pattern),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
