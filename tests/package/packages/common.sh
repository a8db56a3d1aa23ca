# common.sh: for the scripts of this folder, which run what `./dev package` made in a system that has
# no compiler and nothing of ours: roots made by debootstrap, and a run beside them.
# shellcheck shell=bash
cache=${RIVULET_PACKAGE_CACHE:-$PWD/.cache/roots} # downloaded once
programs=$PWD/build/package/bin
work=
net=()      # prefix of commands of the run outside, and the address there
home=()     # prefix of commands inside
address=127.0.0.1
spaces=()
mounted=()
children=()

# Leaves no process, mount or file behind, however the script ends.
clean_up() {
	local child point
	for child in "${children[@]}"; do
		kill -TERM "$child" 2>/dev/null || true
	done
	for child in "${children[@]}"; do
		wait "$child" 2>/dev/null || true
	done
	for point in "${spaces[@]}"; do
		ip netns del "$point" || true
	done
	for point in "${mounted[@]}"; do
		umount -l "$point" || true
	done
	[ -z "$work" ] || rm -rf --one-file-system "$work"
}

begin() {
	[ "$(id -u)" -eq 0 ] || skip "needs root, for chroot and mounts"
	trap clean_up EXIT
	trap 'exit 130' INT TERM HUP
	work=$(mktemp -d "${TMPDIR:-/tmp}/rv-package.XXXXXX")
	chmod 755 "$work"
}

skip() {
	printf 'SKIPPED: %s\n' "$*"
	exit 77
}

fail() {
	printf 'FAILED: %s\n' "$*"
	[ ! -f "${work:-}/inside.log" ] || tail -n 15 "$work/inside.log"
	exit 1
}

# make_root SUITE: an own copy of a minimal Debian in $root, with /proc.
make_root() {
	local suite=$1
	command -v debootstrap >/dev/null || skip "debootstrap is not installed"
	if [ ! -d "$cache/$suite" ]; then
		mkdir -p "$cache"
		rm -rf "$cache/$suite.part"
		debootstrap --variant=minbase "$suite" "$cache/$suite.part" http://deb.debian.org/debian >"$cache/$suite.log" 2>&1 ||
			skip "debootstrap $suite: $(tail -n 1 "$cache/$suite.log")"
		mv "$cache/$suite.part" "$cache/$suite"
	fi
	root=$work/root
	cp -a "$cache/$suite" "$root"
	use_root
}

# use_root: prepares $root to be run in.
use_root() {
	mkdir -p "$root/proc" "$root/etc"
	mount -t proc proc "$root/proc" || skip "no mounts here"
	mounted+=("$root/proc")
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
}

# behind_a_router: from now on the root is in a home, whose router lets nobody in, and the run on the
# internet behind it: three network namespaces of this script.
behind_a_router() {
	local name
	command -v ip >/dev/null && command -v nft >/dev/null || skip "iproute2 or nftables is not installed"
	for name in net router home; do
		ip netns add "rv-package-$$-$name" || skip "no network namespaces here"
		spaces+=("rv-package-$$-$name")
		ip -n "rv-package-$$-$name" link set lo up
	done
	local n=rv-package-$$-net r=rv-package-$$-router h=rv-package-$$-home
	ip -n "$n" link add wan type veth peer name wan netns "$r"
	ip -n "$h" link add lan type veth peer name lan netns "$r"
	ip -n "$n" addr add 203.0.113.1/24 dev wan
	ip -n "$r" addr add 203.0.113.2/24 dev wan
	ip -n "$r" addr add 192.168.7.1/24 dev lan
	ip -n "$h" addr add 192.168.7.2/24 dev lan
	ip -n "$n" link set wan up
	ip -n "$r" link set wan up
	ip -n "$r" link set lan up
	ip -n "$h" link set lan up
	ip -n "$h" route add default via 192.168.7.1
	ip netns exec "$r" sysctl -q -w net.ipv4.ip_forward=1
	ip netns exec "$r" nft -f - <<-'RULES'
		table ip home {
			chain out { type nat hook postrouting priority 100; oifname "wan" masquerade; }
			chain in { type filter hook forward priority 0; iifname "wan" ct state != { established, related } drop; }
		}
	RULES
	net=(ip netns exec "$n")
	home=(ip netns exec "$h")
	address=203.0.113.1
}

# inside COMMAND...: runs it in $root, as root or as the user and group of $as.
as=0:0
bare=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive)
inside() {
	"${home[@]}" "${bare[@]}" chroot --userspec="$as" "$root" "$@"
}

# as_user NAME COMMAND...: runs the shell function as a user of the root.
as_user() {
	local ids
	ids=$(inside id -u "$1"):$(inside id -g "$1")
	local as=$ids
	"${@:2}"
}

no_compiler() {
	local name
	for name in gcc cc clang make cmake; do
		! inside sh -c "command -v $name" >/dev/null 2>&1 || fail "$name is in the root"
	done
}

