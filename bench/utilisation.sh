#!/usr/bin/env bash
# utilisation.sh: compares the utilisation that `rivulet simulate` predicts with that of real
# workers on shaped lines. A coordinator and workers of one thread each run in network namespaces of
# their own, joined by shaped_net.
#
# Measured: over the rounds, the compute of a worker (compute_us in metrics.jsonl), the mean of all,
# over the wall time. The mean and not the slowest, because with steps ahead a worker that is slow
# in one round catches up in the next. Inputs of the prediction: the step time of that same run, and
# the time of an exchange on an unlimited line without delay (`sync-ms`), from a first run. Nothing
# else is fitted: line, latency and headers come from the model.
#
# With --overlap-steps every line is measured twice, without and with that many inner steps ahead
# while a round is exchanged; a line for each pair prints the gain. With --fragments every round
# exchanges one of that many parts of the model; the prediction takes them as equal, which those of
# a small model with embeddings are not.
#
# Prints one JSON line per case, a table and a verdict, and fails when a ratio is off by more than
# 10 %. Leaves no process, namespace or file behind, however it ends.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: bench/utilisation.sh [--cases RATE_MBIT:DELAY_MS,...] [--workers N,...] [--rounds N] [--steps N] [--fragments N]
                            [--overlap-steps N] [--config FILE]

  --cases    lines to try (default: 20:0,20:20,50:20); delay is one way
  --workers  one or several numbers in 2..16, each on every line (default 2)
  --rounds   4..1000 (default 8), at least two more than fragments
  --steps    inner steps H per round (default 12)
  --fragments      1..64 (default 1), as in run.conf: what a round exchanges is one of them
  --overlap-steps  each line also with so many inner steps during an exchange, 1..H-1, as in run.conf
  --config   more options of the run, as in run.conf (default: a model of 3.3 M parameters)

Needs root, /dev/net/tun, iproute2, python3. About 20 seconds a case. RIVULET_BIN: where the programs are.
USAGE
}

fail() {
	printf 'utilisation: %s\n' "$*" >&2
	exit 1
}

need_number() { # NAME VALUE MIN MAX
	[[ $2 =~ ^[0-9]+$ ]] && (($2 >= $3 && $2 <= $4)) || fail "$1 $2: must be a whole number from $3 to $4"
}

