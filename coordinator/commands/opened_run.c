/* opened_run.c: see opened_run.h. */
#include "coordinator/commands/opened_run.h"
#include "coordinator/store/sqlite.h"

#include "base/clock.h"
#include "base/file.h"

#include <string.h>
#include <time.h>

enum { RETRY_MS = 100 };

static enum rv_err take_lock(const char *dir, int64_t patience_ms, int *fd, struct rv_errtext *et) {
	for (;;) {
		enum rv_err e = rv_dir_lock(dir, fd, et);
		if (e != RV_E_BUSY || patience_ms <= 0)
			return e;
		const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000};
		(void)nanosleep(&pause, NULL);
		patience_ms -= RETRY_MS;
	}
}

/* Keeps the address for links that are made while no coordinator serves. On a full disk a
 * coordinator serves without that. */
static enum rv_err keep_advertise(struct opened_run *r, const char *text, struct rv_events *events,
								  struct rv_errtext *et) {
	struct rv_errtext why = {0};
	enum rv_err e = r->store->ops->set(r->store, "advertise", text, &why);
	if (e == RV_OK)
		return RV_OK;
	if (e != RV_E_FULL || events == NULL)
		return rv_fail(et, e, "%s", why.text);
	rv_event(events, RV_WARN, "advertise_not_kept", RV_FIELDS(rv_field_str("advertise", text)),
			 "%s; serving without it: links made while this coordinator does not run will have another address",
			 why.text);
	return RV_OK;
}

/* Finds the address for links: the given one, or that of the last `serve`. */
static enum rv_err find_advertise(struct opened_run *r, const struct address *told, struct rv_events *events,
								  struct address *out, struct rv_errtext *et) {
	char kept[NET_ADDR_BYTES], text[NET_ADDR_BYTES];
	RV_TRY(r->store->ops->get(r->store, "advertise", kept, sizeof kept, et));
	if (told == NULL)
		return kept[0] != '\0' ? address_parse(kept, out, et) : RV_OK;
	*out = *told;
	if (!address_format(told, text))
		return rv_fail(et, RV_E_RANGE, "--advertise: the address is too long");
	return strcmp(kept, text) == 0 ? RV_OK : keep_advertise(r, text, events, et);
}

/* Finds the numeric form of the advertised host, for members seen on this machine or in its
 * network. A name without an address at present is no fault: those members are announced where they
 * are seen. */
static void find_site(const struct address *advertise, struct rv_events *events, char site[NET_ADDR_BYTES]) {
	struct address found;
	struct rv_errtext why = {0};
	if (events == NULL)
		return; /* not serving */
	if (address_resolve(advertise, &found, &why) == RV_OK)
		memcpy(site, found.host, NET_ADDR_BYTES);
	else
		rv_event(events, RV_WARN, "advertise_unknown", RV_NO_FIELDS,
				 "--advertise: %s; workers on this machine are announced at addresses of this machine", why.text);
}

static void list_relays(const struct run_relays *relays, struct service_config *cfg) {
	cfg->n_relays = relays->n;
	memcpy(cfg->relays, relays->at, sizeof cfg->relays);
	if (relays->has_own)
		memcpy(cfg->relays[0].key, cfg->serving->key, NET_KEY_BYTES);
}

static enum rv_err load(struct opened_run *r, const struct address *advertise, const struct run_relays *relays,
						struct rv_events *events, struct rv_errtext *et) {
	struct service_config cfg = {.serving = &r->keys.serving,
								 .config = r->config,
								 .dir = r->dir.dir,
								 .events = events,
								 .rounds_path = events != NULL ? r->dir.rounds : NULL};
	RV_TRY(run_keys_load(r->dir.key, &r->keys, et));
	cfg.root = r->keys.root;
	RV_TRY(sqlite_store_open(r->dir.store, &r->store, et));
	RV_TRY(r->store->ops->run(r->store, cfg.run_id, r->config, et));
	RV_TRY(run_keys_check(&r->keys, cfg.run_id, r->dir.key, et));
	RV_TRY(find_advertise(r, advertise, events, &cfg.advertise, et));
	find_site(&cfg.advertise, events, cfg.site);
	if (relays != NULL)
		list_relays(relays, &cfg);
	cfg.store = r->store;
	RV_TRY(service_new(&cfg, rv_clock_monotonic_us(), &r->service, et));
	return service_load(r->service, et);
}

enum rv_err opened_run_open(const struct run_dir *dir, int64_t patience_ms, const struct address *advertise,
							const struct run_relays *relays, struct rv_events *events, struct opened_run *out,
							struct rv_errtext *et) {
	memset(out, 0, sizeof *out);
	out->dir = *dir;
	out->lock = -1;
	RV_TRY(take_lock(dir->dir, patience_ms, &out->lock, et));
	enum rv_err e = load(out, advertise, relays, events, et);
	if (e != RV_OK)
		opened_run_close(out);
	return e;
}

void opened_run_close(struct opened_run *r) {
	service_free(r->service);
	store_close(r->store);
	run_keys_release(&r->keys);
	if (r->dir.dir[0] != '\0')
		rv_dir_unlock(r->lock);
	memset(r, 0, sizeof *r);
}
