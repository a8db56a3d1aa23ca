/* text_get.c: text_get DIR DATA-HASH QUOTA URL...: fetches a published text from mirrors into DIR
 * while reading all of it once, and prints what came, as one JSON line: for judge_mirrors.py. */
#include "base/hex.h"
#include "base/signals.h"
#include "train/text/published/published.h"
#include "worker/text/text_thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PART = 4096, AHEAD = 8 };

static int fail(const char *what, const struct rv_errtext *et) {
	(void)fprintf(stderr, "text_get: %s: %s\n", what, et->text);
	return 1;
}

static void show_notices(struct text *t) {
	char notice[TEXT_NOTICE_BYTES];
	while (text_notice(t, notice))
		(void)fprintf(stderr, "text_get: %s\n", notice);
}

static void want_ahead(struct text *t, const struct manifest *m, uint64_t shard) {
	uint64_t shards[AHEAD];
	int n = 0;
	for (uint64_t i = shard; i < (uint64_t)m->n_shards && n < AHEAD; i++)
		shards[n++] = i;
	text_want(t, shards, n);
}

/* Reads all tokens in order, and hashes them. */
static enum rv_err read_all(struct text *t, struct rv_hash *out, struct rv_errtext *et) {
	struct published *p;
	struct rv_hasher h;
	int32_t tokens[PART];
	RV_TRY(published_open(text_dir(t), &p, et));
	const struct manifest *m = published_manifest(p);
	enum rv_err e = RV_OK;
	published_on_missing(p, &(struct published_missing){.get = text_get, .ctx = t});
	rv_hash_init(&h);
	for (uint64_t at = 0; at < (uint64_t)m->n_tokens && e == RV_OK; at += PART) {
		const uint64_t left = (uint64_t)m->n_tokens - at;
		const size_t n = left < PART ? (size_t)left : PART;
		if (manifest_place(m, at).token == 0)
			want_ahead(t, m, manifest_place(m, at).shard);
		e = published_read(p, at, n, tokens, et);
		rv_hash_update(&h, tokens, n * sizeof *tokens);
	}
	*out = rv_hash_final(&h);
	published_close(p);
	return e;
}

int main(int argc, char **argv) {
	struct rv_errtext et = {0};
	struct rv_hash hash;
	struct text *t;
	int signals;
	if (argc < 4)
		return 2;
	struct text_config cfg = {.dir = argv[1],
							  .quota_bytes = strtoull(argv[3], NULL, 10),
							  .mirrors = (const char *const *)&argv[4],
							  .n_mirrors = argc - 4,
							  .met = ADDRESS_LOOPBACK};
	if (!rv_hex_decode(argv[2], cfg.data_hash.b, sizeof cfg.data_hash.b) || rv_signals_open(&signals, &et) != RV_OK)
		return 2;
	if (text_open(&cfg, &t, &et) != RV_OK)
		return fail("open", &et);
	const enum rv_err e = read_all(t, &hash, &et);
	show_notices(t);
	if (e != RV_OK)
		return fail("read", &et);
	const struct text_stats s = text_stats(t);
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(hash.b, sizeof hash.b, hex);
	printf("{\"tokens\":\"%s\",\"bytes\":%" PRIu64 ",\"wasted\":%" PRIu64 ",\"lies\":%u,\"cached\":%" PRIu64 "}\n", hex,
		   s.bytes[TEXT_MIRROR], s.wasted_bytes, s.lies, s.cached_bytes);
	text_close(t);
	rv_signals_close(signals);
	return 0;
}
