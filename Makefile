# All commands for developers. They need make and Python 3.10 or later. If Java is missing, it is installed from PyPI.
# Variables: SPARK=3.5 (a section of pyzorder/spark_versions.ini; by default, the newest version),
# SPARKS="3.5 4.3" (for targets that use several versions; by default, all versions), PYTHON=python3.12,
# TESTS=tests/unit, CASES=1000 (number of fuzz cases), JOIN_QUERIES=1000, MINUTES=30 (duration of long-running tests)

PYTHON ?= python3
SPARK ?= $(shell $(PYTHON) jvm/build.py --default)
SPARKS ?= $(shell $(PYTHON) jvm/build.py --list)
TESTS ?= tests
VENV := .venv-$(SPARK)
CLIENT := .venv-$(SPARK)-connect
RUN := $(VENV)/bin/with-java $(VENV)/bin/python
EXTRAS ?= test
CASES ?= 50000
JOIN_QUERIES ?= 1000
JOIN_SEED ?= 0
JOIN_SESSIONS ?= 3
MINUTES ?= 30
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*\#\# .*/\1/p' $(MAKEFILE_LIST))

help: ## Print this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/made-%: pyproject.toml pyzorder/spark_versions.ini pyzorder/_version.py jvm/environment.py
	@$(PYTHON) jvm/environment.py --spark $(SPARK) --folder $(VENV) --extras $*
	@touch $@

$(CLIENT)/made: $(VENV)/made-test
	@PYZORDER_SPARK=$(SPARK) $(PYTHON) jvm/environment.py --client --spark $(SPARK) \
	  --folder $(CLIENT) --extras test
	@touch $@

env: $(VENV)/made-$(EXTRAS) ## Create the virtual environment .venv-$(SPARK)

jar: env ## Compile the Scala sources into pyzorder/jars
	@$(RUN) jvm/build.py

jars: ## Compile the jar for each of SPARKS into pyzorder/jars
	@for spark in $(SPARKS); do $(MAKE) --no-print-directory jar SPARK=$$spark || exit 1; done

test: jar ## Run every test, most of them in two variants, or only TESTS=tests/unit, on one version (SPARK=4.3) in several processes (JOBS=2)
	@$(RUN) -m tests.support.programs.archive
	$(RUN) -m pytest -n $(JOBS) --dist worksteal --durations=25 $(TESTS)

spark-repository: ## If Maven Central lacks Spark $(SPARK), provide PySpark's jars to Maven
	@command -v mvn > /dev/null || { echo "This target needs Maven. Install mvn, or build the jar with 'make jar', which does not need Maven." >&2; exit 1; }
	@needed=$$($(PYTHON) jvm/spark_repository.py --needed $(SPARK)) || exit 1; \
	if [ $$needed = yes ]; then $(MAKE) --no-print-directory env && $(RUN) jvm/spark_repository.py; fi

test-jvm: spark-repository ## Run the ScalaTest suites, which do not start a Spark session, with Maven on one version (SPARK=4.3)
	mvn -B -q -f jvm -P spark-$(SPARK) test

.PRECIOUS: build/pyspark/%/made
build/pyspark/%/made: pyzorder/spark_versions.ini | $(VENV)/made-test
	@$(VENV)/bin/python jvm/environment.py --spark $* --only-pyspark $(@D)
	@touch $@

compile-matrix: $(SPARKS:%=compile-%) ## Type-check the Scala sources for each of SPARKS; downloads each PySpark

compile-%: build/pyspark/%/made
	@echo "Spark $*"
	@PYTHONPATH=build/pyspark/$* $(RUN) jvm/build.py --check

test-packages: env spark-repository ## Publish the jar to a folder, and start spark-sql --packages from it
	$(RUN) -m tests.support.programs.packages

publish: spark-repository ## Publish the jar, sources and Scaladoc to the Maven repository build/packages
	@echo "Maven builds the jar for Spark $(SPARK), which takes a few minutes."
	@rm -rf build/ivy
	mvn -B -q -f jvm -P spark-$(SPARK),release deploy -DskipTests -Dmaven.install.skip=true \
	  -DaltDeploymentRepository=local::file:$(CURDIR)/build/packages
	@echo "The jar for Spark $(SPARK) is in the Maven repository build/packages."

