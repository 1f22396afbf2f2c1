SRCS += $(addprefix agent/, \
	settings.c \
	lock.c \
	identity.c \
	identity_gather.c \
	pin.c \
	pin_file.c \
	authority.c \
	recovery.c \
	register.c \
	register_decide.c \
	register_watch.c \
	status.c \
	status_watch.c \
	report.c \
	plug.c \
	overlay.c \
	overlay_pools.c \
	overlay_show.c \
	route_records.c \
	routing.c \
	routing_compare.c \
	routing_watch.c \
	routing_refeed.c \
	routing_show.c \
	reaper.c \
	reaper_child.c \
	agent.c \
	agent_store.c \
	agent_wire.c \
	agent_overlay.c \
	agent_show.c \
	readiness.c \
	request_stats.c \
	metrics.c \
	certificates.c \
	network_plugins.c \
	network_config.c \
	clean.c \
	api.c \
	static_entries.c \
	static_decide.c \
	static_status.c \
	static_report.c \
	static_routes.c \
	static_settings.c \
	kernel_objects.c \
	kernel_message.c \
	kernel_message_link.c \
	kernel_view.c \
	kernel_view_take.c \
	kernel_view_address.c \
	kernel_view_sweep.c \
	desired_kernel.c \
	desired_tunnel.c \
	desired_firewall.c \
	firewall.c \
	firewall_child.c \
	firewall_verdict.c \
	firewall_netlink.c \
	delta_kernel.c \
	delta_pair.c \
	delta_tunnel.c \
	kernel_request.c \
	kernel_request_tunnel.c \
	apply_kernel.c \
	apply_tunnel.c \
	kernel_read.c \
	kernel_pass.c \
	kernel_pod.c \
	kernel_ways.c \
	kernel.c \
	ipam.c \
	ipam_attach.c \
	ipam_firewall.c \
	ipam_start.c \
	ipam_inputs.c \
	ipam_index.c \
	ipam_blocks.c \
	ipam_recovery.c \
	ipam_claims.c \
	ipam_returns.c \
	ipam_requests.c \
	ipam_tunnel.c \
	ipam_spool.c \
	ipam_released.c \
	ipam_leaks.c \
	ipam_show.c \
	desired_overlay.c \
	desired_bird.c \
	desired_bird_sessions.c \
	desired_bird_offers.c \
	desired_bird_options.c \
	desired_bird_tree.c \
	desired_bird_tree_families.c \
	json_tree.c \
	desired_bird_flaps.c \
	)

PROGRAMS += roostd
PROGRAM_SRCS.roostd := agent/main.c

PURE_TESTS += $(addprefix agent/, \
	settings_test \
	identity_test \
	pin_test \
	authority_test \
	recovery_test \
	register_decide_test \
	register_test \
	register_trouble_test \
	register_race_test \
	status_test \
	readiness_test \
	network_plugins_test \
	request_stats_test \
	report_test \
	route_records_test \
	routing_compare_test \
	desired_overlay_test \
	overlay_pools_test \
	desired_bird_test \
	kernel_view_test \
	delta_kernel_test \
	desired_firewall_test \
	delta_tunnel_test \
	static_decide_test \
	static_status_test \
	static_report_test \
	)

TESTS += $(addprefix agent/, \
	lock_test \
	identity_gather_test \
	reaper_test \
	kernel_pod_test \
	kernel_hops_test \
	kernel_test \
	kernel_tunnel_test \
	firewall_child_test \
	kernel_tunnel_repair_test \
	)

FUZZERS += $(addprefix agent/, \
	pin_fuzz \
	overlay_pools_fuzz \
	kernel_view_fuzz \
	)
