PLUGINS += roost
PROGRAM_SRCS.roost := cni/main.c

PURE_TESTS += \
	cni/conf_test \
	cni/sandbox_test
