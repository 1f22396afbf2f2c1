SRCS += $(addprefix agent/, \
	settings.c \
	lock.c \
	identity.c \
	identity_gather.c \
	pin.c \
	pin_file.c \
	timers.c \
	timers_loop.c \
	health.c \
	register.c \
	register_decide.c \
	register_watch.c \
	status.c \
	report.c \
	pass.c \
	lifecycle.c \
	agent.c \
	api.c \
	ipam.c \
	ipam_start.c \
	ipam_inputs.c \
	ipam_index.c \
	ipam_blocks.c \
	ipam_requests.c \
	ipam_spool.c \
	ipam_released.c \
	ipam_leaks.c \
	)

PROGRAMS += roostd
PROGRAM_SRCS.roostd := agent/main.c

PURE_TESTS += $(addprefix agent/, \
	settings_test \
	identity_test \
	pin_test \
	timers_test \
	health_test \
	register_test \
	register_trouble_test \
	register_race_test \
	status_test \
	report_test \
	)

TESTS += $(addprefix agent/, \
	lock_test \
	identity_gather_test \
	pass_test \
	lifecycle_test \
	)

FUZZERS += $(addprefix agent/, \
	pin_fuzz \
	)
