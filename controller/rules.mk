include controller/kube.mk

SRCS += $(addprefix controller/, \
	settings.c \
	elect.c \
	mirror.c \
	plan.c \
	decide_removals.c \
	decide_recovery.c \
	decide_routes.c \
	decide_repairs.c \
	decide_pools.c \
	decide_kube.c \
	decide_leases.c \
	plan_send.c \
	work.c \
	lease_api.c \
	lease_log.c \
	lease_view.c \
	lease_decide.c \
	lease_jobs.c \
	lease_polls.c \
	lease_server.c \
	keeper.c \
	controller.c \
	controller_show.c \
	controller_kube.c \
	)

PROGRAMS += roost-controller
PROGRAM_SRCS.roost-controller := controller/main.c

PURE_TESTS += $(addprefix controller/, \
	elect_test \
	decide_kube_test \
	decide_leases_test \
	lease_api_test \
	lease_view_test \
	lease_decide_test \
	decide_routes_test \
	decide_recovery_test \
	keeper_test \
	keeper_return_test \
	)

FUZZERS += controller/lease_api_fuzz
