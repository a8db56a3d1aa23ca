#!/usr/bin/env python3
"""judge_mirrors.py TEXT_GET RIVULET: a published text comes whole from `rivulet data serve`, from Python's http.server (which has
no ranges) and from moto's S3 server, by TLS too, each also behind a proxy that refuses, cuts, delays and falsifies answers, and, for S3,
checks every signature with botocore. What is read is what was published, with a cache of two shards too."""
import hashlib
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

import certificates
import judges

judges.enter()
judges.versions("moto", "boto3", "botocore")

import boto3  # noqa: E402
import botocore.auth  # noqa: E402
import botocore.awsrequest  # noqa: E402
import botocore.credentials  # noqa: E402
import numpy  # noqa: E402

TEXT_GET, RIVULET = sys.argv[1:3]
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="rv-judge-"))
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAJUDGE", "AWS_SECRET_ACCESS_KEY": "se/cret+key", "AWS_REGION": "eu-north-1"}
SHARD_TOKENS, SHARDS = 1 << 20, 6
SHARD_BYTES = 2 * SHARD_TOKENS + 1024
PROCESSES = []


def signed_rightly(handler):
    """Whether botocore computes the same signature of this request."""
    found = re.search(r"Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, *SignedHeaders=([^,]+), *Signature=(\w+)",
                      handler.headers.get("Authorization", ""))
    if not found:
        return False
    key, _, region, names, signature = found.groups()
    request = botocore.awsrequest.AWSRequest("GET", f"http://{handler.headers['Host']}{handler.path}",
                                             headers={n: handler.headers[n] for n in names.split(";")})
    request.context["timestamp"] = handler.headers["x-amz-date"]
    request.context["payload_signing_enabled"] = False
    auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(key, KEYS["AWS_SECRET_ACCESS_KEY"]), "s3", region)
    canonical = auth.canonical_request(request)
    return key == KEYS["AWS_ACCESS_KEY_ID"] and region == KEYS["AWS_REGION"] and \
        auth.signature(auth.string_to_sign(request, canonical), request) == signature


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes a request on to server.upstream, or does not."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        server = self.server
        with server.lock:
            fault = server.random.choice(server.faults) if "shard-" in self.path else None
            server.seen[fault] = server.seen.get(fault, 0) + 1
        if server.checks and not signed_rightly(self):
            server.unsigned += 1
            return self.answer(403, b"signature", {})
        if fault == "busy":
            return self.answer(503, b"later", {"Retry-After": "1"})
        if fault == "slow":
            time.sleep(0.3)
        upstream = http.client.HTTPConnection("127.0.0.1", server.upstream, timeout=60)
        upstream.request("GET", self.path, headers={k: v for k, v in self.headers.items() if k != "Connection"})
        reply = upstream.getresponse()
        body = bytearray(reply.read())
        upstream.close()
        if fault == "wrong" and body:
            body[len(body) // 2] ^= 1
        keep = {k: v for k, v in reply.getheaders() if k.lower() in ("content-range", "accept-ranges")}
        self.answer(reply.status, bytes(body), keep, len(body) * 2 // 3 if fault == "cut" else None)

    def answer(self, status, body, headers, cut=None):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        self.close_connection = self.close_connection or cut is not None


class ProxyServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client may leave whenever it likes."""


def proxy(upstream, faults, checks=False, tls=None):
    server = ProxyServer(("127.0.0.1", 0), Proxy)
    server.upstream, server.faults, server.checks, server.unsigned = upstream, faults, checks, 0
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.lock, server.random, server.seen = threading.Lock(), random.Random(7), {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def start(argv, pattern):
    """Starts a server, and returns the port that its output names."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    PROCESSES.append(process)
    for line in process.stdout:
        found = re.search(pattern, line)
        if found:
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return int(found.group(1))
    sys.exit(f"{argv} ended before it served")


def publish():
    text = ROOT / "text"
    text.write_bytes(random.Random(1).randbytes(SHARD_TOKENS * SHARDS - 5000).replace(b"\0", b" ").translate(
        bytes(32 + i % 90 for i in range(256))))
    out = ROOT / "published"
    status, stdout, err = judges.run(RIVULET, "data", "publish", str(text), "--out", str(out), "--shard-tokens",
                                     str(SHARD_TOKENS))
    if status != 0:
        sys.exit(f"publish: {stdout}{err}")
    shards = [numpy.frombuffer(p.read_bytes()[1024:], "<u2") for p in sorted(out.glob("shard-*.bin"))]
    tokens = numpy.concatenate(shards).astype("<i4").tobytes()
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["mirrors"]
    sealed = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return out, hashlib.blake2b(sealed.encode(), digest_size=32).hexdigest(), \
        hashlib.blake2b(tokens, digest_size=32).hexdigest()


def upload(port, where, authority=None):
    scheme = "https" if authority else "http"
    s3 = boto3.client("s3", endpoint_url=f"{scheme}://127.0.0.1:{port}", verify=authority, aws_access_key_id="x", aws_secret_access_key="x",
                      region_name="us-east-1")
    s3.create_bucket(Bucket="texts")
    for file in where.iterdir():
        s3.put_object(Bucket="texts", Key=f"of/a-run/{file.name}", Body=file.read_bytes(),
                      ACL="public-read")


class Case:
    def __init__(self, data_hash, tokens):
        self.data_hash, self.tokens, self.n = data_hash, tokens, 0

    def fetch(self, name, *urls, shards=SHARDS, environment=None):
        """Fetches all, and compares it with what was published."""
        self.n += 1
        where = ROOT / f"cache-{self.n}"
        clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and k != "LD_LIBRARY_PATH"}
        began = time.monotonic()
        done = subprocess.run([TEXT_GET, where, self.data_hash, str(shards * SHARD_BYTES), *urls], text=True,
                              capture_output=True, timeout=240, env=clean | (environment or {}))
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr}")
        got = json.loads(done.stdout)
        if got["tokens"] != self.tokens:
            sys.exit(f"{name}: other tokens were read than were published")
        if got["cached"] > shards * SHARD_BYTES:
            sys.exit(f"{name}: {got['cached']} bytes are kept, the quota is {shards} shards")
        print(f"{name}: {got['bytes']} bytes, {got['wasted']} in vain, {got['lies']} lies,"
              f" {time.monotonic() - began:.1f} s")
        shutil.rmtree(where)
        return got


