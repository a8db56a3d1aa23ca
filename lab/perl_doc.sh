#!/usr/bin/env bash
# perl_doc.sh OUT: writes real English text for trying things out into OUT: the Perl documentation that Debian ships in
# perl-doc, 10 MB, always in the same order.
set -euo pipefail
[ $# = 1 ] || { printf 'usage: %s OUT\n' "$0" >&2 && exit 2; }
pods=$(find /usr/share/perl /usr/lib -name '*.pod' -type f 2>/dev/null | LC_ALL=C sort)
if [ "$(printf '%s\n' "$pods" | wc -l)" -lt 50 ]; then
	printf 'the Perl documentation is not installed (apt-get install perl-doc), and no --data was given\n' >&2
	exit 1
fi
printf '%s\n' "$pods" | tr '\n' '\0' | xargs -0 cat >"$1.part"
mv "$1.part" "$1"
