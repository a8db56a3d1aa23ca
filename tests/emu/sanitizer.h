// sanitizer.h: EMU_ASAN where AddressSanitizer is compiled in, by gcc's or clang's way of saying
// so.
#ifndef RV_TESTS_EMU_SANITIZER_H
#define RV_TESTS_EMU_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif

#ifdef EMU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#endif
