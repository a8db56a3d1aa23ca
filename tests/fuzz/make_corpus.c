/* make_corpus.c: writes the binary seeds of the corpora with the encoders themselves: make_corpus
 * DIR. Run it when a format changes, look at the difference, commit. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/chain.h"
#include "base/file.h"
#include "coordinator/store/record.h"
#include "net/control/control.h"
#include "net/control/reach_test.h"
#include "net/mesh/frame.h"
#include "net/relay/wire.h"
#include "outer/codec.h"
#include "train/files/gguf_writer.h"
#include "train/files/safetensors.h"
#include "train/model/model.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED_BYTES_MAX = NET_MAX_DOCUMENT_BYTES + 1 };

struct seeds {
	const char *dir;
	uint8_t bytes[SEED_BYTES_MAX];
	struct rv_writer w;
};

static void seed_begin(struct seeds *s) {
	s->w = rv_writer_of(s->bytes, sizeof s->bytes);
}

static void seed_path(const struct seeds *s, const char *fuzzer, const char *name, char path[512]) {
	(void)snprintf(path, 512, "%s/%s", s->dir, fuzzer);
	RV_ASSERT(rv_dir_make(path, 0755, NULL) == RV_OK);
	(void)snprintf(path, 512, "%s/%s/%s", s->dir, fuzzer, name);
}

static void seed_end(struct seeds *s, const char *fuzzer, const char *name) {
	char path[512];
	RV_ASSERT(!s->w.failed);
	seed_path(s, fuzzer, name, path);
	RV_ASSERT(rv_file_write_atomic(path, s->bytes, rv_writer_len(&s->w), 0644, NULL) == RV_OK);
}

static void fill(void *out, size_t n, uint8_t first) {
	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)(first + i);
}

static void make_joins(struct seeds *s) {
	struct join_request q = {.protocol = CONTROL_VERSION,
							 .protocol_min = CONTROL_VERSION_MIN,
							 .has_token = true,
							 .name = "anna",
							 .software = "rivulet 0.1.0"};
	fill(q.run_id, sizeof q.run_id, 1);
	fill(q.token, sizeof q.token, 2);
	seed_begin(s);
	rv_write_u8(&s->w, 0);
	join_request_encode(&q, &s->w);
	seed_end(s, "control", "join_request");
	q.protocol = CONTROL_VERSION + 1;
	seed_begin(s);
	rv_write_u8(&s->w, 0);
	join_request_encode(&q, &s->w);
	seed_end(s, "control", "join_request_of_the_next_version");
	struct join_reply *a = calloc(1, sizeof *a);
	RV_ASSERT(a);
	a->member = 3;
	(void)snprintf(a->config, sizeof a->config, "rounds = 30\nlr = 0.001\n");
	fill(a->run_id, sizeof a->run_id, 1);
	fill(&a->run_hash, sizeof a->run_hash, 3);
	fill(a->ticket, sizeof a->ticket, 4);
	seed_begin(s);
	rv_write_u8(&s->w, 1);
	join_reply_encode(a, CONTROL_VERSION, &s->w);
	seed_end(s, "control", "join_reply");
	free(a);
}

static void make_reports(struct seeds *s) {
	struct report r = {.boot = 1,
					   .seq = 2,
					   .phase = WORKER_TRAINING,
					   .round = 5,
					   .n_chunks = 64,
					   .n_candidates = 1,
					   .candidates[0].addr = ":7434"};
	r.inner_step = 150;
	r.loss = 2.5f;
	r.tokens_per_s = 1e4f;
	fill(&r.chain, sizeof r.chain, 1);
	seed_begin(s);
	rv_write_u8(&s->w, 2);
	report_encode(&r, CONTROL_VERSION, &s->w);
	seed_end(s, "control", "report_training");
	r.up_bytes_per_s = 1250000;
	r.down_bytes_per_s = 12500000;
	r.proven_round = 6;
	fill(&r.proven_chain, sizeof r.proven_chain, 3);
	r.phase = WORKER_VOTED;
	r.attempt = 2;
	r.tokens = 1000;
	r.lease_first = 96;
	r.lease_count = 32;
	r.commitment =
		(struct commitment){.n = 2, .roots = {{0, {{4}}}, {3, {{5}}}}, .inner_end = {{6}}, .inner_begin = {{7}}};
	fill(r.signatures, 2 * sizeof r.signatures[0], 8);
	r.storage = REPORT_STORAGE_CHECKPOINTS | REPORT_STORAGE_FULL;
	r.n_suspects = 2;
	r.suspects[1] = 2;
	report_add_path(&r, 3, PATH_DIALED | PATH_IPV6);
	report_add_path(&r, 4000000000u, PATH_RELAYED);
	fill(&r.digest, sizeof r.digest, 2);
	r.n_candidates = 3;
	r.candidates[1] = (struct candidate){.kind = CANDIDATE_REFLECTED, .addr = "[2001:db8::2]:7434", .relay = 1};
	r.candidates[1].unix_s = 1800000000;
	r.candidates[2] = (struct candidate){.kind = CANDIDATE_PRIVATE, .addr = "192.168.1.17:7434"};
	seed_begin(s);
	rv_write_u8(&s->w, 2);
	report_encode(&r, CONTROL_VERSION, &s->w);
	seed_end(s, "control", "report_voted");
	r.n_measured = 2;
	r.measured[0] = (struct report_measured){.norm2 = 1.5f, .dot = -0.5f, .clipped = 64};
	r.measured[1] = (struct report_measured){.norm2 = 0.25f, .dot = 0.125f};
	r.mean2 = 0.5f;
	r.stands_out = 1;
	r.n_receipts = 2;
	r.receipts[0] = (struct report_receipt){.member = 1, .band = receipt_band(1250000)};
	r.receipts[1] = (struct report_receipt){.member = 4000000000u, .band = UINT8_MAX};
	seed_begin(s);
	rv_write_u8(&s->w, 2);
	report_encode(&r, CONTROL_VERSION, &s->w);
	seed_end(s, "control", "report_measured");
}

static void make_notices(struct seeds *s) {
	const struct notice n = {
		.kind = NOTICE_APART, .left_out = true, .round = 7, .until_round = 15, .n_others = 2, .others = {1, 63}};
	const struct notice reason = {.kind = NOTICE_NOT_COUNTED, .reason = NOTICE_DIVERGED, .round = 7};
	seed_begin(s);
	rv_write_u8(&s->w, 4);
	notice_encode(&n, &s->w);
	seed_end(s, "control", "notice_apart");
	seed_begin(s);
	rv_write_u8(&s->w, 4);
	notice_encode(&reason, &s->w);
	seed_end(s, "control", "notice_not_counted");
}

static void make_pairs(struct seeds *s) {
	struct pair_reply reply = {.term = 1, .round = 7, .n = 2, .tickets = {{.peer = 1}, {.peer = 3}}};
	fill(reply.tickets[0].signature, NET_SIG_BYTES, 1);
	fill(reply.tickets[1].signature, NET_SIG_BYTES, 2);
	seed_begin(s);
	rv_write_u8(&s->w, 5);
	pair_request_encode(&(struct pair_request){.n = 2, .peers = {1, 3}}, CONTROL_VERSION, &s->w);
	seed_end(s, "control", "pair_request");
	seed_begin(s);
	rv_write_u8(&s->w, 6);
	pair_reply_encode(&reply, CONTROL_VERSION, &s->w);
	seed_end(s, "control", "pair_reply");
}

static void make_reach_tests(struct seeds *s) {
	const struct probes probes = {.n = 1,
								  .list = {{.id = 7, .n = 2, .addrs = {{"11.0.0.1:7434"}, {"[2a11::1]:65535"}}}}};
	const struct reach_test_request ask = {.has_token = true, .n = 2, .addrs = {{":7434"}, {":40001"}}};
	const struct reach_test_reply reply = {.seen = "11.0.0.9",
										   .n_probers = 2,
										   .n = 2,
										   .results = {PROBE_OPEN, PROBE_SILENT},
										   .n_relays = 1,
										   .relays = {{.addr = "relay.example:7435"}}};
	seed_begin(s);
	rv_write_u8(&s->w, 7);
	probes_encode(&probes, &s->w);
	seed_end(s, "control", "probes");
	seed_begin(s);
	rv_write_u8(&s->w, 8);
	reach_test_request_encode(&ask, CONTROL_VERSION, &s->w);
	seed_end(s, "control", "reach_test_request");
	seed_begin(s);
	rv_write_u8(&s->w, 9);
	reach_test_reply_encode(&reply, CONTROL_VERSION, &s->w);
	seed_end(s, "control", "reach_test_reply");
}

/* One stream with a frame of every type. */
static void make_relay(struct seeds *s) {
	const struct relay_frame frames[] = {
		{.type = RELAY_HELLO, .hello = {.version = RELAY_VERSION, .member = 3}},
		{.type = RELAY_PING, .number = 5},
		{.type = RELAY_CALL, .call = {.peer = 4, .way = WAY_OPEN_V6, .term = 1, .round = 9}},
		{.type = RELAY_LEAVE},
		{.type = RELAY_SEEN, .seen = {.at = {"203.0.113.5", 7434}, .nonce = {3}, .second_port = 7436}},
		{.type = RELAY_PONG, .number = 5},
		{.type = RELAY_RING, .ring = {.peer = 4, .token = {1, 2}}},
		{.type = RELAY_REFUSED,
		 .refused = {.peer = 4, .way = WAY_FORWARD, .reason = RELAY_REFUSE_BUDGET, .whose = 3, .wait_ms = 1000}},
		{.type = RELAY_OPEN, .open = {.peer = 4, .delay_us = 20000, .at = {"2001:db8::5", 7434}}},
		{.type = RELAY_PROOF, .proof = {.at = {"203.0.113.5", 7434}, .unix_s = 1795444000, .signature = {6}}}};
	const struct relay_preamble preamble = {.kind = RELAY_DATA, .token = {7}};
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	seed_begin(s);
	for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
		rv_write_bytes(&s->w, bytes, relay_frame_encode(&frames[i], bytes));
	seed_end(s, "relay", "frames");
	seed_begin(s);
	relay_preamble_encode(&preamble, bytes);
	rv_write_bytes(&s->w, bytes, RELAY_PREAMBLE_BYTES);
	seed_end(s, "relay", "preamble");
}

