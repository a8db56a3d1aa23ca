#!/bin/sh
# needs.sh PLUGIN: fails when PLUGIN needs a shared library that is no part of glibc, carries a
# search path, or exports more than its one symbol. 77 (skipped): it is not built, for nvcc takes
# minutes; ./dev build builds it.
set -eu
if [ ! -f "$1" ]; then
	echo "skipped: $1 is not built"
	exit 77
fi
others=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -vE '^(libc\.so\.6|libm\.so\.6|libdl\.so\.2|librt\.so\.1|libpthread\.so\.0|ld-linux.*)$' || true)
[ -z "$others" ] || { echo "$1 needs" $others; exit 1; }
paths=$(readelf -d "$1" | grep -E '\((RPATH|RUNPATH)\)' || true)
[ -z "$paths" ] || { echo "$1 carries a search path: $paths"; exit 1; }
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }')
[ "$exported" = rivulet_plugin ] || { echo "$1 exports" $exported; exit 1; }
