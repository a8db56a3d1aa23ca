#!/usr/bin/env bash
# demo.sh: the main job on this one machine, exactly as it would run on five: a coordinator and four workers, each with its own
# key, data shard and directory, joined only by HTTPS and mutual TLS on loopback. Then the same tokens in one process, data-parallel,
# and one worker alone with a quarter of them; a table, a sample of text, and report.html.
#
# Called by `./dev demo`, which has built the programs. Leaves no process behind, whatever ends it.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: ./dev demo [--data PATH|URL#sha256=HEX] [--out DIR] [--port N] [--workers N] [--rounds N] [--steps N] [--no-baselines]

Trains a byte-level GPT on real text with four workers over TLS on loopback, then compares.

  --data     a text file, a directory of text files, or https://URL#sha256=HEX
             (default: the Perl documentation that Debian ships in perl-doc)
  --out      where everything goes (default: runs/demo; an earlier demo there is moved aside)
  --port     the coordinator's port on 127.0.0.1 (default: 0, any free one)
  --workers  1..16 (default 4)      --rounds  1..1000 (default 80)      --steps  inner steps H per round (default 30)
  --no-baselines   only the distributed run: no data-parallel and single-worker comparison
USAGE
}

fail() {
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

need_number() { # NAME MIN MAX: checks the variable of that name, and makes its text a plain decimal number
	local value=${!1}
	[[ $value =~ ^[0-9]{1,9}$ ]] && ((10#$value >= $2 && 10#$value <= $3)) ||
		fail "--$1 $value: must be a whole number from $2 to $3"
	printf -v "$1" %d "$((10#$value))"
}

parse_options() {
	data='' out=$top/runs/demo port=0 workers=4 rounds=80 steps=30 baselines=yes
	while (($#)); do
		case $1 in
		--data | --out | --port | --workers | --rounds | --steps)
			[ -n "${2:-}" ] || fail "$1 needs a value"
			printf -v "${1#--}" %s "$2"
			shift 2
			;;
		--no-baselines) baselines=no && shift ;;
		-h | --help) usage && exit 0 ;;
		*) usage >&2 && fail "unknown option '$1'" ;;
		esac
	done
	need_number port 0 65535
	need_number workers 1 16
	need_number rounds 1 1000
	need_number steps 1 10000
}

# Everything this script starts is in `children`; whatever ends the script ends them: politely first, so that they save.
# They run in sessions of their own: Ctrl-C reaches this script alone, and the script tells them once.
children=()
start() { # LOG COMMAND...: in the background, its pid in $started_pid
	local log=$1
	shift
	if [ "$log" = - ]; then setsid "$@" & else setsid "$@" >"$log" 2>&1 & fi
	started_pid=$!
	children+=("$started_pid")
}

finished() { # PID: waits for it and gives its exit status
	local status=0 pid left=()
	wait "$1" || status=$?
	for pid in "${children[@]}"; do [ "$pid" = "$1" ] || left+=("$pid"); done
	children=("${left[@]}")
	return "$status"
}

any_alive() { # `return 0`, not `return`: in a trap that would be the status from before the trap
	local pid
	for pid in "${children[@]}"; do kill -0 "$pid" 2>/dev/null && return 0; done
	return 1
}

cleanup() {
	local status=$? pid
	trap - EXIT
	trap '' INT TERM HUP
	for pid in "${children[@]}"; do kill -TERM "$pid" 2>/dev/null || :; done
	for _ in $(seq 150); do
		any_alive || break
		sleep 0.1
	done
	for pid in "${children[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
	wait 2>/dev/null || :
	exit "$status"
}
trap cleanup EXIT
trap 'printf "\ndemo: stopping; what is running saves its state in %s\n" "${out:-}" >&2; exit 130' INT
trap 'exit 143' TERM HUP

# An earlier demo there is kept as OUT.previous; anything else is left alone.
prepare_out() {
	if [ -d "$out" ] && [ -n "$(ls -A "$out")" ]; then
		[ -f "$out/run.conf" ] && [ -d "$out/coordinator" ] ||
			fail "$out exists and is not an earlier demo: name another directory with --out"
		rm -rf "$out.previous"
		mv "$out" "$out.previous"
	fi
	mkdir -p "$out" || fail "$out cannot be made: name another directory with --out"
	local free_kib
	free_kib=$(df -Pk "$out" | awk 'NR == 2 { print $4 }')
	((free_kib >= 400 * 1024)) || fail "$out: $((free_kib / 1024)) MiB are free and the demo needs 400: free some, or name another disk with --out"
}

prepare_text() { # -> $text
	if [ -n "$data" ]; then
		text=$data
		return
	fi
	text=$out/perl-doc.txt
	"$top/lab/perl_doc.sh" "$text" || fail "no text to train on (see above)"
}

start_coordinator() {
	"$bin/rivulet-coordinator" new-run --dir "$out/coordinator" --config "$out/run.conf" >"$out/new-run.log" 2>&1 ||
		fail "the run could not be made: $(tail -n 3 "$out/new-run.log")"
	start "$out/coordinator.log" "$bin/rivulet-coordinator" serve --dir "$out/coordinator" --listen "127.0.0.1:$port"
	coordinator=$started_pid
	for _ in $(seq 300); do
		[ -s "$out/coordinator/listen" ] && return
		kill -0 "$coordinator" 2>/dev/null || fail "the coordinator did not start: $(tail -n 3 "$out/coordinator.log")"
		sleep 0.1
	done
	fail "the coordinator did not listen within 30 s; its log: $out/coordinator.log"
}

# Worker i joins before worker i+1 starts, so that member numbers, and with them data shards, are the same every time.
start_workers() {
	local i links
	mapfile -t links < <("$bin/rivulet-coordinator" invite --dir "$out/coordinator" --count "$workers")
	[ "${#links[@]}" = "$workers" ] || fail "the coordinator gave no invite links; its log: $out/coordinator.log"
	for ((i = 0; i < workers; i++)); do
		start "$out/worker$i.log" "$bin/rivulet-worker" "${links[i]}" --dir "$out/worker$i" --data "$text" --threads 1 \
			--name "worker$i" --listen 127.0.0.1:0
		worker_pids[i]=$started_pid
		for _ in $(seq 600); do
			[ -s "$out/worker$i/run.conf" ] && break
			check_worker "$i"
			sleep 0.05
		done
	done
}

check_worker() { # NUMBER: ends the demo when it is gone without having finished, or cannot write
	local log=$out/worker$1.log
	if ! kill -0 "${worker_pids[$1]}" 2>/dev/null; then
		wait "${worker_pids[$1]}" || fail "worker $1 failed: $(tail -n 3 "$log")"
	fi
	if grep -q '"event":"storage"' "$log"; then
		fail "worker $1 cannot write to its disk: $(grep '"event":"storage"' "$log" | tail -n 1)"
	fi
}

watch_run() {
	local i watcher
	start - "$bin/rivulet-coordinator" status --dir "$out/coordinator" --follow
	watcher=$started_pid
	while kill -0 "$watcher" 2>/dev/null; do
		kill -0 "$coordinator" 2>/dev/null || fail "the coordinator ended: $(tail -n 3 "$out/coordinator.log")"
		for ((i = 0; i < workers; i++)); do check_worker "$i"; done
		sleep 0.5
	done
	finished "$watcher" || fail "the run stopped early; logs are in $out"
	for ((i = 0; i < workers; i++)); do
		finished "${worker_pids[i]}" || fail "worker $i failed: $(tail -n 3 "$out/worker$i.log")"
	done
	kill -TERM "$coordinator"
	finished "$coordinator" || fail "the coordinator failed: $(tail -n 3 "$out/coordinator.log")"
}

write_config() {
	cat >"$out/run.conf" <<CONF
# The demo's run. Everything not named here is the default: rivulet-coordinator new-run --help
# The default learning rate, outer learning rate and momentum were chosen on this text with holdout-every = 50. What the demo
# is judged by are other blocks, which no choice has looked at.
holdout-every = 47
rounds = $rounds
steps-per-round = $steps
data-shards = $workers
min-workers = $workers
CONF
}

train() { # ARGS...: in the lab, in one process
	start - "$bin/rivulet" train --config "$out/run.conf" --method ddp --data "$text" "$@"
	finished "$started_pid" || fail "the baseline failed (see above)"
}

run_baselines() {
	printf '\nThe same tokens, batch and seed in one process, data-parallel (averaging gradients at every step):\n'
	train --workers "$workers" --out "$out/data-parallel"
	printf '\nOne worker alone, with 1/%d of the tokens:\n' "$workers"
	train --workers 1 --out "$out/one-worker"
}

main() {
	top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	bin=${RIVULET_BIN:-$top/build/release/bin}
	parse_options "$@"
	prepare_out
	local started=$SECONDS
	worker_pids=()
	prepare_text
	write_config
	printf 'Text: %s\nRun:  %d workers, %d rounds of H=%d inner steps; everything is in %s\n\n' "$text" "$workers" "$rounds" "$steps" "$out"
	start_coordinator
	printf 'Dashboard while it runs: https://%s/ (self-signed)\n\n' "$(cat "$out/coordinator/listen")"
	start_workers
	watch_run
	[ "$baselines" = yes ] && run_baselines
	printf '\n'
	"$bin/rivulet" report "$out" --out "$out/report.html"
	printf '\nA sample of what the shared model writes:\n\n'
	"$bin/rivulet" sample "$out/worker0" --prompt 'You can use ' --tokens 400 --temperature 0.6 --seed 1
	printf '\n\nDone in %d min %d s. Pictures: %s\n' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)) "$out/report.html"
}

main "$@"