# start_run: a run of two workers with its text at a coordinator outside the root, and one of them.
# Sets link for the other.
start_run() {
	local i
	mkdir "$work/text" "$work/run"
	seq -f 'Line %.0f of a text that two computers learn together, one of them by a package.' 15000 >"$work/text/a.txt"
	printf '%s\n' 'preset = nano' 'rounds = 1000' 'steps-per-round = 3' 'min-workers = 2' 'batch = 2' >"$work/run.conf"
	"$programs/rivulet-coordinator" new-run --dir "$work/run" --config "$work/run.conf" --data "$work/text" >"$work/new-run.log" 2>&1 ||
		fail "new-run: $(tail -n 3 "$work/new-run.log")"
	"${net[@]}" "$programs/rivulet-coordinator" serve --dir "$work/run" --listen "$address:0" --no-relay >"$work/serve.log" 2>&1 &
	children+=($!)
	for ((i = 0; i < 300; i++)); do
		[ ! -s "$work/run/listen" ] || break
		sleep 0.1
	done
	"${net[@]}" "$programs/rivulet-coordinator" invite --dir "$work/run" --count 2 >"$work/links"
	"${net[@]}" "$programs/rivulet-worker" "$(sed -n 1p "$work/links")" --dir "$work/outside" --listen "$address:0" --threads 1 \
		--yes >"$work/outside.log" 2>&1 &
	children+=($!)
	link=$(sed -n 2p "$work/links")
}

round() {
	"${net[@]}" "$programs/rivulet-coordinator" status --dir "$work/run" --json | sed -n 's/^.*"round": *\([0-9]*\).*$/\1/p' | head -n 1
}

# wait_rounds N: waits until N more rounds are committed.
wait_rounds() {
	local from to i
	from=$(round)
	to=$((${from:-0} + $1))
	for ((i = 0; i < 300; i++)); do
		[ "$(round)" -lt "$to" ] || return 0
		kill -0 "$inside_pid" 2>/dev/null || fail "the worker inside has ended"
		sleep 1
	done
	fail "no $1 rounds within 300 s"
}

# start_inside COMMAND...: runs a worker in the root, in the background. Its number is the worker's:
# each of these programs becomes the next one.
start_inside() {
	"${home[@]}" "${bare[@]}" chroot --userspec="$as" "$root" "$@" >>"$work/inside.log" 2>&1 &
	inside_pid=$!
	children+=("$inside_pid")
}

# stop_inside: SIGTERM, and the status that an end without a fault has.
stop_inside() {
	local status=0
	kill -TERM "$inside_pid"
	wait "$inside_pid" || status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 130 ] || fail "the worker inside ended with status $status"
}

# ticks: processor time that the worker inside has used, in hundredths of a second.
ticks() {
	sed 's/.*) //' "/proc/$inside_pid/stat" | awk '{ print $12 + $13 }'
}

# state: what the worker inside says that it does. Uses PROGRAM and DIR of stays_its_owners.
state() {
	inside "$program" status --json --dir "$dir" 2>/dev/null | sed -n 's/^  "state": "\([a-z_]*\)".*$/\1/p'
}

wait_state() {
	local i
	for ((i = 0; i < 300; i++)); do
		[ "$(state)" != "$1" ] || return 0
		sleep 0.1
	done
	fail "the worker inside does not become $1, it is $(state)"
}

# stays_its_owners PROGRAM DIR: a pause leaves the processor idle within 2 s and the run going, limits
# are kept, and a used-up day pauses the worker over a restart.
stays_its_owners() {
	local program=$1 dir=$2 began ended used
	inside "$program" pause --dir "$dir" >/dev/null || fail "pause"
	began=$(date +%s%N)
	for ((used = 100; used > 2; )); do
		ended=$(date +%s%N)
		used=$(ticks)
		sleep 0.2
		used=$(($(ticks) - used))
		[ $((ended - began)) -lt 2000000000 ] || fail "a paused worker uses the processor after 2 s"
	done
	printf '%s: idle %d ms after `pause`\n' "$(basename "$0" .sh)" $(((ended - began) / 1000000))
	wait_state paused
	inside "$program" resume --dir "$dir" >/dev/null || fail "resume"
	wait_rounds 2
	inside "$program" set max-up=20mbit cpu-share=50 hours=0-24 max-per-day=1000 --dir "$dir" >/dev/null || fail "set"
	wait_state paused
	grep -q 'max-up = 20mbit' "$root$dir/worker.conf" || fail "a cap is not kept"
}

# in_sandbox: the worker inside has entered its sandbox, which packages have on; prints the parts that
# this kernel enforces.
in_sandbox() {
	grep -o '"event":"sandbox","files":[a-z]*,"calls":[a-z]*' "$work/inside.log" | tail -n 1 ||
		fail "the worker is in no sandbox"
}

# join_and_come_back COMMAND...: the worker that the command starts joins by the link alone, trains,
# ends, and goes on without the link, as after a reboot; it stays its owner's, and so it does when
# it is started again.
join_and_come_back() {
	local began=$SECONDS program=$1 dir=$3
	[ "$2" = --dir ] || fail "join_and_come_back: $2 must be --dir"
	start_run
	start_inside "$@" --on-battery --on-metered "$link" --yes
	wait_rounds 2
	in_sandbox
	printf '%s: joined and counted in 2 rounds after %d s\n' "$(basename "$0" .sh)" $((SECONDS - began))
	stop_inside
	start_inside "$program" --dir "$dir"
	wait_rounds 2
	stays_its_owners "$program" "$dir"
	stop_inside
	start_inside "$program" --dir "$dir"
	wait_state paused
	inside "$program" set max-per-day=0 --dir "$dir" >/dev/null || fail "set"
	wait_rounds 2
	stop_inside
}
