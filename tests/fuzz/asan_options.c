/* asan_options.c: what all fuzzers ask of AddressSanitizer, unless ASAN_OPTIONS says otherwise.
 * Freed memory is kept from reuse for 8 MiB, more than an execution frees, instead of 256: it stays
 * in caches, and little is resident. */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
	return "quarantine_size_mb=8";
}
