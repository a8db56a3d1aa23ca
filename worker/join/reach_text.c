/* reach_text.c: see reach_text.h. */
#include "worker/join/reach_text.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
	char *out;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...) {
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(t->out + t->n, REACH_TEXT_BYTES - t->n, fmt, args);
	va_end(args);
	t->n += (size_t)n;
	RV_ASSERT(n >= 0 && t->n < REACH_TEXT_BYTES);
}

/* Writes the place with the host at which the worker is seen. */
static void whole_address(const struct reach_facts *f, const struct reach_place *p, char out[NET_ADDR_BYTES]) {
	struct address a = {.port = 0};
	(void)address_parse(p->addr, &a, NULL);
	if (a.host[0] == '\0')
		memcpy(a.host, f->seen, sizeof a.host);
	if (!address_format(&a, out))
		out[0] = '\0';
}

static const struct reach_place *find(const struct reach_facts *f, enum reach_place_kind kind) {
	for (int i = 0; i < f->n; i++)
		if (f->places[i].kind == kind)
			return &f->places[i];
	return NULL;
}

static void put_reach(struct text *t, const struct reach_facts *f) {
	char at[NET_ADDR_BYTES] = "";
	const struct reach_place *open = reach_open_place(f);
	if (open != NULL)
		whole_address(f, open, at);
	switch (reach_of_facts(f)) {
	case REACH_DIRECT:
		put(t, "others reach this worker directly, at %s", at);
		return;
	case REACH_MAPPED:
		put(t, "others reach this worker by the port that your router mapped, %s", at);
		return;
	case REACH_PUNCH:
		put(t, "others cannot dial this worker, but punching works: both dial at one moment");
		return;
	case REACH_RELAY:
		if (!f->has_relays)
			put(t, "others cannot dial this worker, and the run has no relay: it meets only those that it can dial");
		else if (f->mapping == CHECK_MAPPING_DEPENDENT)
			put(t, "others reach this worker through a relay only: your router is symmetric, it uses another port for "
				   "each destination");
		else
			put(t, "others reach this worker through a relay only, as far as is known");
		return;
	default:
		put(t, "how others reach this worker is not known: %s",
			f->why[0] != '\0'   ? f->why
			: f->n_probers == 0 ? "no member at another address could test it"
								: "those who tested it have no way to its address");
	}
}

/* Writes the one step after which others could dial the worker. */
static void put_step(struct text *t, const struct reach_facts *f) {
	const struct reach_place *given = find(f, REACH_PLACE_GIVEN), *mapped = find(f, REACH_PLACE_MAPPED);
	char at[NET_ADDR_BYTES];
	if (given != NULL) {
		whole_address(f, given, at);
		put(t,
			". Nobody gets through to %s, which --advertise names%s: have it forwarded to TCP port %u of this machine",
			at, given->result == PROBE_OTHER_KEY ? " (another program answers there)" : "", f->port);
	} else if (mapped != NULL || f->router.behind_another) {
		put(t,
			". Your router %s, but another router, most likely your provider's, is before it: ask the provider for a "
			"public IPv4 address, or for IPv6",
			mapped != NULL ? "says that it forwards a port" : "would forward a port");
		return;
	} else if (f->local[0] != '\0' && strcmp(f->local, f->seen) == 0) {
		put(t, ". To be reachable, let TCP port %u in through the firewall of this machine or its router", f->port);
	} else {
		put(t, ". To be reachable, forward TCP port %u in your router to this machine", f->port);
	}
	if (f->local[0] != '\0')
		put(t, " (%s)", f->local);
}

void reach_text(const struct reach_facts *f, char out[REACH_TEXT_BYTES]) {
	struct text t = {.out = out};
	enum reach_kind reach = reach_of_facts(f);
	put_reach(&t, f);
	if (reach == REACH_PUNCH || reach == REACH_RELAY)
		put_step(&t, f);
}
