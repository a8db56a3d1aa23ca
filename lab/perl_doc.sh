#!/usr/bin/env bash
# perl_doc.sh OUT [LIST]: writes real English text for trials into OUT: the Perl documentation of
# Debian 12, 8.8 MB, the same bytes on every machine. LIST (perl_doc.sha256 beside this script) has
# the files, all of the package perl-doc, in the order in which they are joined, and the SHA-256 of
# each in version 5.36.0-7+deb12u4. A file that differs, as after a point release, is named on
# stderr and in OUT.differs, and used anyway. Prints the SHA-256 of OUT, as in metrics.jsonl.
set -euo pipefail
(($# == 1 || $# == 2)) || { printf 'usage: %s OUT [LIST]\n' "$0" >&2 && exit 2; }
out=$1 list=${2:-$(dirname "${BASH_SOURCE[0]}")/perl_doc.sha256}
mapfile -t files < <(sed 's/^[0-9a-f]*  //' "$list")
missing=()
for file in "${files[@]}"; do [ -r "$file" ] || missing+=("$file"); done
if ((${#missing[@]} > 0)); then
	printf '%d of %d files of the Perl documentation are missing, first %s: apt-get install perl-doc (Debian 12), or give a text with --data\n' \
		"${#missing[@]}" "${#files[@]}" "${missing[0]}" >&2
	exit 1
fi
mapfile -t differ < <(LC_ALL=C sha256sum --check --quiet "$list" 2>/dev/null | sed -n 's/: FAILED$//p')
rm -f "$out.differs"
if ((${#differ[@]} > 0)); then
	printf '%s\n' "${differ[@]}" >"$out.differs"
	printf 'not as in perl-doc 5.36.0-7+deb12u4, so the text is another one: %s\n' "${differ[@]}" >&2
fi
cat "${files[@]}" >"$out.part"
mv "$out.part" "$out"
sum=$(sha256sum <"$out")
printf 'sha256:%s\n' "${sum%% *}"