static void make_document(struct seeds *s, const struct document *d, const char *name) {
	seed_begin(s);
	rv_write_u8(&s->w, 3);
	document_encode(d, CONTROL_VERSION, &s->w);
	seed_end(s, "control", name);
}

/* Makes the roster one of two rows: `members` is row 1. */
static void divide_in_rows(struct document *d) {
	d->banned = (struct banned){2, {5, 4000000000u}};
	d->n_rows = 2;
	d->row = 1;
	d->n_roster = 5;
	for (uint16_t i = 0; i < 3; i++)
		d->members[i].place = 2 + i;
	d->row_weights[0] = 2;
	d->row_weights[1] = 3;
	d->row_since[0] = d->row_since[1] = 1;
	d->n_column = 1;
	d->column[0] = d->members[0];
	d->column[0].member = 70000;
	d->column[0].place = 1;
	d->n_sections = 1;
	d->sections[0] = (struct section){.first = 3, .count = 3, .owner = {0, NET_NO_OWNER}};
}

static void make_documents(struct seeds *s) {
	struct document *d = calloc(1, sizeof *d);
	RV_ASSERT(d);
	d->seq = 9;
	d->phase = RUN_OPEN;
	d->round = 3;
	d->final_round = 30;
	d->snapshot_round = 2;
	d->n_log = 1;
	d->n_members = 3;
	fill(d->run_id, sizeof d->run_id, 1);
	fill(&d->chain, sizeof d->chain, 2);
	fill(&d->snapshot_hash, sizeof d->snapshot_hash, 3);
	fill(&d->snapshot_chain, sizeof d->snapshot_chain, 4);
	for (uint32_t i = 0; i < 3; i++) {
		d->members[i] = (struct member_ref){.member = 2 * i};
		d->members[i].n_candidates = 1;
		(void)snprintf(d->members[i].candidates[0].addr, sizeof d->members[i].candidates[0].addr, "10.0.0.%u:7434",
					   (unsigned)(i + 1));
		fill(d->members[i].key, sizeof d->members[i].key, (uint8_t)(10 + i));
	}
	d->n_relays = 1;
	d->members[1].relay = 1;
	(void)snprintf(d->relays[0].addr, sizeof d->relays[0].addr, "[2001:db8::1]:7435");
	d->term = 2;
	d->term_round = 3;
	d->n_older = d->n_kept_rounds = 2;
	d->n_kept_snapshots = 1;
	d->kept_snapshots[0].round = 1;
	d->lease_first = 96;
	d->n_leases = 2;
	d->leases[0] = (struct lease_piece){.begin = 160, .count = 32};
	d->leases[1] = (struct lease_piece){.begin = 32, .count = 64};
	fill(&d->older_chain, sizeof d->older_chain, 5);
	make_document(s, d, "document_open");
	d->n_scores = 2;
	d->scores[0] = (struct score_order){.round = d->round - 1, .member = 2, .n_chunks = 10, .share = 1, .root = {{6}}};
	d->scores[0].n_pieces = 1;
	d->scores[0].pieces[0] = d->leases[0];
	d->scores[1] = d->scores[0];
	d->scores[1].member = 4;
	d->scores[1].repeat = true;
	fill(&d->scores[1].inner_begin, sizeof d->scores[1].inner_begin, 7);
	fill(&d->scores[1].inner_end, sizeof d->scores[1].inner_end, 8);
	make_document(s, d, "document_scores");
	d->n_scores = 0;
	d->phase = RUN_REDUCE;
	d->attempt = 1;
	d->n_chunks = 10;
	d->n_ranges = 3;
	for (int i = 0; i < 3; i++) {
		d->members[i].weight = 1;
		fill(&d->members[i].contribution, sizeof d->members[i].contribution, (uint8_t)(30 + i));
		d->ranges[i] = (struct owner_range){.first = 3 * (uint32_t)i, .count = i == 2 ? 4 : 3, .owner = (uint16_t)i};
	}
	d->n_proofs = 1;
	d->proofs[0] = (struct equivocation){.member = 3, .scope = {.round = 6, .kind = SEAL_CONTRIBUTION}};
	make_document(s, d, "document_reduce");
	d->n_proofs = 0;
	divide_in_rows(d);
	make_document(s, d, "document_rows");
	free(d);
}

