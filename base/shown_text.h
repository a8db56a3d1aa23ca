/* shown_text.h: which texts of strangers may be shown on terminals and pages.
 *
 * Pure functions; any thread may call them. */
#ifndef RIVULET_BASE_SHOWN_TEXT_H
#define RIVULET_BASE_SHOWN_TEXT_H

/* Returns NULL, or the violated condition: well-formed UTF-8 (RFC 3629). */
const char *rv_utf8_invalid(const char *text);

/* Returns NULL, or the condition that a text for terminals and pages violates: well-formed UTF-8
 * without characters that change the text around them: C1 controls (U+0080 to U+009F, 8-bit escape
 * sequences), line separators, controls of the direction of writing (Unicode UAX 9). Characters
 * below U+0020 and U+007F are the caller's to judge. */
const char *rv_shown_invalid(const char *text);

#endif
