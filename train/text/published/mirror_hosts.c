/* mirror_hosts.c: see mirror_hosts.h. */
#include "train/text/published/mirror_hosts.h"

#include "base/assert.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char SEPARATOR[] = ", ";

/* Returns the bytes of the host at the beginning of `at`; 0: there is none. */
static size_t host_bytes(const char *at) {
	static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	if (*at != '[')
		return strspn(at, name);
	const size_t n = strspn(at + 1, "0123456789abcdefABCDEF:.");
	return n > 0 && at[1 + n] == ']' ? n + 2 : 0;
}

bool mirror_host(const char *url, char out[static MIRROR_HOST_BYTES]) {
	static const char store[] = "s3://";
	const bool is_store = strncmp(url, store, strlen(store)) == 0;
	const char *at = strstr(url, "://");
	out[0] = '\0';
	if (!at)
		return false;
	at += strlen("://");
	const size_t n = host_bytes(at);
	const char *behind = at + n;
	if (*behind == ':' && !is_store)
		behind += 1 + strspn(behind + 1, "0123456789");
	if (n == 0 || n + sizeof store > MIRROR_HOST_BYTES || (*behind != '\0' && *behind != '/'))
		return false;
	(void)snprintf(out, MIRROR_HOST_BYTES, "%s%.*s", is_store ? store : "", (int)n, at);
	for (char *c = out; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return true;
}

static bool has(const char *hosts, const char *host) {
	const size_t n = strlen(host), between = strlen(SEPARATOR);
	for (const char *at = hosts; *at;) {
		const char *end = strstr(at, SEPARATOR);
		const size_t bytes = end ? (size_t)(end - at) : strlen(at);
		if (bytes == n && strncasecmp(at, host, n) == 0)
			return true;
		at += bytes + (end ? between : 0);
	}
	return false;
}

bool mirror_hosts_have(const char *hosts, const char *url) {
	char host[MIRROR_HOST_BYTES];
	return mirror_host(url, host) && has(hosts, host);
}

/* Adds a host, unless it is there; returns false if it has no room. */
static bool add(char *hosts, size_t cap, const char *host) {
	const size_t used = strlen(hosts);
	if (has(hosts, host))
		return true;
	if (used + (used > 0 ? strlen(SEPARATOR) : 0) + strlen(host) >= cap)
		return false;
	(void)snprintf(hosts + used, cap - used, "%s%s", used > 0 ? SEPARATOR : "", host);
	return true;
}

bool mirror_hosts_add(char *hosts, size_t cap, const char *url) {
	char host[MIRROR_HOST_BYTES];
	return mirror_host(url, host) && add(hosts, cap, host);
}

/* Writes the host that a person gives, n bytes, as mirror_host does. Returns false if there is
 * none. */
static bool read_host(const char *at, size_t n, char out[static MIRROR_HOST_BYTES]) {
	static const char store[] = "s3://";
	const bool is_store = n >= strlen(store) && strncmp(at, store, strlen(store)) == 0;
	char url[2 * MIRROR_HOST_BYTES];
	if (n >= MIRROR_HOST_BYTES || host_bytes(is_store ? at + strlen(store) : at) != n - (is_store ? strlen(store) : 0))
		return false;
	(void)snprintf(url, sizeof url, "%s%.*s", is_store ? "" : "http://", (int)n, at);
	return mirror_host(url, out);
}

enum rv_err mirror_hosts_read(const char *text, char *out, size_t cap, struct rv_errtext *et) {
	char host[MIRROR_HOST_BYTES];
	RV_ASSERT(text != out);
	out[0] = '\0';
	for (const char *at = text, *end; *text; at = end + 1) {
		at += strspn(at, " ");
		end = at + strcspn(at, ",");
		size_t n = (size_t)(end - at);
		while (n > 0 && at[n - 1] == ' ')
			n--;
		if (!read_host(at, n, host))
			return rv_fail(et, RV_E_INVALID,
						   "text-hosts: \"%.*s\" is no host: give host names without https://, port or path, or "
						   "s3://BUCKET, as a.example, b.example",
						   (int)(n < 80 ? n : 80), at);
		if (!add(out, cap, host))
			return rv_fail(et, RV_E_RANGE, "text-hosts: no room for %s, the list has at most %zu bytes", host, cap - 1);
		if (*end == '\0')
			break;
	}
	return RV_OK;
}

bool mirror_hosts_take(const char *hosts, const struct manifest *m, int64_t i) {
	char host[MIRROR_HOST_BYTES], other[MIRROR_HOST_BYTES];
	if (!mirror_hosts_have(hosts, m->mirrors[i]) || !mirror_host(m->mirrors[i], host))
		return false;
	for (int64_t k = 0; k < i; k++)
		if (mirror_host(m->mirrors[k], other) && strcmp(other, host) == 0)
			return false;
	return true;
}