static const uint8_t frame_run[NET_RUN_ID_BYTES] = "a run of rivule"; /* as in fuzz_frame.c */

static void put_frame(struct seeds *s, const struct frame_header *h, const void *body, size_t n) {
	uint8_t bytes[FRAME_HEADER_BYTES];
	frame_header_encode(h, bytes);
	rv_write_bytes(&s->w, bytes, sizeof bytes);
	rv_write_bytes(&s->w, body, n);
}

static void make_reduce_frames(struct seeds *s, uint64_t tag, const uint8_t data[64]) {
	uint8_t body[FRAME_HELLO_BYTES];
	struct frame_hello hello = {.protocol = FRAME_VERSION, .role = FRAME_DIALER, .member = 2};
	memcpy(hello.run_id, frame_run, sizeof frame_run);
	struct frame_header h = frame_header_of(FRAME_HELLO, tag, FRAME_HELLO_BYTES);
	frame_hello_encode(&hello, body);
	seed_begin(s);
	rv_write_u8(&s->w, 1);
	put_frame(s, &h, body, FRAME_HELLO_BYTES);
	for (uint8_t type = REDUCE_SCATTER; type <= REDUCE_PING; type++) {
		bool ping = type == REDUCE_PING;
		struct reduce_msg m = {.type = type, .round = 7, .attempt = 1, .data = data, .data_bytes = ping ? 0 : 20};
		h = frame_reduce_encode(&m, tag);
		put_frame(s, &h, data, m.data_bytes);
	}
	seed_end(s, "frame", "hello_and_reduce");
}

