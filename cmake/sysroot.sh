#!/usr/bin/env bash
# sysroot.sh ARCHITECTURE DIR PACKAGE...: unpacks Debian packages of another architecture, and all that
# they depend on, into DIR, from this machine's mirrors. Nothing is installed here and no foreign
# architecture is added: apt works in a state of its own below DIR. Needs no root; 40 MB are fetched.
set -euo pipefail
architecture=$1 dir=$2
shift 2
made=$dir/.made-$(printf '%s\n' "$architecture" "$@" | sha256sum | cut -c 1-16)
[ ! -e "$made" ] || exit 0
rm -rf "$dir"
state=$dir/.apt
mkdir -p "$state"/{lists/partial,archives/partial,etc}
: >"$state/status"
apt=(apt-get -q -y -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"
	-o "Dir::State::Lists=$state/lists" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state"
	-o "Dir::Etc::sourcelist=/etc/apt/sources.list" -o "Dir::Etc::sourceparts=$state/etc" -o APT::Install-Recommends=false
	-o Acquire::Languages=none -o APT::Sandbox::User=)
for source in /etc/apt/sources.list.d/debian*; do # those of Debian alone have this architecture
	[ ! -e "$source" ] || cp "$source" "$state/etc"
done
"${apt[@]}" update
"${apt[@]}" install --download-only "$@"
for package in "$state"/archives/*.deb; do
	dpkg-deb -x "$package" "$dir"
done
rm -rf "$state"
# Links with absolute targets lead out of the root.
find "$dir" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
	ln -snfr "$dir$(readlink "$link")" "$link"
done
touch "$made"
