/* ports.c: see ports.h. */
#include "net/relay_server/ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 256, PORTS_TRIED = 64, LAST_PORT = 65535 };

void relay_ports_close(struct relay_ports *p) {
	for (int i = 0; i < RELAY_PORTS; i++)
		if (p->fd[i] >= 0)
			(void)close(p->fd[i]);
	*p = RELAY_NO_PORTS;
}

enum rv_err relay_second_parse(const char *text, int *out, struct rv_errtext *et) {
	bool digits = text[0] != '\0' && strlen(text) <= 5 && strspn(text, "0123456789") == strlen(text);
	long port = digits ? strtol(text, NULL, 10) : 0;
	*out = strcmp(text, "next") == 0 ? RELAY_SECOND_NEXT : (int)port;
	if (strcmp(text, "next") == 0 || strcmp(text, "none") == 0 || (port > 0 && port <= LAST_PORT))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "%s: must be next (the first free port above the relay's), none, or 1 to %d", text,
				   LAST_PORT);
}

static bool open_at(const struct address *main, int port, struct relay_ports *p) {
	struct address at = *main, bound;
	if (port <= 0 || port > LAST_PORT || port == main->port)
		return false;
	at.port = (uint16_t)port;
	p->fd[RELAY_SECOND_PORT] = address_listen(&at, 0, BACKLOG, &bound);
	p->port[RELAY_SECOND_PORT] = p->fd[RELAY_SECOND_PORT] >= 0 ? at.port : 0;
	return p->fd[RELAY_SECOND_PORT] >= 0;
}

enum rv_err relay_second_open(const struct address *main, int wanted, uint16_t kept, struct relay_ports *p,
							  struct rv_errtext *et) {
	p->fd[RELAY_SECOND_PORT] = -1;
	p->port[RELAY_SECOND_PORT] = 0;
	if (wanted == RELAY_SECOND_NONE)
		return RV_OK;
	if (wanted == RELAY_SECOND_NEXT) {
		bool open = open_at(main, kept, p);
		for (int i = 1; i <= PORTS_TRIED && !open; i++)
			open = open_at(main, main->port + i, p);
		return RV_OK;
	}
	if (wanted == main->port)
		return rv_fail(et, RV_E_INVALID, "%d is the relay's port: the second one must be another", wanted);
	if (open_at(main, wanted, p))
		return RV_OK;
	return errno == EADDRINUSE ? rv_fail(et, RV_E_BUSY, "port %d is taken: choose another one, next, or none", wanted)
							   : rv_fail_errno(et, errno, "cannot listen on port %d", wanted);
}
