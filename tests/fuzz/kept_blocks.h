/* kept_blocks.h: the largest blocks that the code under test allocates, kept for the next
 * execution. AddressSanitizer maps and unmaps each block of 256 KiB and more, and its shadow: for
 * state of half a megabyte that takes longer than what is done with it. A program that has
 * kept_blocks.c is linked with --wrap of malloc, calloc, realloc and free. */
#ifndef RV_TESTS_FUZZ_KEPT_BLOCKS_H
#define RV_TESTS_FUZZ_KEPT_BLOCKS_H

/* How many have not been freed: 0 at the end of an execution, or they leak. A freed one is poisoned
 * until it is allocated again, by the next call that asks for its very size. */
int kept_blocks_in_use(void);

#endif
