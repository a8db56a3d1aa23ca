#!/usr/bin/env bash
# deb.sh PACKAGES: rivulet-worker's package in a minimal Debian 12 without a compiler: it installs
# with apt, joins by the link alone from behind a home router, trains, comes back, stays its owner's,
# and is removed and purged. Run from the top of the sources.
set -euo pipefail
. tests/package/packages/common.sh
packages=$1
begin
make_root bookworm
cp "$packages"/rivulet-worker_*.deb "$packages"/rivulet-coordinator_*.deb "$root/tmp/"

installing=$SECONDS
inside apt-get -q update >"$work/apt.log" 2>&1 || skip "apt-get update: no network"
inside sh -c 'apt-get -q install -y --no-install-recommends /tmp/rivulet-worker_*.deb' >"$work/apt.log" 2>&1 ||
	fail "apt-get install: $(tail -n 3 "$work/apt.log")"
sed -n 's/^Need to get/rivulet-worker: apt fetches/p; s/^After this operation/  and/p; s/^\([0-9]* upgraded.*\)/  \1/p' "$work/apt.log"
printf 'rivulet-worker: installed after %d s, apt-get update included\n' $((SECONDS - installing))
no_compiler
[ "$(inside rivulet-worker --version)" = "$("$programs/rivulet-worker" --version)" ] || fail "another version is installed"
installed=$(inside dpkg-query -W -f '${Version}' rivulet-worker)
[ "$installed" = "$(basename "$packages"/rivulet-worker_*.deb | cut -d _ -f 2)" ] || fail "dpkg says $installed"
[ -z "$(inside dpkg --verify rivulet-worker | grep -v /usr/share/)" ] || fail "installed files differ" # minimal roots leave out documents
inside getent passwd _rivulet-worker >/dev/null || fail "there is no user _rivulet-worker"
[ "$(inside stat -c '%a %U' /var/lib/rivulet-worker)" = '700 _rivulet-worker' ] || fail "/var/lib/rivulet-worker is not its own"

behind_a_router
as_user _rivulet-worker join_and_come_back rivulet-worker --dir /var/lib/rivulet-worker/home --threads 1
home=() # apt needs the real network

inside sh -c 'apt-get -q install -y --no-install-recommends /tmp/rivulet-coordinator_*.deb' >"$work/apt.log" 2>&1 ||
	fail "apt-get install rivulet-coordinator: $(tail -n 3 "$work/apt.log")"
inside rivulet-coordinator --version >/dev/null
inside apt-get -q remove -y rivulet-worker rivulet-coordinator >"$work/apt.log" 2>&1 || fail "apt-get remove"
[ ! -e "$root/usr/bin/rivulet-worker" ] || fail "the program is there after remove"
[ -e "$root/var/lib/rivulet-worker/home/run.conf" ] || fail "remove took the worker's directory"
inside apt-get -q purge -y rivulet-worker rivulet-coordinator >"$work/apt.log" 2>&1 || fail "apt-get purge"
[ ! -e "$root/var/lib/rivulet-worker" ] || fail "/var/lib/rivulet-worker is there after purge"
! inside getent passwd _rivulet-worker >/dev/null || fail "the user is there after purge"
left=$(find "$root" -xdev -name '*rivulet*' -not -path "$root/proc/*" -not -path "$root/tmp/*" -not -path "$root/var/log/*")
[ -z "$left" ] || fail "left behind: $left"
printf 'ok: deb\n'
