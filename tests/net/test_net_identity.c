/* Identities: key files, signatures, documents, tickets, and the certificates and pins made of
 * them. */
#include "net/identity.h"
#include "net/tls.h"

#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[96];

static int dir_make(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	snprintf(path, sizeof path, "%s/identity.key", dir);
	return 0;
}

static int dir_remove(void **state) {
	(void)state;
	scratch_remove_only(dir, (const char *const[]){"identity.key", NULL});
	return 0;
}

static void write_file(size_t bytes, mode_t mode) {
	uint8_t zeros[100] = {0};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, zeros, bytes), bytes);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void made_once_and_kept(void **state) {
	(void)state;
	struct identity a, b;
	struct stat st;
	bool created;
	assert_int_equal(identity_load(path, &a, NULL), RV_E_NOTFOUND);
	mode_t old = umask(0);
	assert_int_equal(identity_load_or_create(path, &a, &created, NULL), RV_OK);
	umask(old);
	assert_true(created);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 32);
	assert_int_equal(identity_load_or_create(path, &b, &created, NULL), RV_OK);
	assert_false(created);
	assert_memory_equal(&a, &b, sizeof a);
	assert_int_equal(identity_load(path, &b, NULL), RV_OK);
	identity_release(&a);
	struct identity zero = {0};
	assert_memory_equal(&a, &zero, sizeof a);
}

static void open_files_are_refused(void **state) {
	(void)state;
	static const mode_t bad[] = {0640, 0604, 0620, 0602, 0644, 0610};
	struct identity id;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct rv_errtext et = {0};
		write_file(32, bad[i]);
		assert_int_equal(identity_load_or_create(path, &id, NULL, &et), RV_E_AUTH);
		assert_non_null(strstr(et.text, "chmod 600"));
	}
	write_file(32, 0400);
	assert_int_equal(identity_load(path, &id, NULL), RV_OK);
}

static void wrong_sizes_are_refused(void **state) {
	(void)state;
	static const size_t bad[] = {0, 31, 33, 64};
	struct identity id;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct rv_errtext et = {0};
		write_file(bad[i], 0600);
		assert_int_equal(identity_load_or_create(path, &id, NULL, &et), RV_E_CORRUPT);
		assert_non_null(strstr(et.text, path));
	}
}

