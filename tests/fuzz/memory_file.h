/* memory_file.h: bytes as a file with a path, for parsers that open one. Linux. */
#ifndef RV_TESTS_FUZZ_MEMORY_FILE_H
#define RV_TESTS_FUZZ_MEMORY_FILE_H

#include <stddef.h>

/* Returns a descriptor to close(); `path` names the file while that is open. */
int memory_file(const void *data, size_t size, char path[static 64]);

#endif
