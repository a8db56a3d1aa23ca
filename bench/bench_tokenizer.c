/* bench_tokenizer.c: how fast text becomes tokens, on one thread: bench_tokenizer TOKENIZER TEXT. The text whole, and a
 * run of letters without a space, where merging is all there is. Medians. */
#include "base/clock.h"
#include "base/file.h"
#include "bench/bench_report.h"
#include "worker/tokenizer/tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, MAX_TEXT_BYTES = 256 << 20, LONG_RUN_BYTES = 1 << 20 };

static void must(enum rv_err e, const struct rv_errtext *et) {
	if (e != RV_OK) {
		(void)fprintf(stderr, "bench_tokenizer: %s\n", et->text);
		exit(1);
	}
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Median MB/s. A fresh encoder each round: its cache starts empty. */
static double encode_rate(const struct tokenizer *t, const uint8_t *text, size_t n, size_t *n_tokens) {
	double rates[ROUNDS];
	struct rv_errtext et = {0};
	struct token_list ids = {0};
	for (int i = 0; i < ROUNDS; i++) {
		struct encoder *e;
		must(encoder_new(t, &e, &et), &et);
		ids.n = 0;
		int64_t begin_us = rv_clock_monotonic_us();
		must(tokenizer_encode(e, text, n, SPECIALS_AS_TEXT, &ids, &et), &et);
		rates[i] = (double)n / (double)(rv_clock_monotonic_us() - begin_us);
		encoder_free(e);
	}
	*n_tokens = ids.n;
	token_list_release(&ids);
	qsort(rates, ROUNDS, sizeof *rates, ascending);
	return rates[ROUNDS / 2];
}

static void bench_text(struct bench_report *r, const struct tokenizer *t, const char *name, const uint8_t *text,
					   size_t n) {
	size_t n_tokens;
	double rate = encode_rate(t, text, n, &n_tokens);
	(void)fprintf(stderr, "%s: %zu bytes, %zu tokens, %.2f bytes per token\n", name, n, n_tokens,
				  (double)n / (double)n_tokens);
	bench_more_is_better(r, name, "tiktoken", rate, NAN, "MB/s");
}

/* The letters of the text, the rest left out. */
static size_t letters_of(const uint8_t *text, size_t n, uint8_t *out, size_t cap) {
	size_t len = 0;
	for (size_t i = 0; len < cap; i = (i + 1) % n)
		if ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z')
			out[len++] = text[i];
		else if (len == 0 && i + 1 == n)
			break;
	return len;
}

int main(int argc, char **argv) {
	struct bench_report report = {.bench = "tokenizer"};
	struct rv_errtext et = {0};
	struct tokenizer *t;
	uint8_t *text;
	size_t n;
	if (argc != 3) {
		(void)fprintf(stderr,
					  "usage: bench_tokenizer TOKENIZER TEXT (a tokenizer.json or tiktoken file; a text file)\n");
		return 2;
	}
	bench_warn_if_busy();
	must(tokenizer_open(argv[1], "auto", &t, &et), &et);
	must(rv_file_read(argv[2], MAX_TEXT_BYTES, &text, &n, &et), &et);
	uint8_t *letters = malloc(LONG_RUN_BYTES);
	if (!letters || n == 0)
		must(rv_fail(&et, RV_E_INVALID, "%s: empty, or no memory", argv[2]), &et);
	bench_text(&report, t, "text", text, n);
	size_t n_letters = letters_of(text, n, letters, LONG_RUN_BYTES);
	if (n_letters > 0)
		bench_text(&report, t, "letters without a space", letters, n_letters);
	memset(letters, 'a', LONG_RUN_BYTES);
	bench_text(&report, t, "one letter repeated", letters, LONG_RUN_BYTES);
	bench_print_table(&report);
	free(letters);
	free(text);
	tokenizer_free(t);
	return 0;
}
