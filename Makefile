# kmsharness: every command a person or a job needs. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# auto is local: it needs no engine. kind is the closest to a real cluster: BACKEND=kind.
BACKEND ?= auto
# Ginkgo label filter, for example LABELS='area:plugin && !slow'. Empty: on local all but slow ones, and those with the label local; on kind the former with the label only-kind, and those with the label kind; all: everything.
LABELS ?=
# Scenarios that run side by side, each on a control plane of its own; on kind, clusters. Empty: on local 3, on kind 1, or 2 with four processors.
PROCS ?=
# Blocks that make readme runs.
KINDS ?= compared,sim,local
# Begin no further scenario after this long, for example TIME=20m; empty: no limit.
TIME ?=
# Wire form of the reports, for scenarios that are not about one: conditions, healthreports or both.
CONTRACT ?= conditions
# Way of reports to the API server, for scenarios that name no connectivity: ssa or stream.
PUBLISH ?= ssa
# Where verdicts, histories and logs go.
OUT ?= _artifacts
# How long each fuzz target runs under `make fuzz`.
FUZZTIME ?= 60s

# Seeds of each kind that `make golden` draws; empty: 20, all on record.
SEEDS ?=

# The stages of make nightly. Empty: all.
STAGES ?=

# Of make release: its version, which is a tag, and for which processors.
VERSION ?=
ARCHS ?= amd64 arm64

# Values are text: without this make would execute $(shell …) in them, and quoted keeps an apostrophe from ending the shell's word.
$(foreach v,BACKEND LABELS PROCS KINDS TIME CONTRACT PUBLISH OUT FUZZTIME STAGES VERSION ARCHS OBJECTS SEED SEEDS,$(eval override $v := $$(value $v)))
# Prow's folder for results: Kubernetes does not always expand it.
override OUT := $(subst $$(ARTIFACTS),$(value ARTIFACTS),$(OUT))
quoted = '$(subst ','\'',$(1))'

# Static, reproducible programs; the same flags everywhere, tools and tests included, so that everything is compiled once. grpcnotrace
# leaves out gRPC's trace pages, which would cost the reporter 2.5 MiB of memory.
export CGO_ENABLED = 0
export GOFLAGS = -trimpath -tags=grpcnotrace
GOFLAGS_BUILD := -ldflags '-s -w'
IMAGE_PROGRAMS := kms-health-reporter kms-health-aggregator fake-kms-plugin kmsharness kms-conformance
PROGRAMS := encryption-operator kmsharness-supervisor kmsharness-proxy kmsharness-front kmsharness-tests-ext $(IMAGE_PROGRAMS)

.PHONY: help build images test simulations nightly golden test-raced test-plain test-ci long-tests confirm diff-backends alerts readme lint bench bench-kind e2e large mutants fuzz release crds proto browser engine engine-down node-image clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

build: ## build the programs, the scenario suite and the runner into bin/
	@mkdir -p bin
	go build $(GOFLAGS_BUILD) -o bin/ $(addprefix ./cmd/,$(PROGRAMS)) github.com/onsi/ginkgo/v2/ginkgo
	go test -c $(GOFLAGS_BUILD) -o bin/scenarios.test ./scenarios

images: ## container images of the programs that run in a cluster, without an engine: archives in bin/images
	@mkdir -p bin
	go build $(GOFLAGS_BUILD) -o bin/ $(addprefix ./cmd/,$(IMAGE_PROGRAMS))
	@go run ./ci/images/build --bin bin --out bin/images

