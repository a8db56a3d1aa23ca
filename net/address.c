/* address.c: "host:port" texts and socket addresses (net/address.h). */
#include "net/address.h"

#include "base/assert.h"
#include "base/os_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_host_char(unsigned char c) {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
		   c == '_';
}

static bool is_v6_char(unsigned char c) {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == ':' ||
		   c == '%';
}

static enum rv_err parse_port(const char *text, const char *port, uint16_t *out, struct rv_errtext *et) {
	uint32_t value = 0;
	size_t n = strlen(port);
	if (n == 0 || n > 5 || strspn(port, "0123456789") != n)
		return rv_fail(et, RV_E_INVALID, "address \"%s\": the port must be 1 to 5 digits", text);
	for (size_t i = 0; i < n; i++)
		value = value * 10 + (uint32_t)(port[i] - '0');
	if (value > 65535)
		return rv_fail(et, RV_E_INVALID, "address \"%s\": port %u, must be 0 to 65535", text, value);
	*out = (uint16_t)value;
	return RV_OK;
}

enum rv_err address_parse(const char *text, struct address *out, struct rv_errtext *et) {
	*out = (struct address){0};
	if (strlen(text) >= NET_ADDR_BYTES)
		return rv_fail(et, RV_E_INVALID, "address: %zu bytes, at most %d", strlen(text), NET_ADDR_BYTES - 1);
	bool bracket = text[0] == '[';
	const char *host = bracket ? text + 1 : text;
	const char *end = bracket ? strchr(host, ']') : strrchr(text, ':');
	if (end == NULL || (bracket && end[1] != ':'))
		return rv_fail(et, RV_E_INVALID, "address \"%s\": must be host:port%s", text, bracket ? " or [v6]:port" : "");
	size_t n = (size_t)(end - host);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)host[i];
		if (!bracket && c == ':')
			return rv_fail(et, RV_E_INVALID, "address \"%s\": an IPv6 address stands in brackets: [v6]:port", text);
		if (bracket ? !is_v6_char(c) : !is_host_char(c))
			return rv_fail(et, RV_E_INVALID, "address \"%s\": byte 0x%02x cannot be in a host", text, c);
	}
	if (bracket && !memchr(host, ':', n))
		return rv_fail(et, RV_E_INVALID, "address \"%s\": only an IPv6 address stands in brackets", text);
	memcpy(out->host, host, n);
	return parse_port(text, bracket ? end + 2 : end + 1, &out->port, et);
}

bool address_format(const struct address *a, char out[NET_ADDR_BYTES]) {
	bool v6 = strchr(a->host, ':') != NULL;
	int n = snprintf(out, NET_ADDR_BYTES, v6 ? "[%s]:%u" : "%s:%u", a->host, (unsigned)a->port);
	return n > 0 && n < NET_ADDR_BYTES;
}

bool address_to_socket(const struct address *a, struct sockaddr_storage *out, socklen_t *out_bytes) {
	memset(out, 0, sizeof *out);
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	if (inet_pton(AF_INET, a->host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(a->port);
		*out_bytes = sizeof *v4;
		return true;
	}
	if (a->host[0] != '\0' && inet_pton(AF_INET6, a->host, &v6->sin6_addr) != 1)
		return false;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(a->port);
	*out_bytes = sizeof *v6;
	return true;
}

enum rv_err address_resolve(const struct address *a, struct address *out, struct rv_errtext *et) {
	struct sockaddr_storage sa = {0};
	socklen_t n;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *found = NULL;
	*out = *a;
	if (address_to_socket(a, &sa, &n))
		return RV_OK;
	int rc = getaddrinfo(a->host, NULL, &hints, &found);
	if (rc != 0)
		return rv_fail(et, RV_E_NOTFOUND, "%s: no address can be found for this name: %s", a->host, gai_strerror(rc));
	RV_ASSERT(found->ai_addrlen <= sizeof sa);
	memcpy(&sa, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	address_of_socket(&sa, out);
	out->port = a->port;
	return RV_OK;
}

void address_of_socket(const struct sockaddr_storage *sa, struct address *out) {
	*out = (struct address){0};
	if (sa->ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;
		inet_ntop(AF_INET, &v4->sin_addr, out->host, sizeof out->host);
		out->port = ntohs(v4->sin_port);
		return;
	}
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
	if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], out->host, sizeof out->host);
	else
		inet_ntop(AF_INET6, &v6->sin6_addr, out->host, sizeof out->host);
	out->port = ntohs(v6->sin6_port);
}

void address_site(const char *host, char out[NET_ADDR_BYTES]) {
	enum { SITE_BYTES = 8 };
	struct in6_addr v6;
	char text[INET6_ADDRSTRLEN];
	if (inet_pton(AF_INET6, host, &v6) != 1 || IN6_IS_ADDR_V4MAPPED(&v6)) {
		(void)snprintf(out, NET_ADDR_BYTES, "%s", host);
		return;
	}
	memset(&v6.s6_addr[SITE_BYTES], 0, sizeof v6.s6_addr - SITE_BYTES);
	(void)snprintf(out, NET_ADDR_BYTES, "%s/64", inet_ntop(AF_INET6, &v6, text, sizeof text));
}

static bool listen_at(int fd, struct sockaddr_storage *sa, socklen_t n, int receive_bytes, int backlog) {
	const int yes = 1, no = 0;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	/* Else a reply's body waits for the acknowledgement of its head: 40 ms and a round trip. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	if (receive_bytes > 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
	if (sa->ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
	socklen_t room = sizeof *sa;
	return bind(fd, (struct sockaddr *)sa, n) == 0 && listen(fd, backlog) == 0 &&
		   getsockname(fd, (struct sockaddr *)sa, &room) == 0;
}

int address_listen(const struct address *a, int receive_bytes, int backlog, struct address *bound) {
	struct sockaddr_storage sa;
	socklen_t n;
	errno = EINVAL;
	if (!address_to_socket(a, &sa, &n))
		return -1;
	int fd = os_socket_open(sa.ss_family, SOCK_STREAM);
	if (fd < 0 && a->host[0] == '\0') { /* without IPv6, every address means every IPv4 address */
		const struct address any4 = {.host = "0.0.0.0", .port = a->port};
		(void)address_to_socket(&any4, &sa, &n);
		fd = os_socket_open(sa.ss_family, SOCK_STREAM);
	}
	if (fd >= 0 && listen_at(fd, &sa, n, receive_bytes, backlog)) {
		address_of_socket(&sa, bound);
		return fd;
	}
	int error = errno;
	if (fd >= 0)
		(void)close(fd);
	errno = error;
	return -1;
}
