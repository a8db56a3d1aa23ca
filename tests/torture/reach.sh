#!/bin/sh
# reach.sh NM DIR OTHERS... -- LIBRARIES...: fails when LIBRARIES call something outside of them and
# OTHERS that neither DIR/faults_wrap.c makes fail nor DIR/unwrapped.txt names: torture would pass
# it over in silence.
set -eu
nm=$1 dir=$2
shift 2
others=
while [ "$1" != -- ]; do
	others="$others $1"
	shift
done
shift
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
# shellcheck disable=SC2086
"$nm" $others "$@" 2>/dev/null | awk '$2 ~ /^[TDBRVWtdbrvw]$/ { print $3 }' >"$work/known"
sed -En 's/^WRAP(_DONE|_REMOVAL|_POINTER)?\([^,]*, ([A-Za-z0-9_]+),.*/\2/p; s/.* \*?__wrap_([a-z_]+)\(.*/\1/p' "$dir/faults_wrap.c" >>"$work/known"
sed 's/#.*//' "$dir/unwrapped.txt" | tr -s ' \t' '\n\n' | sed '/^$/d' >"$work/listed"
grep -vF '*' "$work/listed" >>"$work/known"
sort -u -o "$work/known" "$work/known"
# Of compilers, sanitizers and the linker; and families of names ("sqlite3_*").
families="-e ^_"
for family in $(grep -F '*' "$work/listed" | tr -d '*'); do
	families="$families -e ^$family"
done
# shellcheck disable=SC2086
"$nm" -u "$@" 2>/dev/null | awk '{ print $2 }' | sort -u | comm -23 - "$work/known" | sed '/^$/d' | grep -v $families >"$work/left" || true
if [ -s "$work/left" ]; then
	echo "called, and neither made to fail nor excused in unwrapped.txt:"
	cat "$work/left"
	exit 1
fi
echo "$("$nm" -u "$@" 2>/dev/null | awk '{ print $2 }' | sort -u | comm -12 - "$work/known" | wc -l) calls known"
