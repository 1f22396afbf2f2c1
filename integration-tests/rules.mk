TOOLS += store-driver
PROGRAM_SRCS.store-driver := integration-tests/tools/store_driver.c

TOOLS += store-bench
PROGRAM_SRCS.store-bench := integration-tests/bench/store_bench.c

TOOLS += cni-bench
PROGRAM_SRCS.cni-bench := integration-tests/bench/cni_bench.c

# Shows that the plugins' link rule holds before there are plugins.
STATIC_TOOLS += static-probe
PROGRAM_SRCS.static-probe := integration-tests/tools/static_probe.c

TOOLS += claim-storm
PROGRAM_SRCS.claim-storm := integration-tests/tools/claim_storm.c

TOOLS += ipam-load
PROGRAM_SRCS.ipam-load := integration-tests/tools/ipam_load.c
