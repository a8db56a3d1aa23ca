#!/usr/bin/env python3
"""make.py --tree DIR --version V --out FILE: an OCI image of the worker without a daemon: an image layout
(https://github.com/opencontainers/image-spec) of one layer, in a tar. The layer holds the portable tree, the
authorities of ca-certificates, an unprivileged user, and /data, where the worker keeps what it needs. Every time in it
is SOURCE_DATE_EPOCH.

    skopeo copy oci-archive:FILE docker-daemon:rivulet-worker:latest
    podman load -i FILE"""
import argparse
import gzip
import hashlib
import io
import json
import os
import tarfile
import time

USER = 65532
ETC = {
    "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\nrivulet:x:%d:%d:Rivulet:/data:/sbin/nologin\n" % (USER, USER),
    "etc/group": "root:x:0:\nrivulet:x:%d:\n" % USER,
    "etc/nsswitch.conf": "hosts: files dns\n",
}
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


class Layer:
    """A tar whose entries have one time and root as their owner."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.GNU_FORMAT)

    def add(self, name, kind, mode, data=b"", target="", owner=0):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(data), target
        entry.mtime, entry.uid, entry.gid = self.seconds, owner, owner
        self.tar.addfile(entry, io.BytesIO(data))

    def folder(self, name, mode=0o755, owner=0):
        self.add(name, tarfile.DIRTYPE, mode, owner=owner)

    def file(self, name, data, mode=0o644):
        self.add(name, tarfile.REGTYPE, mode, data)

    def tree(self, path, name):
        """Adds a folder with all below it, in the order of names."""
        self.folder(name)
        for entry in sorted(os.scandir(path), key=lambda e: e.name):
            inside = name + "/" + entry.name
            if entry.is_symlink():
                self.add(inside, tarfile.SYMTYPE, 0o777, target=os.readlink(entry.path))
            elif entry.is_dir():
                self.tree(entry.path, inside)
            else:
                with open(entry.path, "rb") as f:
                    self.file(inside, f.read(), 0o755 if os.access(entry.path, os.X_OK) else 0o644)

    def finish(self):
        self.tar.close()
        return self.bytes.getvalue()


def layer_of(tree, seconds):
    layer = Layer(seconds)
    layer.folder("data", 0o700, USER)
    layer.folder("etc")
    for name in sorted(ETC):
        layer.file(name, ETC[name].encode())
    layer.folder("etc/ssl")
    layer.folder("etc/ssl/certs")
    with open(AUTHORITIES, "rb") as f:
        layer.file(AUTHORITIES[1:], f.read())
    layer.folder("opt")
    layer.tree(tree, "opt/rivulet-worker")
    layer.folder("tmp", 0o1777)
    return layer.finish()


def config_of(version, layer, created):
    return {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": "%d:%d" % (USER, USER),
            "Entrypoint": ["/opt/rivulet-worker/bin/rivulet-worker"],
            "WorkingDir": "/data",
            "Volumes": {"/data": {}},
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "rivulet-worker",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "MIT",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "created_by": "packaging/oci/make.py"}],
    }


class Layout:
    """The blobs of an image layout, each described by its hash."""

    def __init__(self):
        self.blobs = {}

    def put(self, media, data):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": "application/vnd.oci.image." + media, "digest": "sha256:" + digest, "size": len(data)}

    def put_json(self, media, value):
        return self.put(media, json.dumps(value, sort_keys=True).encode())


def main():
    parser = argparse.ArgumentParser(description="makes an OCI image layout of the worker")
    for name in ("tree", "version", "out"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    seconds = int(os.environ["SOURCE_DATE_EPOCH"])
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    layer = layer_of(args.tree, seconds)
    layout = Layout()
    manifest = layout.put_json(
        "manifest.v1+json",
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": layout.put_json("config.v1+json", config_of(args.version, layer, created)),
            "layers": [layout.put("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0))],
        },
    )
    manifest["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
    archive = Layer(seconds)
    archive.folder("blobs")
    archive.folder("blobs/sha256")
    for digest in sorted(layout.blobs):
        archive.file("blobs/sha256/" + digest, layout.blobs[digest])
    archive.file("index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}, sort_keys=True).encode())
    archive.file("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
    with open(args.out, "wb") as f:
        f.write(archive.finish())


main()