parse_options() {
	cases=20:0,20:20,50:20 workers_list=2 rounds=8 steps=12 fragments=1 overlap=0 config=''
	while (($#)); do
		case $1 in
		--cases | --rounds | --steps | --fragments | --config)
			[ $# -ge 2 ] || fail "$1 needs a value"
			printf -v "${1#--}" %s "$2"
			shift 2
			;;
		--workers)
			[ $# -ge 2 ] || fail "$1 needs a value"
			workers_list=$2
			shift 2
			;;
		--overlap-steps)
			[ $# -ge 2 ] || fail "$1 needs a value"
			overlap=$2
			shift 2
			;;
		-h | --help) usage && exit 0 ;;
		*) usage >&2 && fail "unknown option '$1'" ;;
		esac
	done
	most_workers=0
	for workers in ${workers_list//,/ }; do
		need_number --workers "$workers" 2 16
		((workers > most_workers)) && most_workers=$workers
	done
	need_number --fragments "$fragments" 1 64
	need_number --rounds "$rounds" $((fragments > 2 ? fragments + 2 : 4)) 1000
	need_number --steps "$steps" 1 10000
	need_number --overlap-steps "$overlap" 0 $((steps - 1))
	[ -z "$config" ] || [ -r "$config" ] || fail "--config $config: cannot be read"
	[[ $cases =~ ^[0-9.]+:[0-9.]+(,[0-9.]+:[0-9.]+)*$ ]] || fail "--cases $cases: must be RATE_MBIT:DELAY_MS,... such as 20:0,50:20"
	[ "$(id -u)" = 0 ] || fail "network namespaces need root"
	[ -c /dev/net/tun ] || fail "/dev/net/tun is missing: load the module tun"
}

children=()
start() { # LOG COMMAND...
	local log=$1
	shift
	"$@" >"$log" 2>&1 &
	children+=($!)
}

end_children() { # ends what runs, the newest first
	local i
	for ((i = ${#children[@]} - 1; i >= 0; i--)); do kill -TERM "${children[i]}" 2>/dev/null || :; done
	for i in $(seq 50); do
		kill -0 "${children[@]}" 2>/dev/null || break
		sleep 0.1
	done
	for i in "${children[@]}"; do kill -KILL "$i" 2>/dev/null || :; done
	wait 2>/dev/null || :
	children=()
}

cleanup() {
	local status=$? i
	trap - EXIT
	trap '' INT TERM HUP
	end_children
	for ((i = 1; i <= most_workers + 1; i++)); do ip netns del "$prefix$i" 2>/dev/null || :; done
	rm -rf "$dir"
	exit "$status"
}

wait_for() { # WHAT SECONDS COMMAND...
	local what=$1 until=$((SECONDS + $2))
	shift 2
	while ((SECONDS < until)); do
		"$@" && return
		sleep 0.2
	done
	fail "$what did not happen in time; logs: $(tail -n 2 "$dir"/*/*.log 2>/dev/null)"
}

make_net() { # RATE_MBIT DELAY_MS: a device of 10.86.0.i in every namespace
	local i names=()
	for ((i = 1; i <= workers + 1; i++)); do names+=("$prefix$i"); done
	# First in line for the processor, of which it needs little: a relay that waits is another line
	# than the one asked for.
	start "$case_dir/net.log" nice -n -10 "$bin/shaped_net" "$(awk -v r="$1" 'BEGIN { printf "%.0f", r * 1e6 }')" "$2" "${names[@]}"
	wait_for "the shaped network" 5 grep -qs ready "$case_dir/net.log"
	for ((i = 1; i <= workers + 1; i++)); do
		ip -n "$prefix$i" addr add "10.86.0.$i/24" dev wan0
		ip -n "$prefix$i" link set wan0 mtu 1500 txqueuelen 1000 up
	done
}

start_coordinator() { # OVERLAP
	(cat "$dir/run.conf" && echo "overlap-steps = $1") >"$case_dir/run.conf"
	"$bin/rivulet-coordinator" new-run --dir "$case_dir/coordinator" --config "$case_dir/run.conf" >"$case_dir/new-run.log" 2>&1 ||
		fail "the run could not be made: $(tail -n 3 "$case_dir/new-run.log")"
	start "$case_dir/coordinator.log" ip netns exec "${prefix}1" "$bin/rivulet-coordinator" serve \
		--dir "$case_dir/coordinator" --listen 10.86.0.1:7433
	wait_for "the coordinator's start" 20 test -s "$case_dir/coordinator/listen"
}

start_workers() {
	local i links
	mapfile -t links < <(ip netns exec "${prefix}1" "$bin/rivulet-coordinator" invite --dir "$case_dir/coordinator" --count "$workers")
	[ "${#links[@]}" = "$workers" ] || fail "the coordinator gave no invite links"
	for ((i = 0; i < workers; i++)); do
		start "$case_dir/worker$i.log" ip netns exec "$prefix$((i + 2))" "$bin/rivulet-worker" "${links[i]}" --yes --on-battery --on-metered \
			--dir "$case_dir/worker$i" --data "$dir/text" --threads 1 --name "worker$i" --listen "10.86.0.$((i + 2)):0" \
			--eval-every 0
	done
}

all_rounds_done() {
	local i
	for ((i = 0; i < workers; i++)); do
		[ -s "$case_dir/worker$i/metrics.jsonl" ] || return 1
		(($(grep -c '"kind":"round"' "$case_dir/worker$i/metrics.jsonl") >= rounds)) || return 1
	done
}

run_case() { # RATE_MBIT DELAY_MS OVERLAP
	case_dir=$dir/$workers-$1-$2-$3
	mkdir "$case_dir"
	make_net "$1" "$2"
	start_coordinator "$3"
	start_workers
	wait_for "the end of $rounds rounds of $workers workers at $1 Mbit/s, $2 ms" $((60 + 20 * rounds)) all_rounds_done
	end_children
}

# The rounds of all workers, the first two left out, whole turns of the fragments: JSON of what the
# prediction needs.
measure() {
	python3 - "$case_dir" "$workers" "$fragments" <<'PYTHON'
import json, sys
workers, fragments = int(sys.argv[2]), int(sys.argv[3])
files = [[json.loads(l) for l in open(f"{sys.argv[1]}/worker{i}/metrics.jsonl")] for i in range(workers)]
run = next(l for l in files[0] if l["kind"] == "run")
rounds = [[l for l in f if l["kind"] == "round"] for f in files]
n = min(len(r) for r in rounds)
turns = (n - 2) // fragments
count = turns * fragments
measured = range(n - count, n)
def mean(values): # of a round, over all workers
    return sum(values) / len(files) / count
def grown(key):
    return mean(r[n - 1][key] - r[n - 1 - count][key] for r in rounds)
def seconds(key):
    return mean(r[i][key] for r in rounds for i in measured) * 1e-6
slowest = sum(max(r[i]["compute_us"] for r in rounds) for i in measured) * 1e-6
payload = grown("formula_bytes") * fragments / (2 * (workers - 1) / workers) # of all fragments together
print(json.dumps({"rounds": count, "wall_s": grown("wall_us") * 1e-6, "compute_s": seconds("compute_us"), "slowest_compute_s": slowest / count,
                  "reduce_s": seconds("reduce_us"), "overlap_s": seconds("overlap_us"), "params": run["n_params"],
                  "bits": payload * 8 / run["n_params"], "steps": run["steps_per_round"]}))
PYTHON
}

predict_and_print() { # RATE_MBIT DELAY_MS OVERLAP MEASURED_JSON
	python3 - "$bin/rivulet" "$workers" "$fragments" "$sync_ms" "$@" <<'PYTHON'
import json, subprocess, sys
rivulet, workers, fragments, sync_ms, rate, delay, overlap, text = sys.argv[1:]
method = ["streaming", "--fragments", fragments, "--overlap-steps", overlap]
parts = "" if fragments == "1" else f", {fragments} fragments"
ahead = "" if overlap == "0" else f", {overlap} steps ahead"
m = json.loads(text)
answer = json.loads(subprocess.run(
    [rivulet, "simulate", "--method", *method, "--format", "json", "--layers", fragments, "--workers", workers, "--params",
     f"{m['params']:.0f}", "--bits", f"{m['bits']:.6f}", "--steps-per-round", str(m["steps"]), "--step-time-ms",
     f"{m['compute_s'] / m['steps'] * 1e3:.6f}", "--rate", f"{rate}mbit", "--latency-ms", delay, "--sync-ms", sync_ms],
    check=True, capture_output=True, text=True).stdout)
measured, predicted = m["compute_s"] / m["wall_s"], answer["utilisation"]
print(json.dumps({"bench": "utilisation", "case": f"{workers} workers, H {m['steps']}{parts}, {rate} Mbit/s, {delay} ms{ahead}", "predicted": round(predicted, 4),
                  "measured": round(measured, 4), "ratio": round(predicted / measured, 3), "rounds": m["rounds"],
                  "compute_s": round(m["compute_s"], 3), "slowest_compute_s": round(m["slowest_compute_s"], 3), "exchange_s": round(m["wall_s"] - m["compute_s"], 3),
                  "predicted_exchange_s": round(m["compute_s"] * (1 / predicted - 1), 3), "reduce_s": round(m["reduce_s"], 3),
                  "overlap_s": round(m["overlap_s"], 3)}))
PYTHON
}

prepare() {
	local i
	dir=$(mktemp -d /tmp/rivulet-utilisation.XXXXXX)
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	for ((i = 1; i <= most_workers + 1; i++)); do
		ip netns add "$prefix$i"
		ip -n "$prefix$i" link set lo up
	done
	seq 1 300000 >"$dir/text"
}

write_config() {
	if [ -n "$config" ]; then cp "$config" "$dir/run.conf"; else printf 'n-layer = 4\nn-embd = 256\nn-head = 4\nbatch = 4\n' >"$dir/run.conf"; fi
	cat >>"$dir/run.conf" <<CONF
rounds = $((rounds + 1))
steps-per-round = $steps
fragments = $fragments
data-shards = $workers
min-workers = $workers
CONF
}

print_gain() { # of the last two results: without overlap, and with
	tail -n 2 "$dir/results" | python3 -c '
import json, sys
without, ahead = (json.loads(line) for line in sys.stdin)
print(json.dumps({"bench": "utilisation", "case": "gain: " + ahead["case"], "without": without["measured"], "with": ahead["measured"],
                  "ratio": round(ahead["measured"] / without["measured"], 3)}))'
}

try_line() { # RATE_MBIT DELAY_MS
	run_case "$1" "$2" 0
	predict_and_print "$1" "$2" 0 "$(measure)" | tee -a "$dir/results"
	((overlap > 0)) || return 0
	run_case "$1" "$2" "$overlap"
	predict_and_print "$1" "$2" "$overlap" "$(measure)" | tee -a "$dir/results"
	print_gain
}

# The fixed cost of an exchange from an unlimited line, then every case.
run_cases() {
	local one measured
	write_config
	run_case 0 0 0
	measured=$(measure)
	sync_ms=$(python3 -c 'import json, sys; m = json.loads(sys.argv[1]); print((m["wall_s"] - m["compute_s"]) * 1e3)' "$measured")
	printf '{"bench":"utilisation","case":"%s workers, unlimited, 0 ms","sync_ms":%s,"measured":%s}\n' "$workers" "$sync_ms" "$measured"
	for one in ${cases//,/ }; do
		try_line "${one%:*}" "${one#*:}"
	done
}

main() {
	local top one
	top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	bin=${RIVULET_BIN:-$top/build/release/bin}
	prefix=rvu$$-
	parse_options "$@"
	for one in rivulet rivulet-worker rivulet-coordinator shaped_net; do
		[ -x "$bin/$one" ] || fail "$bin/$one is missing: build first, or set RIVULET_BIN"
	done
	prepare
	for workers in ${workers_list//,/ }; do run_cases; done
	python3 - "$dir/results" <<'PYTHON'
import json, os, sys
cases = [json.loads(line) for line in open(sys.argv[1])]
ratios = [c["ratio"] for c in cases]
within = sum(abs(r - 1) <= 0.1 for r in ratios)
print("\n| workers, H, line, one way | predicted | measured | ratio | exchange predicted / measured |\n|---|---|---|---|---|")
for c in cases:
    print(f"| {c['case']} | {c['predicted']:.3f} | {c['measured']:.3f} | {c['ratio']:.2f} "
          f"| {c['predicted_exchange_s']:.2f} / {c['exchange_s']:.2f} s |")
print(f"\nload of the machine at the end: {os.getloadavg()[0]:.1f}")
print(json.dumps({"bench": "utilisation", "case": "all", "cases": len(ratios), "within_10_percent": within, "ratios": ratios}))
sys.exit(within != len(ratios))
PYTHON
}

main "$@"
