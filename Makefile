# informerd: a read replica of the Kubernetes API.
#
#   make run      build, start and print the URL: against the cluster of
#                 KUBECONFIG if it is set, else against a demo cluster of its own
#   make test     everything CI runs
#   make bench    the tables of docs/performance.md (SCALE=100000 for that many
#                 pods, SCALE=1000000 with a stand-in for the cluster,
#                 BENCHFLAGS='--rows cold,warm' for some of them,
#                 BENCHFLAGS='--clusters 20' for as many pods in so many clusters)
#   make bench-postgres
#                 what saving in PostgreSQL costs beside the file, and a restart
#                 from it
#   make soak     informerd under faults for MINUTES=60 with SEED=1, against
#                 etcd's own history, after 200 kills of it with handlers:
#                 docs/soak.md (KILLS=0 leaves these out, SOAKFLAGS='--only KINDS')
#   make attack   hostile users against informerd for MINUTES=10, all that is known
#                 at once: docs/security.md (ATTACKFLAGS='--only ATTACKS --strict')
#   make build    bin/informerd alone
#   make check    formatting, vet, tidiness
#   make image    bin/image, a container image, without a container runtime
#                 (PUSH=registry.example.com/informerd:v1 to push it, too)
#   make release  bin/release, binaries of all platforms with checksums
#   make web      web/dist, the page that is embedded, from web/ui
#
# It needs Go, a C compiler (for the race detector), make and git. What is done to
# the page, and make test, also need Node.js 20 or later with npm; the browser
# tests need Chromium, and the e2e tests Python 3, curl and jq, which they install
# through apt-get if they are missing.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)
SCALE   ?= 20000
LISTEN  ?= 127.0.0.1:8080

# What is built for others has the age of its sources, so that it is the same whenever
# it is built.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH

# vet takes the flags of the builds, so that both share compiled packages. It
# leaves out the main package of devcluster, which links all of Kubernetes: vet
# would analyse that too.

# The control plane takes minutes to build and changes rarely: its binary is kept
# under a name made of its sources.
devcluster_key := $(shell find cmd/devcluster -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-16)
devcluster_bin := .cache/devcluster-$(devcluster_key)

.PHONY: build image release manifests deploy-test run test bench bench-postgres soak attack check unit e2e-long unit-race unit-once unit-devcluster e2e devcluster race postgres web web-deps e2e-deps worker-deps web-test web-e2e chromium clean help

build: ## bin/informerd
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/informerd ./cmd/informerd

# BASE=FOLDER or BASE=REFERENCE builds on another image than none.
image: ## bin/image: an OCI archive, the binaries in it and what they are made of
	cd deploy && CGO_ENABLED=0 go run -trimpath ./make image --version '$(VERSION)' $(if $(BASE),--base '$(BASE)') $(if $(PUSH),--push '$(PUSH)') $(IMAGEFLAGS)

release: ## bin/release: archives, SBOMs and checksums
	rm -rf bin/release
	cd deploy && CGO_ENABLED=0 go run -trimpath ./make release --version '$(VERSION)' $(RELEASEFLAGS)

manifests: ## what in deploy is made of other files
	cd deploy && CGO_ENABLED=0 go test -trimpath ./test -run 'TestShippedRights|TestManifests' -count=1 -args -update

# They build informerd for this machine, static as it is released; with the same flags the
# tests share what is compiled for that. DEPLOY_TARGETS=all builds all that is released.
deploy-test:
	cd deploy && CGO_ENABLED=0 go test -trimpath -count=1 -timeout 20m ./...

race:
	go build -race -ldflags '$(LDFLAGS)' -o bin/informerd-race ./cmd/informerd

devcluster: $(devcluster_bin)
	@mkdir -p bin
	@ln -sf ../$(devcluster_bin) bin/devcluster

