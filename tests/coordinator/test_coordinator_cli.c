/* The program as people use it: help, precise errors, invitations and status while it runs and
 * while it does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/coordinator/coordinator_process.h"

enum { OUT_BYTES = 65536 };
static char out[OUT_BYTES];

#define RUN(...) coordinator_command(out, sizeof out, (const char *const[]){__VA_ARGS__, NULL})

static void expect(const char *part) {
	if (strstr(out, part) == NULL)
		fail_msg("'%s' is not in: %s", part, out);
}

static int set_up(void **state) {
	struct coordinator *c = calloc(1, sizeof *c);
	*state = c;
	coordinator_make(c, "rounds = 10\nmin-workers = 2\n");
	return 0;
}

static int tear_down(void **state) {
	struct coordinator *c = *state;
	coordinator_remove(c);
	free(c);
	return 0;
}

static void test_help_and_version(void **state) {
	(void)state;
	assert_int_equal(RUN("--help"), 0);
	expect("new-run");
	expect("serve");
	assert_int_equal(RUN("serve", "--help"), 0);
	expect("--listen");
	assert_int_equal(RUN("new-run", "--help"), 0);
	expect("--steps-per-round");
	assert_int_equal(RUN("--version"), 0);
	expect("rivulet-coordinator 0.");
}

#define KEY        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SERVE(...) RUN("serve", "--dir", "/x", "--check", __VA_ARGS__)

static void test_relays_on_command_lines(void **state) {
	(void)state;
	assert_int_equal(RUN("relay"), 2);
	expect("--run-key");
	assert_int_equal(RUN("relay", "--run-key", "abc"), 2);
	expect("64 hex digits");
	assert_int_equal(RUN("relay", "--run-key", KEY, "--listen", "relay.example:7435"), 2);
	expect("numeric address");
	assert_int_equal(RUN("relay", "--run-key", KEY, "--relay-rate", "1kbit"), 2);
	expect("relay-rate");
	assert_int_equal(RUN("relay", "--run-key", KEY, "--check"), 0);
	assert_int_equal(SERVE("--relay-at", "relay.example:7435"), 2);
	expect("HOST:PORT=KEY");
	assert_int_equal(SERVE("--relay-at", "relay.example:7435=abc"), 2);
	expect("64 hex digits");
	assert_int_equal(SERVE("--relay-at", ":7435=" KEY), 2);
	expect("the host or the port is missing");
	assert_int_equal(SERVE("--relay-at", "a:1=" KEY ",b:2=" KEY ",c:3=" KEY ",d:4=" KEY ",e:5=" KEY ",f:6=" KEY
										 ",g:7=" KEY ",h:8=" KEY),
					 2);
	expect("8 relays at most");
	assert_int_equal(SERVE("--relay-listen", "relay.example:7435"), 2);
	expect("--relay-listen relay.example:7435");
	assert_int_equal(SERVE("--relay-second-port", "65536"), 2);
	expect("--relay-second-port: 65536: must be next");
	assert_int_equal(RUN("relay", "--run-key", KEY, "--check", "--second-port", "both"), 2);
	expect("--second-port: both: must be next");
	assert_int_equal(RUN("relay", "--run-key", KEY, "--check", "--second-port", "none"), 0);
}

static void test_bad_command_lines(void **state) {
	(void)state;
	assert_int_equal(RUN("sreve"), 2);
	expect("did you mean serve");
	assert_int_equal(RUN("serve"), 2);
	expect("--dir");
	assert_int_equal(RUN("serve", "--dir", "/x", "--listen", "0.0.0.0:7433"), 2);
	expect("--advertise HOST:PORT");
	assert_int_equal(RUN("serve", "--dir", "/x", "--listen", "nonsense"), 2);
	expect("--listen nonsense");
	assert_int_equal(RUN("serve", "--dir", "/x", "--listen", "a:1"), 2);
	expect("--listen");
	assert_int_equal(RUN("invite", "--dir", "/x", "--count", "1000"), 2);
	expect("256");
	assert_int_equal(RUN("ban", "--dir", "/x"), 2);
	expect("MEMBER");
	assert_int_equal(RUN("new-run", "--dir", "/x", "--n-embd", "130", "--n-head", "4"), 2);
	expect("n-embd");
	/* What only a model's family knows, and how it is cut: as `rivulet config` and workers say
	 * it. */
	assert_int_equal(RUN("new-run", "--dir", "/x", "--model", "llama", "--n-embd", "12", "--n-head", "4"), 2);
	expect("rotary embedding");
	assert_int_equal(RUN("new-run", "--dir", "/x", "--tied=no"), 2);
	expect("gpt2 with tied = false");
	assert_int_equal(RUN("new-run", "--dir", "/x", "--fragments", "3", "--chunk-elems", "65536", "--n-embd", "16"), 2);
	expect("smaller chunk-elems");
	assert_int_equal(RUN("serve", "--dir", "/x", "--check"), 1);
	expect("/x");
}

