#!/usr/bin/env python3
"""test_lab_data.py BIN: `rivulet data` as a program. What it publishes is read back by numpy from the published layouts
alone; a publish that is killed at random times ends in the same bytes; every format, and what is refused."""
import concurrent.futures
import gzip
import hashlib
import http.client
import json
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import numpy
except ImportError:
    print("skipped: there is no numpy for python3 (apt-get install python3-numpy)")
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop()).resolve() / "rivulet"
RANDOM = random.Random(20261123)
SHARD, KILLS = 16384, 12


def blake(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def run(*args, status=0, says=""):
    done = subprocess.run([BIN, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != status or says not in done.stdout + done.stderr:
        raise AssertionError(f"{args}: status {done.returncode}, not {status}, or no '{says}' in: {done.stdout}{done.stderr}")
    return done


def read_back(where):
    """Checks every hash by hand, from docs/data.md; returns (manifest, tokens)."""
    manifest = json.loads((where / "manifest.json").read_text())
    hashes, level = [], 0
    for path in sorted(where.glob("index-0-*.hashes")):
        page = path.read_bytes()
        hashes += [page[i:i + 32].hex() for i in range(0, len(page), 32)]
    pages = [blake(path.read_bytes()) for path in sorted(where.glob("index-0-*.hashes"))]
    if len(pages) > 1:
        top = (where / "index-1-000000.hashes").read_bytes()
        assert [top[i:i + 32].hex() for i in range(0, len(top), 32)] == pages
        pages = [blake(top)]
    assert pages == [manifest["root"]]
    tokens = []
    for i, want in enumerate(hashes):
        data = (where / f"shard-{i:06}.bin").read_bytes()
        assert blake(data) == want, i
        header = numpy.frombuffer(data[:1024], "<i4")
        wide = manifest["vocab"] > 65536
        assert (header[0], header[1]) == ((20240801, 7) if wide else (20240520, 1))
        tokens.append(numpy.frombuffer(data[1024:], "<u4" if wide else "<u2").astype("u4"))
        assert len(tokens[-1]) == header[2] and (len(tokens[-1]) == manifest["shard_tokens"] or i == len(hashes) - 1)
    tokens = numpy.concatenate(tokens)
    assert len(hashes) == manifest["shards"] and len(tokens) == manifest["tokens"]
    return manifest, tokens


def files_of(where):
    return {p.name: p.read_bytes() for p in where.iterdir()}


class Data(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="rv-data-"))
        words = ["".join(RANDOM.choice("abcdefghij") for _ in range(RANDOM.randint(1, 9))) for _ in range(3000)]
        cls.documents = [" ".join(RANDOM.choice(words) for _ in range(RANDOM.randint(1, 400))) + "\u00e9\n" for _ in range(900)]
        cls.text = cls.dir / "text.txt"
        cls.text.write_text("".join(cls.documents))
        cls.tokenizer = cls.dir / "tokenizer.json"
        run("tokenizer", "train", "--vocab", 600, "--data", cls.text, "--out", cls.tokenizer)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def publish(self, name, *args, **expected):
        out = self.dir / name
        return out, run("data", "publish", *args, "--out", out, "--shard-tokens", SHARD, **expected)

    def tokens_of(self, path):
        out = self.dir / "tokens"
        shutil.rmtree(out, ignore_errors=True)
        run("tokenize", "--data", path, "--tokenizer", self.tokenizer, "--out", out)
        return numpy.concatenate([numpy.fromfile(p, "<u2")[512:] for p in sorted(out.glob("*.bin"))])

    def test_text(self):
        out, done = self.publish("text.rv", self.text, "--tokenizer", self.tokenizer, "--license", "mit", "--threads", 2)
        manifest, tokens = read_back(out)
        self.assertTrue(numpy.array_equal(tokens, self.tokens_of(self.text)))
        self.assertGreater(manifest["shards"], 10)
        self.assertEqual((manifest["license"], manifest["sources"]), ("mit", ["text.txt"]))
        self.assertEqual(manifest["tokenizer_hash"], blake((out / "tokenizer.json").read_bytes()))
        del manifest["mirrors"]
        canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        self.assertIn(blake(canonical), done.stdout)
        self.assertEqual({p.name for p in out.iterdir()} - {f"shard-{i:06}.bin" for i in range(manifest["shards"])},
                         {"manifest.json", "tokenizer.json", "index-0-000000.hashes"})
        run("data", "verify", out, says='"event":"verified"')
        facts = json.loads(run("data", "inspect", out, "--documents", 1).stdout)
        self.assertTrue(self.text.read_text().startswith(facts["documents"][0].rstrip("?")))
        facts = json.loads(run("inspect", out).stdout)
        self.assertEqual((facts["kind"], facts["tokens"]), ("published text", manifest["tokens"]))
        self.publish("text.rv", self.text, "--tokenizer", self.tokenizer, status=1, says="published already")
        self.assertFalse((out / "lock").exists())

    def test_bytes(self):
        out, _ = self.publish("bytes.rv", self.text, says="no license is stated")
        manifest, tokens = read_back(out)
        self.assertEqual(tokens.astype("u1").tobytes(), self.text.read_bytes())
        self.assertEqual((manifest["tokenizer_file"], manifest["separator"]), ("", -1))

    def test_documents(self):
        """Each document behind a separator, whatever the file's format."""
        lines = "".join(json.dumps({"id": i, "body": t}) + "\n" for i, t in enumerate(self.documents))
        path = self.dir / "lines.jsonl"
        path.write_text(lines)
        (self.dir / "lines.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        plain, _ = self.publish("lines.rv", path, "--field", "body", "--tokenizer", self.tokenizer)
        packed, _ = self.publish("packed.rv", self.dir / "lines.jsonl.gz", "--field", "body", "--tokenizer", self.tokenizer)
        manifest, tokens = read_back(plain)
        self.assertEqual(int((tokens == manifest["separator"]).sum()), len(self.documents))
        self.assertTrue(numpy.array_equal(tokens, read_back(packed)[1]))
        facts = json.loads(run("data", "inspect", plain, "--documents", 2).stdout)
        self.assertEqual([d[:500] for d in facts["documents"]], [t[:500] for t in self.documents[:2]])
        self.publish("again.rv", path, "--tokenizer", self.tokenizer, status=1, says="no field 'text'")
        again, _ = self.publish("again.rv", path, "--field", "body", "--tokenizer", self.tokenizer)
        self.assertEqual(files_of(again), files_of(plain))
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", path], check=True)
            out, _ = self.publish("zst.rv", f"{path}.zst", "--field", "body", "--tokenizer", self.tokenizer)
            self.assertTrue(numpy.array_equal(tokens, read_back(out)[1]))

    def test_files_of_tokens(self):
        """llm.c's layouts, nanoGPT's only where it is named; ids are checked."""
        want = self.tokens_of(self.text)
        llmc = self.dir / "tokens" / "tokens-000000.bin"
        plain = self.dir / "train.bin"
        want.astype("<u2").tofile(plain)
        common = ("--tokenizer", self.tokenizer)
        for name, args in (("llmc.rv", (llmc,)), ("nano.rv", (plain, "--format", "nanogpt"))):
            out, _ = self.publish(name, *args, *common)
            self.assertTrue(numpy.array_equal(read_back(out)[1], want))
        self.publish("no.rv", plain, *common, status=1, says="--format nanogpt")
        self.publish("no.rv", llmc, "--format", "nanogpt", *common, status=1, says="leave out")
        self.publish("no.rv", llmc, self.text, *common, status=1, says="one sort")
        self.publish("no.rv", self.text, "--format", "llmc", *common, status=1, says="no header of llm.c")
        numpy.array([1, 2, 600], "<u2").tofile(plain)
        self.publish("no2.rv", plain, "--format", "nanogpt", *common, status=1, says="token 2 is 600, the vocabulary has 600")
        cut = self.dir / "cut.bin"
        cut.write_bytes(llmc.read_bytes()[:-2])
        self.publish("no3.rv", cut, *common, status=1, says="was it cut short?")

    def test_data_set(self):
        """A directory as the hub has them: one split, at any depth below data, and the license of its README.md."""
        hub = self.dir / "hub"
        (hub / "data" / "part").mkdir(parents=True)
        (hub / "README.md").write_text("---\nlanguage:\n- en\nlicense:\n- odc-by\n---\n# Text that is not data\n")
        for name, documents in (("train-00001-of-00002", self.documents[:300]), ("part/train-00000-of-00002", self.documents[300:]),
                                ("test-00000-of-00001", ["held"])):
            (hub / "data" / f"{name}.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in documents))
        out, _ = self.publish("hub.rv", hub, "--tokenizer", self.tokenizer)
        manifest, tokens = read_back(out)
        self.assertEqual((manifest["license"], manifest["sources_total"]), ("odc-by", 2))
        self.assertEqual(int((tokens == manifest["separator"]).sum()), len(self.documents))
        out, _ = self.publish("test.rv", hub, "--split", "test")
        self.assertEqual(read_back(out)[1].astype("u1").tobytes(), b"held")
        self.publish("no.rv", hub, "--split", "dev", status=1, says="train, test")
        saved = self.dir / "saved"
        saved.mkdir()
        (saved / "state.json").write_text("{}")
        self.publish("no.rv", saved, status=1, says="load_from_disk")

    def test_refusals(self):
        for name, data, says in (("t.csv", b"a,b\n1,2\n", "a table"), ("t.arrow", b"ARROW1\0\0", "an Arrow file"),
                                 ("t.zip", b"PK\3\4", "a zip archive"), ("t.txt", bytes(range(256)) * 20, "control characters"),
                                 ("t.pdf", b"%PDF-1.4\n", "a PDF"), ("t.txt.xz", b"\xfd7zXZ\0", "xz -dk")):
            path = self.dir / name
            path.write_bytes(data)
            self.publish("refused.rv", path, status=1, says=says)
        self.publish("no.rv", self.dir / "none", status=1, says="none")
        run("data", "publish", self.text, "--out", self.dir / "no", "--shard-tokens", 20000, status=2, says="multiple of 16384")
        self.publish("no.rv", self.text, "--mirror", "ftp://x", status=1, says="must be https://")
        out, _ = self.publish("mirrors.rv", self.text, "--mirror", "https://a/b", "--mirror", "http://c")
        self.assertEqual(json.loads((out / "manifest.json").read_text())["mirrors"], ["https://a/b", "http://c"])
        self.publish("no.rv", self.text, "--documents", 4, status=2, says="for data inspect only")
        run("data", "verfy", "x", status=2, says="did you mean verify?")
        run("data", "publish", self.text, status=2, says="--out DIR is missing")
        run("data", "verify", status=2, says="takes one directory")
        run("data", "verify", self.dir, status=1, says="manifest.json")

    def test_damage(self):
        whole, _ = self.publish("damage.rv", self.text)
        for name in ("shard-000003.bin", "index-0-000000.hashes"):
            path = whole / name
            good = path.read_bytes()
            bad = bytearray(good)
            bad[len(bad) // 2] ^= 1
            path.write_bytes(bad)
            run("data", "verify", whole, status=1, says=name)
            path.unlink()
            run("data", "verify", whole, status=1, says=name)
            path.write_bytes(good)
        run("data", "verify", whole)

    def test_killed(self):
        """kill -9 at random times, until it is whole: the same bytes as in one go, and what was whole stayed."""
        args = (self.text, "--tokenizer", self.tokenizer, "--threads", 2)
        begin = time.monotonic()
        whole, _ = self.publish("whole.rv", *args)
        took = time.monotonic() - begin
        killed, kills, done = self.dir / "killed.rv", 0, None
        command = [BIN, "data", "publish", *args, "--out", killed, "--shard-tokens", SHARD]
        while done is None:
            child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                limit = RANDOM.uniform(0, took / 3) if kills < KILLS else None
                _, text = child.communicate(timeout=limit)
                done = child.returncode
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                kills += 1
        self.assertIn(done, (0, 1))
        if done == 1:  # it was killed behind its last step
            self.assertRegex(text, "published already")
            (killed / "lock").unlink(missing_ok=True)
        print(f"killed {kills} times")
        self.assertEqual(files_of(whole), files_of(killed))

    def test_serve(self):
        """Files with ranges to several at once, more than there are connections; nothing else of the directory."""
        where, _ = self.publish("serve.rv", self.text)
        (where / "lock").write_text("secret")
        server = subprocess.Popen([BIN, "data", "serve", where, "--port", "0", "--listen", "127.0.0.1", "--connections", "4"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            port = json.loads(server.stdout.readline())["port"]
            self.check_served(where, port)
        finally:
            server.send_signal(signal.SIGINT)
            out, _ = server.communicate(timeout=60)
        self.assertEqual(server.returncode, 0)
        self.assertIn('"event":"served"', out)

    def check_served(self, where, port):
        def get(name, method="GET", **headers):
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request(method, name, headers=headers)
                answer = connection.getresponse()
                body = answer.read()
                connection.close()
                if answer.status != 503:
                    return answer, body
                time.sleep(0.02)

        want = (where / "shard-000000.bin").read_bytes()
        answer, body = get("/shard-000000.bin")
        self.assertEqual((answer.status, body), (200, want))
        answer, body = get("/shard-000000.bin", Range="bytes=1000-2999")
        self.assertEqual((answer.status, body, answer.headers["Content-Range"]), (206, want[1000:3000], f"bytes 1000-2999/{len(want)}"))
        answer, body = get("/shard-000000.bin", Range=f"bytes={len(want)}-")
        self.assertEqual((answer.status, answer.headers["Content-Range"]), (416, f"bytes */{len(want)}"))
        answer, body = get("/manifest.json", "HEAD")
        self.assertEqual((answer.status, body, int(answer.headers["Content-Length"])), (200, b"", (where / "manifest.json").stat().st_size))
        for name in ("/lock", "/../text.txt", "/%2e%2e/text.txt", "/shard-999999.bin", "/", "//etc/passwd"):
            self.assertEqual(get(name)[0].status, 404, name)
        self.assertEqual(get("/manifest.json", "POST")[0].status, 405)
        with socket.create_connection(("127.0.0.1", port)) as s:  # two requests in one packet, then what is none
            s.sendall(b"GET /manifest.json HTTP/1.1\r\n\r\nHEAD /manifest.json HTTP/1.1\r\n\r\nnonsense\r\n\r\n")
            data = b"".join(iter(lambda: s.recv(65536), b""))
        self.assertEqual([int(x) for x in re.findall(rb"HTTP/1.1 (\d+)", data)], [200, 200, 400])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(1)]  # a host has half of the four connections
        copies = list(concurrent.futures.ThreadPoolExecutor(8).map(lambda i: get(f"/shard-{i:06}.bin")[1], range(8)))
        self.assertEqual(copies, [(where / f"shard-{i:06}.bin").read_bytes() for i in range(8)])
        for s in idle:
            s.close()

    def test_training(self):
        """train takes a published text, and packed documents, as it takes the same text tokenized."""
        published, _ = self.publish("train.rv", self.text, "--tokenizer", self.tokenizer, "--holdout", 10)
        tokens = self.dir / "train-tokens"
        run("tokenize", "--data", self.text, "--tokenizer", self.tokenizer, "--out", tokens)
        lines = self.dir / "train.jsonl.gz"
        lines.write_bytes(gzip.compress((json.dumps({"text": self.text.read_text()}) + "\n").encode()))
        small = ("--workers", 1, "--context", 32, "--n-embd", 16, "--n-layer", 1, "--n-head", 2, "--rounds", 1,
                 "--steps-per-round", 2, "--batch", 2, "--data-shards", 1, "--tokenizer", self.tokenizer)
        chains = []
        for i, data in enumerate((published, tokens, lines)):
            out = run("train", "--data", data, "--out", self.dir / f"run{i}", *small, "--holdout-every", 10).stdout
            chains.append(re.search(r'"state":"([0-9a-f]{64})"', out).group(1))
        self.assertEqual(len(set(chains)), 1)
        lines.write_bytes(gzip.compress((json.dumps({"a": {"body": self.text.read_text()}}) + "\n").encode()))
        run("train", "--data", lines, "--out", self.dir / "field0", *small, "--holdout-every", 10, status=1, says="no field 'text'")
        out = run("train", "--data", lines, "--field", "a.body", "--out", self.dir / "field1", *small, "--holdout-every", 10).stdout
        self.assertIn(chains[0], out)
        run("train", "--data", published, "--out", self.dir / "run3", *small, status=1, says="holdout-every = 10")
        run("train", "--data", published, "--out", self.dir / "run4", status=2, says="tokenizer.json")

    def test_training_from_parquet(self):
        """train chooses the files of a directory as publish does, and reads Parquet itself: same text, same model."""
        hub = self.dir / "parquet"
        (hub / "data").mkdir(parents=True)
        (hub / "README.md").write_text("---\nlicense: mit\n---\n")
        files = sorted((pathlib.Path(__file__).parent.parent / "train" / "documents").glob("*.parquet"))
        self.assertGreater(len(files), 3)
        for i in range(120):
            shutil.copy(files[i % len(files)], hub / "data" / f"train-{i:05}-of-00120.parquet")
        (hub / "data" / "test-00000-of-00001.parquet").write_bytes(files[0].read_bytes())
        published, _ = self.publish("parquet.rv", hub, "--holdout", 2)
        small = ("--workers", 1, "--context", 32, "--n-embd", 16, "--n-layer", 1, "--n-head", 2, "--rounds", 1,
                 "--steps-per-round", 2, "--batch", 2, "--data-shards", 1, "--holdout-every", 2)
        chains = []
        for i, data in enumerate((published, hub)):
            out = run("train", "--data", data, "--out", self.dir / f"parquet{i}", *small).stdout
            chains.append(re.search(r'"state":"([0-9a-f]{64})"', out).group(1))
        self.assertEqual(chains[0], chains[1])
        cases = {"whole": (hub,), "test": (hub, "--split", "test"), "one": (files[0],)}
        for name, what in cases.items():
            run("tokenize", "--data", *what, "--tokenizer", "bytes", "--out", self.dir / name)
        of = {name: json.loads((self.dir / name / "tokens.json").read_text())["tokens"] for name in cases}
        self.assertEqual(of["whole"], json.loads((published / "manifest.json").read_text())["tokens"])
        self.assertEqual(of["test"], of["one"])


if __name__ == "__main__":
    unittest.main()
