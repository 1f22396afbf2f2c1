TOOLS += store-driver
PROGRAM_SRCS.store-driver := integration-tests/tools/store_driver.c integration-tests/tools/json_lines.c

TOOLS += store-bench
PROGRAM_SRCS.store-bench := integration-tests/bench/store_bench.c

TOOLS += cni-bench
PROGRAM_SRCS.cni-bench := $(addprefix integration-tests/bench/, \
	cni_bench.c \
	plugin_run.c \
	figures.c \
	)

TOOLS += pod-bench
PROGRAM_SRCS.pod-bench := $(addprefix integration-tests/bench/, \
	pod_bench.c \
	pod_drain.c \
	pods.c \
	plugin_run.c \
	figures.c \
	)

# The kernel's share of an ADD and a DEL, in the form of a plugin.
STATIC_TOOLS += cni-floor
PROGRAM_SRCS.cni-floor := integration-tests/bench/floor.c

# Shows that the plugins' link rule holds before there are plugins.
STATIC_TOOLS += static-probe
PROGRAM_SRCS.static-probe := integration-tests/tools/static_probe.c

TOOLS += claim-storm
PROGRAM_SRCS.claim-storm := integration-tests/tools/claim_storm.c

TOOLS += ipam-load
PROGRAM_SRCS.ipam-load := integration-tests/tools/ipam_load.c

TOOLS += overlay-bench
PROGRAM_SRCS.overlay-bench := $(addprefix integration-tests/bench/, overlay_bench.c figures.c)

TOOLS += route-bench
PROGRAM_SRCS.route-bench := $(addprefix integration-tests/bench/, route_bench.c figures.c)

# roost, but its ADD fails where a test wants it to.
STATIC_TOOLS += roost-faults
PROGRAM_SRCS.roost-faults := integration-tests/tools/fault.c $(PROGRAM_SRCS.roost)
TOOLS += mustache-spec
PROGRAM_SRCS.mustache-spec := integration-tests/tools/mustache_spec.c

TOOLS += mustache-bench
PROGRAM_SRCS.mustache-bench := integration-tests/bench/mustache_bench.c
TOOLS += bird-driver
PROGRAM_SRCS.bird-driver := integration-tests/tools/bird_driver.c integration-tests/tools/json_lines.c

TOOLS += reach-bench
PROGRAM_SRCS.reach-bench := integration-tests/bench/reach_bench.c integration-tests/bench/figures.c

TOOLS += kube-driver
PROGRAM_SRCS.kube-driver := integration-tests/tools/kube_driver.c integration-tests/tools/json_lines.c

TOOLS += lease-load
PROGRAM_SRCS.lease-load := integration-tests/tools/lease_load.c

# The real decisions of agents and controllers on a clock of their own; its files stand in for clocks,
# files, socket and loop by defining the same names as the archive's.
TOOLS += simulate
PROGRAM_SRCS.simulate := $(addprefix integration-tests/simulation/, \
	main.c \
	world.c \
	programs.c \
	sim_store.c \
	stand_ins.c \
	loop.c \
	wire.c \
	judge.c \
	)