static void test_not_a_run(void **state) {
	(void)state;
	assert_int_equal(RUN("serve", "--dir", "/tmp/rivulet-no-such-run"), 1);
	expect("is not a run");
	assert_int_equal(RUN("status", "--dir", "/dev/null"), 1);
	expect("/dev/null");
}

static void test_made_once(void **state) {
	struct coordinator *c = *state;
	struct stat st;
	char path[96];
	assert_int_equal(RUN("new-run", "--dir", c->dir), 1);
	expect("in use by process"); /* it is being served */
	assert_int_equal(coordinator_stop(c), 0);
	assert_int_equal(RUN("new-run", "--dir", c->dir), 1);
	expect("there is a run already");
	(void)snprintf(path, sizeof path, "%s/run.key", c->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(RUN("serve", "--dir", c->dir, "--listen", "127.0.0.1:0"), 4);
	expect("run.key");
}

static void test_port_taken(void **state) {
	struct coordinator *c = *state;
	char at[NET_ADDR_BYTES], port[32], dir[64];
	assert_true(address_format(&c->at, at));
	(void)snprintf(port, sizeof port, "port %u", c->at.port);
	scratch_make(dir, sizeof dir);
	assert_int_equal(RUN("new-run", "--dir", dir, "--dtype", "fp32"), 0);
	expect("note: dtype = fp32: a GPU multiplies fp32 without its tensor cores");
	assert_int_equal(RUN("serve", "--dir", dir, "--listen", at), 1);
	expect(port);
	expect("rivulet-coordinator (process "); /* who has it */
	expect("--listen");
	scratch_remove_only(dir, (const char *const[]){"run.key", "root.key", "store.db", "lock", NULL});
}

static int count_lines(const char *text) {
	int n = 0;
	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void test_invite_either_way(void **state) {
	struct coordinator *c = *state;
	struct invite in;
	assert_int_equal(RUN("invite", "--dir", c->dir, "--count", "5"), 0);
	assert_int_equal(count_lines(out), 5);
	assert_int_equal(strncmp(out, "rivulet://127.0.0.1:", 20), 0);
	assert_int_equal(coordinator_stop(c), 0);
	coordinator_invite(c, &in); /* in the store: it is not running */
	assert_int_equal(RUN("invite", "--dir", c->dir, "--uses", "2", "--count", "3"), 0);
	assert_int_equal(count_lines(out), 4);
	expect("note: many may join");
	assert_int_equal(RUN("invite", "--dir", c->dir, "--advertise", "example.org:99"), 0);
	assert_null(strstr(out, "note:"));
	expect("rivulet://example.org:99/");
	coordinator_start(c);
	struct client k;
	client_init(&k, c, 3, NULL);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	client_release(&k);
}

static int set_up_audited(void **state) {
	struct coordinator *c = calloc(1, sizeof *c);
	*state = c;
	coordinator_make(c, "preset = strangers\naudit-training = 0\nrounds = 10\n");
	return 0;
}

/* Who makes a link for many is advised once, however many links, running or not; not of a run whose
 * members check each other, and not of links for one. */
static void test_links_for_many_are_for_runs_that_check(void **state) {
	struct coordinator *c = *state;
	for (int online = 1; online >= 0; online--) {
		assert_int_equal(RUN("invite", "--dir", c->dir, "--uses", "3", "--count", "2"), 0);
		assert_int_equal(count_lines(out), 2);
		assert_null(strstr(out, "note:"));
		if (online)
			assert_int_equal(coordinator_stop(c), 0);
	}
	coordinator_start(c);
}

static void test_invites_are_listed_and_revoked_either_way(void **state) {
	struct coordinator *c = *state;
	char link[INVITE_MAX_BYTES];
	struct invite in;
	struct client k;
	assert_int_equal(RUN("invite", "--dir", "/x", "lst"), 2);
	expect("did you mean list");
	assert_int_equal(RUN("invite", "--dir", "/x", "revoke"), 2);
	expect("the ID that `invite list` shows");
	assert_int_equal(RUN("invite", "--dir", "/x", "--uses", "0"), 2);
	expect("65536");
	assert_int_equal(RUN("invite", "--dir", c->dir, "--uses", "3", "--expires", "7d"), 0);
	assert_int_equal(count_lines(out), 2);
	expect("\nnote: many may join by this link, and members of this run do not audit each other");
	out[strcspn(out, "\n")] = '\0';
	assert_ok(invite_parse(out, &in, &et));
	client_init(&k, c, 3, NULL);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	client_release(&k);
	for (int online = 1; online >= 0; online--) { /* invite 1 is coordinator_make's */
		assert_int_equal(RUN("invite", "list", "--dir", c->dir), 0);
		assert_int_equal(count_lines(out), 3);
		expect("2  open      2 of 3");
		expect("1  open      1 of 1");
		expect("never");
		assert_int_equal(RUN("invite", "list", "--json", "--dir", c->dir), 0);
		assert_int_equal(count_lines(out), 1);
		expect("\"uses\":3,\"used\":1,");
		if (online)
			assert_int_equal(coordinator_stop(c), 0);
	}
	assert_int_equal(RUN("invite", "revoke", "2", "--dir", c->dir), 0);
	expect("invite 2 is revoked");
	coordinator_start(c);
	assert_int_equal(RUN("invite", "revoke", "1", "--dir", c->dir), 0);
	assert_int_equal(RUN("invite", "revoke", "9", "--dir", c->dir), 1);
	expect("there is none");
	assert_int_equal(RUN("invite", "revoke", "it", "--dir", c->dir), 1);
	expect("or the link");
	invite_format(&in, link);
	assert_int_equal(RUN("invite", "revoke", link, "--dir", c->dir), 0);
	expect("invite 2 is revoked");
	client_init(&k, c, 4, NULL);
	assert_int_equal(client_join(&k, c, &in, NULL), 403);
	client_release(&k);
	client_init(&k, c, 3, NULL); /* who came by it stays */
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	client_release(&k);
}

static void test_members_are_approved_either_way(void **state) {
	struct coordinator *c = *state;
	struct invite in;
	struct client k;
	char print[NET_KEY_BYTES * 2 + 1];
	assert_int_equal(RUN("members", "--dir", "/x", "aprove", "123456"), 2);
	expect("did you mean approve");
	assert_int_equal(RUN("members", "--dir", "/x", "refuse"), 2);
	expect("first digits of fingerprints");
	assert_int_equal(RUN("invite", "--dir", c->dir, "--uses", "2", "--approve"), 0);
	out[strcspn(out, "\n")] = '\0';
	assert_ok(invite_parse(out, &in, &et));
	client_init(&k, c, 3, NULL);
	rv_hex_encode(k.id.key, NET_KEY_BYTES, print);
	print[16] = '\0';
	assert_int_equal(client_join(&k, c, &in, NULL), 202);
	assert_int_equal(RUN("members", "pending", "--dir", c->dir), 0);
	expect(print);
	expect("asks");
	expect("tester");
	assert_int_equal(RUN("members", "pending", "--json", "--dir", c->dir), 0);
	expect("\"state\":\"asks\"");
	assert_int_equal(RUN("status", "--dir", c->dir), 0);
	expect("\"pending\":1");
	assert_int_equal(RUN("members", "refuse", print, "--dir", c->dir), 0);
	assert_int_equal(client_join(&k, c, &in, NULL), 403);
	client_release(&k);
	assert_int_equal(coordinator_stop(c), 0);
	assert_int_equal(RUN("members", "pending", "--dir", c->dir), 0);
	expect("refused");
	assert_int_equal(RUN("members", "approve", print, "--dir", c->dir), 0);
	expect("approved");
	assert_int_equal(count_lines(out), 1);
	coordinator_start(c);
	client_init(&k, c, 3, NULL);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	client_release(&k);
	assert_int_equal(RUN("members", "approve", print, "--dir", c->dir), 1);
	expect("members pending");
}

static void test_status_either_way(void **state) {
	struct coordinator *c = *state;
	assert_int_equal(RUN("status", "--dir", c->dir), 0);
	expect("\"online\":true");
	expect("\"phase\":\"waiting\"");
	assert_int_equal(coordinator_stop(c), 0);
	assert_int_equal(RUN("status", "--dir", c->dir), 0);
	expect("\"online\":false");
	assert_int_equal(RUN("serve", "--dir", c->dir, "--listen", "127.0.0.1:0", "--max-connections", "1"), 2);
}

/* Two coordinators of one run would be two truths. */
static void test_served_once(void **state) {
	struct coordinator *c = *state;
	char path[E2E_PATH + 16];
	(void)snprintf(path, sizeof path, "%s/relay-ports", c->dir);
	char *before = scratch_read(path, NULL);
	assert_non_null(before);
	assert_int_equal(RUN("serve", "--dir", c->dir, "--listen", "127.0.0.1:0"), 1);
	expect("in use by process");
	char *after = scratch_read(path, NULL);
	assert_string_equal(after, before); /* those of the coordinator that runs */
	free(before);
	free(after);
}

/* What one `serve` was told of its address, the next one knows; what that is told goes over it. */
static void test_the_address_is_kept(void **state) {
	static const char whole[] = "listen = 0.0.0.0:7433\nadvertise = run.example:1\n";
	struct coordinator *c = *state;
	char at[NET_ADDR_BYTES], line[NET_ADDR_BYTES + 16], path[E2E_PATH + 16];
	assert_true(address_format(&c->at, at));
	(void)coordinator_stop(c);
	assert_int_equal(RUN("serve", "--dir", c->dir, "--check"), 0);
	(void)snprintf(line, sizeof line, "\nlisten = %s\n", at);
	expect(line);
	assert_int_equal(RUN("serve", "--dir", c->dir, "--check", "--listen", "127.0.0.1:1"), 0);
	expect("\nlisten = 127.0.0.1:1\n");
	(void)snprintf(path, sizeof path, "%s/address", c->dir);
	scratch_write(c->dir, "address", whole, sizeof whole - 1);
	assert_int_equal(RUN("serve", "--dir", c->dir, "--check"), 0);
	expect("\nadvertise = run.example:1\n");
	scratch_write(c->dir, "address", whole, sizeof "listen = 0.0.0.0:7433\nadvert" - 1);
	assert_int_equal(RUN("serve", "--dir", c->dir, "--check"), 2);
	expect("give --listen and --advertise again");
	scratch_write(c->dir, "address", "listen = oops\n", sizeof "listen = oops\n" - 1);
	assert_int_equal(RUN("serve", "--dir", c->dir, "--check"), 2);
	expect("/address holds the address of the last `serve` and is damaged");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(RUN("serve", "--dir", c->dir, "--check"), 0);
	expect("\nlisten = 127.0.0.1:7433\n");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_help_and_version),
		cmocka_unit_test(test_relays_on_command_lines),
		cmocka_unit_test(test_bad_command_lines),
		cmocka_unit_test(test_not_a_run),
		cmocka_unit_test_setup_teardown(test_made_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_address_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_port_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_invite_either_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_invites_are_listed_and_revoked_either_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links_for_many_are_for_runs_that_check, set_up_audited, tear_down),
		cmocka_unit_test_setup_teardown(test_members_are_approved_either_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_status_either_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_served_once, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
