include ipam/plugin.mk

SRCS += $(addprefix ipam/, \
	behind.c \
	claims.c \
	local_copy.c \
	spans.c \
	stock.c \
	blocks.c \
	attachments.c \
	attachment_file.c \
	request.c \
	pools.c \
	choose.c \
	ranges.c \
	candidates.c \
	leaks.c \
	sighting.c \
	audit.c \
	audit_state.c \
	audit_blocks.c \
	audit_cuts.c \
	audit_nodes.c \
	audit_local.c \
	allocator.c \
	allocator_hold.c \
	wants.c \
	serve.c \
	assign.c \
	wanted.c \
	)

PURE_TESTS += $(addprefix ipam/, \
	behind_test \
	claims_test \
	stock_test \
	attachment_file_test \
	request_test \
	choose_test \
	ranges_test \
	candidates_test \
	leaks_test \
	audit_test \
	allocator_test \
	allocator_random_test \
	wanted_test \
	)

FUZZERS += $(addprefix ipam/, \
	attachment_file_fuzz \
	request_fuzz \
	)

TESTS += $(addprefix ipam/, \
	local_copy_test \
	plugin_ask_test \
	)
