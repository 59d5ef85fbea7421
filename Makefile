# XCE Elastic. `make help` says what there is.

# Built programs; the development server is a module of its own, since its
# dependencies must not mix with the product's.
BIN     := $(CURDIR)/bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
export GOFLAGS += -buildvcs=false

# The tests of whole processes run the programs in here.
export XCE_BIN := $(BIN)

SOURCES := $(shell find . -name '*.go' -not -path './devserver/*') go.mod go.sum

.PHONY: help build run dev test postgres slurm test-slurm lint race e2e chaos bench fuzz vuln clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(BIN)/xce-elastic $(BIN)/pool $(BIN)/local $(BIN)/slurmhost $(BIN)/devserver ## Build all programs into bin/ (the first time takes minutes)

$(BIN)/xce-elastic: $(SOURCES)
	CGO_ENABLED=0 go build -ldflags '-X main.version=$(VERSION)' -o $@ ./cmd/xce-elastic

$(BIN)/pool: $(SOURCES)
	CGO_ENABLED=0 go build -o $@ ./providers/scripts/pool

$(BIN)/local: $(SOURCES)
	CGO_ENABLED=0 go build -o $@ ./providers/scripts/local

$(BIN)/slurmhost: $(SOURCES)
	CGO_ENABLED=0 go build -o $@ ./providers/scripts/slurmd

