PROGRAMS += roost-confd
PROGRAM_SRCS.roost-confd := confd/main.c

PURE_TESTS += \
	confd/bird/bird_mask_test \
	confd/bird/bird_records_test \
	confd/bird/bird_reply_test \
	confd/kept_test \
	confd/key_tree_test \
	confd/mustache/mustache_blocks_test \
	confd/mustache/mustache_test \
	confd/pace_test \
	confd/resource_test
