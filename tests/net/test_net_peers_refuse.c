/* The mesh against peers that break the rules: each loses its own link, with a named error, and
 * nothing else happens.
 *
 * Node 0 and node 1 are honest and linked; the attacker talks to node 0. After every attack they
 * are linked still. */
#include "mesh_world.h"
#include "raw_client.h"
#include "tests/common/check.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTACKER = 2, /* its member number, where it has one */ MINUTE_US = 60000000 };

struct scene {
	struct world w;
	struct identity mallory; /* in the roster as member 2, or not */
	struct raw_client c;
	int fds;
};

static void scene_init(struct scene *s) {
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {0x66, 0x66};
	s->fds = count_fds();
	identity_of_seed(seed, &s->mallory);
	world_init(&s->w, 2, NULL);
	world_allow_all(&s->w);
	assert_true(world_until(&s->w, world_all_linked, NULL));
}

/* Puts the attacker into the roster: a member that has gone bad. */
static void scene_admit(struct scene *s) {
	struct member_ref refs[3] = {s->w.nodes[0].ref, s->w.nodes[1].ref, {.member = ATTACKER, .weight = 1}};
	memcpy(refs[2].key, s->mallory.key, NET_KEY_BYTES);
	peers_allow(s->w.nodes[0].peers, s->w.now_us, refs, 3);
}

static struct raw_options honest_tls(const struct scene *s) {
	return (struct raw_options){.id = &s->mallory, .alpn = "\x09rivulet/1", .max_version = TLS1_3_VERSION};
}

static bool secured_or_closed(struct world *w, void *client) {
	(void)w;
	struct raw_client *c = client;
	return c->secured || c->closed;
}

static bool closed(struct world *w, void *client) {
	(void)w;
	return ((struct raw_client *)client)->closed;
}

static void scene_connect(struct scene *s, const struct raw_options *o) {
	raw_open(&s->c, peers_port(s->w.nodes[0].peers), o);
	world_actor(&s->w, raw_step, &s->c);
	assert_true(world_until(&s->w, secured_or_closed, &s->c));
}

static void scene_connect_well(struct scene *s) {
	struct raw_options o = honest_tls(s);
	scene_connect(s, &o);
	assert_true(s->c.secured);
}

static void scene_hello(struct scene *s) {
	struct frame_hello hello;
	raw_make_hello(&s->c, &s->mallory, s->w.run_id, ATTACKER, &hello);
	raw_send_hello(&s->c, &hello, s->w.run_id);
}

static bool attacker_linked(struct world *w, void *ctx) {
	(void)ctx;
	return peers_linked(w->nodes[0].peers, ATTACKER);
}

/* A member with an accepted HELLO: what it does from here on is frames on an open link. */
static void scene_link_attacker(struct scene *s) {
	scene_admit(s);
	scene_connect_well(s);
	scene_hello(s);
	assert_true(world_until(&s->w, attacker_linked, NULL));
}

/* The connection is gone, node 0 said why, the honest link never broke, nothing leaked. */
static void scene_refused(struct scene *s, enum rv_err why, const char *words) {
	struct node *n = &s->w.nodes[0];
	assert_true(world_until(&s->w, closed, &s->c));
	assert_true(world_until(&s->w, world_trouble, n));
	if (n->trouble_why != why || strstr(n->trouble_text, words) == NULL)
		fail_msg("%s: \"%s\", expected %s: \"%s\"", rv_err_name(n->trouble_why), n->trouble_text, rv_err_name(why),
				 words);
}

static void scene_end(struct scene *s) {
	assert_true(world_all_linked(&s->w, NULL));
	assert_int_equal(s->w.nodes[0].downs[1], 0);
	assert_int_equal(s->w.nodes[1].downs[0], 0);
	raw_close(&s->c);
	world_release(&s->w);
	identity_release(&s->mallory);
	assert_int_equal(count_fds(), s->fds);
}

