"""Works on what a handler of informerd has: python3 worker.py shop"""

import http.client
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER = os.environ.get("INFORMERD", "http://127.0.0.1:8080").rstrip("/")
TOKEN = os.environ.get("INFORMERD_TOKEN")
TLS = ssl.create_default_context(cafile=os.environ.get("INFORMERD_CA"))


def post(path, body=None, **params):
    """Sends a POST and returns what is answered."""
    url = SERVER + path + "?" + urllib.parse.urlencode(params)
    headers = {"Content-Type": "application/json"}
    if TOKEN:
        headers["Authorization"] = "Bearer " + TOKEN
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method="POST")
    tls = TLS if SERVER.startswith("https:") else None
    with urllib.request.urlopen(request, timeout=90, context=tls) as answer:
        return json.load(answer)


def settle(handler, what, item, **params):
    """Acknowledges a claim, or gives it back. One that was lost is another worker's now."""
    try:
        post(f"/v1/handlers/{handler}/{what}", {"tokens": [item["token"]]}, **params)
    except urllib.error.HTTPError as e:
        if e.code != 409:
            raise


def handle(item):
    """Make the world as the object says. It may be called twice with the same one."""
    where = "/".join(filter(None, [item.get("namespace"), item["name"]]))
    if item["transition"] == "leaves":
        print("gone", item["resource"], where, flush=True)
        return
    print(item["transition"], item["resource"], where, item["resourceVersion"], flush=True)


def work(handler):
    while True:
        try:
            items = post(f"/v1/handlers/{handler}/claim", max=10, lease="60s", wait="30s")["items"]
            for item in items:
                try:
                    handle(item)
                except Exception as e:  # whatever it was: somebody tries again later
                    settle(handler, "nack", item, reason=repr(e)[:500])
                else:
                    settle(handler, "ack", item)
        except urllib.error.HTTPError as e:
            if e.code not in (429, 500, 502, 503, 504):
                sys.exit(f"{handler}: {e.code} {e.read().decode()}")
            time.sleep(int(e.headers.get("Retry-After") or 1))
        except (OSError, http.client.HTTPException, ValueError) as e:  # informerd restarts, or is not reached
            print(e, file=sys.stderr)
            time.sleep(1)


if __name__ == "__main__":
    try:
        work(sys.argv[1])
    except KeyboardInterrupt:
        pass
