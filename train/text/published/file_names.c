/* file_names.c: see file_names.h. */
#include "train/text/published/file_names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

bool file_name_is_published(const char *name) {
	static const char *const patterns[] = {"manifest.json", "tokenizer.json", "tokenizer.tiktoken",
										   "index-[0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]*.hashes",
										   "shard-[0-9][0-9][0-9][0-9][0-9][0-9]*.bin"};
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-.", *c))
			return false;
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}