static void make_column_frames(struct seeds *s, uint64_t tag, const uint8_t data[64]) {
	seed_begin(s);
	rv_write_u8(&s->w, 0);
	for (uint8_t type = REDUCE_SCATTER; type <= REDUCE_PING; type++) {
		bool ping = type == REDUCE_PING;
		struct reduce_msg m = {.type = type,
							   .column = true,
							   .section = 40,
							   .chunk = ping || type == REDUCE_RESUME ? 0 : 41,
							   .round = 7,
							   .attempt = 2,
							   .data = data,
							   .data_bytes = ping ? 0 : 20};
		struct frame_header h = frame_reduce_encode(&m, tag);
		put_frame(s, &h, data, m.data_bytes);
	}
	seed_end(s, "frame", "columns");
}

/* A request, an answer to another one, and a NONE: 32 bytes of `data` behind the answer. */
static void put_transfer(struct seeds *s, uint64_t tag, const struct frame_fetch *fetch, struct frame_piece piece,
						 const struct frame_fetch *none, const uint8_t data[64]) {
	uint8_t body[FRAME_HELLO_BYTES];
	struct frame_header h = frame_fetch_encode(fetch, tag, body);
	put_frame(s, &h, body, FRAME_FETCH_BYTES);
	piece.offset = 8;
	piece.total = 40;
	piece.data = data;
	piece.data_bytes = 32;
	h = frame_piece_encode(&piece, tag, body);
	put_frame(s, &h, body, FRAME_PIECE_BYTES);
	rv_write_bytes(&s->w, data, piece.data_bytes);
	h = frame_none_encode(none, tag, body);
	put_frame(s, &h, body, FRAME_NONE_BYTES);
}

