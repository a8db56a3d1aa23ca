/* file_names.h: the names of a published text's files. */
#ifndef RV_TRAIN_TEXT_PUBLISHED_FILE_NAMES_H
#define RV_TRAIN_TEXT_PUBLISHED_FILE_NAMES_H

#include <stdbool.h>

/* Reports whether a published text has files of such a name: nothing else is served. There is no
 * slash and no leading dot in them. */
bool file_name_is_published(const char *name);

#endif