/* On an open link: the same through on_link_down, and fatal. */
static bool attacker_down(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].downs[ATTACKER] > 0;
}

static void scene_thrown_out(struct scene *s, enum rv_err why, const char *words) {
	struct node *n = &s->w.nodes[0];
	assert_true(world_until(&s->w, attacker_down, NULL));
	assert_int_equal(n->fatals[ATTACKER], 1);
	if (n->down_why[ATTACKER] != why || strstr(n->down_text[ATTACKER], words) == NULL)
		fail_msg("%s: \"%s\", expected %s: \"%s\"", rv_err_name(n->down_why[ATTACKER]), n->down_text[ATTACKER],
				 rv_err_name(why), words);
	assert_true(world_until(&s->w, closed, &s->c));
	assert_false(peers_linked(n->peers, ATTACKER));
	assert_int_equal(peers_path(n->peers, ATTACKER), PATH_NONE);
	assert_int_equal(peers_way(n->peers, ATTACKER).path, PATH_ACCEPTED); /* no router keeps the two apart */
	world_advance(&s->w, MINUTE_US + 1);
	assert_int_equal(peers_way(n->peers, ATTACKER).path, PATH_APART); /* by now one may */
}

/* ---- TLS ---- */

static void no_tls_at_all(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_connect(&s, NULL);
	raw_send(&s.c, "GET / HTTP/1.1\r\nHost: rivulet\r\n\r\n", 33);
	scene_refused(&s, RV_E_PROTOCOL, "TLS handshake: http request");
	scene_end(&s);
}

static void random_bytes(void **state) {
	(void)state;
	struct scene s;
	uint8_t noise[3000];
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (uint8_t)(i * 131 + 89);
	scene_init(&s);
	scene_connect(&s, NULL);
	raw_send(&s.c, noise, sizeof noise);
	scene_refused(&s, RV_E_PROTOCOL, "TLS handshake: ");
	scene_end(&s);
}

static void tls_1_2(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	struct raw_options o = honest_tls(&s);
	o.max_version = TLS1_2_VERSION;
	scene_connect(&s, &o);
	scene_refused(&s, RV_E_PROTOCOL, "unsupported protocol");
	assert_false(s.c.secured);
	scene_end(&s);
}

static void no_certificate(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	struct raw_options o = honest_tls(&s);
	o.id = NULL;
	scene_connect(&s, &o);
	scene_refused(&s, RV_E_PROTOCOL, "did not return a certificate");
	scene_end(&s);
}

static void rsa_certificate(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	struct raw_options o = honest_tls(&s);
	o.id = NULL;
	o.rsa = true;
	scene_connect(&s, &o);
	scene_refused(&s, RV_E_PROTOCOL, "certificate verify failed");
	scene_end(&s);
}

static void other_alpn(void **state) {
	(void)state;
	static const char *const alpn[] = {NULL, "\x08http/1.1", "\x09rivulet/2"};
	for (size_t i = 0; i < sizeof alpn / sizeof alpn[0]; i++) {
		struct scene s;
		scene_init(&s);
		struct raw_options o = honest_tls(&s);
		o.alpn = alpn[i];
		scene_connect(&s, &o);
		scene_refused(&s, RV_E_PROTOCOL, alpn[i] == NULL ? "ALPN" : "no application protocol");
		scene_end(&s);
	}
}

/* ---- HELLO ---- */

static void unknown_key(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_connect_well(&s);
	scene_hello(&s);
	scene_refused(&s, RV_E_AUTH, "is in no roster, and its ticket is not the run's");
	assert_int_equal(s.w.nodes[0].ups[ATTACKER], 0);
	scene_end(&s);
}

