/* bench_tokenizer.c: how fast text becomes tokens, on one thread: bench_tokenizer TOKENIZER TEXT
 * [PEER]. The text whole, and a run of letters without a space, where merging is all there is.
 * Medians.
 *
 * PEER is a command that encodes the text given as its last argument and prints MB/s and the number
 * of tokens, which must be ours: "node bench/tokenizer_peer.cjs gpt2". */
#include "base/clock.h"
#include "base/file.h"
#include "bench/bench_report.h"
#include "train/text/tokenizer/tokenizer.h"

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

/* Returns the median MB/s. A fresh encoder each round: its cache starts empty. */
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

/* Returns the MB/s of the peer on the file, NAN without one. */
static double peer_rate(const char *peer, const char *path, size_t *n_tokens) {
	char command[4096];
	struct rv_errtext et = {0};
	double rate = NAN;
	if (!peer)
		return NAN;
	(void)snprintf(command, sizeof command, "%s '%s'", peer, path);
	FILE *f = popen(command, "r");
	if (!f || fscanf(f, "%lf %zu", &rate, n_tokens) != 2)
		must(rv_fail(&et, RV_E_INVALID, "%s: it prints no rate and number of tokens", command), &et);
	(void)pclose(f);
	return rate;
}

static void check_tokens(size_t ours, size_t theirs) {
	struct rv_errtext et = {0};
	if (ours != theirs)
		must(rv_fail(&et, RV_E_INVALID, "%zu tokens, the peer has %zu: not the same tokenizer", ours, theirs), &et);
}

/* Measures a text; with a peer, `path` holds it. */
static void bench_text(struct bench_report *r, const struct tokenizer *t, const char *name, const uint8_t *text,
					   size_t n, const char *peer, const char *path) {
	size_t n_tokens, peer_tokens = 0;
	double theirs = peer_rate(peer, path, &peer_tokens), rate = encode_rate(t, text, n, &n_tokens);
	if (peer)
		check_tokens(n_tokens, peer_tokens);
	(void)fprintf(stderr, "%s: %zu bytes, %zu tokens, %.2f bytes per token\n", name, n, n_tokens,
				  (double)n / (double)n_tokens);
	bench_more_is_better(r, name, "tiktoken", rate, theirs, "MB/s");
}

/* Copies the letters of the text, without the rest. */
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
	if (argc < 3 || argc > 4) {
		(void)fprintf(stderr, "usage: bench_tokenizer TOKENIZER TEXT [PEER] (a tokenizer.json or tiktoken file; a text "
							  "file; a command)\n");
		return 2;
	}
	bench_warn_if_busy();
	must(tokenizer_open(argv[1], "auto", &t, &et), &et);
	must(rv_file_read(argv[2], MAX_TEXT_BYTES, &text, &n, &et), &et);
	uint8_t *letters = malloc(LONG_RUN_BYTES);
	if (!letters || n == 0)
		must(rv_fail(&et, RV_E_INVALID, "%s: empty, or no memory", argv[2]), &et);
	bench_text(&report, t, "text", text, n, argc > 3 ? argv[3] : NULL, argv[2]);
	size_t n_letters = letters_of(text, n, letters, LONG_RUN_BYTES);
	if (n_letters > 0)
		bench_text(&report, t, "letters without a space", letters, n_letters, NULL, NULL);
	memset(letters, 'a', LONG_RUN_BYTES);
	bench_text(&report, t, "one letter repeated", letters, LONG_RUN_BYTES, NULL, NULL);
	bench_print_table(&report);
	free(letters);
	free(text);
	tokenizer_free(t);
	return 0;
}