static void make_state_frames(struct seeds *s, uint64_t tag, const uint8_t data[64]) {
	const struct frame_fetch fetch = {
		.kind = FRAME_FETCH_SNAPSHOT, .part = FRAME_PART_MANIFEST, .round = 4, .index = 1};
	const struct frame_fetch none = {.kind = FRAME_FETCH_LOG, .round = 4};
	const struct frame_piece piece = {.of = {.kind = FRAME_FETCH_LOG, .round = 9, .index = 3}, .encoding = FRAME_ZSTD};
	seed_begin(s);
	rv_write_u8(&s->w, 0);
	put_transfer(s, tag, &fetch, piece, &none, data);
	seed_end(s, "frame", "fetch_piece_none");
	const struct frame_fetch inner = {.kind = FRAME_FETCH_INNER, .round = 9, .index = 3};
	seed_begin(s);
	rv_write_u8(&s->w, 0);
	put_transfer(s, tag, &inner, (struct frame_piece){.of = inner, .encoding = FRAME_RAW}, &inner, data);
	seed_end(s, "frame", "inner_state");
}

static void make_text_frames(struct seeds *s, uint64_t tag, const uint8_t data[64]) {
	const uint64_t files[] = {0, 17, (uint64_t)1 << 48 | 3};
	uint8_t asked[FRAME_TEXT_FILE_BYTES * NET_MAX_TEXT_FILES], held[FRAME_TEXT_HELD_BYTES];
	const struct frame_fetch fetch = {.kind = FRAME_FETCH_TEXT, .round = 17, .index = 2};
	seed_begin(s);
	rv_write_u8(&s->w, 0);
	struct frame_header h = frame_text_ask_encode(files, 3, tag, asked);
	put_frame(s, &h, asked, h.body_bytes);
	h = frame_text_held_encode(5, tag, held);
	put_frame(s, &h, held, FRAME_TEXT_HELD_BYTES);
	put_transfer(s, tag, &fetch, (struct frame_piece){.of = fetch, .encoding = FRAME_RAW}, &fetch, data);
	seed_end(s, "frame", "text");
}

