#!/usr/bin/env bash
# tarball.sh PACKAGES: the portable tarball in a minimal Debian 11 (glibc 2.31), where nothing is
# installed: it joins by the link alone, trains and comes back, as an ordinary user. Run from the top
# of the sources.
set -euo pipefail
. tests/package/packages/common.sh
packages=$1
begin
make_root bullseye
no_compiler
inside ldd --version | sed -n 1p
inside useradd -m anna
mkdir "$root/home/anna/rivulet"
tar -C "$root/home/anna/rivulet" --strip-components=1 --no-same-owner -xf "$packages"/rivulet-worker-*-linux-x86_64.tar.xz
printf 'tarball: %d bytes, unpacked %d\n' "$(stat -c %s "$packages"/rivulet-worker-*-linux-x86_64.tar.xz)" \
	"$(du -sb "$root/home/anna/rivulet" | cut -f 1)"
worker=/home/anna/rivulet/bin/rivulet-worker
[ "$(inside "$worker" --version)" = "$("$programs/rivulet-worker" --version)" ] || fail "another version is in the tarball"
as_user anna join_and_come_back "$worker" --dir /home/anna/w --listen 127.0.0.1:0 --threads 1
printf 'ok: tarball\n'
