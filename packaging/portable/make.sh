#!/usr/bin/env bash
# portable/make.sh BUILD VERSION OUT: the worker with all its libraries, the C library and its loader
# among them, in BUILD/portable/rivulet-worker-VERSION and as OUT/rivulet-worker-VERSION-linux-x86_64.tar.xz.
# It needs a Linux kernel and nothing else (docs/decisions/0063).
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$1 version=$2 out=$3
name=rivulet-worker-$version
tree=$build/portable/$name
documents=$tree/share/doc/rivulet-worker

rm -rf "$build/portable"
mkdir -p "$build/portable"
cmake --install "$build" --prefix "$tree" --component rivulet-worker --strip >"$build/portable.log"
cmake --install "$build" --prefix "$tree" --component rivulet-cuda --strip >>"$build/portable.log"
mkdir -p "$tree/libexec" "$tree/lib/rivulet" "$documents/libraries"
rm -rf "$tree/lib/systemd/system" "$tree/share/doc/rivulet-cuda"
mkdir -p "$tree/share/systemd"
mv "$tree/lib/systemd/user" "$tree/share/systemd/user"
rmdir "$tree/lib/systemd"

program=$tree/lib/rivulet/rivulet-worker.bin
mv "$tree/bin/rivulet-worker" "$program"
gcc -static -O2 -Wall -Werror "-ffile-prefix-map=$here=." -o "$tree/bin/rivulet-worker" "$here/launcher.c"
strip "$tree/bin/rivulet-worker"

# Lists the files that the loader takes for a program, itself included.
libraries_of() {
	ldd "$@" | sed -n 's/^.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p' | sort -u
}
mapfile -t libraries < <(libraries_of "$program")
for library in "${libraries[@]}"; do
	cp -L "$library" "$tree/lib/"
	# dpkg knows a file by the name that it was installed under, before /lib became /usr/lib.
	package=$(dpkg -S "*/$(basename "$(readlink -f "$library")")" | sed -n '1s/:.*//p')
	dpkg-query -W -f '${Package} ${Version}\n' "$package" | head -n 1 >>"$documents/libraries.unsorted"
	cp -L "/usr/share/doc/$package/copyright" "$documents/libraries/$package.copyright"
done
chmod 755 "$tree"/lib/*.so*
mv "$tree/lib/ld-linux-x86-64.so.2" "$tree/libexec/rivulet-worker"
ln -s ../libexec/rivulet-worker "$tree/lib/ld-linux-x86-64.so.2"
sort -u "$documents/libraries.unsorted" >"$documents/libraries/VERSIONS"
rm "$documents/libraries.unsorted"
cp "$here/README" "$tree/README"

find "$tree" -type d -exec chmod 755 {} +
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
tar -C "$build/portable" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" |
	xz -9 -T 1 >"$out/$name-linux-x86_64.tar.xz"