static void make_frames(struct seeds *s) {
	const uint64_t tag = frame_run_tag(frame_run);
	uint8_t data[64];
	fill(data, sizeof data, 1);
	make_reduce_frames(s, tag, data);
	make_column_frames(s, tag, data);
	make_state_frames(s, tag, data);
	make_text_frames(s, tag, data);
}

enum { CODEC_VALUES_MAX = 4100, CODEC_SEED_BYTES_MAX = 2048 };

static void make_codec(struct seeds *s, const struct codec *codec, uint8_t choice, size_t n) {
	static float x[CODEC_VALUES_MAX];
	char name[32];
	RV_ASSERT(n <= CODEC_VALUES_MAX);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((int)(i * 37 % 101) - 50) * 0.01f;
	seed_begin(s);
	rv_write_u8(&s->w, choice);
	rv_write_u16(&s->w, (uint16_t)(n - 1));
	RV_ASSERT(codec->encode(codec, x, n, s->w.at, NULL) == RV_OK);
	s->w.at += codec->encoded_bytes(codec, n);
	(void)snprintf(name, sizeof name, "%s_%zu", codec->name, n);
	seed_end(s, "codec", name);
}

/* Tensor 0 has rows of two numbers; tensor 1 is a vector of four: rows of one (safetensors), or one
 * row (GGUF). */
static void fill_weights(const void *ctx, int i, size_t first, size_t n, float *out) {
	const float *values = (const float *)ctx + 4 * (size_t)i;
	if (i == 0)
		memcpy(out, values + 2 * first, 2 * n * sizeof *out);
	else
		memcpy(out, values + first, (n == 1 ? 4 : n) * sizeof *out);
}

static void make_safetensors(struct seeds *s) {
	const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct safetensors_tensor tensors[2] = {{.name = "wte.weight", .n_dims = 2, .dims = {2, 2}},
											{.name = "ln_f.bias", .n_dims = 1, .dims = {4}}};
	struct safetensors_meta meta = {"config", "rounds = 30\n"};
	for (int format = 0; format < WEIGHTS_FORMATS; format++) {
		char path[512], name[32];
		(void)snprintf(name, sizeof name, "two_tensors_%s", weights_format_name((enum weights_format)format));
		struct safetensors_source source = {.tensors = tensors,
											.n_tensors = 2,
											.format = (enum weights_format)format,
											.meta = &meta,
											.n_meta = 1,
											.rows = {fill_weights, values}};
		seed_path(s, "safetensors", name, path);
		RV_ASSERT(safetensors_write(path, &source, NULL) == RV_OK);
	}
}

static void make_text(struct seeds *s, const char *fuzzer, const char *name, const char *text) {
	seed_begin(s);
	rv_write_bytes(&s->w, text, strlen(text));
	seed_end(s, fuzzer, name);
}

static void make_index(struct seeds *s) {
	make_text(
		s, "weights_index", "two_files",
		"{\"metadata\":{\"total_size\":8},\"weight_map\":{\"wte.weight\":\"model-00001-of-00002.safetensors\","
		"\"wpe.weight\":\"model-00002-of-00002.safetensors\",\"ln_f.bias\":\"model-00001-of-00002.safetensors\"}}");
	make_text(s, "weights_index", "elsewhere", "{\"weight_map\":{\"a\":\"../b\"}}");
}

/* Each family's defaults; a llama with everything that it may have. */
static void make_hf_configs(struct seeds *s) {
	struct run_config c;
	for (int i = 0; model_registry[i]; i++) {
		run_config_defaults(&c);
		(void)rv_options_set(run_config_options, &c, "model", model_registry[i]->name, NULL);
		for (int stretched = 0; stretched < 2; stretched++) {
			char name[64];
			json_t *root = model_registry[i]->config_to_hf(&c);
			char *text = json_dumps(root, 0);
			RV_ASSERT(text);
			(void)snprintf(name, sizeof name, "%s%s", model_registry[i]->name, stretched ? "_stretched" : "");
			make_text(s, "hf_config", name, text);
			free(text);
			json_decref(root);
			if (c.model != MODEL_llama)
				break;
			c.n_kv_head = 2;
			c.n_inner = 96;
			c.tied = false;
			c.rope_factor = 8;
			(void)rv_options_set(run_config_options, &c, "rope-scaling", "llama3", NULL);
		}
	}
}

