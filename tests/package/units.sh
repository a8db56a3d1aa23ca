#!/usr/bin/env bash
# units.sh INSTALLED: systemd finds nothing wrong with the units installed there, and nothing
# exposed beyond a bound.
set -euo pipefail
. "$(dirname "$0")/skip.sh"
needs systemd-analyze systemd
installed=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# check MODE UNIT: systemd reads the unit and says nothing.
check() {
	local said
	said=$(systemd-analyze "--$1" verify --man=no "$2" 2>&1) || true
	# In a container systemd may speak of itself, not of the unit.
	said=$(grep -F rivulet <<<"$said" || true)
	[ -z "$said" ] || {
		printf '%s: %s\n' "$2" "$said"
		exit 1
	}
}

# The programs are where this install put them, not where packages do.
copy() {
	sed "s|^ExecStart=/[^ ]*/|ExecStart=$installed/bin/|" "$1" >"$2"
}
for unit in "$installed"/lib/systemd/system/*@.service; do
	copy "$unit" "$root/$(basename "$unit")"
done
for unit in "$root"/*@.service; do
	name=$(basename "$unit" @.service)
	cp "$unit" "$root/$name@try.service"
	check system "$root/$name@try.service"
done
mkdir "$root/user"
copy "$installed/lib/systemd/user/rivulet-worker.service" "$root/user/rivulet-worker.service"
XDG_RUNTIME_DIR=$root check user "$root/user/rivulet-worker.service"

# The exposure that systemd computes, in tenths of 0 (confined) to 100.
exposure() {
	systemd-analyze security --offline=true --no-pager "$root/$1@try.service" 2>/dev/null |
		sed -n 's/^.*Overall exposure level for [^:]*: \([0-9]*\)\.\([0-9]\) .*/\1\2/p'
}
for name in rivulet-worker rivulet-coordinator; do
	is=$(exposure "$name")
	printf '%s: exposure %s tenths\n' "$name" "${is:-unknown}"
	[ -n "$is" ] && [ "$is" -le 20 ] || {
		printf '%s: an exposure of at most 20 tenths is wanted\n' "$name"
		exit 1
	}
done
