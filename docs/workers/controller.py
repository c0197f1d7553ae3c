"""A controller: keeps a ConfigMap with its ports beside every Service that a handler selects."""
import http.client, json, os, ssl, sys, time, urllib.error, urllib.request

INFORMERD = os.environ.get("INFORMERD", "http://127.0.0.1:8080") + "/v1/handlers/" + os.environ.get("HANDLER", "services")
LEASE = os.environ.get("LEASE", "60s")  # how long the keys of one that died wait for the next
KUBERNETES = os.environ.get("KUBERNETES", "http://127.0.0.1:8001")  # as kubectl proxy serves it
TLS = ssl.create_default_context(cafile=os.environ.get("KUBERNETES_CA"))
if "KUBERNETES_CERT" in os.environ:
    TLS.load_cert_chain(os.environ["KUBERNETES_CERT"], os.environ.get("KUBERNETES_KEY"))

def ask(method, url, body=None, kind="application/json", token=None):
    headers = {"Content-Type": kind} | ({"Authorization": "Bearer " + token} if token else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=90, context=TLS if url.startswith("https:") else None) as answer:
        return json.load(answer)

def informerd(what, body=None):
    return ask("POST", f"{INFORMERD}/{what}", body, token=os.environ.get("INFORMERD_TOKEN"))

def kubernetes(method, path, body=None):
    return ask(method, KUBERNETES + path, body, "application/apply-patch+yaml", os.environ.get("KUBERNETES_TOKEN"))

def reconcile(item):
    """Makes one ConfigMap what its Service says; doing it twice changes nothing."""
    name = item["name"] + "-ports"
    path = f"/api/v1/namespaces/{item['namespace']}/configmaps/{name}"
    if item["transition"] == "leaves":  # it was deleted, or is not selected any more
        try:
            kubernetes("DELETE", path)
        except urllib.error.HTTPError as e:
            if e.code != 404:
                raise
        return
    ports = {p.get("name") or str(p["port"]): str(p["port"]) for p in item["object"]["spec"].get("ports", [])}
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"made-by": "service-ports"}}, "data": ports}
    kubernetes("PATCH", path + "?fieldManager=service-ports&force=true", wanted)

def settle(item):
    tokens = {"tokens": [item["token"]]}
    try:
        reconcile(item)
    except (OSError, http.client.HTTPException, ValueError, KeyError) as e:  # tried again, after a delay that grows
        print(item["id"], e, file=sys.stderr)
        informerd("nack?reason=" + urllib.request.quote(str(e)[:200]), tokens)
    else:
        informerd("ack", tokens)

while True:
    try:
        for item in informerd(f"claim?max=10&lease={LEASE}&wait=30s")["items"]:
            settle(item)
    except (OSError, http.client.HTTPException, ValueError) as e:  # informerd restarts, or a claim is another's by now
        print(e, file=sys.stderr)
        time.sleep(1)
