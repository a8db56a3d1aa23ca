/* def_end.h: see def_begin.h. */
#undef VENDOR_VALUE
#undef VENDOR_ENUM
#undef VENDOR_HANDLE
#undef VENDOR_STRUCT
#undef VENDOR_FIELD
#undef VENDOR_FUNCTION
