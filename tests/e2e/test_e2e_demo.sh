#!/usr/bin/env bash
# test_e2e_demo.sh BIN: the demo itself, small: its table and report, what it says when a port is
# taken or the output directory is not its own, and that Ctrl-C leaves no process. It waits
# for what it needs as long as the process that makes it runs; CTest has the limit. Everything is
# made under one temporary directory.
set -euo pipefail
export RIVULET_BIN=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
cleanup() {
	local status=$?
	[ -z "${holder:-}" ] || kill "$holder" 2>/dev/null || :
	[ -z "${demo:-}" ] || kill -TERM "$demo" 2>/dev/null || :
	wait || :
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	tail -n 20 "$work"/*.txt >&2 || :
	exit 1
}

# Processes whose command line names a path of this test.
left_over() {
	local cmdline
	for cmdline in /proc/[0-9]*/cmdline; do
		tr '\0' ' ' <"$cmdline" 2>/dev/null | grep -E "rivulet(-worker|-coordinator)? .*$work" || :
	done
}

find "$top" -path "$top/build" -prune -o \( -name '*.[ch]' -o -name '*.md' \) -print0 | LC_ALL=C sort -z | xargs -0 cat >"$work/text"
small=(--data "$work/text" --rounds 2 --steps 2 --workers 2)

"$top/lab/demo.sh" "${small[@]}" --out "$work/whole" >"$work/whole.txt" 2>&1 || fail "the demo ended with $?"
grep -q '^Rivulet, 2 workers .* x$' "$work/whole.txt" || fail "no table"
grep -q '<svg' "$work/whole/report.html" || fail "no report"
for event in stage text size started progress done; do
	grep -q "^{\"event\":\"$event\"" "$work/whole.txt" || fail "no event $event"
done
grep -q '"event":"size","rounds":2,"full_rounds":80,"tokens":4096,' "$work/whole.txt" || fail "another size than was asked for"
for stage in text size workers data-parallel one-worker report; do
	grep -q "\"event\":\"stage\",\"stage\":\"$stage\"" "$work/whole.txt" || fail "no stage $stage"
done
[ -z "$(left_over)" ] || fail "left over: $(left_over)"
echo "ok: table, report, no process"

mkdir "$work/mine" && touch "$work/mine/thesis"
if "$top/lab/demo.sh" "${small[@]}" --out "$work/mine" >"$work/mine.txt" 2>&1; then fail "took a directory that is not its own"; fi
grep -q 'not an earlier demo' "$work/mine.txt" || fail "another text about the directory"
[ -f "$work/mine/thesis" ] || fail "moved somebody's directory"
echo "ok: leaves other people's directories alone"

rm -f "$work/whole/coordinator/listen"
"$RIVULET_BIN/rivulet-coordinator" serve --dir "$work/whole/coordinator" --listen 127.0.0.1:0 >"$work/holder.txt" 2>&1 &
holder=$!
until [ -s "$work/whole/coordinator/listen" ]; do
	kill -0 "$holder" || fail "the coordinator ended: $(cat "$work/holder.txt")"
	sleep 0.1
done
port=$(sed 's/.*://' "$work/whole/coordinator/listen")
if "$top/lab/demo.sh" "${small[@]}" --no-baselines --out "$work/port" --port "$port" >"$work/port.txt" 2>&1; then fail "took a port that is in use"; fi
grep -q "$port" "$work/port.txt" || fail "the text about the port does not name it"
kill "$holder" && wait "$holder" || fail "the coordinator ended with $?"
holder=
echo "ok: a port that is taken is named"

exec {lock}<"$work/whole" # as a demo that runs there holds it
flock -n "$lock"
if "$top/lab/demo.sh" "${small[@]}" --no-baselines --out "$work/whole" >"$work/twice.txt" 2>&1; then fail "moved a demo that runs"; fi
exec {lock}<&-
grep -q "a demo is running in" "$work/twice.txt" || fail "the text does not say that a demo is running"
[ -f "$work/whole/report.html" ] || fail "the demo that runs was moved away"
echo "ok: a demo that runs is left alone"

# A terminal's Ctrl-C is SIGINT; a background job of a shell would ignore it, so the demo gets it
# with its default action.
interrupt() { # NAME WHEN ARGS...: runs the demo, and ends it when a command succeeds
	local name=$1 when=$2 status=0
	shift 2
	env --default-signal=INT "$top/lab/demo.sh" --data "$work/text" --workers 2 "$@" --out "$work/$name" >"$work/$name.txt" 2>&1 &
	demo=$!
	until eval "$when"; do
		kill -0 "$demo" || fail "the demo ended before it could be interrupted ($name)"
		sleep 0.05
	done
	kill -INT "$demo"
	wait "$demo" || status=$?
	demo=
	[ "$status" = 130 ] || fail "after Ctrl-C ($name) the demo ended with $status, not 130"
	[ -z "$(left_over)" ] || fail "left over after Ctrl-C ($name): $(left_over)"
	grep -q '^{"event":"stopped"' "$work/$name.txt" || fail "after Ctrl-C ($name) it does not say how to go on"
}

go_on_commands() { # NAME: the commands that the demo gave after Ctrl-C, one a line
	sed -n 's/^{"event":"go_on","text":"\(.*\)"}$/\1/p' "$work/$1.txt"
}

interrupt size 'grep -q "\"stage\":\"size\"" "$work/size.txt"'
[ -z "$(go_on_commands size)" ] || fail "a command goes on with a run that has not begun"
echo "ok: Ctrl-C while the run is sized leaves no process"
interrupt least 'grep -q "\"event\":\"size\"" "$work/least.txt"' --minutes 1 --steps 5000 --no-baselines
grep -q '"event":"size","rounds":24,.*this machine needs longer than 1 min' "$work/least.txt" || fail "another size: $(grep '"event":"size"' "$work/least.txt")"
echo "ok: a machine that needs longer is told so"
interrupt baseline 'grep -q "\"stage\":\"data-parallel\"" "$work/baseline.txt"' --rounds 4 --steps 40
(cd "$work" && bash -c "$(go_on_commands baseline)") >"$work/report.txt" 2>&1 || fail "the report of a run without its baselines"
[ -s "$work/baseline/report.html" ] || fail "no report of a run without its baselines"
echo "ok: Ctrl-C in a baseline leaves no process, and a command that makes the report"
interrupt stop 'ls "$work"/stop/worker1/log-*.rvl >/dev/null 2>&1' --rounds 1000 --steps 20 --no-baselines
for i in 0 1; do [ -s "$work/stop/worker$i/replica.rvp" ] || fail "worker $i saved nothing"; done
echo "ok: Ctrl-C saves and leaves no process"

# The commands that it gives do go on: a round that was not there is committed.
[ "$(go_on_commands stop | wc -l)" = 3 ] || fail "other commands go on: $(go_on_commands stop)"
rounds_of() { sed -n 's/.*"kind":"round","round":\([0-9]*\).*/\1/p' "$work/stop/worker0/metrics.jsonl" | sort -n | tail -n 1; }
was=$(rounds_of)
: "${was:=0}"
go_on_commands stop | head -n 2 >"$work/go_on.sh"
(cd "$work" && exec setsid bash -c '. ./go_on.sh; wait') >"$work/go_on.txt" 2>&1 &
demo=$!
until [ "$(rounds_of)" -gt "$was" ]; do
	kill -0 "$demo" || fail "the run did not go on"
	sleep 0.2
done
kill -TERM -- "-$demo" && { wait "$demo" || :; }
demo=
until [ -z "$(left_over)" ]; do sleep 0.1; done # they save
echo "ok: the commands that it gives go on with the run"