/* A ticket is for one key, one number and one run. */
static void borrowed_tickets(void **state) {
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct scene s;
		struct frame_hello hello;
		uint8_t other_run[NET_RUN_ID_BYTES] = {9};
		scene_init(&s);
		scene_connect_well(&s);
		raw_make_hello(&s.c, &s.mallory, s.w.run_id, ATTACKER, &hello);
		const uint8_t *key = i == 0 ? s.w.nodes[1].id.key : s.mallory.key;
		const struct identity *signer = i == 3 ? &s.mallory : &s.w.run;
		ticket_sign(signer, i == 2 ? other_run : s.w.run_id, i == 1 ? ATTACKER + 1 : ATTACKER, key, hello.ticket);
		raw_send_hello(&s.c, &hello, s.w.run_id);
		scene_refused(&s, RV_E_AUTH, "ticket");
		scene_end(&s);
	}
}

static void another_members_number(void **state) {
	(void)state;
	static const char *const words[] = {"claims our own member number", "who has another key"};
	for (uint32_t member = 0; member < 2; member++) {
		struct scene s;
		struct frame_hello hello;
		scene_init(&s);
		scene_connect_well(&s);
		raw_make_hello(&s.c, &s.mallory, s.w.run_id, member, &hello);
		ticket_sign(&s.w.run, s.w.run_id, member, s.mallory.key, hello.ticket);
		raw_send_hello(&s.c, &hello, s.w.run_id);
		scene_refused(&s, RV_E_AUTH, words[member]);
		scene_end(&s);
	}
}

static void wrong_run_id(void **state) {
	(void)state;
	struct scene s;
	struct frame_hello hello;
	uint8_t run_id[NET_RUN_ID_BYTES];
	scene_init(&s);
	scene_admit(&s);
	scene_connect_well(&s);
	memcpy(run_id, s.w.run_id, sizeof run_id);
	run_id[NET_RUN_ID_BYTES - 1] ^= 1; /* the tag, of the first 8 bytes, is the same */
	raw_make_hello(&s.c, &s.mallory, run_id, ATTACKER, &hello);
	raw_send_hello(&s.c, &hello, run_id);
	scene_refused(&s, RV_E_AUTH, "another run");
	scene_end(&s);
}

/* The right HELLO of a member, but of an earlier connection: the exporter differs. */
static void replayed_hello(void **state) {
	(void)state;
	struct scene s;
	struct frame_hello hello;
	scene_init(&s);
	scene_admit(&s);
	scene_connect_well(&s);
	raw_make_hello(&s.c, &s.mallory, s.w.run_id, ATTACKER, &hello);
	raw_close(&s.c);
	s.w.n_actors = 0;
	assert_true(world_until(&s.w, world_trouble, &s.w.nodes[0])); /* "closed without BYE" */
	s.w.nodes[0].troubles = 0;
	scene_connect_well(&s);
	raw_send_hello(&s.c, &hello, s.w.run_id);
	scene_refused(&s, RV_E_AUTH, "not of this connection");
	scene_end(&s);
}

/* What node 0 says to the attacker on this very connection, said back to it. */
static void reflected_hello(void **state) {
	(void)state;
	struct scene s;
	struct frame_hello hello;
	scene_init(&s);
	scene_admit(&s);
	scene_connect_well(&s);
	for (int i = 0; i < WORLD_MAX_STEPS && s.c.got_bytes < FRAME_HEADER_BYTES + FRAME_HELLO_BYTES; i++)
		world_step(&s.w);
	assert_int_equal(frame_hello_decode(s.c.got + FRAME_HEADER_BYTES, FRAME_HELLO_BYTES, &hello, NULL), RV_OK);
	hello.member = ATTACKER;
	raw_send_hello(&s.c, &hello, s.w.run_id);
	scene_refused(&s, RV_E_PROTOCOL, "role");
	scene_end(&s);
}

static void other_protocol_version(void **state) {
	(void)state;
	struct scene s;
	struct frame_hello hello;
	scene_init(&s);
	scene_admit(&s);
	scene_connect_well(&s);
	raw_make_hello(&s.c, &s.mallory, s.w.run_id, ATTACKER, &hello);
	hello.protocol = FRAME_VERSION + 1;
	raw_send_hello(&s.c, &hello, s.w.run_id);
	scene_refused(&s, RV_E_PROTOCOL, "protocol version 2, ours is 1: update the older program");
	scene_end(&s);
}

