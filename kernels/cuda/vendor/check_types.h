/* check_types.h: defines the macros of def_begin.h that compare the types in scope with a list:
 * sizes, offsets, and whether a value is an integer or a pointer, which decides how it is passed.
 * No include guard: before each list. */
#define VENDOR_ENUM(type)             _Static_assert(sizeof(type) == 4 && __builtin_classify_type((type)0) == 1, #type);
#define VENDOR_HANDLE(type)           _Static_assert(__builtin_classify_type((type)0) == 5, #type);
#define VENDOR_STRUCT(type, bytes)    _Static_assert(sizeof(type) == (bytes), #type);
#define VENDOR_FIELD(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field);
