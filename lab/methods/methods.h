/* methods.h: the registry of methods: one line of methods.def and one file each. The interface is
 * struct lab_method. */
#ifndef RV_LAB_METHODS_H
#define RV_LAB_METHODS_H

#include "lab/run/lab_run.h"

#define LAB_METHOD(name, light, dark, about) extern const struct lab_method lab_method_##name;
#include "lab/methods/methods.def"
#undef LAB_METHOD
#define LAB_METHOD(name, light, dark, about) METHOD_##name,
/* Places in lab_methods, and of the choices of --method. */
enum lab_method_choice {
#include "lab/methods/methods.def"
	N_METHODS
};
#undef LAB_METHOD
extern const struct lab_method *const lab_methods[N_METHODS + 1]; /* NULL-terminated */
const struct lab_method *lab_method_find(const char *name);       /* NULL: there is none */

#endif
