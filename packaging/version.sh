# version.sh: which version the packages of a source tree have.
# shellcheck shell=bash

# read_version SOURCE: sets program_version, as `rivulet --version` prints it; package_version, which
# grows with the time of the commit, so that a package of a later commit replaces one of an earlier;
# and package_epoch, that time in seconds. Of an archive of `git archive`, or of a work tree.
read_version() {
	local source=$1 base commit dirty=
	base=$(sed -n 's/^project(rivulet VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
	commit=$(head -n 1 "$source/base/commit/archived")
	package_epoch=$(head -n 1 "$source/packaging/archived_time")
	if ! [[ $commit =~ ^[0-9a-f]+$ ]]; then
		commit=$(git -C "$source" rev-parse HEAD)
		package_epoch=$(git -C "$source" log -1 --format=%ct)
		git -C "$source" diff --quiet HEAD -- || dirty=dirty
	fi
	commit=${commit:0:12}
	program_version=$base+$commit${dirty:+-$dirty}
	package_version=$base+$(date -u -d "@$package_epoch" +%Y%m%d%H%M%S).$commit${dirty:+.$dirty}
}
