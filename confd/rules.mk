SRCS += $(addprefix confd/, \
	mustache_parse.c \
	mustache_lines.c \
	mustache_names.c \
	mustache_set.c \
	mustache_out.c \
	mustache_render.c \
	mustache_include.c \
	mustache_indent.c \
	bird_reply.c \
	bird_words.c \
	bird_parse_status.c \
	bird_parse_protocols.c \
	bird_parse_tables.c \
	bird_connect.c \
	bird_control.c \
	bird_configure.c \
	bird_show.c \
	bird_check.c \
	bird_mask.c \
	bird_check_words.c \
	pace.c \
	diff.c \
	key_tree.c \
	target.c \
	publish.c \
	command.c \
	command_text.c \
	bird_step.c \
	template_dir.c \
	template_name.c \
	resource.c \
	resource_dir.c \
	renderer.c \
	kept.c \
	origin.c \
	job.c \
	confd_settings.c \
	confd.c \
	confd_show.c \
	)

PURE_TESTS += $(addprefix confd/, \
	mustache_test \
	mustache_blocks_test \
	bird_reply_test \
	bird_parse_test \
	pace_test \
	diff_test \
	bird_mask_test \
	key_tree_test \
	kept_test \
	resource_test \
	)

TESTS += $(addprefix confd/, \
	bird_control_test \
	bird_configure_test \
	bird_check_test \
	publish_test \
	template_dir_test \
	origin_test \
	)

FUZZERS += $(addprefix confd/, \
	mustache_fuzz \
	bird_reply_fuzz \
	bird_parse_fuzz \
	bird_mask_fuzz \
	key_tree_fuzz \
	resource_fuzz \
	)

PROGRAMS += roost-confd
PROGRAM_SRCS.roost-confd := confd/main.c
