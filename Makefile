.DEFAULT_GOAL := help
.NOTPARALLEL: # setup comes before what needs it

# Runs a command beside a throwaway PostgreSQL server.
WITHPG := go run ./internal/pgserver/withpg
TESTS := sql/tests
FUZZTIME := 30s
BENCHFLAGS :=
VERSIONS ?= 15 17 18
TESTED ?=
SKIP ?=

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

.PHONY: demo
demo: ## See it work: a server, the schema, requests and their repeats
	@scripts/setup demo
	@go run ./cmd/pgidem demo

.PHONY: docker-demo
docker-demo: program ## Serve the demo's API on port 8080, beside a database in a container
	@compose='docker compose'; $$compose version >/dev/null 2>&1 || compose=docker-compose; \
		BASE=$$(scripts/base-image 18) && export BASE && $$compose -f docker/compose.yaml up --build

.PHONY: program
program: ## Build bin/pgidem, which needs no library of the system
	CGO_ENABLED=0 go build -trimpath -o bin/pgidem ./cmd/pgidem

.PHONY: images
images: program ## Build the images pgidem-postgres and pgidem
	docker build --build-arg BASE="$$(scripts/base-image 18)" -f docker/Dockerfile -t pgidem-postgres .
	docker build -f docker/cli/Dockerfile -t pgidem .

.PHONY: test
test: setup verify test-sql test-go test-pgbouncer test-browser test-metrics ## Install what is missing, then check and test everything

.PHONY: setup
setup: ## Install what the tests need
	@scripts/setup

.PHONY: test-sql
test-sql: ## Run the pgTAP tests; TESTS=sql/tests/idem_begin for some
	$(WITHPG) scripts/test-sql $(TESTS)

.PHONY: test-go
test-go: ## Run the Go tests with the race detector
	go test -race -timeout 20m ./...

