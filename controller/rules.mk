include controller/kube.mk

SRCS += $(addprefix controller/, \
	settings.c \
	elect.c \
	mirror.c \
	plan.c \
	decide_removals.c \
	decide_routes.c \
	decide_repairs.c \
	decide_pools.c \
	decide_kube.c \
	work.c \
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
	decide_routes_test \
	keeper_test \
	keeper_return_test \
	)
