# Kubernetes' Nodes: the client that roost-controller uses.
SRCS += $(addprefix controller/, \
	kube.c \
	kube_config.c \
	kube_config_file.c \
	kube_doubt.c \
	kube_list.c \
	kube_node.c \
	kube_pages.c \
	kube_reply.c \
	kube_request.c \
	kube_url.c \
	kube_view.c \
	kube_watch.c \
	kube_yaml.c \
	)

PURE_TESTS += $(addprefix controller/, \
	kube_config_test \
	kube_list_test \
	kube_node_test \
	kube_reply_test \
	kube_view_test \
	)

FUZZERS += $(addprefix controller/, \
	kube_config_fuzz \
	kube_list_fuzz \
	)
