#!/bin/sh
# Builds devcluster: build.sh OUTPUT [KUBERNETES_VERSION]
#
# The flags give the linked Kubernetes components the version they have in a
# release; without them the API server reports v0.0.0-master and kubectl fails
# to parse it.
#
# With another version than the one in go.mod, like 1.35.4, a copy of the module is
# built against it. Such a binary is meant for single components, see README.md.
set -eu
out=${1:?usage: build.sh OUTPUT [KUBERNETES_VERSION]}
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd "$(dirname "$0")"

own=1.36.3
tags=
version=${2:-$own}
if [ "$version" != "$own" ]; then
	copy=$(mktemp -d)
	trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT
	cp -R . "$copy"
	cd "$copy"
	# The staging modules have the same number with 0 in front; two of them, which
	# kwok asks for, are younger than 1.35.
	sed -i.orig -e "/^	k8s.io\/.* v0.${own#*.} \/\/ indirect$/d" -e "s/ v$own$/ v$version/" \
		-e "/streaming =>/!s/ v0.${own#*.}$/ v0.${version#*.}/" go.mod
	tags=nokwok # it is made for one Kubernetes
	export GOFLAGS="${GOFLAGS:-} -mod=mod"
	# These change their types from one minor version to the next.
	needs=$(go mod download -json k8s.io/kubernetes@v"$version" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
	for module in github.com/opencontainers/cgroups github.com/google/cadvisor; do
		go mod edit -replace $module=$module@"$(sed -n "s|^	$module \(v[^ ]*\).*|\1|p" "$needs")" go.mod
	done
fi
minor=${version#*.}
flags="-s -w"
for pkg in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags="$flags -X $pkg.gitVersion=v$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*}"
	flags="$flags -X $pkg.gitTreeState=clean -X $pkg.gitCommit=informerd-devcluster"
	flags="$flags -X $pkg.buildDate=2026-01-01T00:00:00Z"
done
CGO_ENABLED=0 go build -trimpath -tags "$tags" -ldflags "$flags" -o "$out" .
