#!/usr/bin/env bash
# image.sh PACKAGES: the OCI image: skopeo reads it, umoci unpacks it, and what is in it joins, trains
# and comes back. Run from the top of the sources.
set -euo pipefail
. tests/package/packages/common.sh
packages=$1
begin
for judge in skopeo umoci; do
	command -v "$judge" >/dev/null || skip "$judge is not installed"
done
image=$(echo "$packages"/rivulet-worker-*-oci-x86_64.tar)
skopeo inspect "oci-archive:$image" | grep -q '"Architecture": "amd64"' || fail "skopeo cannot read the image"
skopeo copy -q --insecure-policy "oci-archive:$image" "oci:$work/layout:latest" || fail "skopeo cannot copy the image"
umoci unpack --image "$work/layout:latest" "$work/bundle" >/dev/null 2>&1 || fail "umoci cannot unpack the image"
root=$work/bundle/rootfs
use_root
printf 'image: %d bytes\n' "$(stat -c %s "$image")"

entry=$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["process"]["args"])' "$work/bundle/config.json")
as=$(python3 -c 'import json, sys; u = json.load(open(sys.argv[1]))["process"]["user"]; print("%d:%d" % (u["uid"], u["gid"]))' "$work/bundle/config.json")
[ "$as" = 65532:65532 ] || fail "the image runs as $as"
[ "$(inside "$entry" --version)" = "$("$programs/rivulet-worker" --version)" ] || fail "another version is in the image"
join_and_come_back "$entry" --dir /data/w --listen 127.0.0.1:0 --threads 1
printf 'ok: image\n'
