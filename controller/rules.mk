PROGRAMS += roost-controller
PROGRAM_SRCS.roost-controller := controller/main.c

PURE_TESTS += \
	controller/decide/decide_kube_test \
	controller/decide/decide_leases_test \
	controller/decide/decide_recovery_test \
	controller/decide/decide_routes_test \
	controller/keeper_return_test \
	controller/keeper_test \
	controller/kube/kube_config_test \
	controller/kube/kube_list_test \
	controller/kube/kube_node_test \
	controller/kube/kube_reply_test \
	controller/kube/kube_view_test \
	controller/leases/lease_api_test \
	controller/leases/lease_decide_test \
	controller/leases/lease_view_test \
	controller/state/elect_test
