/* clean_text.h: names from files, before they are shown: in a page, a table, a terminal. */
#ifndef RV_BASE_CLEAN_TEXT_H
#define RV_BASE_CLEAN_TEXT_H

/* Makes `text` valid UTF-8 that stays on its line, in place: control characters, bytes that are no
 * UTF-8 (a name cut in the middle of a character, too), and marks that turn the direction of
 * writing become '?', byte by byte. */
void clean_text(char *text);

#endif