# The tests of every file that starts a site, whose pool PGIDEM_TEST_PGBOUNCER leads through a PgBouncer. Not the one that
# waits for idle connections to break with the server's: PgBouncer keeps them, see TestPgBouncer_Unavailable.
.PHONY: test-pgbouncer
test-pgbouncer: ## Run the tests of goshell again, through a PgBouncer in transaction mode
	@tests=$$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' $$(grep -l 'newSite(' goshell/*_test.go) | paste -s -d '|' -) && \
	[ -n "$$tests" ] && PGIDEM_TEST_PGBOUNCER=exec go test -race -timeout 20m ./goshell \
		-run "^($$tests)$$" -skip '^TestUnavailable_DatabaseIsDown$$'

.PHONY: test-browser
test-browser: ## Test the page of pgidem serve in Chromium
	@cd browser && go mod tidy -diff && go vet ./... && go test -count=1 ./...

.PHONY: test-metrics
test-metrics: ## Test the alert rules and the dashboard by Prometheus' own parser and engine
	@cd metrics/check && go mod tidy -diff && go vet ./... && go test ./...

.PHONY: screenshot
screenshot: ## Write docs/lifecycle.png anew
	@folder=$$(mktemp -d) && (cd browser && go test -count=1 -run TestPage_FitsEveryScreenAndReader/desktop . -screenshots "$$folder") && \
		cp "$$folder/lifecycle-desktop.png" docs/lifecycle.png && rm -r "$$folder"

.PHONY: test-docker
test-docker: ## Test on PostgreSQL 15, 17 and 18 in containers; VERSIONS=18 for some (scripts/with-docker starts an engine)
	@cd docker && go mod tidy -diff && go vet ./... && \
		VERSIONS='$(VERSIONS)' TESTED='$(TESTED)' SKIP='$(SKIP)' go test -v -count=1 -timeout 90m

.PHONY: fuzz
fuzz: ## Run every fuzz target, one after another; FUZZTIME=5m for longer than 30s each
	@list=$$(go test -list '^Fuzz' ./...) || { echo "$$list"; exit 1; }; \
	echo "$$list" | awk '/^Fuzz/ { names[++n] = $$1 } /^ok/ { while (n) print $$2, names[n--] }' | { \
		count=0 failed=; \
		while read -r package target; do \
			count=$$((count + 1)); \
			echo "fuzz: $$target of $$package"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$package" </dev/null || failed="$$failed $$target"; \
		done; \
		[ $$count -gt 0 ] || { echo 'fuzz: no fuzz target found' >&2; exit 1; }; \
		[ -z "$$failed" ] || { echo "fuzz: failed:$$failed" >&2; exit 1; }; \
	}

.PHONY: bench
bench: bench-requests bench-cleanup bench-peers ## Measure everything, in about 15 minutes; the figures go to bin/bench-*.json too

.PHONY: bench-quick
bench-quick: ## Measure what a request costs, in 2 minutes
	@mkdir -p bin
	go run ./bench/requests -quick -json bin/bench-quick.json $(BENCHFLAGS)

.PHONY: bench-requests
bench-requests: ## Measure what a request costs, in about 6 minutes
	@mkdir -p bin
	go run ./bench/requests -json bin/bench-requests.json $(BENCHFLAGS)
	go test -run '^$$' -bench . -benchmem ./goshell

.PHONY: bench-peers
bench-peers: ## Measure beside other ways to make requests safe to repeat, in about 5 minutes; installs them
	@scripts/setup bench
	@mkdir -p bin
	cd bench/peers/node && npm ci --no-audit --no-fund --loglevel=error
	cd bench/peers && go run . -json ../../bin/bench-peers.json $(BENCHFLAGS)

.PHONY: bench-cleanup
bench-cleanup: ## Measure the cleanup, in about 3 minutes; the figures go to bin/bench-cleanup.json too
	@mkdir -p bin
	go run ./bench/cleanup -json bin/bench-cleanup.json $(BENCHFLAGS)

.PHONY: snapshot
snapshot: ## Write the functions' migration anew from sql/functions
	go generate ./sql

.PHONY: reference
reference: ## Write docs/sql-reference.md and sql/catalog.sum anew from what an installation makes
	@$(WITHPG) go run ./sql/internal/reference

.PHONY: verify
verify: check-format check-vet check-modules check-snapshot check-reference check-openapi check-text ## Check that the tree is tidy and generated files are up to date

.PHONY: lint
lint: check-format check-vet check-static ## Check the Go code

.PHONY: check-format
check-format:
	@files=$$(gofmt -l .) && [ -z "$$files" ] || { echo "not formatted, run gofmt -w:" $$files; exit 1; }

.PHONY: check-vet
check-vet:
	go vet ./...

.PHONY: check-static
check-static: # by version, so that go.mod holds only what the program needs
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

.PHONY: check-modules
check-modules:
	@go mod tidy -diff || { echo "go.mod is not tidy: run go mod tidy"; exit 1; }

.PHONY: check-snapshot
check-snapshot:
	@go run ./sql/internal/snapshot -dir sql -check

.PHONY: check-reference
check-reference:
	@$(WITHPG) go run ./sql/internal/reference -check

# The demo's description has a part under each of two contracts.
.PHONY: check-openapi
check-openapi:
	@go run ./cmd/pgidem openapi check internal/demo/api/openapi.yaml --except /api/v1/notes --except /api/v1/payouts
	@go run ./cmd/pgidem openapi check internal/demo/api/openapi.yaml --contract public \
		--prefix /api/v1 --except /api/v1/payments --except /api/v1/tokens

.PHONY: check-text
check-text:
	@scripts/check-text

.PHONY: release-check
release-check: ## Check that this commit is what a release has to be
	@scripts/release-check

.PHONY: db
db: ## Make the database pgidem_dev anew on the server of libpq's variables
	dropdb --if-exists --force pgidem_dev
	createdb pgidem_dev
	psql -X -q -v ON_ERROR_STOP=1 -d pgidem_dev -f sql/install.sql

.PHONY: cover
cover: ## Show how much of each function the Go tests run
	go test -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -func=coverage.out

.PHONY: clean
clean: ## Remove what the other targets made here
	rm -rf bin coverage.out
