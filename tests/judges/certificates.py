"""An authority of the test's own, and a web server's certificate by it, as the openssl program makes them."""
import shutil
import ssl
import subprocess
import sys

SKIPPED = 77


def make(where, host="127.0.0.1"):
    """Writes an authority and a server's key and certificate to the directory. Returns (the authority's file, the
    server's certificate, its key)."""
    if not shutil.which("openssl"):
        print("skipped: there is no program openssl to make certificates with: apt-get install openssl")
        sys.exit(SKIPPED)

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=where, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=an authority of a test")
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={host}")
    with open(f"{where}/server.ext", "w", encoding="utf-8") as f:
        f.write(f"subjectAltName=IP:{host}\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.pem",
            "-days", "2", "-extfile", "server.ext")
    return f"{where}/ca.pem", f"{where}/server.pem", f"{where}/server.key"


def serving(certificate, key):
    """What wraps a server's socket."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
