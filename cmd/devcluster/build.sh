#!/bin/sh
# Builds devcluster: build.sh OUTPUT
#
# The flags give the linked Kubernetes components the version they have in a
# release; without them the API server reports v0.0.0-master and kubectl fails
# to parse it.
set -eu
out=${1:?usage: build.sh OUTPUT}
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd "$(dirname "$0")"

version=1.36.3
flags="-s -w"
for pkg in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags="$flags -X $pkg.gitVersion=v$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=36"
	flags="$flags -X $pkg.gitTreeState=clean -X $pkg.gitCommit=informerd-devcluster"
	flags="$flags -X $pkg.buildDate=2026-01-01T00:00:00Z"
done
CGO_ENABLED=0 exec go build -trimpath -ldflags "$flags" -o "$out" .
