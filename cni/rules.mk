SRCS += $(addprefix cni/, \
	conf.c \
	sandbox.c \
	sandbox_result.c \
	delegate.c \
	)

PLUGINS += roost
PROGRAM_SRCS.roost := $(addprefix cni/, \
	main.c \
	add.c \
	del.c \
	check.c \
	gc.c \
	giver.c \
	netns.c \
	veth.c \
	inside.c \
	inside_check.c \
	ask.c \
	fault.c \
	)

PURE_TESTS += $(addprefix cni/, \
	conf_test \
	sandbox_test \
	)

TESTS += $(addprefix cni/, \
	delegate_test \
	)