static void frame_before_hello(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_admit(&s);
	scene_connect_well(&s);
	struct reduce_msg ping = {.type = REDUCE_PING, .round = 1, .attempt = 1};
	struct frame_header h = frame_reduce_encode(&ping, frame_run_tag(s.w.run_id));
	raw_send_frame(&s.c, &h, NULL, 0);
	scene_refused(&s, RV_E_PROTOCOL, "before the hello is accepted");
	scene_end(&s);
}

static void large_frame_before_hello(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_connect_well(&s);
	struct frame_header h = frame_header_of(FRAME_HELLO, frame_run_tag(s.w.run_id), NET_MAX_FRAME_UNAUTHENTICATED + 1);
	raw_send_frame(&s.c, &h, NULL, 0);
	scene_refused(&s, RV_E_PROTOCOL, "bad frame (hello, body of 1025 bytes)");
	scene_end(&s);
}

/* ---- frames on an open link ---- */

static void garbage_frame(void **state) {
	(void)state;
	struct scene s;
	uint8_t noise[FRAME_HEADER_BYTES];
	memset(noise, 0x5c, sizeof noise);
	scene_init(&s);
	scene_link_attacker(&s);
	raw_send(&s.c, noise, sizeof noise);
	scene_thrown_out(&s, RV_E_PROTOCOL, "bad frame");
	scene_end(&s);
}

static void oversized_frame(void **state) {
	(void)state;
	static const uint32_t sizes[] = {NET_MAX_CHUNK_BYTES + 1, UINT32_MAX};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct scene s;
		scene_init(&s);
		scene_link_attacker(&s);
		struct reduce_msg m = {.type = REDUCE_SCATTER, .round = 1, .attempt = 1};
		struct frame_header h = frame_reduce_encode(&m, frame_run_tag(s.w.run_id));
		h.body_bytes = sizes[i];
		raw_send_frame(&s.c, &h, NULL, 0);
		scene_thrown_out(&s, RV_E_PROTOCOL, "bad frame (scatter");
		scene_end(&s);
	}
}

static void frame_of_another_run(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_link_attacker(&s);
	struct reduce_msg m = {.type = REDUCE_PING, .round = 1, .attempt = 1};
	struct frame_header h = frame_reduce_encode(&m, frame_run_tag(s.w.run_id) ^ 1);
	raw_send_frame(&s.c, &h, NULL, 0);
	scene_thrown_out(&s, RV_E_PROTOCOL, "bad frame (ping");
	scene_end(&s);
}

/* ---- slices ---- */

enum { WHOLE_BYTES = 3000, SLICE_BYTES = 1000 };

static struct frame_header slice_at(const struct scene *s, uint32_t at) {
	struct frame_header h = frame_header_of(FRAME_SCATTER, frame_run_tag(s->w.run_id), SLICE_BYTES);
	h.round = h.attempt = 1;
	h.slice_at = at;
	h.whole_bytes = WHOLE_BYTES;
	return h;
}

static void send_slice(struct scene *s, struct frame_header h) {
	static const uint8_t body[SLICE_BYTES] = {1};
	raw_send_frame(&s->c, &h, body, sizeof body);
}

static bool slices_joined(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].got_bulk[ATTACKER] == 1;
}

