"""The page of a worker in a real browser (Chromium by its WebDriver), over a real run of two: what it shows, in a wide window
and a narrow one, light and dark; the buttons; and what other pages in the same browser can do to it: nothing.

test_worker_page.py BIN [SHOTS]: with SHOTS, a directory, it leaves pictures there."""
import base64
import http.server
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

BIN, SHOTS = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
CONFIG = """n-layer = 1
n-head = 2
n-embd = 32
context = 32
batch = 2
rounds = 100000
steps-per-round = 20
snapshot-every = 4
min-workers = 1
holdout-every = 10
run-name = Pages <b>in</b> browsers
purpose = To see what a volunteer sees.
operator = Ada, ada@example.org
model-license = Apache-2.0
"""
WAIT_S = 120


def await_that(what, condition):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {WAIT_S} s")


class Browser:
    """Chromium, driven by the WebDriver protocol."""

    def __init__(self, where, width, height, dark, rules=""):
        self.driver = subprocess.Popen([shutil.which("chromedriver"), "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = f"http://127.0.0.1:{int(line.rstrip('. ' + chr(10)).split()[-1])}"
                break
        args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}",
                f"--user-data-dir={where}/profile{width}{dark}", f"--blink-settings=preferredColorScheme={int(not dark)}",
                f"--host-resolver-rules={rules or 'MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'}"]
        told = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": args}}}})
        self.session = f"/session/{told['sessionId']}"

    def _ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        rq = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(rq, timeout=WAIT_S) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as e:
            raise AssertionError(f"{method} {path}: {e.read().decode()[:500]}") from e

    def open(self, url):
        self._ask("POST", self.session + "/url", {"url": url})

    def run(self, script, *args):
        return self._ask("POST", self.session + "/execute/sync", {"script": script, "args": list(args)})

    def run_async(self, script, *args):
        return self._ask("POST", self.session + "/execute/async", {"script": script, "args": list(args)})

    def text(self, css):
        return self.run("return document.querySelector(arguments[0])?.innerText || ''", css)

    def click(self, css):
        found = self._ask("POST", self.session + "/element", {"using": "css selector", "value": css})
        self._ask("POST", f"{self.session}/element/{next(iter(found.values()))}/click", {})

    def complaints(self):
        return [e["message"] for e in self._ask("POST", self.session + "/se/log", {"type": "browser"})]

    def shoot(self, name):
        if SHOTS:
            shot = {"cmd": "Page.captureScreenshot", "params": {"captureBeyondViewport": True}}
            with open(f"{SHOTS}/{name}.png", "wb") as f:
                f.write(base64.b64decode(self._ask("POST", self.session + "/goog/cdp/execute", shot)["data"]))

    def close(self):
        self._ask("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()


class Run:
    """A coordinator and two workers."""

    def __init__(self, where):
        self.where, self.children = where, []
        with open(f"{where}/text", "w", encoding="utf-8") as f:
            for i in range(60000):
                f.write(f"The {i % 97}th word of line {i} is {i * 7919 % 10007}.\n")
        with open(f"{where}/run.conf", "w", encoding="utf-8") as f:
            f.write(CONFIG)
        self.tool("new-run", "--config", f"{where}/run.conf", "--data", f"{where}/text")
        self.start("coordinator", ["rivulet-coordinator", "serve", "--dir", f"{where}/run", "--listen", "127.0.0.1:0"])
        await_that("the coordinator", lambda: os.path.exists(f"{where}/run/listen"))
        for i, link in enumerate(self.tool("invite", "--count", "2").split()):
            self.start(f"worker{i}", ["rivulet-worker", link, "--yes", "--on-battery", "--on-metered", "--dir", f"{where}/w{i}",
                                      "--threads", "1", "--no-map-port", "--eval-every", "2", "--eval-tokens", "512"])

    def tool(self, command, *args):
        return subprocess.run([f"{BIN}/rivulet-coordinator", command, "--dir", f"{self.where}/run", *args], check=True,
                              capture_output=True, text=True).stdout

    def start(self, name, argv):
        with open(f"{self.where}/{name}.log", "w", encoding="utf-8") as log:
            self.children.append(subprocess.Popen([f"{BIN}/{argv[0]}", *argv[1:]], stdout=log, stderr=log))

    def place(self, i=0):
        path = f"{self.where}/w{i}/local.json"
        await_that("local.json", lambda: os.path.exists(path))
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def status(self):
        out = subprocess.run([f"{BIN}/rivulet-worker", "status", "--json", "--dir", f"{self.where}/w0"], capture_output=True,
                             text=True, check=False)
        return json.loads(out.stdout) if out.returncode == 0 else {}

    def set(self, option):
        subprocess.run([f"{BIN}/rivulet-worker", "set", option, "--dir", f"{self.where}/w0"], check=True, capture_output=True)

    def close(self):
        for c in self.children:
            c.terminate()
        for c in self.children:
            c.wait()


def looks_right(run, where, name, width, dark, worker=0):
    b, at = Browser(where, width, 900, dark), run.place(worker)
    b.open(f"http://127.0.0.1:{at['port']}/#{at['token']}")
    await_that("a verdict", lambda: b.text("#verdict").startswith("Yes: round"))
    await_that("both curves", lambda: b.run("return document.querySelectorAll('#chart polyline').length") > 1)
    assert "held-out text" in b.text("#chart") and "my training" in b.text("#chart"), b.text("#chart")
    assert b.text("#name") == "Pages <b>in</b> browsers", b.text("#name")
    assert "Ada, ada@example.org" in b.text("#run") and "Apache-2.0" in b.text("#run")
    assert at["token"] not in b.run("return location.href"), "the token stays in the address"
    assert b.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0, "too wide"
    b.shoot(name)
    return b


def writes(b, shot):
    await_that("a state to try", lambda: not b.run("return document.getElementById('go').disabled"))
    b.run("document.getElementById('prompt').value = 'The 1'")
    b.click("#go")
    text = await_that("a text", lambda: b.run("const w = document.getElementById('written');"
                                              "return w.innerText.length > 20 || w.className ? w.innerText : ''"))
    assert text.startswith("The 1") and b.run("return document.getElementById('written').className") == "", text
    b.shoot(shot)


def press(b, label):
    """Clicks the button of that name, as a person does."""
    await_that(label, lambda: b.run(
        "const b = [...document.querySelectorAll('#buttons button')].find(b => b.textContent === arguments[0] && !b.disabled);"
        "if (b) b.id = 'pressed'; return !!b;", label))
    b.click("#pressed")


def pauses(run, b):
    """Pause, for a while and without an end, and go on."""
    assert run.status()["state"] != "paused"
    press(b, "Pause for 2 hours")
    await_that("the pause", lambda: b.text("#verdict") == "Paused")
    allowed = run.status()["allowed"]
    assert allowed["why"] == "person" and 7000 < allowed["until"] - time.time() <= 7200, allowed
    assert "You paused it. Until" in b.text("#detail"), b.text("#detail")
    b.shoot("paused")
    press(b, "Resume")
    await_that("the end of the pause", lambda: b.text("#verdict") != "Paused")
    press(b, "Pause")
    await_that("the pause", lambda: b.text("#verdict") == "Paused")
    assert run.status()["allowed"]["until"] == 0
    press(b, "Resume")
    await_that("the end of the pause", lambda: run.status()["state"] != "paused")
    gives_the_memory_back(run, b)
    before = run.status()["given"]["rounds"]
    await_that("another round that counts", lambda: run.status()["given"]["rounds"] > before)


def gives_the_memory_back(run, b):
    """In a pause that lasts the page stays, with what was given and learned."""
    run.set("free-memory-after=0")
    press(b, "Pause")
    await_that("the rest", lambda: "progress" not in run.status() and run.status().get("state") == "paused")
    await_that("the curve", lambda: len(run.status()["heldout"]) > 1)
    assert run.status()["given"]["rounds"] > 0
    await_that("the pause", lambda: b.text("#verdict") == "Paused")
    b.shoot("rests")
    press(b, "Resume")
    await_that("the state again", lambda: "progress" in run.status())


def attacks(run, where):
    """Another page that knows the port, and one whose name resolves to this computer."""
    at, page = run.place(), b"<!DOCTYPE html><title>elsewhere</title>"

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    b = Browser(where, 801, 900, False, "MAP evil.example 127.0.0.1")
    target = f"http://127.0.0.1:{at['port']}"
    b.open(f"http://evil.example:{server.server_port}/")
    tried = """const [target, token, done] = arguments, tries = [
        () => fetch(target + '/v1/status', {headers: {Authorization: 'Bearer ' + token}}),
        () => fetch(target + '/v1/status', {mode: 'no-cors'}),
        () => fetch(target + '/v1/sample', {method: 'POST', mode: 'no-cors', body: '{"prompt": "x"}'}),
        () => fetch(target + '/v1/command', {method: 'POST', headers: {Authorization: 'Bearer ' + token}, body: '{"command": "x"}'})];
        Promise.all(tries.map(t => t().then(r => r.type + r.status).catch(() => 'failed'))).then(done);"""
    got = b.run_async(tried, target, at["token"])  # even one that had stolen the token
    assert all(g in ("failed", "opaque0") for g in got), got
    framed = b.run_async("""const [target, done] = arguments, f = document.createElement('iframe');
        f.onload = () => { let seen; try { seen = f.contentDocument?.title ?? 'hidden'; } catch { seen = 'hidden'; } done(seen); };
        f.src = target; document.body.append(f);""", target)
    assert framed == "hidden", framed
    b.open(f"http://evil.example:{at['port']}/")  # rebound: the same server by another name
    assert "refused" in b.text("body"), b.text("body")
    same = b.run_async("""const [token, done] = arguments;
        fetch('/v1/status', {headers: {Authorization: 'Bearer ' + token}}).then(r => done(r.status));""", at["token"])
    assert same == 403, same
    b.open(f"{target}/#0123456789abcdef0123456789abcdef")
    await_that("a word about the token", lambda: "earlier start" in b.text("#locked"))
    assert b.run("return document.getElementById('all').hidden")
    b.close()
    server.shutdown()


def asks_before_it_joins(run, where):
    """A worker on a terminal that nobody answers; the page does."""
    link = run.tool("invite", "--count", "1").strip()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(f"{BIN}/rivulet-worker", ["rivulet-worker", link, "--dir", f"{where}/w2", "--threads", "1", "--no-map-port"])
    threading.Thread(target=drain, args=(terminal,), daemon=True).start()
    at, b = run.place(2), Browser(where, 802, 900, False)
    b.open(f"http://127.0.0.1:{at['port']}/#{at['token']}")
    await_that("the terms", lambda: "To see what a volunteer sees." in b.text("#terms"))
    assert not os.path.exists(f"{where}/w2/run.conf")
    b.shoot("terms")
    b.click("#buttons button")
    await_that("the join", lambda: os.path.exists(f"{where}/w2/run.conf"))
    await_that("training", lambda: b.run("return document.getElementById('question').hidden"))
    b.close()
    os.kill(pid, signal.SIGINT)
    assert os.waitpid(pid, 0)[1] == 0


def drain(terminal):
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass  # the worker has ended


def main():
    if not shutil.which("chromedriver") or not shutil.which("chromium"):
        print("no chromium with its driver here: the page was not looked at (apt-get install chromium-driver)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as where:
        run = Run(where)
        try:
            await_that("three rounds", lambda: (run.status().get("progress") or {}).get("round", 0) >= 3)
            b = looks_right(run, where, "light", 1000, False)
            writes(b, "sample")
            pauses(run, b)
            refused = [c for c in b.complaints() if "favicon" not in c]
            assert not refused, refused
            b.close()
            looks_right(run, where, "dark", 1001, True).close()
            looks_right(run, where, "phone", 500, False, 1).close()  # it does not measure the held-out loss
            attacks(run, where)
            asks_before_it_joins(run, where)
        finally:
            run.close()
    print("the page was looked at")


main()
