/* def_begin.h: the macros of the lists in this folder (*.def). No include guard: each list includes
 * it, and def_end.h behind its last line. The includer defines those that it wants; the others
 * become nothing.
 *
 *   VENDOR_VALUE(name, value)       an enumerator
 *   VENDOR_ENUM(type)               an integer type of 4 bytes
 *   VENDOR_HANDLE(type)             a pointer to what only the library knows
 *   VENDOR_STRUCT(type, bytes)      a struct, its size
 *   VENDOR_FIELD(type, field, at)   a field of it, its offset in bytes
 *   VENDOR_FUNCTION(result, name, parameters) */
#ifndef VENDOR_VALUE
#define VENDOR_VALUE(name, value)
#endif
#ifndef VENDOR_ENUM
#define VENDOR_ENUM(type)
#endif
#ifndef VENDOR_HANDLE
#define VENDOR_HANDLE(type)
#endif
#ifndef VENDOR_STRUCT
#define VENDOR_STRUCT(type, bytes)
#endif
#ifndef VENDOR_FIELD
#define VENDOR_FIELD(type, field, offset)
#endif
#ifndef VENDOR_FUNCTION
#define VENDOR_FUNCTION(result, name, parameters)
#endif