static void slices_and_pings_between(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_link_attacker(&s);
	struct reduce_msg m = {.type = REDUCE_PING, .round = 1, .attempt = 1};
	struct frame_header ping = frame_reduce_encode(&m, frame_run_tag(s.w.run_id));
	for (uint32_t at = 0; at < WHOLE_BYTES; at += SLICE_BYTES) {
		raw_send_frame(&s.c, &ping, NULL, 0);
		assert_int_equal(s.w.nodes[0].got_bulk[ATTACKER], 0);
		send_slice(&s, slice_at(&s, at));
	}
	assert_true(world_until(&s.w, slices_joined, NULL));
	assert_int_equal(s.w.nodes[0].got_pings[ATTACKER], WHOLE_BYTES / SLICE_BYTES);
	assert_int_equal(s.w.nodes[0].downs[ATTACKER], 0);
	scene_end(&s);
}

static void slices_out_of_place(void **state) {
	(void)state;
	enum { NOT_BEGUN, GAP, OTHER_CHUNK, OTHER_TYPE, OTHER_WHOLE, NOT_A_PING, CASES };
	static const char *const words[CASES] = {
		[NOT_BEGUN] = "was not begun",    [GAP] = "does not follow",         [OTHER_CHUNK] = "does not follow",
		[OTHER_TYPE] = "does not follow", [OTHER_WHOLE] = "does not follow", [NOT_A_PING] = "only a ping",
	};
	for (int i = 0; i < CASES; i++) {
		struct scene s;
		scene_init(&s);
		scene_link_attacker(&s);
		if (i != NOT_BEGUN)
			send_slice(&s, slice_at(&s, 0));
		struct frame_header h = slice_at(&s, i == GAP ? 2 * SLICE_BYTES : SLICE_BYTES);
		h.chunk = i == OTHER_CHUNK;
		h.whole_bytes += i == OTHER_WHOLE;
		if (i == OTHER_TYPE)
			h.type = FRAME_GATHER;
		if (i == NOT_A_PING) {
			h.type = FRAME_RESUME;
			h.slice_at = h.whole_bytes = 0;
		}
		send_slice(&s, h);
		scene_thrown_out(&s, RV_E_PROTOCOL, words[i]);
		scene_end(&s);
	}
}

static void second_hello(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_link_attacker(&s);
	scene_hello(&s);
	scene_thrown_out(&s, RV_E_PROTOCOL, "second hello");
	scene_end(&s);
}

/* A header and half a body, then the end: no message, no harm, and not the peer's fault. */
static void truncated_frames(void **state) {
	(void)state;
	for (int cut_in_body = 0; cut_in_body < 2; cut_in_body++) {
		struct scene s;
		uint8_t head[FRAME_HEADER_BYTES], body[500] = {0};
		scene_init(&s);
		scene_link_attacker(&s);
		struct reduce_msg m = {.type = REDUCE_SCATTER, .round = 1, .attempt = 1, .data = body, .data_bytes = 1000};
		struct frame_header h = frame_reduce_encode(&m, frame_run_tag(s.w.run_id));
		frame_header_encode(&h, head);
		raw_send(&s.c, head, cut_in_body ? sizeof head : 20);
		if (cut_in_body)
			raw_send(&s.c, body, sizeof body);
		SSL_shutdown(s.c.ssl);
		assert_true(world_until(&s.w, attacker_down, NULL));
		assert_int_equal(s.w.nodes[0].down_why[ATTACKER], RV_E_CLOSED);
		assert_int_equal(s.w.nodes[0].fatals[ATTACKER], 0);
		assert_int_equal(s.w.nodes[0].got_bulk[ATTACKER], 0);
		scene_end(&s);
	}
}

/* The text of a BYE is another's: no control bytes, no escape sequences reach people. */
static void goodbye_is_cleaned(void **state) {
	(void)state;
	struct scene s;
	static const char text[] = "\x1b[31mred\n\xff";
	scene_init(&s);
	scene_link_attacker(&s);
	struct frame_header h = frame_header_of(FRAME_BYE, frame_run_tag(s.w.run_id), sizeof text - 1);
	raw_send_frame(&s.c, &h, text, sizeof text - 1);
	assert_true(world_until(&s.w, attacker_down, NULL));
	assert_string_equal(s.w.nodes[0].down_text[ATTACKER], "the other side closes the link: ?[31mred??");
	scene_end(&s);
}

