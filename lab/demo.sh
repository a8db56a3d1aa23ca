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

need_number() { # NAME VALUE MIN MAX
	[[ $2 =~ ^[0-9]+$ ]] && (($2 >= $3 && $2 <= $4)) || fail "$1 $2: must be a whole number from $3 to $4"
}

parse_options() {
	data= out=$top/runs/demo port=0 workers=4 rounds=80 steps=30 baselines=yes
	while (($#)); do
		case $1 in
		--data | --out | --port | --workers | --rounds | --steps)
			[ $# -ge 2 ] || fail "$1 needs a value"
			printf -v "${1#--}" %s "$2"
			shift 2
			;;
		--no-baselines) baselines=no && shift ;;
		-h | --help) usage && exit 0 ;;
		*) usage >&2 && fail "unknown option '$1'" ;;
		esac
	done
	need_number --port "$port" 0 65535
	need_number --workers "$workers" 1 16
	need_number --rounds "$rounds" 1 1000
	need_number --steps "$steps" 1 10000
}

# Everything this script starts is in `children`; whatever ends the script ends them: politely first, so that they save.
children=()
cleanup() {
	local status=$?
	trap - EXIT INT TERM HUP
	local pid
	for pid in "${children[@]}"; do kill -TERM "$pid" 2>/dev/null || :; done
	for _ in $(seq 100); do
		local alive=
		for pid in "${children[@]}"; do kill -0 "$pid" 2>/dev/null && alive=yes; done
		[ -n "$alive" ] || break
		sleep 0.1
	done
	for pid in "${children[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
	wait 2>/dev/null || :
	exit "$status"
}
trap cleanup EXIT
trap 'printf "\ndemo: stopping; the workers save their state in %s\n" "${out:-}" >&2; exit 130' INT
trap 'exit 143' TERM HUP

prepare_text() { # -> $text
	if [ -n "$data" ]; then
		text=$data
		return
	fi
	text=$out/perl-doc.txt
	local pods
	pods=$(find /usr/share/perl /usr/lib -name '*.pod' -type f 2>/dev/null | LC_ALL=C sort)
	[ "$(printf '%s\n' "$pods" | wc -l)" -ge 50 ] ||
		fail "the Perl documentation is not installed (apt-get install perl-doc), and no --data was given"
	printf '%s\n' "$pods" | tr '\n' '\0' | xargs -0 cat >"$text"
}

start_coordinator() {
	"$bin/rivulet-coordinator" new-run --dir "$out/coordinator" --config "$out/run.conf" >"$out/new-run.log"
	"$bin/rivulet-coordinator" serve --dir "$out/coordinator" --listen "127.0.0.1:$port" >"$out/coordinator.log" 2>&1 &
	coordinator=$!
	children+=("$coordinator")
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
	for ((i = 0; i < workers; i++)); do
		"$bin/rivulet-worker" "${links[i]}" --dir "$out/worker$i" --data "$text" --threads 1 --name "worker$i" \
			--listen 127.0.0.1:0 >"$out/worker$i.log" 2>&1 &
		worker_pids[i]=$!
		children+=("${worker_pids[i]}")
		for _ in $(seq 600); do
			[ -s "$out/worker$i/run.conf" ] && break
			kill -0 "${worker_pids[i]}" 2>/dev/null || fail "worker $i did not start: $(tail -n 3 "$out/worker$i.log")"
			sleep 0.05
		done
	done
}

watch_run() {
	"$bin/rivulet-coordinator" status --dir "$out/coordinator" --follow || fail "the run stopped early; logs are in $out"
	local i
	for ((i = 0; i < workers; i++)); do
		wait "${worker_pids[i]}" || fail "worker $i failed: $(tail -n 3 "$out/worker$i.log")"
	done
	kill -TERM "$coordinator" && wait "$coordinator" || fail "the coordinator failed: $(tail -n 3 "$out/coordinator.log")"
	children=()
}

write_config() {
	cat >"$out/run.conf" <<CONF
# The demo's run. Everything not named here is the default: rivulet-coordinator new-run --help
rounds = $rounds
steps-per-round = $steps
data-shards = $workers
min-workers = $workers
CONF
}

run_baselines() {
	printf '\nThe same tokens, batch and seed in one process, data-parallel (averaging gradients at every step):\n'
	"$bin/rivulet" train --config "$out/run.conf" --method ddp --workers "$workers" --data "$text" --out "$out/data-parallel"
	printf '\nOne worker alone, with 1/%d of the tokens:\n' "$workers"
	"$bin/rivulet" train --config "$out/run.conf" --method ddp --workers 1 --data "$text" --out "$out/one-worker"
}

main() {
	top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	bin=${RIVULET_BIN:-$top/build/release/bin}
	parse_options "$@"
	if [ -e "$out" ]; then
		rm -rf "$out.previous"
		mv "$out" "$out.previous"
	fi
	mkdir -p "$out"
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
