# What roost-ipam does, and roost in its place where both lie in one folder.
PLUGINS += roost-ipam
PROGRAM_SRCS.roost-ipam := ipam/plugin/main.c

PURE_TESTS += \
	ipam/allocator/allocator_random_test \
	ipam/allocator/allocator_test \
	ipam/allocator/candidates_test \
	ipam/allocator/pools_test \
	ipam/allocator/ranges_test \
	ipam/allocator/stock_test \
	ipam/allocator/wanted_test \
	ipam/attachments/attachment_file_test \
	ipam/attachments/leaks_test \
	ipam/attachments/request_test \
	ipam/audit/audit_test \
	ipam/behind_test \
	ipam/claims_test
