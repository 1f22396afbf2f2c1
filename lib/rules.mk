SRCS += $(addprefix lib/, \
	err.c \
	clock.c \
	files.c \
	base64.c \
	json_stream.c \
	http.c \
	http_reply.c \
	local_client.c \
	serve.c \
	serve_listen.c \
	serve_reply.c \
	serve_request.c \
	serve_wait.c \
	etcd_encode.c \
	etcd_decode.c \
	etcd_error.c \
	etcd_endpoint.c \
	etcd_call.c \
	etcd_stream.c \
	etcd_watch.c \
	store.c \
	store_view.c \
	store_settle.c \
	store_sync.c \
	store_etcd.c \
	store_fake.c \
	store_fake_call.c \
	store_fake_request.c \
	store_fake_watch.c \
	store_fake_faults.c \
	fake_etcd.c \
	fake_etcd_txn.c \
	fake_etcd_lease.c \
	prefix.c \
	selector.c \
	json.c \
	json_read.c \
	names.c \
	keys.c \
	fields.c \
	field_types.c \
	field_net.c \
	record.c \
	model_config.c \
	model_pool.c \
	model_overlap.c \
	model_node.c \
	model_block.c \
	kern.c \
	kern_batch.c \
	kern_reply.c \
	log.c \
	log_journal.c \
	)

PURE_TESTS += $(addprefix lib/, \
	prefix_test \
	base64_test \
	json_stream_test \
	etcd_encode_test \
	etcd_decode_test \
	etcd_error_test \
	store_test \
	store_view_test \
	store_sync_test \
	store_fake_test \
	store_fake_faults_test \
	store_fake_watch_test \
	store_settle_test \
	store_settle_walk_test \
	selector_test \
	json_test \
	names_test \
	keys_test \
	model_test \
	model_pool_test \
	kern_reply_test \
	http_reply_test \
	log_test \
	)

TESTS += $(addprefix lib/, \
	files_test \
	kern_test \
	serve_test \
	serve_limits_test \
	serve_wait_test \
	local_client_test \
	log_journal_test \
	)

FUZZERS += $(addprefix lib/, \
	json_stream_fuzz \
	http_reply_fuzz \
	etcd_error_fuzz \
	prefix_fuzz \
	selector_fuzz \
	keys_fuzz \
	model_fuzz \
	)