static void make_gguf(struct seeds *s) {
	struct gguf_writer g = {.n_pairs = 0};
	const struct gguf_tensor tensors[2] = {{.name = "token_embd.weight", .rows = 2, .cols = 2, .format = WEIGHTS_BF16},
										   {.name = "output_norm.bias", .rows = 4, .format = WEIGHTS_F32}};
	const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct weights_rows rows = {fill_weights, values};
	char path[512];
	gguf_put_string(&g, "general.architecture", "gpt2");
	gguf_put_u32(&g, "gpt2.block_count", 0);
	gguf_put_f32(&g, "gpt2.attention.layer_norm_epsilon", 1e-5f);
	gguf_put_bool(&g, "tokenizer.ggml.add_bos_token", false);
	gguf_put_array(&g, "tokenizer.ggml.tokens", GGUF_STRING, 2);
	gguf_add_string(&g, "a", 1);
	gguf_add_string(&g, "b", 1);
	gguf_put_array(&g, "tokenizer.ggml.token_type", GGUF_I32, 2);
	gguf_add_i32(&g, 1);
	gguf_add_i32(&g, 3);
	seed_path(s, "gguf", "two_tensors", path);
	RV_ASSERT(gguf_writer_write(&g, path, tensors, 2, &rows, NULL) == RV_OK);
	gguf_writer_release(&g);
}

/* Bytes for fuzz_reduce.c: links up, both contributions to our chunks, time, sending, another
 * attempt. */
static void make_reduce(struct seeds *s) {
	seed_begin(s);
	rv_write_bytes(&s->w, "\x00\x01", 2); /* both links up */
	for (uint8_t peer = 0; peer < 2; peer++) {
		rv_write_bytes(&s->w, (uint8_t[]){(uint8_t)(10 | peer), 2, 1, 1, 0, 3, 2, 0, 0}, 9); /* RESUME */
		for (uint8_t chunk = 4; chunk < 9; chunk++)
			rv_write_bytes(&s->w, (uint8_t[]){(uint8_t)(10 | peer), 0, 1, 1, chunk, 5, 1, 2, 3, 4, 5},
						   11);       /* SCATTER */
		rv_write_u8(&s->w, 8 | peer); /* send */
	}
	rv_write_bytes(&s->w, (uint8_t[]){10, 1, 1, 1, 0, 5, 1, 2, 3, 4, 5, 11, 1, 1, 1, 9, 5, 1, 2, 3, 4, 5},
				   22); /* GATHER */
	rv_write_bytes(&s->w, (uint8_t[]){4, 0xff, 0x0f, 6, 8, 9, 2, 1}, 8);
	seed_end(s, "reduce", "a_round");
}

/* Bytes for fuzz_grid.c: links up, the contributions and the partial sums for our chunks, the means
 * of others, time, and an attempt in which the other row is another one. */
static void make_grid(struct seeds *s) {
	seed_begin(s);
	rv_write_bytes(&s->w, (uint8_t[]){0, 1, 20, 2, 1, 0, 1, 1, 0, 21, 6, 1, 0, 0, 1, 1, 0}, 17); /* links, RESUME */
	for (uint8_t chunk = 0; chunk < 3; chunk++)
		rv_write_bytes(&s->w, (uint8_t[]){20, 0, 1, chunk, 5, 1, 2, 3, 4, 5}, 10); /* SCATTER */
	for (uint8_t chunk = 0; chunk < 3; chunk += 2)
		rv_write_bytes(&s->w, (uint8_t[]){21, 4, 1, 0, chunk, 8, 1, 2, 3, 4, 5, 6, 7, 8}, 14); /* COLUMN_SCATTER */
	rv_write_bytes(&s->w, (uint8_t[]){16, 17}, 2);                                             /* send */
	rv_write_bytes(&s->w, (uint8_t[]){21, 5, 1, 0, 1, 5, 1, 2, 3, 4, 5}, 11);                  /* COLUMN_GATHER */
	for (uint8_t chunk = 3; chunk < 7; chunk++)
		rv_write_bytes(&s->w, (uint8_t[]){20, 1, 1, chunk, 5, 1, 2, 3, 4, 5}, 10); /* GATHER */
	rv_write_bytes(&s->w, (uint8_t[]){16, 17, 8, 0xff, 0x0f, 44, 16, 17, 21, 6, 2, 0, 0, 1, 1, 0, 17, 12}, 18);
	seed_end(s, "grid", "a_round");
}

