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
	pool_touched.c \
	pool_use.c \
	assign.c \
	effective.c \
	change.c \
	record_verbs.c \
	records_text.c \
	editor.c \
	apply.c \
	peer.c \
	watch.c \
	route_rows.c \
	route.c \
	route_delete.c \
	nodes.c \
	node.c \
	block.c \
	address.c \
	ipam_use.c \
	ipam_show.c \
	ipam_kernel.c \
	ipam_local.c \
	ipam_check.c \
	version.c \
	status_view.c \
	status_alone.c \
	status.c \
	bgp_rows.c \
	bgp.c \
	render.c \
	complete.c \
	completion.c \
	)

PURE_TESTS += $(addprefix ctl/, \
	out_test \
	status_view_test \
	bgp_rows_test \
	assign_test \
	records_text_test \
	)

TESTS += $(addprefix ctl/, \
	command_test \
	ipam_use_test \
	complete_test \
	route_rows_test \
	change_test \
	)

PROGRAMS += roostctl
BIN_PROGRAMS += roostctl
PROGRAM_SRCS.roostctl := ctl/main.c

FUZZERS += $(addprefix ctl/, \
	records_text_fuzz \
	)
