PROGRAMS += roostd
PROGRAM_SRCS.roostd := agent/main.c

PURE_TESTS += \
	agent/addresses/authority_test \
	agent/addresses/recovery_decide_test \
	agent/addresses/refusals_test \
	agent/addresses/request_stats_test \
	agent/bird/desired_bird_test \
	agent/bird/routing_compare_test \
	agent/firewall/desired_firewall_test \
	agent/kernel/delta_kernel_test \
	agent/kernel/delta_tunnel_test \
	agent/kernel/kernel_view_test \
	agent/node/identity_test \
	agent/node/network_plugins_test \
	agent/node/pin_test \
	agent/node/register_decide_test \
	agent/node/register_race_test \
	agent/node/register_test \
	agent/node/register_trouble_test \
	agent/node/report_test \
	agent/overlay/desired_overlay_test \
	agent/overlay/overlay_pools_test \
	agent/records/records_test \
	agent/settings_test \
	agent/show/readiness_test \
	agent/show/status_test \
	agent/static/static_decide_test \
	agent/static/static_report_test \
	agent/static/static_status_test