$(devcluster_bin):
	@echo 'building the control plane (etcd, Kubernetes, kwok): some minutes, once'
	@mkdir -p .cache
	cmd/devcluster/build.sh $@

run: build
	@LISTEN='$(LISTEN)' MAKE='$(MAKE)' test/run.sh

# What needs no cluster runs two at a time: much of it is one core's work, or a
# download. What starts clusters, and times what they do, runs alone.
test: check
	@$(MAKE) --no-print-directory -j2 --output-sync=target devcluster unit deploy-test web-test race build e2e-deps worker-deps postgres chromium
	@$(MAKE) --no-print-directory e2e
	@$(MAKE) --no-print-directory web-e2e
	@echo 'all tests passed'

check:
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	go vet -trimpath ./...
	go mod tidy -diff
	cd cmd/devcluster && CGO_ENABLED=0 go vet -trimpath ./internal/... && go mod tidy -diff
	cd deploy && CGO_ENABLED=0 go vet -trimpath ./... && go mod tidy -diff

unit: unit-race unit-once unit-devcluster

unit-race: postgres
	INFORMERD_POSTGRES='$(postgres)' go test -race -timeout 30m $$(go list ./... | grep -v '/test/e2e')

# In the liar's bubbles of testing/synctest the race detector makes Go's runtime
# crash now and then, so they run without it.
unit-once: postgres ## allocations, every benchmark once, and what does not bear the race detector
	go test -count=1 ./cache/replica
	INFORMERD_POSTGRES='$(postgres)' go test -short -run '^TestAllocations' -bench . -benchtime 1x ./cache/... ./discovery/... ./persist/... ./server/...

unit-devcluster: devcluster
	cd cmd/devcluster && DEVCLUSTER='$(abspath $(devcluster_bin))' go test -race -timeout 30m ./internal/...

e2e: build devcluster race e2e-deps worker-deps postgres
	INFORMERD_POSTGRES='$(postgres)' go test -count=1 -timeout 60m ./test/e2e/...

e2e-long: build devcluster race e2e-deps postgres ## the e2e tests that wait for minutes
	INFORMERD_E2E_LONG=1 go test -count=1 -timeout 40m -run 'TestMirror$$|TestFrozenServer|TestRestoredBackup|TestLies|TestDiskFull|TestRollingUpgrade|TestReplicasParted' ./test/e2e/...

# What npm installed is good as long as the lock file says the same.
web_deps := web/ui/node_modules/.package-lock.json
e2e_deps := test/e2e/node/node_modules/.package-lock.json

$(web_deps) $(e2e_deps): %/node_modules/.package-lock.json: %/package.json %/package-lock.json %/.npmrc
	@command -v npm >/dev/null || { echo '$* needs Node.js 20 or later with npm' >&2; exit 1; }
	cd $* && { npm ci --no-audit --no-fund || { sleep 5; npm ci --no-audit --no-fund; }; }
	@touch $@

web-deps: $(web_deps)

e2e-deps: $(e2e_deps) ## the JavaScript client that an e2e test runs

web: web-deps ## web/dist
	cd web/ui && npm run --silent build

web-test: web-deps
	cd web/ui && npm run --silent check && npm run --silent test && npm run --silent size && npm run --silent same

CHROMIUM ?= /usr/bin/chromium

# How Debian's packages are installed, by one target at a time.
apt_get := flock .cache/apt-get $(if $(filter 0,$(shell id -u)),,sudo) env DEBIAN_FRONTEND=noninteractive apt-get
install  = mkdir -p .cache && $(apt_get) update -qq && $(apt_get) install -y -qq --no-install-recommends $(1) >/dev/null

chromium:
	@test -x '$(CHROMIUM)' || { \
		command -v apt-get >/dev/null || { echo 'the browser tests need Chromium: set CHROMIUM=PROGRAM' >&2; exit 1; }; \
		echo 'installing Chromium'; \
		$(call install,chromium fonts-dejavu-core); }

