/* replay.c: runs a fuzzer over the files of the directories named on the command line, in builds
 * without libFuzzer. Each file is also given cut at every length up to CUTS_MAX, and with each of
 * its first bytes flipped, which keeps a small corpus sharp. */
#include "base/file.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20, CUTS_MAX = 512, FLIPS_MAX = 512 };

/* On a copy of exactly the size, so that AddressSanitizer sees a read past its end. */
static void run_copy(const uint8_t *data, size_t size, size_t flip_at) {
	uint8_t *copy = malloc(size ? size : 1);
	RV_ASSERT(copy);
	memcpy(copy, data, size);
	if (flip_at < size)
		copy[flip_at] ^= 0xff;
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static int replay_file(const char *path) {
	uint8_t *data;
	size_t size;
	struct rv_errtext et = {0};
	if (rv_file_read(path, FILE_BYTES_MAX, &data, &size, &et) != RV_OK) {
		(void)fprintf(stderr, "%s\n", et.text);
		return 1;
	}
	run_copy(data, size, SIZE_MAX);
	for (size_t n = 0; n < size && n < CUTS_MAX; n++)
		run_copy(data, n, SIZE_MAX);
	for (size_t i = 0; i < size && i < FLIPS_MAX; i++)
		run_copy(data, size, i);
	free(data);
	return 0;
}

/* Returns the number of files, or -1. */
static int replay_dir(const char *dir) {
	DIR *d = opendir(dir);
	if (!d) {
		(void)fprintf(stderr, "%s: cannot open the corpus\n", dir);
		return -1;
	}
	int n = 0, bad = 0;
	for (struct dirent *e; (e = readdir(d));) {
		char path[1024];
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		bad |= replay_file(path);
		n++;
	}
	closedir(d);
	return bad ? -1 : n;
}

int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		int n = replay_dir(argv[i]);
		if (n <= 0) {
			(void)fprintf(stderr, "%s: %s\n", argv[i], n ? "failed" : "the corpus is empty");
			return 1;
		}
		(void)printf("%s: %d files\n", argv[i], n);
	}
	return 0;
}
