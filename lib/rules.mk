SRCS += $(addprefix lib/, \
	err.c \
	base64.c \
	prefix.c \
	selector.c \
	kern.c \
	kern_batch.c \
	kern_reply.c \
	log.c \
	log_journal.c \
	)

PURE_TESTS += $(addprefix lib/, \
	prefix_test \
	base64_test \
	selector_test \
	kern_reply_test \
	log_test \
	)

TESTS += $(addprefix lib/, \
	kern_test \
	log_journal_test \
	)

FUZZERS += $(addprefix lib/, \
	prefix_fuzz \
	selector_fuzz \
	)
