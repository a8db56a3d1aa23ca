#!/bin/sh
# declarations.sh ROOT CC HEADER LIST FOLDER...: compiles declarations.c for
# kernels/cuda/vendor/LIST with NVIDIA's HEADER, which is in one of the FOLDERs or where the
# compiler looks by itself. A LIST in which one value, one size, one offset and one parameter were
# changed must not compile. 77 (skipped): the header is not installed.
set -eu
root=$1 cc=$2 header=$3 list=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for folder; do
	set -- "$@" -isystem "$folder"
	shift
done
compile() { # LIST ARGS...
	changed=$1
	shift
	"$cc" -std=c17 -Wall -fsyntax-only -I"$root" "$@" -DVENDOR_HEADER="<$header>" -DVENDOR_LIST="\"$changed\"" \
		"$root/tests/kernels/vendor/declarations.c" 2>"$work/log"
}
printf '#include <%s>\n' "$header" >"$work/has.c"
if ! "$cc" -fsyntax-only "$@" "$work/has.c" 2>"$work/log"; then
	grep -q "$header.*\(No such file\|not found\)" "$work/log" || { cat "$work/log"; exit 1; }
	echo "skipped: $header is not installed"
	exit 77
fi
whole=$root/kernels/cuda/vendor/$list
compile "$whole" "$@" || { cat "$work/log"; exit 1; }
checked=0
for change in '/^VENDOR_VALUE/{s/, 0)/, 1)/;t;s/, [0-9]*)/, 0)/}' '/^VENDOR_STRUCT/s/, [0-9]*)/, 72)/' \
	'/^VENDOR_FIELD/s/, \([0-9]*\))/, \18)/' '/^VENDOR_FUNCTION/s/(void)/(int)/' '/^VENDOR_FUNCTION/s/ \*)/)/' \
	's/int rank))/long rank))/' 's/size_t bytes))/int bytes))/' 's/int64_t n,/int n,/' 's/^VENDOR_HANDLE(\(.*\))/VENDOR_ENUM(\1)/' \
	's/^VENDOR_ENUM(\(.*\))/VENDOR_HANDLE(\1)/'; do
	sed "$change" "$whole" >"$work/changed.def"
	cmp -s "$whole" "$work/changed.def" && continue
	checked=$((checked + 1))
	if compile "$work/changed.def" "$@"; then
		echo "$list compiles although changed by: $change"
		exit 1
	fi
done
echo "$list: $(grep -c '^VENDOR_' "$whole") declarations are those of $header; $checked kinds of change are found"
