TOOLS += store-driver
PROGRAM_SRCS.store-driver := integration-tests/tools/store_driver.c

TOOLS += store-bench
PROGRAM_SRCS.store-bench := integration-tests/bench/store_bench.c