# The folder of PostgreSQL's programs, as Debian has it or as POSTGRES says.
postgres = $(or $(POSTGRES),$(patsubst %/initdb,%,$(lastword $(wildcard /usr/lib/postgresql/*/bin/initdb))))

postgres: ## the database that tests of docs/postgresql.md need
	@test -n '$(POSTGRES)' || { test -n '$(postgres)' && PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null; } || { \
		command -v apt-get >/dev/null || { echo 'the tests need PostgreSQL: set POSTGRES to the folder of its programs' >&2; exit 1; }; \
		echo 'installing PostgreSQL'; \
		$(call install,postgresql pgbouncer); }

# The packages are called as the programs are.
worker-deps: ## what the programs of docs/workers need, which e2e tests run
	@missing=$$(for p in python3 curl jq; do command -v $$p >/dev/null || echo $$p; done); \
	test -z "$$missing" || { \
		command -v apt-get >/dev/null || { echo "the e2e tests need these programs:" $$missing >&2; exit 1; }; \
		echo installing $$missing; \
		$(call install,$$missing); }

# PODS=20000 for a table of that many rows, CHURN=600 to look for leaks for ten
# minutes, SCREENS=../../docs/screens for pictures, ONLY=memory for some tests.
web-e2e: web-deps chromium devcluster build
	cd web/ui && CHROMIUM='$(CHROMIUM)' node e2e/run.mjs $(if $(SCREENS),--screens '$(SCREENS)') $(if $(PODS),--pods $(PODS)) $(if $(CHURN),--churn $(CHURN)) $(if $(ONLY),--only '$(ONLY)')

# What a run with more pods is compared with. It is measured if there is none.
bench_base := test/results/bench-20000.json
bench_large := $(shell [ '$(SCALE)' -ge 200000 ] && echo yes)
bench_more := $(shell [ '$(SCALE)' -gt 20000 ] && [ '$(SCALE)' -lt 200000 ] && echo yes)

# From 200,000 pods on, a stand-in takes the place of the control plane. PostgreSQL is then a
# peer if it is there: make postgres installs it.
bench: build $(if $(bench_large),,devcluster) $(if $(bench_more),$(bench_base))
	$(if $(POSTGRES),INFORMERD_POSTGRES='$(POSTGRES)') go run ./test/bench --pods $(SCALE) $(if $(bench_more),--peers none --base $(bench_base)) $(BENCHFLAGS)

$(bench_base): | build devcluster
	go run ./test/bench --pods 20000 --json $@

bench-postgres: build devcluster postgres ## what saving in PostgreSQL costs beside the file, and a restart from it
	INFORMERD_POSTGRES='$(postgres)' go test -run '^$$' -bench Store -benchtime 3s ./persist
	INFORMERD_POSTGRES='$(postgres)' go test -run '^$$' -bench PostgresRestart -benchtime 5x -timeout 30m ./test/e2e

soak: MINUTES ?= 60
attack: MINUTES ?= 10
SEED    ?= 1
KILLS   ?= 200

# What handlers promise is held against KILLS first. go run would not pass on the signal that
# ends the rest.
soak: build devcluster race
	@[ '$(KILLS)' = 0 ] || echo 'handlers: $(KILLS) kills, some minutes; KILLS=0 leaves them out'
	@[ '$(KILLS)' = 0 ] || INFORMERD_KILLS='$(KILLS)' INFORMERD_SEED='$(SEED)' go test -count=1 -v -timeout 3h -run '^TestHandlersKilled$$' ./test/e2e
	go build -o bin/soak ./test/soak
	exec bin/soak --minutes '$(MINUTES)' --seed '$(SEED)' $(SOAKFLAGS)

attack: build devcluster
	go build -trimpath -o bin/attack ./test/attack
	exec bin/attack --minutes '$(MINUTES)' $(ATTACKFLAGS)

clean:
	rm -rf bin data .cache test/results

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -23
