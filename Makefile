# The front door of the repository: every target delegates.
FLOTILLA := services/cli/bin/flotilla

.DEFAULT_GOAL := help
.PHONY: help setup up down chat test verify format bench-turn test-kill

help: ## show this list
	@awk -F ':.*## ' '/^##@ /{print "\n" substr($$0, 5)} /^[a-z-]+:.*## /{printf "  %-12s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Run
setup: ## install packages, nats-server and redis-server where they are missing
	@node scripts/setup.mjs

up: setup ## run a fleet on this machine; Ctrl-C stops it (DETACH=1, ARGS="--split --replicas harness=2")
	@$(FLOTILLA) up $(if $(filter-out 0,$(DETACH)),--detach) $(ARGS)

down: ## stop the fleet that `make up` started
	@$(FLOTILLA) down

chat: ## talk to the running fleet
	@$(FLOTILLA) chat $(ARGS)

##@ Check
test: setup ## lint, types and every test; the last line is "N passed, N failed" (ARGS="packages/bus": some tests)
	@npm test --silent -- $(ARGS)

verify: setup ## lint and types only
	@npm run --silent verify

format: setup ## format and fix what can be fixed
	@npm run --silent format

bench-turn: setup ## speed and size of a turn (ARGS="--help")
	@npm run --silent bench:turn -- $(ARGS)

test-kill: setup ## the long kill test (ARGS="--kills 500 --seed 1")
	@npm run --silent test:kill -- $(ARGS)