test-cli: jar ## Test the command-line tool, and interrupt OPTIMIZE at every step
	$(RUN) -m pytest -m "" tests/unit/test_cli.py tests/unit/cli tests/spark/test_cli.py \
		tests/spark/test_maintain.py

test-crash: jar ## Kill OPTIMIZE, RESTORE, VACUUM and recovery at every step; fill the disk and memory; lose executors
	$(RUN) -m pytest -m "" -n $(JOBS) --dist worksteal \
		tests/spark/test_kill_points.py tests/spark/test_folders_being_deleted.py \
		tests/spark/test_store_failures.py tests/spark/test_failing_tasks.py \
		tests/spark/test_shared_folders.py tests/spark/test_driver_memory.py \
		tests/spark/test_location_switch.py tests/spark/test_partition_switch.py \
		tests/spark/test_partition_switch_killed.py tests/spark/test_staleness.py \
		tests/spark/test_copied_records.py tests/spark/test_scheme_case.py \
		tests/spark/test_older_plans.py tests/spark/test_moved_partitions.py \
		tests/spark/test_reads_after_a_kill.py tests/spark/test_summary_files.py

test-long: jar ## Run more variants of tests, for example joins without adaptive execution
	$(RUN) -m pytest -m long -n $(JOBS) --dist worksteal tests

test-fallback: jar ## Test the fallback for sessions without the jar, including Connect sessions and random queries
	$(RUN) -m pytest -m "" tests/fallback tests/unit/test_index.py tests/unit/index \
	  tests/spark/test_journal_vectors.py

test-report: $(VENV)/made-test,browser ## Test reports in the machine's Chromium or, if there is none, in Playwright's
	@$(RUN) jvm/build.py
	$(RUN) -m pytest -m browser tests/spark/test_report_browser.py

test-hdfs: jar ## Test all statements on HDFS with kills and concurrent writers; fetches Hadoop with Maven
	$(RUN) -m tests.stores.hdfs tests/stores

test-s3: $(VENV)/made-test,stores ## Test all statements on S3 (moto's server, through S3A) with kills and concurrent writers
	@$(RUN) jvm/build.py
	$(RUN) -m tests.stores.s3 tests/stores

test-cluster: jar ## Test end to end and with kills on a local standalone cluster with two workers
	$(RUN) -m tests.support.programs.cluster -m "not crash and not browser" tests/spark/test_smoke.py \
		tests/spark/test_optimize.py tests/spark/test_kill_points.py tests/stores

test-connect: jar $(CLIENT)/made ## Test a Spark Connect client without a JVM, in its own environment
	$(RUN) -m tests.support.programs.connect $(CLIENT)/bin/python \
	  tests/spark/test_connect_client.py tests/spark/test_statements.py tests/spark/test_table.py

test-bi: jar ## Test clients of a Thrift server, then run 16 clients at the same time for MINUTES=30
	$(RUN) -m pytest -m "" tests/spark/test_bi_clients.py tests/spark/test_walkthrough.py \
	  tests/spark/test_thrift_server.py
	$(RUN) -m tests.bi --minutes $(MINUTES)

.venv-dbt/made:
	@$(PYTHON) -m venv .venv-dbt
	@.venv-dbt/bin/pip install --quiet --disable-pip-version-check 'dbt-core<1.11' 'dbt-spark[PyHive]>=1.9'
	@touch $@

test-dbt: jar .venv-dbt/made ## Build the models of docs/guides/dbt.md with dbt, which connects to a Thrift server
	PYZORDER_DBT=$(CURDIR)/.venv-dbt/bin/dbt $(RUN) -m pytest -m dbt tests/spark/test_dbt.py

