SRCS += $(addprefix controller/, \
	elect.c \
	)

PURE_TESTS += $(addprefix controller/, \
	elect_test \
	)
