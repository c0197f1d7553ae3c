#!/usr/bin/env bash
# make run: informerd on the cluster of KUBECONFIG, or on a demo cluster that is
# started for it and stopped with it. Its data stays in data/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
listen=${LISTEN:-127.0.0.1:8080}

if [ -n "${KUBECONFIG:-}" ]; then
	echo "informerd on the cluster of KUBECONFIG=$KUBECONFIG: http://$listen"
	exec bin/informerd serve --config config.yaml --listen "$listen"
fi

"${MAKE:-make}" --no-print-directory devcluster
mkdir -p data
ready=$(mktemp -u)
mkfifo "$ready"
bin/devcluster --dir data/demo --seed demo >"$ready" &
cluster=$!
stop() {
	kill -TERM "$cluster" 2>/dev/null || true
	wait "$cluster" 2>/dev/null || true
	rm -f "$ready"
}
trap stop EXIT
trap 'exit 130' INT TERM
if ! IFS= read -r line <"$ready"; then
	echo "make run: the demo cluster did not start; its logs are in data/demo/logs" >&2
	exit 1
fi
echo "$line"
echo "informerd on the demo cluster: http://$listen"
bin/informerd serve --config config.yaml --kubeconfig data/demo/kubeconfig --snapshot data/demo/informerd.db --listen "$listen" &
server=$!
trap 'kill -TERM "$server" 2>/dev/null; wait "$server" 2>/dev/null; exit 130' INT TERM
wait "$server"