test-beside: ## Test Delta, Iceberg and pyzorder statements with all three extensions in one session
	@$(MAKE) jar SPARK=4.0
	@$(PYTHON) benchmarks/peers.py fetch "Delta 4.4.0" "Iceberg 1.10.0"
	.venv-4.0/bin/with-java .venv-4.0/bin/python -m pytest -m beside tests/spark/test_beside.py

fuzz: jar ## Compare the results of CASES=50000 random queries with and without skipping; continues where the last run ended
	$(RUN) -m tests.fuzz --cases $(CASES)

fuzz-joins: jar ## Compare the results of JOIN_QUERIES=1000 random joins with and without skipping, on two cores; fails if a query hangs
	JOIN_QUERIES=$(JOIN_QUERIES) JOIN_SEED=$(JOIN_SEED) JOIN_SESSIONS=$(JOIN_SESSIONS) \
	  PYZORDER_TEST_MASTER='local[2]' $(RUN) -m pytest -s tests/fuzz/test_joins.py

soak: jar ## Run OPTIMIZE for MINUTES=30 while other processes write, alter, query and kill
	$(RUN) -m tests.soak --minutes $(MINUTES)

mutants: jar ## Run the tests on mutants of the rules that skip files; fails if a mutant passes all tests
	PYTHONPATH=jvm $(RUN) -m tests.mutants

coverage: $(VENV)/made-test,coverage ## Measure how much of the Python package its tests cover
	@$(RUN) jvm/build.py
	@mkdir -p build
	$(RUN) -m coverage run -m pytest tests/unit tests/property tests/fallback \
	  tests/spark/test_cli.py tests/spark/test_table.py tests/spark/test_report.py tests/spark/test_advisor.py
	$(RUN) -m coverage report --skip-covered

smoke: jar ## Run the smoke test on one Spark version
	$(RUN) -m pytest tests/spark/test_smoke.py

smoke-matrix: $(SPARKS:%=smoke-%) ## Run the smoke test on each of SPARKS

smoke-%:
	@$(MAKE) smoke SPARK=$*

test-matrix: ## Run all tests on each of SPARKS; lists failures at the end
	@for spark in $(SPARKS); do $(MAKE) test SPARK=$$spark || failed="$$failed $$spark"; done; \
	  [ -z "$$failed" ] || { echo "Tests failed on Spark$$failed"; exit 1; }

demo: $(VENV)/made-demo ## Query TPC-DS store_sales before and after OPTIMIZE; prints how many files queries open and how long they take, and draws a picture
	@$(RUN) jvm/build.py
	@$(RUN) -m pyzorder.demo

bench: jar ## Measure the encoders' time per row and the parser's overhead per statement
	$(RUN) benchmarks/encoders.py
	$(RUN) benchmarks/parser.py

bench-joins: $(VENV)/made-demo ## Measure how many files TPC-DS star joins open and how long they take, with and without skipping by join keys
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/joins.py

bench-tpc: $(VENV)/made-demo,bench ## Run the queries of TPC-DS and TPC-H with and without skipping, and measure files opened and CPU time
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/tpc.py

bench-small: $(VENV)/made-demo,bench ## Measure the overhead of the extension on tiny tables, and the effect of many files in a small table
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/small_tables.py

bench-planning: jar ## Time queries on many files, and measure how much of the planning time the index takes
	$(RUN) benchmarks/planning.py
	$(RUN) benchmarks/many_files.py

bench-scale: jar ## Measure how the index, its memory and the time of each statement grow from 1,000 to 1,000,000 files
	$(RUN) benchmarks/scale.py

bench-s3: $(VENV)/made-test,stores ## Time queries on tables with many files on a local S3 server with slow listings, and count requests
	@$(RUN) jvm/build.py
	$(RUN) benchmarks/s3_tables.py

bench-row-groups: $(VENV)/made-demo,bench ## Estimate how many tasks index entries for row groups would save
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/row_groups.py

bench-engines: $(VENV)/made-test ## Measure how long other engines take to open tables of 10,000 and 100,000 files
	$(RUN) benchmarks/engines.py

