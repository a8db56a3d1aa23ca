/* test_worker_membership.c: what a worker remembers of its join, and what it refuses to believe. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "worker/join/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scene {
	char dir[64];
	struct identity run;
	struct invite invite;
	char link[INVITE_MAX_BYTES];
	struct membership m;
	struct join_reply reply;
};

static int setup(void **state) {
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {7};
	struct scene *s = calloc(1, sizeof *s);
	scratch_make(s->dir, sizeof s->dir);
	identity_of_seed(seed, &s->run);
	assert_int_equal(address_parse("127.0.0.1:7433", &s->invite.coordinator, NULL), RV_OK);
	memset(s->invite.run_id, 0xab, NET_RUN_ID_BYTES);
	memcpy(s->invite.key, s->run.key, NET_KEY_BYTES);
	s->invite.has_token = true;
	memset(s->invite.token, 0x5a, NET_TOKEN_BYTES);
	invite_format(&s->invite, s->link);
	*state = s;
	return 0;
}

static int teardown(void **state) {
	struct scene *s = *state;
	scratch_remove_only(s->dir, (const char *const[]){"identity.key", "run.link", "member.conf", "run.conf", NULL});
	membership_release(&s->m);
	free(s);
	return 0;
}

/* What an honest coordinator answers. */
static void make_reply(struct scene *s) {
	struct join_reply *r = &s->reply;
	r->member = 3;
	memcpy(r->run_id, s->invite.run_id, NET_RUN_ID_BYTES);
	snprintf(r->config, sizeof r->config, "n-embd = 32\nn-head = 2\n");
	r->run_hash = rv_run_hash(r->run_id, r->config);
	ticket_sign(&s->run, r->run_id, r->member, s->m.identity.key, r->ticket);
}

static void join(struct scene *s) {
	assert_int_equal(membership_load(s->dir, s->link, &s->m, NULL), RV_OK);
	assert_false(s->m.joined);
	assert_true(s->m.invite.has_token);
	make_reply(s);
	snprintf(s->m.data, sizeof s->m.data, "/some/text");
	snprintf(s->m.name, sizeof s->m.name, "Ada's \"old\" box");
	assert_int_equal(membership_join(s->dir, &s->m, &s->reply, NULL), RV_OK);
	assert_true(s->m.joined);
}

/* A coordinator shows one configuration before the join, and answers with a bigger one. */
static void what_was_not_agreed_to_is_refused(void **state) {
	struct scene *s = *state;
	struct rv_errtext why;
	struct membership again;
	const char *const lie = "n-embd = 4096\nn-head = 32\nrounds = 9000000\n";
	assert_int_equal(membership_load(s->dir, s->link, &s->m, NULL), RV_OK);
	make_reply(s);
	s->m.agreed = s->reply.run_hash;
	snprintf(s->reply.config, sizeof s->reply.config, "%s", lie);
	s->reply.run_hash = rv_run_hash(s->reply.run_id, lie);
	assert_int_equal(membership_join(s->dir, &s->m, &s->reply, &why), RV_E_PROTOCOL);
	assert_non_null(strstr(why.text, "another configuration than the one that you agreed to"));
	assert_true(!s->m.joined && s->m.invite.has_token);
	membership_release(&s->m);
	memset(&s->m, 0, sizeof s->m);
	join(s);
	snprintf(s->reply.config, sizeof s->reply.config, "%s", lie); /* to a member that asks for another ticket */
	s->reply.run_hash = rv_run_hash(s->reply.run_id, lie);
	assert_int_equal(membership_join(s->dir, &s->m, &s->reply, &why), RV_E_PROTOCOL);
	assert_int_equal(s->m.config.n_embd, 32);
	assert_int_equal(membership_load(s->dir, NULL, &again, NULL), RV_OK);
	assert_int_equal(again.config.n_embd, 32);
	assert_int_equal(membership_join(s->dir, &again, &s->reply, &why), RV_E_PROTOCOL); /* after a restart, too */
	membership_release(&again);
}

static void the_second_start_needs_no_link(void **state) {
	struct scene *s = *state;
	struct membership again;
	join(s);
	assert_int_equal(membership_load(s->dir, NULL, &again, NULL), RV_OK);
	assert_true(again.joined);
	assert_int_equal(again.member, 3);
	assert_int_equal(again.config.n_embd, 32);
	assert_string_equal(again.data, "/some/text");
	assert_string_equal(again.name, s->m.name);
	assert_false(again.invite.has_token);
	assert_memory_equal(again.ticket, s->reply.ticket, NET_SIG_BYTES);
	assert_memory_equal(again.identity.key, s->m.identity.key, NET_KEY_BYTES);
	assert_memory_equal(again.run_hash.b, s->reply.run_hash.b, RV_HASH_BYTES);
	membership_release(&again);
}

