#!/usr/bin/env bash
# launcher.sh CC SOURCE: the portable tarball's launcher hands its arguments to the loader beside it,
# through links too, and sets what the program must not find out for itself.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/bin" "$work/tree/libexec"
"$1" -static -O2 -Wall -Wextra -Werror -o "$work/tree/bin/rivulet-worker" "$2"
cat >"$work/tree/libexec/rivulet-worker" <<'LOADER'
#!/bin/sh
printf '<%s>' "$@"
printf ' %s %s\n' "${OMP_WAIT_POLICY:-none}" "${SSL_CERT_FILE:-none}"
LOADER
chmod +x "$work/tree/libexec/rivulet-worker"
ln -s "$work/tree/bin/rivulet-worker" "$work/link"

# expect WANTED COMMAND...
expect() {
	local wanted=$1 said
	shift
	said=$(env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT -u SSL_CERT_FILE "$@")
	# Which authorities there are is this machine's.
	[ "${said% *}" = "$wanted" ] || {
		printf 'wanted %s\n   got %s\n' "$wanted" "${said% *}"
		exit 1
	}
}
behind="<--library-path><$work/tree/lib><$work/tree/lib/rivulet/rivulet-worker.bin>"
expect "<--argv0><$work/link>$behind<--dir><a b><> passive" "$work/link" --dir 'a b' ''
expect "<--argv0><$work/link>$behind active" env OMP_WAIT_POLICY=active "$work/link"
expect "<--argv0><$work/link>$behind none" env GOMP_SPINCOUNT=5 "$work/link"
said=$(SSL_CERT_FILE=/mine "$work/link")
[ "${said##* }" = /mine ]
rm "$work/tree/libexec/rivulet-worker"
if said=$("$work/link" 2>&1); then
	exit 1
fi
[ "$said" = "rivulet-worker: $work/tree/libexec/rivulet-worker: No such file or directory" ]
printf 'ok: launcher\n'
