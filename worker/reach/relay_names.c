/* relay_names.c: see relay_names.h. */
#include "worker/reach/relay_names.h"

#include "base/clock.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum { GOOD_US = 60 * RV_US_PER_S, FAILED_US = RV_US_PER_S };

/* What the C library's thread works with. */
struct lookup {
	struct gaicb request, *list[1];
	struct addrinfo hints;
	char host[NET_ADDR_BYTES];
};

struct name {
	char host[NET_ADDR_BYTES]; /* "": free */
	struct lookup *lookup;     /* NULL: none is under way */
	int64_t until_us;          /* the answer is good; 0: there is none */
	const char *why;           /* NULL: found */
	struct address at[REACH_FAMILIES];
	enum reach_family first;
};

struct relay_names {
	struct name names[NET_MAX_RELAYS];
};

static void free_lookup(struct lookup *l) {
	if (l->request.ar_result != NULL)
		freeaddrinfo(l->request.ar_result);
	free(l);
}

struct relay_names *relay_names_new(void) {
	return calloc(1, sizeof(struct relay_names));
}

void relay_names_free(struct relay_names *n) {
	for (int i = 0; n != NULL && i < NET_MAX_RELAYS; i++)
		if (n->names[i].lookup != NULL && gai_cancel(&n->names[i].lookup->request) != EAI_NOTCANCELED)
			free_lookup(n->names[i].lookup);
	free(n);
}

bool relay_names_busy(const struct relay_names *n) {
	bool busy = false;
	for (int i = 0; i < NET_MAX_RELAYS; i++)
		busy = busy || n->names[i].lookup != NULL;
	return busy;
}

/* ---- one name ---- */

static void answer(struct name *e, int64_t now_us, const char *why) {
	e->why = why;
	e->until_us = now_us + (why == NULL ? GOOD_US : FAILED_US);
}

static void begin(struct name *e, int64_t now_us) {
	struct lookup *l = calloc(1, sizeof *l);
	if (l == NULL) {
		answer(e, now_us, "no memory");
		return;
	}
	memcpy(l->host, e->host, sizeof l->host);
	l->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	l->request = (struct gaicb){.ar_name = l->host, .ar_request = &l->hints};
	l->list[0] = &l->request;
	if (getaddrinfo_a(GAI_NOWAIT, l->list, 1, NULL) == 0) {
		e->lookup = l;
		return;
	}
	free(l);
	answer(e, now_us, "the name service cannot be asked");
}

/* Keeps the first address of each family. */
static void take_addresses(struct name *e, const struct addrinfo *list) {
	memset(e->at, 0, sizeof e->at);
	for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
		struct sockaddr_storage sa = {0};
		enum reach_family family = a->ai_family == AF_INET6 ? REACH_V6 : REACH_V4;
		if (e->at[family].host[0] != '\0' || a->ai_addrlen > sizeof sa)
			continue;
		memcpy(&sa, a->ai_addr, a->ai_addrlen);
		address_of_socket(&sa, &e->at[family]);
		e->first = a == list ? family : e->first;
	}
}

static void take_end(struct name *e, int64_t now_us) {
	int error = gai_error(&e->lookup->request);
	if (error == EAI_INPROGRESS)
		return;
	if (error == 0)
		take_addresses(e, e->lookup->request.ar_result);
	answer(e, now_us, error == 0 ? NULL : gai_strerror(error));
	free_lookup(e->lookup);
	e->lookup = NULL;
}

/* Returns the entry of the host, or a free one for it, or that of the oldest answer; NULL: lookups
 * are under way in all. */
static struct name *entry_of(struct relay_names *n, const char *host) {
	struct name *oldest = NULL;
	for (int i = 0; i < NET_MAX_RELAYS; i++) {
		struct name *e = &n->names[i];
		if (strcmp(e->host, host) == 0)
			return e;
		if (e->lookup == NULL && (oldest == NULL || e->until_us < oldest->until_us))
			oldest = e;
	}
	if (oldest == NULL)
		return NULL;
	*oldest = (struct name){0};
	strncpy(oldest->host, host, sizeof oldest->host - 1);
	return oldest;
}

enum name_state relay_names_find(struct relay_names *n, int64_t now_us, const char *host,
								 struct address at[REACH_FAMILIES], enum reach_family *first, const char **why) {
	struct name *e = entry_of(n, host);
	*why = "the name service does not answer";
	if (e == NULL)
		return NAME_FAILED;
	if (e->lookup == NULL && now_us >= e->until_us)
		begin(e, now_us);
	if (e->lookup != NULL)
		take_end(e, now_us);
	if (e->lookup != NULL)
		return NAME_SOUGHT;
	*why = e->why;
	*first = e->first;
	memcpy(at, e->at, sizeof e->at);
	return e->why == NULL ? NAME_FOUND : NAME_FAILED;
}