# Without debug information a test program is linked in half the time; make lint vets. The race detector would sleep for a second at the end
# of each program. Go keeps the result of a package whose sources, environment and files are the same; make nightly runs all anew.
GOTEST := GORACE=atexit_sleep_ms=0 go test -vet=off -ldflags='-s -w'
# Packages whose own goroutines share state run with the race detector. Those that need Kubernetes' clientset, which takes minutes to compile for it, do so
# in make nightly, with all others.
RACED := ./aggregator/streams ./conformance/plugin ./fakeplugin/... ./operator/preflight ./reporter ./reporter/core ./reporter/metrics \
	./reporter/options ./reporter/probe ./reporter/publish ./cmd/kms-health-reporter \
	$(addprefix ./harness/,engine netfault netfault/proxy process record/tail record/watch supervisor)
test: ## unit tests, fuzz seeds included, some with the race detector (RACED); needs no engine and no binaries
	@$(MAKE) --no-print-directory -j3 test-raced test-plain test-ci

# What waits in one runs while another computes.
test-raced:
	CGO_ENABLED=1 $(GOTEST) -race -short -p 2 $(RACED)
test-plain:
	$(GOTEST) -short -p 2 $$(go list ./... | grep -v '/ci/' | grep -vxF "$$(go list $(RACED))")
# What scripts do, Go does not see.
test-ci:
	$(GOTEST) -count=1 -short -p 1 ./ci/...

simulations: ## what make test leaves out and needs no control plane: golden with 5 seeds of each kind, and the long tests of what golden does not see
	@$(MAKE) --no-print-directory -j2 SEEDS=5 golden long-tests

long-tests: ## what make test leaves out and golden does not see
	$(GOTEST) -count=1 ./harness/check/... ./harness/observe ./operator/model ./scenarios/mutants/kmsplugin ./ci/outside

nightly: ## everything that the gate leaves out, with one summary: make nightly [STAGES='local kind']; hours
	@STAGES=$(call quoted,$(STAGES)) OUT=$(call quoted,$(if $(filter _artifacts,$(OUT)),_nightly,$(OUT))) ci/gate/nightly.sh

e2e: build ## run the catalogue: make e2e [BACKEND=auto|local|kind|sim] [CONTRACT=conditions|healthreports|both] [PUBLISH=ssa|stream] [LABELS=…] [PROCS=…] [TIME=…] [OUT=…]
	@bin/kmsharness e2e --backend=$(call quoted,$(BACKEND)) --contract=$(call quoted,$(CONTRACT)) --publish=$(call quoted,$(PUBLISH)) --labels=$(call quoted,$(LABELS)) $(if $(TIME),--time=$(call quoted,$(TIME))) $(if $(PROCS),--procs=$(call quoted,$(PROCS))) --out=$(call quoted,$(OUT))

mutants: $(if $(filter sim,$(BACKEND)),,build) ## run subjects that are wrong on purpose, each of which must be caught: make mutants [BACKEND=auto|sim|plugin|local] [CONTRACT=…]; verdicts go to _mutants
	@mkdir -p bin
	go build $(GOFLAGS_BUILD) -o bin/ ./scenarios/mutants/cmd/...
	@KMSHARNESS_BIN='$(CURDIR)/bin' bin/mutants --backend=$(call quoted,$(BACKEND)) --contract=$(call quoted,$(CONTRACT)) --programs=bin --out=_mutants

large: build ## a switch through every type of encryption with many objects, API servers killed at random: make large [OBJECTS=10000] [SEED=1] [BACKEND=local]
	@mkdir -p _large
	go run ./scenarios/large --objects=$(call quoted,$(or $(OBJECTS),10000)) --seed=$(call quoted,$(or $(SEED),1)) > $(call quoted,_large/encryption-large-$(or $(OBJECTS),10000).yaml)
	@bin/kmsharness run $(call quoted,_large/encryption-large-$(or $(OBJECTS),10000).yaml) --backend=$(call quoted,$(if $(filter auto,$(BACKEND)),local,$(BACKEND))) --out=_large/run

golden: build ## verdicts that a refactoring must not change, of 20 seeds of each kind, the catalogue and the mutants on sim, saved histories: make golden [SEEDS=20] [UPDATE=1]
	@go run ./ci/golden --kmsharness=bin/kmsharness $(if $(SEEDS),--seeds=$(call quoted,$(SEEDS))) $(if $(UPDATE),--update)

