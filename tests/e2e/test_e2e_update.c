/* test_e2e_update.c: `rivulet-worker update --check` names the coordinator's version and that of a
 * signed feed, and installs nothing. */
#include "base/minisign.h"
#include "base/version.h"
#include "e2e.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char alone[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 1\n"
							"min-workers = 1\nsteps-per-round = 2\nrounds = 100000\n" E2E_PATIENT;

static void expect_output(struct e2e *e, const char *words) {
	char path[E2E_PATH];
	size_t n;
	e2e_path(e, "update.log", path);
	char *text = scratch_read(path, &n);
	assert_non_null(text);
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in:\n%s", words, text);
	free(text);
}

static void check_for_updates(struct e2e *e, const char *dir, const char *feed, const char *key, int status) {
	char log[E2E_PATH];
	const char *const argv[] = {"rivulet-worker",       "update", "--check", "--dir", dir,
								feed ? "--feed" : NULL, feed,     "--key",   key,     NULL};
	e2e_path(e, "update.log", log);
	(void)remove(log);
	e2e_run(e, "update", argv, status);
}

/* Makes a feed whose newest release has this version; `key` is its public key's line. */
static void make_feed(const char *dir, const char *comment, char key[RV_MINISIGN_TEXT_BYTES]) {
	static const char sums[] =
		"abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd  rivulet-worker_9.9.9_amd64.deb\n";
	struct rv_minisign_secret secret;
	char text[RV_MINISIGN_TEXT_BYTES];
	assert_int_equal(rv_minisign_new(&secret, NULL), RV_OK);
	rv_minisign_sign(&secret, sums, strlen(sums), comment, text);
	scratch_write(dir, "SHA256SUMS", sums, strlen(sums));
	scratch_write(dir, "SHA256SUMS.minisig", text, strlen(text));
	rv_minisign_print_public(&secret.public, text);
	(void)snprintf(key, RV_MINISIGN_TEXT_BYTES, "%s", strchr(text, '\n') + 1);
	key[strcspn(key, "\n")] = '\0';
}

static void coordinator_and_feed_are_asked(void **state) {
	static struct e2e e;
	char dir[E2E_PATH], feed[E2E_PATH], key[RV_MINISIGN_TEXT_BYTES];
	*state = &e;
	e2e_open(&e, alone, 1);
	e2e_worker_dir(&e, 0, dir);
	check_for_updates(&e, dir, NULL, NULL, 2);
	expect_output(&e, "there is nobody to ask");
	e2e_start_workers(&e, 1);
	check_for_updates(&e, dir, NULL, NULL, 0);
	expect_output(&e, "this program  rivulet-worker " RV_VERSION);
	expect_output(&e, "coordinator   rivulet " RV_VERSION);
	expect_output(&e, ": the same version\n");
	scratch_make(feed, sizeof feed);
	make_feed(feed, "rivulet 9.9.9+0123456789ab", key);
	check_for_updates(&e, dir, feed, key, 0);
	expect_output(&e, "release feed  rivulet 9.9.9+0123456789ab: newer, signed by the key ");
	expect_output(&e, "/rivulet-worker_9.9.9_amd64.deb\n        SHA-256 abcdef");
	expect_output(&e, "Nothing was installed");
	make_feed(feed, "rivulet 0.0.1", key);
	check_for_updates(&e, dir, feed, key, 0);
	expect_output(&e, "rivulet 0.0.1: older");
	make_feed(feed, "rivulet 9.9.9", (char[RV_MINISIGN_TEXT_BYTES]){0});
	check_for_updates(&e, dir, feed, key, 4);
	expect_output(&e, "signed by the key");
	process_kill(&e.coordinator);
	check_for_updates(&e, dir, NULL, NULL, 0);
	expect_output(&e, "coordinator   not asked: ");
	scratch_remove(feed);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(coordinator_and_feed_are_asked, e2e_teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
