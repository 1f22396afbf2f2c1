SRCS += $(addprefix ctl/, \
	settings.c \
	command.c \
	commands.c \
	help.c \
	fields_text.c \
	kind.c \
	tree.c \
	out.c \
	out_table.c \
	ctl.c \
	list.c \
	pool.c \
	version.c \
	)

PURE_TESTS += $(addprefix ctl/, \
	out_test \
	)

TESTS += $(addprefix ctl/, \
	command_test \
	)

PROGRAMS += roostctl
PROGRAM_SRCS.roostctl := ctl/main.c