$(BIN)/devserver: $(wildcard devserver/*.go) devserver/go.mod devserver/go.sum
	@echo 'Building the development server; the first time takes up to ten minutes.'
	cd devserver && go build -ldflags '-s -w' -o $@ .

run: build ## Run the example cluster and its workload to the end
	@$(BIN)/xce-elastic dev --once

dev: build ## The same, and stay up until Ctrl-C
	@$(BIN)/xce-elastic dev

# Here, as with every test of Go, what has passed is not run again until it or the programs change.
test: AGAIN :=
test: build postgres slurm lint race e2e ## Run everything
	@echo 'All tests passed.'

# Tests start servers of their own from the package's programs. The package would
# make and start one of the system too, unless it is told not to.
postgres: ## Install Debian's PostgreSQL for the tests, where that can be done
	@if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo 'PostgreSQL is not here, and its tests are skipped: as root, `apt-get install postgresql` brings it.'; exit 0; \
	fi; \
	export DEBIAN_FRONTEND=noninteractive; install='apt-get install -y -qq --no-install-recommends'; \
	apt-get update -qq && $$install postgresql-common >/dev/null && \
	sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf && \
	$$install postgresql >/dev/null || echo 'PostgreSQL could not be installed; its tests are skipped.'

# Tests start clusters of their own from the packages' programs; the system is to run none of them. Whatever
# stands in policy-rc.d already stays as it is.
slurm: ## Install Debian's Slurm for the tests, where that can be done
	@if PATH="$$PATH:/usr/sbin:/sbin"; command -v slurmctld && command -v slurmd && command -v munged && command -v sbatch; then exit 0; fi >/dev/null; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo 'Slurm is not here, and its tests are skipped: as root, `apt-get install slurmctld slurmd slurm-client munge` brings it.'; exit 0; \
	fi; \
	echo 'Installing Slurm: some 5 MB to download, and half a minute.'; \
	policy=/usr/sbin/policy-rc.d; ours=; \
	if ! [ -e $$policy ]; then printf '#!/bin/sh\nexit 101\n' >$$policy && chmod +x $$policy && ours=yes; fi; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge >/dev/null || \
		echo 'Slurm could not be installed; its tests are skipped.'; \
	if [ -n "$$ours" ]; then rm -f $$policy; fi

lint: ## Check the code without running it
	go vet -tags e2e ./...
	cd devserver && go vet ./...
	go tool staticcheck -tags e2e ./...
	@unformatted=$$(go tool gofumpt -l .); test -z "$$unformatted" || { echo "not formatted: $$unformatted; run 'go tool gofumpt -w .'"; exit 1; }
	go tool workflowcheck ./workflows

# In these no two goroutines run at once, but for some tests: the race detector takes ten times as long to see little.
ALONE := ^xce.internal/elastic/(cluster|ledger|policy|scheduling|simulation)(/|$$)

# What has tests of whole processes is run once, with those.
WHOLE := ./cmd/xce-elastic/dev ./controller/slurm/... ./providers/scripts/slurmd/... ./cmd/xce-elastic/...

race: ## Unit, property and workflow tests, with the race detector
	go test -race -parallel 4 $$(go list ./... | grep -E -v '$(ALONE)' | grep -vxF "$$(go list $(WHOLE))") ./simulation/sweep ./simulation/timeskip
	XCE_TEST_STATE=sqlite go test ./controller ./controller/store # with the race detector they ran on PostgreSQL
	go test $$(go list ./... | grep -E '$(ALONE)' | grep -E -v '/(sweep|timeskip)$$')
	go test -race -run 'IsKeptForTheLendersMinimumHold|ComesForAJobAndGoes|OperatorMayTake' ./simulation
	cd devserver && go test ./...

# The longest first, so that the others run beside it.
E2E = go test -race $(AGAIN) -timeout 25m -parallel 3 -v -tags e2e
AGAIN := -count=1

e2e: build ## Whole processes: real Temporal server, real scripts, real Slurm, kill -9
	$(E2E) $(WHOLE)

test-slurm: build slurm ## Of these, what needs a Slurm
	$(E2E) ./controller/slurm/... ./providers/scripts/slurmd/...
	$(E2E) -run 'TestSlurm|TestThePageOnSlurm' ./cmd/xce-elastic/dev ./cmd/xce-elastic

SEEDS ?= 10
SEED  ?= 1
FAULTS ?= 60s
chaos: build postgres ## Hurt a whole cluster at random, and prove that nothing is lost: SEEDS=10 SEED=1 FAULTS=60s
	CHAOS_SEEDS=$(SEEDS) CHAOS_SEED=$(SEED) CHAOS_FAULTS=$(FAULTS) CHAOS_CLOCKS=1 CHAOS_FULL=1 go test -count=1 -timeout 24h -v -tags e2e ./cmd/xce-elastic/chaos

bench: build ## Benchmarks
	go test -run '^$$' -bench . -benchmem ./...
	go test -run '^$$' -bench Loans -benchtime 3x -timeout 20m -tags e2e ./cmd/xce-elastic/dev
	go test -run '^$$' -bench Borrow -benchtime 20x -timeout 20m -tags e2e ./cmd/xce-elastic/dev

fuzz: ## Fuzz what reads untrusted input, a minute each
	go test -run '^$$' -fuzz FuzzAPI -fuzztime 60s -fuzzminimizetime 20x ./controller
	go test -run '^$$' -fuzz FuzzClassify -fuzztime 60s ./providers
	go test -run '^$$' -fuzz FuzzRunner -fuzztime 60s -fuzzminimizetime 20x ./providers
	go test -run '^$$' -fuzz FuzzParse -fuzztime 60s ./cmd/xce-elastic/config
	go test -run '^$$' -fuzz FuzzRead -fuzztime 60s -fuzzminimizetime 20x ./scheduling/snapshot
	for target in SWF Sacct LSF GridEngine PBS JSONL AnyFormat Mapping; do \
		go test -run '^$$' -fuzz "^Fuzz$$target\$$" -fuzztime 60s -fuzzminimizetime 20x ./simulation/trace || exit 1; \
	done

# The database of known vulnerabilities comes as a Go module, so that nothing else must be reached. Go itself
# is judged in the newest release that go.mod suggests.
vuln: ## Look for known vulnerabilities that our code can reach
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; set -e; \
	source=$$(cd "$$folder" && go mod download -json golang.org/x/vulndb@latest | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
	echo "known vulnerabilities: $${source##*/}"; \
	GOFLAGS=-mod=mod go run golang.org/x/vulndb/cmd/indexdb@latest -vulns "$$source/data/osv" -out "$$folder/db"; \
	export GOTOOLCHAIN=$$(sed -n 's/^toolchain //p' go.mod); \
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db "file://$$folder/db" ./...

clean: ## Remove what was built and the example cluster's state
	rm -rf $(BIN) .xce