/* ---- time and room ---- */

static void silent_connection_times_out(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_connect(&s, NULL);
	world_advance(&s.w, 11 * 1000000LL);
	scene_refused(&s, RV_E_TIMEOUT, "TLS handshake did not end in time");
	scene_end(&s);
}

static void tls_without_hello_times_out(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_connect_well(&s);
	world_advance(&s.w, 5 * 1000000LL);
	assert_false(s.c.closed);
	world_advance(&s.w, 6 * 1000000LL);
	scene_refused(&s, RV_E_TIMEOUT, "no hello in time");
	scene_end(&s);
}

/* A byte now and then moves no deadline. */
static void dripping_bytes_time_out(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	scene_connect_well(&s);
	int64_t start_us = s.w.now_us;
	uint8_t head[FRAME_HEADER_BYTES];
	struct frame_header h = frame_header_of(FRAME_HELLO, frame_run_tag(s.w.run_id), FRAME_HELLO_BYTES);
	frame_header_encode(&h, head);
	for (size_t i = 0; i < sizeof head && s.w.nodes[0].troubles == 0; i++) {
		raw_send(&s.c, head + i, 1);
		world_advance(&s.w, 1000000);
	}
	scene_refused(&s, RV_E_TIMEOUT, "no hello in time");
	assert_true(s.w.now_us - start_us < 13 * 1000000LL);
	scene_end(&s);
}

static int open_count(const struct raw_client *c, int n) {
	int open = 0;
	for (int i = 0; i < n; i++)
		open += !c[i].closed;
	return open;
}

/* More silent connections than may wait: the oldest go at once, and a member still gets in. */
static void flood_of_connections(void **state) {
	(void)state;
	enum { FLOOD = PEERS_MAX_PENDING + 20 };
	struct scene s;
	struct raw_client flood[FLOOD];
	scene_init(&s);
	for (int i = 0; i < FLOOD; i++) {
		raw_open(&flood[i], peers_port(s.w.nodes[0].peers), NULL);
		world_actor(&s.w, raw_step, &flood[i]);
		world_step(&s.w);
	}
	for (int i = 0; i < WORLD_MAX_STEPS && open_count(flood, FLOOD) > PEERS_MAX_PENDING; i++)
		world_step(&s.w);
	assert_int_equal(open_count(flood, FLOOD), PEERS_MAX_PENDING);
	assert_true(flood[0].closed);
	assert_in_range(s.w.nodes[0].troubles, 1, 30); /* a flood does not fill the log */
	assert_int_equal(s.w.nodes[0].trouble_why, RV_E_FULL);
	scene_link_attacker(&s); /* here: just a member that comes last */
	for (int i = 0; i < FLOOD; i++)
		raw_close(&flood[i]);
	scene_end(&s);
}

/* A member whose handshake takes long, from an address that it stated; then strangers, each from a
 * host of its own, ten times as many as may wait: they push out each other. */
static void strangers_do_not_push_out_a_member(void **state) {
	(void)state;
	enum { WAVES = 10, WAVE = PEERS_MAX_PENDING };
	struct scene s;
	struct raw_client slow, strangers[WAVE];
	scene_init(&s);
	raw_open_silent(&slow, 1, peers_port(s.w.nodes[0].peers));
	world_actor(&s.w, raw_step, &slow);
	for (int wave = 0; wave < WAVES; wave++) {
		for (uint32_t i = 0; i < WAVE; i++) {
			raw_open_silent(&strangers[i], 256 * (1 + (uint32_t)wave) + i, peers_port(s.w.nodes[0].peers));
			world_step(&s.w);
			raw_step(&slow);
		}
		assert_false(slow.closed);
		for (int i = 0; i < WAVE; i++)
			raw_close(&strangers[i]);
		world_step(&s.w);
	}
	assert_false(slow.closed);
	scene_link_attacker(&s);
	raw_close(&slow);
	scene_end(&s);
}

