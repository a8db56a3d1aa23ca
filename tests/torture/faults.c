/* faults.c: see faults.h. */
#include "tests/torture/faults.h"
#include "tests/torture/faults_hit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { SITES_MAX = 1024 };

static struct {
	atomic_bool armed, all_threads, kept_files;
	pthread_t thread; /* whose calls fail */
	atomic_long calls, failed;
	long nth;
	enum faults_mode mode;
	_Atomic(uintptr_t) sites[SITES_MAX]; /* hash table, 0: free */
	atomic_int n_sites;
} faults;

static void note_site(uintptr_t site) {
	for (uintptr_t i = site % SITES_MAX, n = 0; n < SITES_MAX; n++, i = (i + 1) % SITES_MAX) {
		uintptr_t none = 0;
		if (atomic_compare_exchange_strong(&faults.sites[i], &none, site)) {
			atomic_fetch_add(&faults.n_sites, 1);
			return;
		}
		if (none == site)
			return;
	}
}

/* Whether the call made at `site` shall fail. */
bool faults_hit(const void *site) {
	bool ours = atomic_load(&faults.all_threads) || pthread_equal(faults.thread, pthread_self());
	if (!atomic_load(&faults.armed) || !ours)
		return false;
	long call = atomic_fetch_add(&faults.calls, 1) + 1;
	if (faults.nth == 0 || call < faults.nth || (call > faults.nth && faults.mode == FAULTS_ONCE))
		return false;
	atomic_fetch_add(&faults.failed, 1);
	note_site((uintptr_t)site);
	return true;
}

void faults_arm(long nth, enum faults_mode mode) {
	faults.thread = pthread_self();
	faults.nth = nth;
	faults.mode = mode;
	atomic_store(&faults.calls, 0);
	atomic_store(&faults.failed, 0);
	atomic_store(&faults.kept_files, false);
	atomic_store(&faults.armed, true);
}

bool faults_hit_removal(const void *site) {
	bool hit = faults_hit(site);
	if (hit)
		atomic_store(&faults.kept_files, true);
	return hit;
}

bool faults_kept_files(void) {
	return atomic_load(&faults.kept_files);
}

void faults_of_all_threads(bool all) {
	atomic_store(&faults.all_threads, all);
}

long faults_disarm(void) {
	atomic_store(&faults.armed, false);
	return atomic_load(&faults.failed);
}

long faults_calls(void) {
	return atomic_load(&faults.calls);
}

int faults_sites(void) {
	return atomic_load(&faults.n_sites);
}
