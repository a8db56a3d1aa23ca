#!/usr/bin/env bash
# ownership.sh: the gain of ownership by measured lines over equal ownership: real workers in
# network namespaces, joined by shaped_net, one of them with a part of the others' upload. Both ways
# in one run of this script, one after the other; the figure is the ratio of their mean exchange
# times (reduce_us of metrics.jsonl; without the first rounds, in which lines are not measured yet).
# Prints JSON lines. Leaves no process, namespace or file behind.
set -euo pipefail

workers=4 rate=20 part=10 rounds=8 skip=3

usage() {
	cat <<USAGE
usage: bench/ownership.sh [--workers N] [--rate MBIT] [--part N] [--rounds N]
  --workers 3..16 (default $workers)   --rate of every line, up and down (default $rate)
  --part    the slow worker's upload is so many times slower (default $part)   --rounds 5..50 (default $rounds)
Needs root, /dev/net/tun, iproute2, python3. RIVULET_BIN: where the programs are.
USAGE
}

fail() {
	printf 'ownership: %s\n' "$*" >&2
	exit 1
}

while (($#)); do
	case $1 in
	--workers | --rate | --part | --rounds)
		[ $# -ge 2 ] && [[ $2 =~ ^[0-9]+$ ]] || fail "$1 needs a whole number"
		printf -v "${1#--}" %s "$2"
		shift 2
		;;
	-h | --help) usage && exit 0 ;;
	*) usage >&2 && fail "unknown option '$1'" ;;
	esac
done
((workers >= 3 && workers <= 16 && rounds >= 5 && rounds <= 50 && rate > 0 && part > 0)) || fail "a value is out of range: see --help"
[ "$(id -u)" = 0 ] || fail "network namespaces need root"
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${RIVULET_BIN:-$top/build/release/bin}
prefix=rvs$$-
dir=$(mktemp -d /tmp/rivulet-ownership.XXXXXX)
children=()

end_children() {
	local i
	for ((i = ${#children[@]} - 1; i >= 0; i--)); do kill -TERM "${children[i]}" 2>/dev/null || :; done
	sleep 0.5
	for i in "${children[@]}"; do kill -KILL "$i" 2>/dev/null || :; done
	wait 2>/dev/null || :
	children=()
}

cleanup() {
	local status=$? i
	trap - EXIT
	end_children
	for ((i = 1; i <= workers + 1; i++)); do ip netns del "$prefix$i" 2>/dev/null || :; done
	rm -rf "$dir"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

wait_for() { # WHAT SECONDS COMMAND...
	local what=$1 until=$((SECONDS + $2))
	shift 2
	while ((SECONDS < until)); do
		"$@" && return
		sleep 0.2
	done
	fail "$what did not happen in time: $(tail -qn 2 "$dir"/*/*.log 2>/dev/null)"
}

ready() { grep -qs ready "$case_dir/net.log"; }
answered() { [ "$(wc -l <"$case_dir/net.log")" -ge 2 ]; }
all_done() {
	local i
	for ((i = 0; i < workers; i++)); do
		[ -s "$case_dir/worker$i/metrics.jsonl" ] || return 1
		(($(grep -c '"kind":"round"' "$case_dir/worker$i/metrics.jsonl") >= rounds)) || return 1
	done
}

make_net() {
	local i names=() bits=$((rate * 1000000))
	for ((i = 1; i <= workers + 1; i++)); do names+=("$prefix$i"); done
	rm -f "$case_dir/commands"
	mkfifo "$case_dir/commands"
	nice -n -10 "$bin/shaped_net" "$bits" 10 "${names[@]}" <>"$case_dir/commands" >"$case_dir/net.log" 2>&1 &
	children+=($!)
	wait_for "the shaped network" 5 ready
	for ((i = 1; i <= workers + 1; i++)); do
		ip -n "$prefix$i" addr add "10.86.0.$i/24" dev wan0
		ip -n "$prefix$i" link set wan0 mtu 1500 txqueuelen 1000 up
	done
	printf 'rate 3 %s %s\n' "$((bits / part))" "$bits" >"$case_dir/commands" # the second worker
	wait_for "the slow line" 5 answered
}

run_case() { # bandwidth|equal
	local i links
	case_dir=$dir/$1
	mkdir "$case_dir"
	make_net
	{ cat "$dir/run.conf" && printf 'ownership = %s\n' "$1"; } >"$case_dir/run.conf"
	"$bin/rivulet-coordinator" new-run --dir "$case_dir/coordinator" --config "$case_dir/run.conf" >"$case_dir/new-run.log" 2>&1
	ip netns exec "${prefix}1" "$bin/rivulet-coordinator" serve --dir "$case_dir/coordinator" --listen 10.86.0.1:7433 \
		>"$case_dir/coordinator.log" 2>&1 &
	children+=($!)
	wait_for "the coordinator's start" 20 test -s "$case_dir/coordinator/listen"
	mapfile -t links < <(ip netns exec "${prefix}1" "$bin/rivulet-coordinator" invite --dir "$case_dir/coordinator" --count "$workers")
	for ((i = 0; i < workers; i++)); do
		ip netns exec "$prefix$((i + 2))" "$bin/rivulet-worker" "${links[i]}" --yes --on-battery --on-metered --dir "$case_dir/worker$i" --data "$dir/text" \
			--threads 1 --name "worker$i" --listen "10.86.0.$((i + 2)):0" --eval-every 0 >"$case_dir/worker$i.log" 2>&1 &
		children+=($!)
	done
	wait_for "the end of $rounds rounds" 150 all_done
	end_children
}

for ((i = 1; i <= workers + 1; i++)); do
	ip netns add "$prefix$i"
	ip -n "$prefix$i" link set lo up
done
seq 1 300000 >"$dir/text"
cat >"$dir/run.conf" <<CONF
n-layer = 4
n-embd = 128
n-head = 4
batch = 1
rounds = $((rounds + 1))
steps-per-round = 1
data-shards = $workers
min-workers = $workers
CONF
run_case equal
run_case bandwidth
python3 - "$dir" "$workers" "$rounds" "$skip" "$rate" "$part" <<'PYTHON'
import json, sys
top, workers, rounds, skip, rate, part = sys.argv[1], *map(int, sys.argv[2:])
def exchange(case):
    times = []
    for i in range(workers):
        lines = [json.loads(l) for l in open(f"{top}/{case}/worker{i}/metrics.jsonl")]
        times.append([l["reduce_us"] for l in lines if l["kind"] == "round"][skip:rounds])
    return sum(max(t) for t in zip(*times)) / len(times[0]) * 1e-6
equal, bandwidth = exchange("equal"), exchange("bandwidth")
n = workers
model = (1 + (n - 2) / n) / 1.0
print(json.dumps({"bench": "ownership", "workers": n, "line_mbit": rate, "slow_upload_mbit": rate / part, "rounds": rounds - skip,
                  "equal_s": round(equal, 3), "bandwidth_s": round(bandwidth, 3), "equal_over_bandwidth": round(equal / bandwidth, 3),
                  "model": round(model, 3)}))
PYTHON
