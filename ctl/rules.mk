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
	status_view.c \
	status_alone.c \
	status.c \
	bgp_rows.c \
	bgp.c \
	render.c \
	)

PURE_TESTS += $(addprefix ctl/, \
	out_test \
	status_view_test \
	bgp_rows_test \
	)

TESTS += $(addprefix ctl/, \
	command_test \
	)

PROGRAMS += roostctl
PROGRAM_SRCS.roostctl := ctl/main.c