/* ---- dialing ---- */

/* Another worker answers at the address of the one we want. */
static void wrong_key_answers(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	struct member_ref refs[2] = {s.w.nodes[1].ref, s.w.nodes[1].ref};
	refs[1].member = ATTACKER;
	memcpy(refs[1].key, s.mallory.key, NET_KEY_BYTES);
	peers_allow(s.w.nodes[0].peers, s.w.now_us, refs, 2);
	assert_true(world_until(&s.w, world_trouble, &s.w.nodes[0]));
	assert_int_equal(s.w.nodes[0].trouble_why, RV_E_AUTH);
	assert_non_null(strstr(s.w.nodes[0].trouble_text, "member 2 at 127.0.0.1:"));
	assert_non_null(strstr(s.w.nodes[0].trouble_text, "answers there, the roster says"));
	assert_false(peers_linked(s.w.nodes[0].peers, ATTACKER));
	raw_open(&s.c, peers_port(s.w.nodes[0].peers), NULL);
	scene_end(&s);
}

/* Refused dials come further and further apart, and never more often than the first pause
 * allows. */
static void refused_dials_back_off(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	struct member_ref refs[2] = {
		s.w.nodes[1].ref, {.member = ATTACKER, .weight = 1, .n_candidates = 1, .candidates[0].addr = "127.0.0.1:1"}};
	memcpy(refs[1].key, s.mallory.key, NET_KEY_BYTES);
	peers_allow(s.w.nodes[0].peers, s.w.now_us, refs, 2);
	for (int i = 0; i < 60; i++)
		world_advance(&s.w, 1000000);
	assert_in_range(s.w.nodes[0].troubles, 6, 14); /* 0.1 + 0.2 + ... + 12.8 s, then 15 s each, in a minute */
	assert_int_equal(s.w.nodes[0].trouble_why, RV_E_NOTFOUND);
	assert_int_equal(s.w.nodes[0].fatals[ATTACKER], 0); /* it was never reached there: no proof of its death */
	refs[1].n_candidates = 0;
	peers_allow(s.w.nodes[0].peers, s.w.now_us, refs, 2); /* no address: it has to dial us */
	assert_int_equal(peers_deadline_us(s.w.nodes[0].peers), INT64_MAX);
	raw_open(&s.c, peers_port(s.w.nodes[0].peers), NULL);
	scene_end(&s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_tls_at_all),
		cmocka_unit_test(random_bytes),
		cmocka_unit_test(tls_1_2),
		cmocka_unit_test(no_certificate),
		cmocka_unit_test(rsa_certificate),
		cmocka_unit_test(other_alpn),
		cmocka_unit_test(unknown_key),
		cmocka_unit_test(borrowed_tickets),
		cmocka_unit_test(another_members_number),
		cmocka_unit_test(wrong_run_id),
		cmocka_unit_test(replayed_hello),
		cmocka_unit_test(reflected_hello),
		cmocka_unit_test(other_protocol_version),
		cmocka_unit_test(frame_before_hello),
		cmocka_unit_test(large_frame_before_hello),
		cmocka_unit_test(garbage_frame),
		cmocka_unit_test(oversized_frame),
		cmocka_unit_test(frame_of_another_run),
		cmocka_unit_test(slices_and_pings_between),
		cmocka_unit_test(slices_out_of_place),
		cmocka_unit_test(second_hello),
		cmocka_unit_test(truncated_frames),
		cmocka_unit_test(goodbye_is_cleaned),
		cmocka_unit_test(silent_connection_times_out),
		cmocka_unit_test(tls_without_hello_times_out),
		cmocka_unit_test(dripping_bytes_time_out),
		cmocka_unit_test(flood_of_connections),
		cmocka_unit_test(strangers_do_not_push_out_a_member),
		cmocka_unit_test(wrong_key_answers),
		cmocka_unit_test(refused_dials_back_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