static void put_record(struct seeds *s, const struct core_record *rec) {
	uint8_t bytes[RECORD_MAX_BYTES];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	record_encode(rec, &w);
	rv_write_u16(&s->w, (uint16_t)rv_writer_len(&w));
	rv_write_bytes(&s->w, bytes, rv_writer_len(&w));
}

/* lease_round: as in fuzz_record.c; 0: the run has no leases. */
static void make_records(struct seeds *s, uint32_t lease_round, const char *name) {
	struct core_record rec = {.id = 1,
							  .type = CORE_MEMBER,
							  .doc_seq = 2,
							  .name = "anna",
							  .n_candidates = 1,
							  .candidates[0].addr = "10.0.0.1:7434"};
	seed_begin(s);
	for (uint32_t i = 0; i < 2; i++, rec.id++, rec.doc_seq++) {
		rec.member = i;
		fill(rec.key, sizeof rec.key, (uint8_t)(1 + i));
		put_record(s, &rec);
	}
	rec =
		(struct core_record){.id = 3, .type = CORE_ROSTER, .doc_seq = 4, .attempt = 1, .n_chunks = 10, .n_members = 2};
	for (uint32_t i = 0; i < 2; i++) {
		rec.members[i] = i;
		rec.tokens[i] = 1000;
		rec.boots[i] = 5 + i;
		rec.lease_first[i] = 3ull * lease_round * i;
		rec.lease_count[i] = lease_round;
	}
	rec.owners[0] = 3;
	put_record(s, &rec);
	rec.id++;
	rec.doc_seq++;
	rec.type = CORE_COMMIT;
	memset(rec.boots, 0, sizeof rec.boots);
	rec.n_chunks = 0;
	fill(&rec.digest, sizeof rec.digest, 7);
	rec.chain = rv_chain_start(&(struct rv_hash){{0}});
	rec.chain = rv_chain_next(&rec.chain, &rec.digest);
	put_record(s, &rec);
	if (lease_round > 0) { /* both are gone */
		rec = (struct core_record){.id = 5, .type = CORE_LEASES, .doc_seq = 6, .round = 1, .n_members = 2};
		rec.members[1] = 1;
		put_record(s, &rec);
	}
	seed_end(s, "record", name);
}

int main(int argc, char **argv) {
	if (argc != 2) {
		(void)fprintf(stderr, "usage: make_corpus DIR\n");
		return 2;
	}
	struct seeds *s = calloc(1, sizeof *s);
	RV_ASSERT(s);
	s->dir = argv[1];
	make_joins(s);
	make_reports(s);
	make_notices(s);
	make_pairs(s);
	make_reach_tests(s);
	make_relay(s);
	make_documents(s);
	make_frames(s);
	static const size_t sizes[] = {1, 7, 257, 600, CODEC_VALUES_MAX};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (uint8_t k = 0; codec_registry[k]; k++)
			if (codec_registry[k]->encoded_bytes(codec_registry[k], sizes[i]) <= CODEC_SEED_BYTES_MAX ||
				sizes[i] <= 600)
				make_codec(s, codec_registry[k], k, sizes[i]);
	make_safetensors(s);
	make_index(s);
	make_hf_configs(s);
	make_gguf(s);
	make_reduce(s);
	make_grid(s);
	make_records(s, 0, "a_round");
	make_records(s, 4, "leases");
	free(s);
	return 0;
}