peers: ## Fetch Delta, Iceberg, Hudi and their Spark versions for the benchmarks
	@for spark in 3.5 4.0 4.1 4.2; do $(MAKE) jar SPARK=$$spark EXTRAS=test || exit 1; done
	@$(PYTHON) benchmarks/peers.py fetch

bench-layout: $(VENV)/made-demo,bench ## Count the files that queries open in the layouts of pyzorder and other projects, for real and synthetic tables
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/layout.py

bench-curve: $(VENV)/made-demo ## Count the files that queries open with only minima and maxima, and with z-values as well
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/curve_ranges.py

bench-needle: $(VENV)/made-demo,bench ## Measure lookups by columns that a table is not clustered by, with sketches and with Parquet's Bloom filters
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/needle.py

bench-ngrams: $(VENV)/made-demo,bench ## Estimate how many files filters of n-grams would skip for LIKE '%x%'
	@$(RUN) benchmarks/ngrams.py

bench-appends: $(VENV)/made-demo ## Measure how much OPTIMIZE rewrites after each of ten appends, and how much data lookups then read
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/appends.py

bench-drift: $(VENV)/made-demo ## Compare maintain with fixed schedules of OPTIMIZE on thirty days with a changing workload
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/drift.py

bench-auto: $(VENV)/made-demo,bench ## Compare ZORDER BY AUTO, which also cuts tables at conditions, with the best columns
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/auto.py

bench-optimize: $(VENV)/made-demo,bench ## Measure the time, jobs and bytes of OPTIMIZE, ORDER BY and other projects, in alternating runs
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/optimize.py

bench-advisor: $(VENV)/made-demo ## Show which columns the advisor recommends for workloads on store_sales, and how much they save
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/advisor.py

bench-gate: $(VENV)/made-demo,bench ## Fail if queries open more files than in the committed results
	@$(RUN) jvm/build.py
	@$(RUN) benchmarks/gate.py

docs: $(VENV)/made-cli,plot,docs ## Build the documentation site in build/site; fails on a broken link
	@$(RUN) jvm/build.py
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build

diagrams: $(VENV)/made-test ## Redraw the diagrams docs/select.svg, docs/optimize.svg and docs/engines.svg
	$(RUN) -m website.diagrams

lint: lint-python lint-scala ## Check format, style and types of Python and Scala

lint-python: $(VENV)/made-test $(VENV)/made-lint ## Run ruff and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The Scala compiler ships with PySpark, but scalafmt must be fetched with Maven.
TOOL := build/tools/scalafmt
SCALAFMT := java -cp "$(TOOL)/*" org.scalafmt.cli.Cli --non-interactive jvm/src

$(TOOL)/complete: jvm/scalafmt.xml
	@mvn -B -q -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

lint-scala: $(VENV)/made-test ## Run scalac -Xlint and scalafmt
	$(RUN) jvm/build.py --check
	@if $(MAKE) --no-print-directory $(TOOL)/complete; \
	  then $(VENV)/bin/with-java $(SCALAFMT) --test; \
	  else echo "NOT CHECKED: Scala's format, because Maven cannot fetch scalafmt here" >&2; fi

format-scala: $(VENV)/made-test $(TOOL)/complete ## Format Scala
	$(VENV)/bin/with-java $(SCALAFMT)

format: $(VENV)/made-lint ## Format Python
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

wheel: jars ## Build the wheel, with the jars for all of SPARKS, into dist/
	@PYZORDER_SPARK="$(SPARKS)" $(RUN) -m pip wheel --quiet --no-deps --no-build-isolation \
	  --wheel-dir dist .

sdist: env ## Build the source distribution into dist/
	@mkdir -p dist
	@PYTHONPATH=jvm $(RUN) -c 'import backend; backend.build_sdist("dist")' > /dev/null

test-wheel: wheel sdist ## Install the wheel with each PySpark version, and the sdist with the newest; then run OPTIMIZE
	@PYTHONPATH=jvm $(RUN) -m tests.support.programs.wheel dist

clean: ## Remove environments and build outputs
	rm -rf .venv-* build dist *.egg-info pyzorder/jars/*.jar demo-output
