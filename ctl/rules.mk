PROGRAMS += roostctl
BIN_PROGRAMS += roostctl
PROGRAM_SRCS.roostctl := ctl/main.c

PURE_TESTS += \
	ctl/bgp_rows_test \
	ctl/frame/out_test \
	ctl/overlay_rows_test \
	ctl/records/assign_test \
	ctl/records/records_text_test \
	ctl/status_view_test
