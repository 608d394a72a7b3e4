# The locked Node 24 and its tools come first: the machine's own Node is only there for npm.
locked := PATH="$(CURDIR)/node_modules/.bin:$$PATH"

.PHONY: help up setup tools images check test e2e kind kind-e2e verify pictures release audit soak bench

help: ## Print every target with what it does
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## Install what is missing to run, then run everything on this machine until Ctrl-C
	@.ci/setup up && ./trawl up

setup: ## Install what is missing, and nothing the second time
	@.ci/setup

tools: ## Build what only tests of a cluster, of the chart and of S3 need (minutes, once; nothing the second time); LONG=1 what make soak needs too
	@.ci/tools/install $(if $(LONG),--long)

images: ## Build the container images, with docker, podman or buildah; IMAGE_PREFIX= before their names, FRESH=1 anew, TRY=1 with those for trying out
	@docker/build

check: node_modules/.bin/mocha ## Types, lint, format, unit tests and the tree's own rules: the quick answer to a change
	@$(locked) node test/run.ts --groups types,lint,unit,repo

test: setup ## Install what is missing, then run the whole suite
	@$(locked) node test/run.ts

e2e: setup ## Walk a job through the cluster of KUBECONFIG, whose pods reach this machine at ADDRESS and have the worker image
	@$(locked) mocha test/e2e/anywhere.ts

kind: images ## Make a cluster of kind that has the worker image (needs kind and docker; nobody has run this yet)
	@kind get clusters | grep -qx trawl || kind create cluster --name trawl
	@kind load image-archive "$$(docker/build --where)/worker.tar" --name trawl

kind-e2e: kind ## Walk a job through that cluster (nobody has run this yet either)
	@config=$$(mktemp) && trap 'rm "$$config"' EXIT && kind get kubeconfig --name trawl >"$$config" && \
	KUBECONFIG=$$config ADDRESS=$$(docker network inspect kind | sed -n 's/.*"Gateway": "\([0-9.]*\)".*/\1/p' | head -n 1) \
	TRAWL_WORKER_HOST_USERS=true $(MAKE) e2e

verify: node_modules/.bin/mocha ## Write what is generated anew, check the workflows; fails when that changes a file or the API breaks callers
	@git diff | git hash-object --stdin >.cache/before-verify
	@$(locked) node src/admin/write-docs.ts && $(locked) node src/admin/write-chart.ts && $(locked) node test/contract/page.ts
	@$(locked) node src/roles/write-openapi.ts && .ci/api-changes
	@$(locked) node dashboards/write.ts
	@charts/generate
	@$(locked) clients/generate
	@.ci/lint-workflows
	@git diff | git hash-object --stdin | cmp -s - .cache/before-verify || { git diff --stat; echo 'make verify: what is generated was old, and is written anew: commit it'; exit 1; }

pictures: node_modules/.bin/mocha ## Draw every dashboard with Grafana's panels, healthy and in each drill, into docs/pictures/watch or PICTURES=; with SEED= what a reader sees of one fault; needs Chromium and Prometheus
	@dashboards/draw/build && $(locked) node dashboards/draw/$(if $(SEED),blind-drill.ts --seed $(SEED),draw.ts) $(or $(PICTURES),$(if $(SEED),.cache/pictures,docs/pictures/watch))

release: node_modules/.bin/mocha ## Move all versions to VERSION=, the pending changes under its heading, commit and tag; DRY_RUN=1 only says so
	@$(locked) node .ci/release.ts $(if $(DRY_RUN),--dry-run) '$(VERSION)'

audit: node_modules/.bin/mocha ## Ask npm and PyPI for known vulnerabilities of the locked packages; needs registries that tell
	@$(locked) .ci/audit

soak: export ROUNDS ?= 20000
soak: setup ## Run the long form of the suite, mutation tests and fuzzing (ROUNDS=20000 histories, FUZZ_MINUTES=30, SEED= to repeat one, GROUPS=store,fuzz alone)
	@$(locked) node test/run.ts $(if $(GROUPS),--groups $(GROUPS))

bench: setup ## Measure speed against known yardsticks (BENCH=record alone)
	@$(locked) node test/bench/run.ts $(BENCH)

node_modules/.bin/mocha:
	@echo "What tests need is not installed yet: run 'make setup' first" >&2; exit 1