static void links_and_directories_are_refused(void **state) {
	(void)state;
	struct identity id;
	unlink(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_not_equal(identity_load_or_create(path, &id, NULL, NULL), RV_OK);
	unlink(path);
	assert_int_equal(identity_load(dir, &id, NULL), RV_E_CORRUPT);
}

/* RFC 8032 section 7.1, test 1: the seed's public key. */
static void known_public_key(void **state) {
	(void)state;
	uint8_t seed[32], key[32];
	struct identity id;
	assert_true(rv_hex_decode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", seed, 32));
	assert_true(rv_hex_decode("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", key, 32));
	identity_of_seed(seed, &id);
	assert_memory_equal(id.key, key, 32);
	char text[IDENTITY_SHORT_BYTES];
	identity_short(id.key, text);
	assert_string_equal(text, "d75a980182b10ab7");
}

static struct identity identity_number(uint8_t n) {
	uint8_t seed[32] = {n};
	struct identity id;
	identity_of_seed(seed, &id);
	return id;
}

static void documents_open_only_as_signed(void **state) {
	(void)state;
	struct identity run = identity_number(1), other = identity_number(2);
	static const uint8_t text[] = "round 7 is open";
	uint8_t doc[NET_SIG_BYTES + sizeof text];
	const uint8_t *data;
	size_t n;
	assert_int_equal(signed_make(&run, IDENTITY_DOCUMENT_DOMAIN, text, sizeof text, doc, NULL), RV_OK);
	assert_int_equal(signed_open(run.key, IDENTITY_DOCUMENT_DOMAIN, doc, sizeof doc, &data, &n, NULL), RV_OK);
	assert_ptr_equal(data, doc + NET_SIG_BYTES);
	assert_int_equal(n, sizeof text);
	assert_int_equal(signed_open(other.key, IDENTITY_DOCUMENT_DOMAIN, doc, sizeof doc, &data, &n, NULL), RV_E_AUTH);
	assert_int_equal(signed_open(run.key, "rivulet hello", doc, sizeof doc, &data, &n, NULL), RV_E_AUTH);
	assert_int_equal(signed_open(run.key, IDENTITY_DOCUMENT_DOMAIN, doc, sizeof doc - 1, &data, &n, NULL), RV_E_AUTH);
	assert_int_equal(signed_open(run.key, IDENTITY_DOCUMENT_DOMAIN, doc, 63, &data, &n, NULL), RV_E_INVALID);
	for (size_t i = 0; i < sizeof doc; i++) {
		doc[i] ^= 0x10;
		assert_int_equal(signed_open(run.key, IDENTITY_DOCUMENT_DOMAIN, doc, sizeof doc, &data, &n, NULL), RV_E_AUTH);
		doc[i] ^= 0x10;
	}
	assert_int_equal(signed_make(&run, IDENTITY_DOCUMENT_DOMAIN, text, 0, doc, NULL), RV_OK);
	assert_int_equal(signed_open(run.key, IDENTITY_DOCUMENT_DOMAIN, doc, NET_SIG_BYTES, &data, &n, NULL), RV_OK);
	assert_int_equal(n, 0);
}

static void pair_tickets_bind_everything(void **state) {
	(void)state;
	struct identity run = {0};
	const uint8_t seed[IDENTITY_SEED_BYTES] = {1};
	identity_of_seed(seed, &run);
	const uint8_t run_id[NET_RUN_ID_BYTES] = {5}, other_id[NET_RUN_ID_BYTES] = {6};
	const struct pair_end a = {2, {1}}, b = {7, {2}}, c = {7, {3}}, d = {8, {2}}, a_again = {2, {2}};
	uint8_t ticket[NET_SIG_BYTES];
	pair_ticket_sign(&run, run_id, 1, 9, &b, &a, ticket);
	assert_true(pair_ticket_verify(run.key, run_id, 1, 9, &a, &b, ticket));
	assert_true(pair_ticket_verify(run.key, run_id, 1, 9, &b, &a, ticket));
	assert_false(pair_ticket_verify(run.key, run_id, 2, 9, &a, &b, ticket));
	assert_false(pair_ticket_verify(run.key, run_id, 1, 10, &a, &b, ticket));
	assert_false(pair_ticket_verify(run.key, run_id, 1, 9, &a, &c, ticket));
	assert_false(pair_ticket_verify(run.key, run_id, 1, 9, &a, &d, ticket));
	assert_false(pair_ticket_verify(run.key, run_id, 1, 9, &a, &a_again, ticket));
	assert_false(pair_ticket_verify(run.key, other_id, 1, 9, &a, &b, ticket));
	assert_false(pair_ticket_verify(a.key, run_id, 1, 9, &a, &b, ticket));
	ticket[0] ^= 1;
	assert_false(pair_ticket_verify(run.key, run_id, 1, 9, &a, &b, ticket));
	identity_release(&run);
}

static void proofs_of_an_address_bind_everything(void **state) {
	(void)state;
	struct identity relay = identity_number(1), member = identity_number(2);
	uint8_t run_id[NET_RUN_ID_BYTES] = {5}, signature[NET_SIG_BYTES];
	char longest[NET_ADDR_BYTES] = "";
	seen_sign(&relay, run_id, member.key, "203.0.113.5:7434", 1795444000, signature);
	assert_true(seen_verify(relay.key, run_id, member.key, "203.0.113.5:7434", 1795444000, signature));
	assert_false(seen_verify(member.key, run_id, member.key, "203.0.113.5:7434", 1795444000, signature));
	assert_false(seen_verify(relay.key, run_id, relay.key, "203.0.113.5:7434", 1795444000, signature));
	assert_false(seen_verify(relay.key, run_id, member.key, "203.0.113.5:743", 1795444000, signature));
	assert_false(seen_verify(relay.key, run_id, member.key, "203.0.113.5:7434", 1795444001, signature));
	run_id[0] ^= 1;
	assert_false(seen_verify(relay.key, run_id, member.key, "203.0.113.5:7434", 1795444000, signature));
	run_id[0] ^= 1;
	signature[0] ^= 1;
	assert_false(seen_verify(relay.key, run_id, member.key, "203.0.113.5:7434", 1795444000, signature));
	memset(longest, 'a', sizeof longest - 1);
	seen_sign(&relay, run_id, member.key, longest, UINT64_MAX, signature);
	assert_true(seen_verify(relay.key, run_id, member.key, longest, UINT64_MAX, signature));
}

static void tickets_bind_everything(void **state) {
	(void)state;
	struct identity run = identity_number(1), member = identity_number(2);
	uint8_t run_id[NET_RUN_ID_BYTES] = {5}, ticket[NET_SIG_BYTES];
	ticket_sign(&run, run_id, 3, member.key, ticket);
	assert_true(ticket_verify(run.key, run_id, 3, member.key, ticket));
	assert_false(ticket_verify(run.key, run_id, 4, member.key, ticket));
	assert_false(ticket_verify(run.key, run_id, 3, run.key, ticket));
	assert_false(ticket_verify(member.key, run_id, 3, member.key, ticket));
	run_id[15] ^= 1;
	assert_false(ticket_verify(run.key, run_id, 3, member.key, ticket));
	memset(ticket, 0, sizeof ticket);
	assert_false(ticket_verify(run.key, run_id, 3, member.key, ticket));
}

/* The certificate is a container of the very key (RFC 8410), and signed by it. */
static void certificates_hold_the_key(void **state) {
	(void)state;
	struct identity id = identity_number(9);
	SSL_CTX *ctx;
	unsigned char *der = NULL;
	assert_int_equal(tls_context_new(&id, TLS_CLIENTS_MUST, &ctx, NULL), RV_OK);
	X509 *x = SSL_CTX_get0_certificate(ctx);
	int n = i2d_PUBKEY(X509_get0_pubkey(x), &der);
	assert_int_equal(n, 44);
	assert_memory_equal(der + 12, id.key, 32);
	assert_int_equal(X509_verify(x, X509_get0_pubkey(x)), 1); /* self-signed */
	OPENSSL_free(der);
	SSL_CTX_free(ctx);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(made_once_and_kept, dir_make, dir_remove),
		cmocka_unit_test_setup_teardown(open_files_are_refused, dir_make, dir_remove),
		cmocka_unit_test_setup_teardown(wrong_sizes_are_refused, dir_make, dir_remove),
		cmocka_unit_test_setup_teardown(links_and_directories_are_refused, dir_make, dir_remove),
		cmocka_unit_test(known_public_key),
		cmocka_unit_test(documents_open_only_as_signed),
		cmocka_unit_test(tickets_bind_everything),
		cmocka_unit_test(pair_tickets_bind_everything),
		cmocka_unit_test(proofs_of_an_address_bind_everything),
		cmocka_unit_test(certificates_hold_the_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
