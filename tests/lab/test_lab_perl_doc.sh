#!/usr/bin/env bash
# test_lab_perl_doc.sh SCRIPT: the demo's text is put together from a fixed list; what differs is
# named, what is missing refused.
set -euo pipefail
script=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2 && exit 1; }

printf 'one\n' >"$work/b.pod"
printf 'two\n' >"$work/a.pod"
printf 'not listed\n' >"$work/c.pod"
(cd / && sha256sum "$work/b.pod" "$work/a.pod") >"$work/list"
want=$(printf 'one\ntwo\n' | sha256sum)

[ "$(bash "$script" "$work/out" "$work/list" 2>"$work/err")" = "sha256:${want%% *}" ] || fail "another hash"
[ "$(cat "$work/out")" = $'one\ntwo' ] || fail "another text"
[ ! -e "$work/out.differs" ] && [ ! -s "$work/err" ] || fail "something is said to differ"

printf 'changed\n' >"$work/b.pod"
bash "$script" "$work/out" "$work/list" >"$work/said" 2>"$work/err" || fail "did not go on with a file that differs"
[ "$(cat "$work/out.differs")" = "$work/b.pod" ] || fail "out.differs does not name the file"
grep -q "$work/b.pod" "$work/err" || fail "the file that differs is not named"
grep -q "${want%% *}" "$work/said" && fail "the hash of another text"

rm "$work/a.pod"
bash "$script" "$work/out" "$work/list" >/dev/null 2>"$work/err" && fail "took a text that is not whole"
grep -q "1 of 2 files .* $work/a.pod: apt-get install perl-doc" "$work/err" || fail "what is missing is not named"

# The list that ships: each file once, in the order of their names, of Debian's perl-doc alone.
list=$(dirname "$script")/perl_doc.sha256
[ "$(wc -l <"$list")" = 206 ] || fail "the list has $(wc -l <"$list") files"
sed 's/^[0-9a-f]*  //' "$list" | LC_ALL=C sort -uc || fail "the list is not sorted"
grep -qvE '^[0-9a-f]{64}  /usr/share/perl/5\.36\.0/pod/[A-Za-z0-9]+\.pod$' "$list" && fail "a strange line in the list"
echo "ok"