def main():
    where, data_hash, tokens = publish()
    case = Case(data_hash, tokens)
    ours = start([RIVULET, "data", "serve", str(where), "--port", "0", "--listen", "127.0.0.1"], r'"port":\s*(\d+)')
    plain = start([sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(where)],
                  r"port (\d+)")
    moto = start([sys.executable, "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
                 r"http://127.0.0.1:(\d+)")
    upload(moto, where)
    authority, *own_pair = certificates.make(str(ROOT))
    moto_tls = start([sys.executable, "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0", "-s", "-c", own_pair[0], "-k",
                      own_pair[1]], r"https://127.0.0.1:(\d+)")
    upload(moto_tls, where, authority)
    own, python = f"http://127.0.0.1:{ours}", f"http://127.0.0.1:{plain}"
    case.fetch("rivulet data serve", own)
    case.fetch("rivulet data serve, two shards", own, shards=2)
    case.fetch("http.server, without ranges", python)
    case.fetch("both", own, python)
    case.fetch("S3, anonymous", "s3://texts/of/a-run", environment={"AWS_ENDPOINT_URL": f"http://127.0.0.1:{moto}"})
    checked = proxy(moto, [None], checks=True)
    endpoint = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{checked.server_port}"}
    case.fetch("S3, signed", "s3://texts/of/a-run", environment=KEYS | endpoint)
    case.fetch("S3, signed, two shards", "s3://texts/of/a-run", shards=2, environment=KEYS | endpoint)
    if checked.unsigned:
        sys.exit(f"{checked.unsigned} requests were not signed rightly")
    by_tls = {"SSL_CERT_FILE": authority, "AWS_ENDPOINT_URL": f"https://127.0.0.1:{moto_tls}"}
    case.fetch("S3 by TLS, anonymous", "s3://texts/of/a-run", environment=by_tls)
    checked_tls = proxy(moto, [None, None, "busy", "cut", "slow"], checks=True, tls=certificates.serving(*own_pair))
    case.fetch("S3 by TLS, signed, behind a bad line, two shards", "s3://texts/of/a-run", shards=2,
               environment=KEYS | by_tls | {"AWS_ENDPOINT_URL": f"https://127.0.0.1:{checked_tls.server_port}"})
    if checked_tls.unsigned:
        sys.exit(f"{checked_tls.unsigned} requests by TLS were not signed rightly")
    faults = [None, None, None, "busy", "cut", "slow"]
    bad_own, bad_s3 = proxy(ours, faults), proxy(moto, faults, checks=True)
    case.fetch("rivulet data serve behind a bad line", f"http://127.0.0.1:{bad_own.server_port}")
    case.fetch("S3 behind a bad line", "s3://texts/of/a-run",
               environment=KEYS | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{bad_s3.server_port}"})
    liar = proxy(ours, [None, "wrong"])
    lied = case.fetch("beside a liar", f"http://127.0.0.1:{liar.server_port}", own)
    if liar.seen.get("wrong", 0) > 0 and lied["lies"] == 0:
        sys.exit("a liar was not found")
    if not all(p.seen.get(f) for p in (bad_own, bad_s3) for f in ("busy", "cut")):
        sys.exit(f"the proxies did no harm: {bad_own.seen} {bad_s3.seen}")
    case.fetch("all at once, two shards", f"http://127.0.0.1:{bad_own.server_port}", python, own, shards=2)


try:
    main()
finally:
    for process in PROCESSES:
        process.terminate()
        process.wait()
    shutil.rmtree(ROOT)