confirm: ## compare the store of sim's API servers with a real API server (docs/simulation.md)
	KMSHARNESS_CONFIRM=1 go test -p 1 -count=1 -v -timeout 30m -run 'TestStoreEqualsAPIServer|TestConfiguration' ./harness/cluster/virtual/store

diff-backends: build ## run the catalogue on sim and local, and report every difference in verdict: make diff-backends [LABELS=…] [OUT=…]
	@bin/kmsharness e2e --backend=sim --labels=$(call quoted,$(LABELS)) --out=$(call quoted,$(OUT)/sim) || true
	@bin/kmsharness e2e --backend=local --labels=$(call quoted,$(LABELS)) $(if $(PROCS),--procs=$(call quoted,$(PROCS))) --out=$(call quoted,$(OUT)/local) || true
	@bin/kmsharness diff $(call quoted,$(OUT)/sim) $(call quoted,$(OUT)/local)

alerts: ## test the alerting rules with Prometheus' own rule engine, on series of hand and of simulated failures
	@mkdir -p _artifacts-alerts
	KMSHARNESS_STAGES='$(CURDIR)/_artifacts-alerts/stages.yaml' go test -count=1 -run TestFailureStages ./scenarios
	KMSHARNESS_STAGES='$(CURDIR)/_artifacts-alerts/stages.yaml' go -C ci/alerts test -count=1 ./...

readme: build ## run the commands that README.md and docs show, and write their output again: make readme [KINDS=compared,sim,local] [CHECK=1: write nothing]
	go build $(GOFLAGS_BUILD) -o bin/ ./scenarios/mutants/cmd/...
	@go run ./ci/readme $(if $(CHECK),--check) --kinds=$(call quoted,$(KINDS)) $(wildcard *.md) ci/README.md ci/nodeimage/README.md $(wildcard docs/*.md)

lint: ## formatting, vet, staticcheck, imports, tidy modules, house rules, messages of new commits
	@ci/lint.sh

bench: build ## benchmarks, as ratios against a baseline of the same run
	@ci/bench.sh

bench-kind: build ## time until a cluster is ready, as a ratio to plain kind with the same node image (an engine; 10 minutes)
	KMSHARNESS_BIN='$(CURDIR)/bin' go test -run '^$$' -bench BenchmarkReady -benchtime 1x -timeout 60m ./harness/backend/kind

fuzz: ## run every fuzz target for FUZZTIME
	@ci/fuzz.sh $(call quoted,$(FUZZTIME))

release: ## the files of a release in _release, from a clean checkout of its tag: make release VERSION=v0.1.0 [ARCHS='amd64 arm64']
	@ci/release/release.sh $(call quoted,$(VERSION)) $(call quoted,$(ARCHS))

crds: ## copy the CRDs again from the OpenShift API module that go.mod names
	go generate ./ci/crds

proto: ## lint contract/proto, and write its Go code again
	@mkdir -p bin/proto
	GOBIN='$(CURDIR)/bin/proto' go -C ci/proto install tool
	cd contract/proto && PATH="$(CURDIR)/bin/proto:$$PATH" buf lint && PATH="$(CURDIR)/bin/proto:$$PATH" buf generate

engine: ## make sure that a container engine answers; on a bare Debian machine install and start one (root)
	@ci/engine/up.sh

browser: ## make sure that there is a browser for the test of the HTML page; on Debian install Chromium (root)
	@ci/browser.sh

engine-down: ## stop the engine that make engine started
	@ci/engine/down.sh

node-image: ## make sure that there is a node image for kind; where none can be pulled build it (root)
	@go run ./ci/nodeimage

clean: ## remove what the other targets made (not the cache of control-plane binaries)
	rm -rf bin _artifacts* _large _mutants _nightly _release
