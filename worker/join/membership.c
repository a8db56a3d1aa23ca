/* membership.c: run.link, member.conf and run.conf. */
#include "worker/join/membership.h"

#include "base/chain.h"
#include "base/file.h"
#include "base/hex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PATH_BYTES = 320,
	TICKET_TEXT_BYTES = (NET_SIG_BYTES * 4 + 2) / 3 + 1,
	CERT_TEXT_BYTES = (SERVING_CERT_BYTES * 4 + 2) / 3 + 1,
	SECRET_MODE = 0600,
	PUBLIC_MODE = 0644
};

struct member_file {
	int64_t member;
	int64_t term;
	char ticket[TICKET_TEXT_BYTES];
	char serving[CERT_TEXT_BYTES];
	char name[NET_NAME_BYTES];
	char data[1024];
	char tokenizer[512];
};

static const struct rv_option member_table[] = {
	{"member", RV_OPT_INT, offsetof(struct member_file, member), 0, NULL, 0, (int64_t)NET_NO_MEMBER - 1, NULL,
	 "This worker's number in the run.", "Member"},
	{"ticket", RV_OPT_STRING, offsetof(struct member_file, ticket), TICKET_TEXT_BYTES, NULL, 0, 0, NULL,
	 "The run's signature for it.", "Member"},
	{"serving-cert", RV_OPT_STRING, offsetof(struct member_file, serving), CERT_TEXT_BYTES, "", 0, 0, NULL,
	 "The newest serving certificate of the run that this worker has seen.", "Member"},
	{"term", RV_OPT_INT, offsetof(struct member_file, term), 0, "0", 0, NET_MAX_TERM, NULL,
	 "Rollbacks of the run that the state here has followed.", "Member"},
	{"name", RV_OPT_STRING, offsetof(struct member_file, name), NET_NAME_BYTES, "", 0, 0, NULL,
	 "This worker's name in the run.", "Member"},
	{"data", RV_OPT_STRING, offsetof(struct member_file, data), sizeof(((struct member_file *)0)->data), "", 0, 0, NULL,
	 "Training text.", "Member"},
	{"tokenizer", RV_OPT_STRING, offsetof(struct member_file, tokenizer), sizeof(((struct member_file *)0)->tokenizer),
	 "", 0, 0, NULL, "The run's tokenizer.", "Member"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static void path_in(const char *dir, const char *name, char out[PATH_BYTES]) {
	snprintf(out, PATH_BYTES, "%s/%s", dir, name);
}

/* ---- loading ---- */

static enum rv_err read_text(const char *dir, const char *name, size_t max, char **out, struct rv_errtext *et) {
	char path[PATH_BYTES];
	size_t n;
	path_in(dir, name, path);
	return rv_file_read(path, max, (uint8_t **)out, &n, et);
}

/* Refuses a link of another run than the directory's. */
static enum rv_err check_link(const char *dir, const struct invite *stored, const struct invite *given,
							  struct rv_errtext *et) {
	enum { SHOWN = 8 }; /* digits */
	char ours[2 * NET_RUN_ID_BYTES + 1], its[2 * NET_RUN_ID_BYTES + 1];
	const bool same_run = memcmp(stored->run_id, given->run_id, NET_RUN_ID_BYTES) == 0;
	if (same_run && memcmp(stored->key, given->key, NET_KEY_BYTES) == 0)
		return RV_OK;
	rv_hex_encode(stored->run_id, NET_RUN_ID_BYTES, ours);
	rv_hex_encode(given->run_id, NET_RUN_ID_BYTES, its);
	return rv_fail(
		et, RV_E_INVALID,
		"%s belongs to run %.*s..., and the link is of %s%.*s...%s: join that one with another --dir, or start "
		"without a link to go on with the first",
		dir, SHOWN, ours, same_run ? "a run that calls itself " : "run ", SHOWN, its,
		same_run ? ", with another key" : "");
}

static enum rv_err load_link(const char *dir, const char *link, struct membership *m, struct rv_errtext *et) {
	struct invite stored;
	char *text;
	enum rv_err e = read_text(dir, "run.link", INVITE_MAX_BYTES, &text, et);
	if (e == RV_E_NOTFOUND && !link)
		return rv_fail(
			et, RV_E_INVALID,
			"an invite link is needed: rivulet-worker 'rivulet://host:port/RUN#k=...&t=...' (%s has none yet)", dir);
	if (e == RV_E_NOTFOUND)
		return invite_parse(link, &m->invite, et);
	RV_TRY(e);
	text[strcspn(text, "\n")] = '\0';
	e = invite_parse(text, &stored, et);
	free(text);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s/run.link is damaged; remove it, and give the link that this worker joined by",
							   dir);
	m->invite = stored;
	if (!link)
		return RV_OK;
	RV_TRY(invite_parse(link, &m->invite, et));
	return check_link(dir, &stored, &m->invite, et);
}

/* Reads the stored serving certificate, unchecked; "": there is none. */
static enum rv_err read_serving_cert(const char *path, const char *text, struct membership *m, struct rv_errtext *et) {
	uint8_t bytes[SERVING_CERT_BYTES] = {0};
	if (text[0] != '\0' && !rv_base64url_decode(text, strlen(text), bytes, sizeof bytes))
		return rv_fail(et, RV_E_CORRUPT, "%s: serving-cert is not a certificate", path);
	serving_cert_decode(bytes, &m->trust.cert);
	return RV_OK;
}

static enum rv_err parse_member(const char *dir, const char *text, struct membership *m, struct rv_errtext *et) {
	struct member_file f;
	char path[PATH_BYTES];
	path_in(dir, "member.conf", path);
	rv_options_defaults(member_table, &f);
	RV_TRY(rv_options_parse_text(member_table, &f, path, text, et));
	if (!rv_base64url_decode(f.ticket, strlen(f.ticket), m->ticket, NET_SIG_BYTES))
		return rv_fail(et, RV_E_CORRUPT, "%s: ticket is not a signature", path);
	RV_TRY(read_serving_cert(path, f.serving, m, et));
	m->member = (uint32_t)f.member;
	m->term = (uint64_t)f.term;
	snprintf(m->name, sizeof m->name, "%s", f.name);
	snprintf(m->data, sizeof m->data, "%s", f.data);
	snprintf(m->tokenizer, sizeof m->tokenizer, "%s", f.tokenizer);
	return RV_OK;
}

enum rv_err membership_read_member(const char *dir, struct membership *m, struct rv_errtext *et) {
	enum { MEMBER_FILE_MAX = 4096 };
	char *text;
	RV_TRY(read_text(dir, "member.conf", MEMBER_FILE_MAX, &text, et));
	enum rv_err e = parse_member(dir, text, m, et);
	free(text);
	return e;
}

static enum rv_err load_config(const char *dir, struct membership *m, struct rv_errtext *et) {
	char path[PATH_BYTES], *text;
	path_in(dir, "run.conf", path);
	RV_TRY(read_text(dir, "run.conf", NET_MAX_CONFIG_BYTES - 1, &text, et));
	snprintf(m->config_text, sizeof m->config_text, "%s", text);
	free(text);
	enum rv_err e = run_config_parse(&m->config, path, m->config_text, et);
	if (e != RV_OK)
		return rv_fail_context(et, e,
							   "the run's configuration is damaged; remove run.conf, and start with --data as at "
							   "first: the coordinator sends it anew");
	m->agreed = m->run_hash = rv_run_hash(m->invite.run_id, m->config_text);
	return RV_OK;
}

/* Makes the trust of the link, with the stored certificate if there is one. */
static enum rv_err load_trust(struct membership *m, struct rv_errtext *et) {
	const struct serving_cert stored = m->trust.cert;
	m->trust = run_trust_of(m->invite.run_id, m->invite.key);
	return stored.serial > 0 ? run_trust_take(&m->trust, &stored, et) : RV_OK;
}

static enum rv_err load_member(const char *dir, struct membership *m, struct rv_errtext *et) {
	RV_TRY(membership_read_member(dir, m, et));
	enum rv_err e = load_trust(m, et);
	return e == RV_OK ? RV_OK
					  : rv_fail(et, RV_E_CORRUPT, "%s/member.conf: the serving certificate is not of this run", dir);
}

enum rv_err membership_load(const char *dir, const char *link, struct membership *m, struct rv_errtext *et) {
	char path[PATH_BYTES];
	*m = (struct membership){0};
	RV_TRY(load_link(dir, link, m, et));
	path_in(dir, "identity.key", path);
	enum rv_err e = identity_load_or_create(path, &m->identity, NULL, et);
	if (e == RV_E_CORRUPT)
		return rv_fail_context(et, e, "this worker's key is damaged: restore it, or join with a new link and --dir");
	RV_TRY(e);
	e = load_config(dir, m, et);
	if (e == RV_E_NOTFOUND)
		return load_trust(m, et); /* not joined yet */
	RV_TRY(e);
	e = load_member(dir, m, et);
	if (e == RV_E_INVALID || e == RV_E_RANGE || e == RV_E_CORRUPT)
		return rv_fail_context(
			et, e,
			"the stored answer of the coordinator is damaged; remove member.conf and run.conf, and start with "
			"--data as at first: the coordinator sends it anew");
	RV_TRY(e);
	m->joined = true;
	return RV_OK;
}

void membership_print_kept(const char *dir, FILE *out) {
	struct membership m = {.member = 0};
	if (membership_read_member(dir, &m, NULL) == RV_OK)
		(void)fprintf(
			out, "# used where these are empty, from %s/member.conf:\n# name = %s\n# data = %s\n# tokenizer = %s\n",
			dir, m.name, m.data, m.tokenizer);
}

/* ---- storing ---- */

static enum rv_err write_text(const char *dir, const char *name, const char *text, mode_t mode, struct rv_errtext *et) {
	char path[PATH_BYTES];
	path_in(dir, name, path);
	return rv_file_write_atomic(path, text, strlen(text), mode, et);
}

static enum rv_err write_link(const char *dir, const struct membership *m, struct rv_errtext *et) {
	struct invite without_token = m->invite;
	char text[INVITE_MAX_BYTES + 1];
	without_token.has_token = false;
	memset(without_token.token, 0, sizeof without_token.token);
	invite_format(&without_token, text);
	size_t n = strlen(text);
	text[n] = '\n';
	text[n + 1] = '\0';
	return write_text(dir, "run.link", text, SECRET_MODE, et);
}

enum rv_err membership_store(const char *dir, const struct membership *m, struct rv_errtext *et) {
	struct member_file f = {.member = m->member, .term = (int64_t)m->term};
	char text[3072];
	uint8_t cert[SERVING_CERT_BYTES];
	rv_base64url_encode(m->ticket, NET_SIG_BYTES, f.ticket);
	serving_cert_encode(&m->trust.cert, cert);
	if (m->trust.cert.serial > 0)
		rv_base64url_encode(cert, sizeof cert, f.serving);
	snprintf(f.name, sizeof f.name, "%s", m->name);
	snprintf(f.data, sizeof f.data, "%s", m->data);
	snprintf(f.tokenizer, sizeof f.tokenizer, "%s", m->tokenizer);
	if (rv_options_print(member_table, &f, text, sizeof text) >= sizeof text)
		return rv_fail(et, RV_E_RANGE, "data: too long");
	RV_TRY(write_link(dir, m, et));
	RV_TRY(write_text(dir, "member.conf", text, SECRET_MODE, et));
	return write_text(dir, "run.conf", m->config_text, PUBLIC_MODE, et);
}

/* Checks that the answer is of this run, and the configuration one that was agreed to. */
static enum rv_err check_reply(const struct membership *m, const struct join_reply *reply, struct run_config *config,
							   struct rv_errtext *et) {
	if (memcmp(reply->run_id, m->invite.run_id, NET_RUN_ID_BYTES) != 0)
		return rv_fail(et, RV_E_PROTOCOL, "the coordinator answered for another run than the link's");
	enum rv_err e = run_config_parse(config, "the run's configuration", reply->config, et);
	if (e != RV_OK)
		return rv_fail_context(
			et, e,
			"this program cannot take part in the run; if it is older than the coordinator's, update "
			"it. What it does not know");
	const struct rv_hash run_hash = rv_run_hash(m->invite.run_id, reply->config);
	if (!rv_hash_equal(&run_hash, &reply->run_hash))
		return rv_fail(et, RV_E_CORRUPT, "the run's configuration does not match its hash");
	if (!rv_hash_is_zero(&m->agreed) && !rv_hash_equal(&run_hash, &m->agreed))
		return rv_fail(et, RV_E_PROTOCOL,
					   "the coordinator's answer has another configuration than the one that you agreed to: nothing of "
					   "it is done. Ask the run's operator, and start again to be shown what it asks now");
	if (!ticket_verify(run_trust_key(&m->trust), reply->run_id, reply->member, m->identity.key, reply->ticket))
		return rv_fail(et, RV_E_AUTH, "the coordinator's ticket for member %u is not signed by the run's serving key",
					   reply->member);
	return RV_OK;
}

enum rv_err membership_join(const char *dir, struct membership *m, const struct join_reply *reply,
							struct rv_errtext *et) {
	struct run_config config;
	RV_TRY(check_reply(m, reply, &config, et));
	m->config = config;
	snprintf(m->config_text, sizeof m->config_text, "%s", reply->config);
	m->agreed = m->run_hash = reply->run_hash;
	m->member = reply->member;
	memcpy(m->ticket, reply->ticket, NET_SIG_BYTES);
	RV_TRY(membership_store(dir, m, et));
	m->joined = true;
	m->invite.has_token = false;
	return RV_OK;
}

void membership_release(struct membership *m) {
	identity_release(&m->identity);
}
