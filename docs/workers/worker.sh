#!/bin/sh
# Works on what a handler of informerd has: sh worker.sh shop
# It needs curl and jq.
set -u
at="${INFORMERD:-http://127.0.0.1:8080}/v1/handlers/$1"

post() {
  if [ -n "${INFORMERD_TOKEN:-}" ]; then
    set -- -H "Authorization: Bearer $INFORMERD_TOKEN" "$@"
  fi
  curl -sS --fail-with-body --max-time 90 -X POST "$@"
}

# handle makes the world as the object says. It may be called twice with the same one.
handle() {
  printf '%s' "$1" | jq -r '[.transition, .resource, ([.namespace // empty, .name] | join("/")), .resourceVersion // empty] | join(" ")'
}

while :; do
  if ! claims=$(post "$at/claim?lease=60s&wait=30s") || ! item=$(printf '%s' "$claims" | jq -c '.items[0] // empty'); then
    printf '%s\n' "$claims" >&2 # informerd restarts, is paused, or is not reached
    sleep 1
    continue
  fi
  [ -n "$item" ] || continue
  token=$(printf '%s' "$item" | jq -r .token)
  if handle "$item"; then
    post "$at/ack?token=$token" >/dev/null
  else
    post "$at/nack?token=$token&reason=failed" >/dev/null
  fi
done
