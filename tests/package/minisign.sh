#!/usr/bin/env bash
# minisign.sh RIVULET_RELEASE: minisign accepts what rivulet-release signed, and the reverse; neither
# accepts a file that was changed.
set -euo pipefail
. "$(dirname "$0")/skip.sh"
needs minisign
ours=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fails() {
	if "$@" >/dev/null 2>&1; then
		printf 'accepted a changed file: %s\n' "$*"
		exit 1
	fi
}

printf 'a file\n' >file
"$ours" new-key our.key >/dev/null
[ "$(stat -c %a our.key)" = 600 ]
fails "$ours" new-key our.key
minisign -G -W -p their.pub -s their.key >/dev/null

"$ours" sign file --key our.key --comment 'rivulet 9.9.9'
minisign -V -m file -p our.key.pub | grep -q 'rivulet 9.9.9'
minisign -V -m file -P "$(sed -n 2p our.key.pub)" >/dev/null
"$ours" verify file --key our.key.pub >/dev/null
"$ours" sign file --key their.key --comment 'with their key'
minisign -V -m file -p their.pub >/dev/null
minisign -S -m file -s our.key -t 'theirs' >/dev/null
[ "$("$ours" verify file --key our.key.pub)" = theirs ]
[ "$("$ours" verify file --key "$(sed -n 2p our.key.pub)")" = theirs ]
fails "$ours" verify file --key their.pub
printf 'x' >>file
fails "$ours" verify file --key our.key.pub
fails minisign -V -m file -p our.key.pub
printf 'ok: minisign\n'