/* --check shows what stands in for options that are not given. */
static void what_is_kept_is_shown(void **state) {
	struct scene *s = *state;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	membership_print_kept(s->dir, f); /* no member yet */
	assert_int_equal(fflush(f), 0);
	assert_int_equal(n, 0);
	join(s);
	membership_print_kept(s->dir, f);
	assert_int_equal(fclose(f), 0);
	assert_non_null(strstr(text, "\n# name = Ada's \"old\" box\n# data = /some/text\n"));
	free(text);
}

static void the_token_is_not_kept(void **state) {
	struct scene *s = *state;
	char path[128], text[512] = "";
	struct stat st;
	join(s);
	snprintf(path, sizeof path, "%s/run.link", s->dir);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof text - 1, f) > 0);
	fclose(f);
	assert_null(strstr(text, "t="));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void without_a_link_it_says_what_is_needed(void **state) {
	struct scene *s = *state;
	struct rv_errtext et = {0};
	assert_int_equal(membership_load(s->dir, NULL, &s->m, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "rivulet://"));
}

static void another_runs_link_is_refused(void **state) {
	struct scene *s = *state;
	struct membership again;
	struct rv_errtext et = {0};
	join(s);
	s->invite.run_id[0] ^= 1;
	invite_format(&s->invite, s->link);
	assert_int_equal(membership_load(s->dir, s->link, &again, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, " belongs to run "));
	assert_non_null(strstr(et.text, "--dir"));
	membership_release(&again);
}

static void spoil(const struct scene *s, const char *file) {
	char path[128];
	snprintf(path, sizeof path, "%s/%s", s->dir, file);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs("n-embd = ?\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Later files are read first. */
static void what_is_damaged_says_what_to_do(void **state) {
	static const struct {
		const char *file, *says;
	} cases[] = {{"member.conf", "remove member.conf"},
				 {"run.conf", "remove run.conf"},
				 {"identity.key", "a new link"},
				 {"run.link", "give the link"}};
	struct scene *s = *state;
	join(s);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct membership again;
		struct rv_errtext et = {0};
		spoil(s, cases[i].file);
		assert_int_not_equal(membership_load(s->dir, NULL, &again, &et), RV_OK);
		if (!strstr(et.text, cases[i].says))
			fail_msg("'%s' is not in '%s'", cases[i].says, et.text);
		membership_release(&again);
	}
}

static void a_new_address_of_the_same_run_is_taken(void **state) {
	struct scene *s = *state;
	struct membership again;
	join(s);
	s->invite.coordinator.port = 9;
	invite_format(&s->invite, s->link);
	assert_int_equal(membership_load(s->dir, s->link, &again, NULL), RV_OK);
	assert_int_equal(again.invite.coordinator.port, 9);
	assert_true(again.joined);
	membership_release(&again);
}

static void lies_in_the_answer_are_found(void **state) {
	struct scene *s = *state;
	assert_int_equal(membership_load(s->dir, s->link, &s->m, NULL), RV_OK);
	make_reply(s);
	s->reply.run_id[0] ^= 1;
	assert_int_equal(membership_join(s->dir, &s->m, &s->reply, NULL), RV_E_PROTOCOL);
	make_reply(s);
	s->reply.run_hash.b[0] ^= 1;
	assert_int_equal(membership_join(s->dir, &s->m, &s->reply, NULL), RV_E_CORRUPT);
	make_reply(s);
	s->reply.member = 4; /* the ticket says 3 */
	assert_int_equal(membership_join(s->dir, &s->m, &s->reply, NULL), RV_E_AUTH);
	make_reply(s);
	snprintf(s->reply.config, sizeof s->reply.config, "n-embd = -1\n");
	assert_int_not_equal(membership_join(s->dir, &s->m, &s->reply, NULL), RV_OK);
	assert_false(s->m.joined);
}

/* A key of a later release; the next step is said. */
static void a_run_of_a_later_release_is_refused(void **state) {
	struct scene *s = *state;
	struct rv_errtext et = {0};
	assert_int_equal(membership_load(s->dir, s->link, &s->m, NULL), RV_OK);
	make_reply(s);
	snprintf(s->reply.config, sizeof s->reply.config, "telepathy = yes\n");
	assert_int_equal(membership_join(s->dir, &s->m, &s->reply, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "if it is older than the coordinator's, update it"));
	assert_non_null(strstr(et.text, "telepathy: unknown option"));
	assert_false(s->m.joined);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_second_start_needs_no_link),
		T(what_was_not_agreed_to_is_refused),
		T(what_is_kept_is_shown),
		T(the_token_is_not_kept),
		T(without_a_link_it_says_what_is_needed),
		T(another_runs_link_is_refused),
		T(a_new_address_of_the_same_run_is_taken),
		T(lies_in_the_answer_are_found),
		T(a_run_of_a_later_release_is_refused),
		T(what_is_damaged_says_what_to_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
