#!/usr/bin/env python3
"""judge_https.py TEXT_GET RIVULET: a published text comes whole by HTTPS from Python's http.server (which has no ranges), and from
one with ranges, if the server's certificate is by the authority that SSL_CERT_FILE names; and not from a server of another
authority, or of another host's name. The judges are OpenSSL and Python's ssl."""
import array
import functools
import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import certificates

TEXT_GET, RIVULET = sys.argv[1:3]
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="rv-judge-"))
SHARD_TOKENS, SHARDS = 1 << 20, 3


class Files(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass


class Ranges(Files):
    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        path = pathlib.Path(self.translate_path(self.path))
        if not asked or not path.is_file():
            return super().do_GET()
        body = path.read_bytes()
        first, last = int(asked[1]), min(int(asked[2]), len(body) - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.wfile.write(body[first:last + 1])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client may leave whenever it likes."""


def serve(handler, where, context):
    server = Server(("127.0.0.1", 0), functools.partial(handler, directory=str(where)))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"https://127.0.0.1:{server.server_port}"


def publish():
    (ROOT / "text").write_bytes(random.Random(1).randbytes(SHARD_TOKENS * SHARDS - 5000).translate(
        bytes(32 + i % 90 for i in range(256))))
    out = ROOT / "published"
    subprocess.run([RIVULET, "data", "publish", ROOT / "text", "--out", out, "--shard-tokens", str(SHARD_TOKENS)], check=True,
                   stdout=subprocess.DEVNULL)
    tokens = array.array("H", b"".join(p.read_bytes()[1024:] for p in sorted(out.glob("shard-*.bin"))))
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["mirrors"]
    sealed = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return out, hashlib.blake2b(sealed.encode(), digest_size=32).hexdigest(), \
        hashlib.blake2b(array.array("i", tokens).tobytes(), digest_size=32).hexdigest()


def fetch(name, data_hash, tokens, authority, *urls, fails=None):
    where = ROOT / "cache"
    shutil.rmtree(where, ignore_errors=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SSL_"))}
    done = subprocess.run([TEXT_GET, where, data_hash, str(SHARDS << 22), *urls], text=True, capture_output=True, timeout=120,
                          env=environment | ({"SSL_CERT_FILE": authority} if authority else {}))
    if fails:
        if done.returncode == 0 or fails not in done.stderr:
            sys.exit(f"{name}: must fail with '{fails}': {done.returncode} {done.stderr}")
    elif done.returncode != 0 or json.loads(done.stdout)["tokens"] != tokens:
        sys.exit(f"{name}: {done.stdout}{done.stderr}")
    print(f"{name}: as it must be")


def main():
    places = [ROOT / name for name in ("one", "two", "name")]
    for place in places:
        place.mkdir()
    one, two, name = (certificates.make(str(p), h) for p, h in zip(places, ("127.0.0.1", "127.0.0.1", "127.0.0.9")))
    where, data_hash, tokens = publish()
    plain = serve(Files, where, certificates.serving(*one[1:]))
    ranged = serve(Ranges, where, certificates.serving(*one[1:]))
    other = serve(Ranges, where, certificates.serving(*name[1:]))
    fetch("without ranges", data_hash, tokens, one[0], plain)
    fetch("with ranges", data_hash, tokens, one[0], ranged)
    fetch("both", data_hash, tokens, one[0], plain, ranged)
    fetch("the system's authorities do not know it", data_hash, tokens, None, ranged, fails="certificate")
    fetch("another authority", data_hash, tokens, two[0], ranged, fails="certificate")
    fetch("another host's certificate", data_hash, tokens, name[0], other, fails="127.0.0.1")
    fetch("no such file", data_hash, tokens, str(ROOT / "nothing.pem"), ranged, fails="nothing.pem")


try:
    main()
finally:
    shutil.rmtree(ROOT)
