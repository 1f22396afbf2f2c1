/* SPDX-License-Identifier: Apache-2.0 */
/* The overlay in whole states: other nodes on one side, a kernel on the other, changes as text. */
#include "agent/kernel/delta_kernel.h"

#include "agent/kernel/kernel_message_make.h"

#define REMOTES 4

struct world {
	struct kernel_view view;
	struct kernel_block blocks[2];
	struct kernel_tunnel tunnels[2];
	struct kernel_remote remotes[REMOTES];
	struct kernel_remote_block remote_blocks[2 * REMOTES];
	struct kernel_wants state;
	struct desired_kernel desired;
};

static const struct vxlan_made ours = { .vni = 4096, .mtu = 1450, .local = "192.0.2.7", .mac = 9 };

static int set_up(void **state)
{
	static struct world w;

	w = (struct world){ .view.own_port = OWN_PORT };
	w.state = (struct kernel_wants){ .blocks = w.blocks,
					 .tunnels = w.tunnels,
					 .remotes = w.remotes,
					 .remote_blocks = w.remote_blocks };
	w.tunnels[w.state.n_tunnels++] = (struct kernel_tunnel){ .local = address("192.0.2.7"),
								 .mac = { { 2, 0, 0, 0, 9, 9 } },
								 .vni = 4096,
								 .port = 4789,
								 .mtu = 1450,
								 .addresses = { address(
									 "10.1.0.1") },
								 .n_addresses = 1 };
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	kernel_view_done(&w->view);
	desired_kernel_done(&w->desired);
	return 0;
}

static void remote(struct world *w, const char *underlay, uint8_t mac, const char *vtep)
{
	w->remotes[w->state.n_remotes++] = (struct kernel_remote){ .underlay = address(underlay),
								   .node = { address(underlay) },
								   .mac = { { 2, 0, 0, 0, 0,
									      mac } },
								   .vtep = { address(vtep) } };
}

static void block(struct world *w, uint32_t of, const char *text)
{
	w->remote_blocks[w->state.n_remote_blocks++] = (struct kernel_remote_block){
		.block = prefix(text), .remote = of
	};
}

static void device(struct world *w, const struct vxlan_made *v)
{
	struct held_link *l;

	take(&w->view, vxlan_message(5, "roost.vxlan", v));
	l = kernel_view_link(&w->view, 5);
	assert_non_null(l);
	kernel_view_offload(&w->view, l, false);
}

/* "+ route ...", "= route ..." in another's place, "- route ...", "! " in front of a repair. */
static void print(const struct world *w, const struct changes *c, char *text, size_t size)
{
	for (size_t i = 0, n = 0; i < c->n; i++) {
		const struct change *x = &c->v[i];
		char line[CHANGE_TEXT];

		n += (size_t)snprintf(text + n, size - n, "%s%s %s\n", x->repair ? "! " : "",
				      x->forget                                ? "(forget)"
				      : x->kind >= CHANGE_ROUTE_GONE           ? "-"
				      : x->kind == CHANGE_ROUTE && x->replaces ? "="
									       : "+",
				      change_print(x, &w->view, line));
	}
}

#define expect(w, text) expect_at(w, text, __LINE__)
static void expect_at(struct world *w, const char *text, int line)
{
	struct changes c = { 0 };
	char got[4096] = "";

	desired_kernel_done(&w->desired);
	assert_int_equal(desired_kernel(&w->state, &w->view, NULL, &w->desired), 0);
	assert_int_equal(delta_missing(&w->desired, &w->view, 1000000, &c), 0);
	assert_int_equal(delta_surplus(&w->desired, &w->view, &c), 0);
	print(w, &c, got, sizeof(got));
	changes_done(&c);
	if (strcmp(got, text) != 0)
		fail_msg("line %d:\n%swanted:\n%s", line, got, text);
}

static struct message via(uint16_t type, const char *dst, const char *gateway)
{
	struct message m = route_message(type, 0, OTHERS, dst, 5, route_protocol);
	struct rtmsg *body = (struct rtmsg *)(m.bytes + NLMSG_HDRLEN);
	struct address a = address(gateway);

	body->rtm_flags = RTNH_F_ONLINK;
	body->rtm_scope = RT_SCOPE_UNIVERSE;
	put(&m, RTA_GATEWAY, a.bytes, address_bits(&a) / 8);
	return m;
}

/* All that one other node with one block needs, as the kernel tells it. */
static void all_there(struct world *w)
{
	remote(w, "198.51.100.8", 1, "10.2.0.1");
	block(w, 0, "10.2.0.0/26");
	device(w, &ours);
	take(&w->view, address_message(RTM_NEWADDR, 5, "10.1.0.1", 32, 0));
	take(&w->view, fdb_message(RTM_NEWNEIGH, 5, 1, "198.51.100.8", 0));
	take(&w->view, neighbour_message(RTM_NEWNEIGH, 5, "10.2.0.1", 1, NUD_PERMANENT));
	take(&w->view, via(RTM_NEWROUTE, "10.2.0.0/26", "10.2.0.1"));
	expect(w, "");
	delta_confirm(&w->desired, &w->view);
	w->view.news = false;
}

/* --- what is missing ------------------------------------------------------------------------ */

static void without_a_device_it_comes_first_and_alone(void **state)
{
	struct world *w = *state;

	remote(w, "198.51.100.8", 1, "10.2.0.1");
	block(w, 0, "10.2.0.0/26");
	expect(w, "+ device roost.vxlan\n");
}

static void all_that_is_on_it_follows_in_order_of_dependence(void **state)
{
	struct world *w = *state;

	remote(w, "198.51.100.9", 2, "10.3.0.1");
	remote(w, "198.51.100.8", 1, "10.2.0.1");
	block(w, 1, "10.2.0.64/26");
	block(w, 0, "10.3.0.0/26");
	block(w, 1, "10.2.0.0/26");
	device(w, &ours);
	expect(w, "+ address 10.1.0.1 of roost.vxlan\n"
		  "+ neighbour 10.2.0.1 dev roost.vxlan\n"
		  "+ neighbour 10.3.0.1 dev roost.vxlan\n"
		  "+ FDB entry 02:00:00:00:00:01 dst 198.51.100.8 dev roost.vxlan\n"
		  "+ FDB entry 02:00:00:00:00:02 dst 198.51.100.9 dev roost.vxlan\n"
		  "+ route 10.2.0.0/26 via 10.2.0.1 dev roost.vxlan\n"
		  "+ route 10.2.0.64/26 via 10.2.0.1 dev roost.vxlan\n"
		  "+ route 10.3.0.0/26 via 10.3.0.1 dev roost.vxlan\n");
}

static void what_differs_of_the_device_is_changed_in_place(void **state)
{
	static const struct {
		struct vxlan_made made;
		const char *changes;
	} cases[] = {
		{ { 4096, 1400, "192.0.2.7", 9, 0, 0, false }, "+ device roost.vxlan: mtu\n" },
		{ { 4096, 1450, "192.0.2.6", 9, 0, 0, false }, "+ device roost.vxlan: local\n" },
		{ { 4096, 1450, NULL, 9, 0, 0, false }, "+ device roost.vxlan: local\n" },
		{ { 4096, 1450, "192.0.2.7", 8, 0, 0, false }, "+ device roost.vxlan: mac\n" },
		{ { 4096, 1450, "192.0.2.7", 9, 1, 3, false },
		  "+ device roost.vxlan: learning, ttl\n" },
		/* These cannot be. */
		{ { 4097, 1450, "192.0.2.7", 9, 0, 0, false }, "- device roost.vxlan\n" },
		{ { 4096, 1450, "2001:db8::7", 9, 0, 0, false }, "- device roost.vxlan\n" },
		{ { 4096, 1450, "192.0.2.7", 9, 0, 0, true }, "- device roost.vxlan\n" },
	};
	struct world *w = *state;

	w->tunnels[0].n_addresses = 0;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		device(w, &cases[i].made);
		expect(w, cases[i].changes);
	}
	device(w, &ours);
	expect(w, "");
	w->tunnels[0].checksum_offload = true;
	expect(w, "+ device roost.vxlan: checksum offload\n");
}

/* Not by an address that somebody put on the tunnel. */
static void a_node_is_near_by_the_subnets_of_other_links(void **state)
{
	struct world *w = *state;

	w->tunnels[0].n_addresses = 0;
	remote(w, "198.51.100.8", 1, "10.2.0.1");
	block(w, 0, "10.2.0.0/26");
	w->remote_blocks[0].may_be_direct = true;
	device(w, &ours);
	take(&w->view, address_message(RTM_NEWADDR, 5, "198.51.100.1", 24, 0));
	expect(w, "+ neighbour 10.2.0.1 dev roost.vxlan\n"
		  "+ FDB entry 02:00:00:00:00:01 dst 198.51.100.8 dev roost.vxlan\n"
		  "+ route 10.2.0.0/26 via 10.2.0.1 dev roost.vxlan\n"
		  "- address 198.51.100.1 of roost.vxlan\n");
	take(&w->view, link_message(RTM_NEWLINK, 6, "eth0", "", IFF_UP));
	take(&w->view, address_message(RTM_NEWADDR, 6, "198.51.100.2", 24, 0));
	expect(w, "+ neighbour 10.2.0.1 dev roost.vxlan\n"
		  "+ FDB entry 02:00:00:00:00:01 dst 198.51.100.8 dev roost.vxlan\n"
		  "+ route 10.2.0.0/26 via 198.51.100.8 dev eth0\n"
		  "- address 198.51.100.1 of roost.vxlan\n");
}

/* --- what is told ----------------------------------------------------------------------------- */

static void what_is_lost_on_the_way_is_repaired(void **state)
{
	struct world *w = *state;

	all_there(w);
	take(&w->view, fdb_message(RTM_DELNEIGH, 5, 1, "198.51.100.8", 0));
	assert_true(w->view.news);
	expect(w, "! + FDB entry 02:00:00:00:00:01 dst 198.51.100.8 dev roost.vxlan\n");
	/* Over another port it does not arrive either. */
	take(&w->view, fdb_message(RTM_NEWNEIGH, 5, 1, "198.51.100.8", 99));
	expect(w, "! + FDB entry 02:00:00:00:00:01 dst 198.51.100.8 dev roost.vxlan\n");
	take(&w->view, fdb_message(RTM_NEWNEIGH, 5, 1, "198.51.100.8", 0));
	expect(w, "");
	take(&w->view, address_message(RTM_DELADDR, 5, "10.1.0.1", 32, 0));
	kernel_view_settle(&w->view);
	expect(w, "! + address 10.1.0.1 of roost.vxlan\n"
		  "! + route 10.2.0.0/26 via 10.2.0.1 dev roost.vxlan\n");
}

static void a_device_that_went_takes_all_with_it_and_is_one_repair(void **state)
{
	struct world *w = *state;

	all_there(w);
	take(&w->view, link_message(RTM_DELLINK, 5, "roost.vxlan", "vxlan", 0));
	assert_true(w->view.news);
	take(&w->view, address_message(RTM_DELADDR, 5, "10.1.0.1", 32, 0));
	kernel_view_settle(&w->view);
	expect(w, "! + device roost.vxlan\n");
	assert_int_equal(w->view.n_routes + w->view.n_fdb + w->view.n_neighbours, 0);
	/* To be otherwise anyway, it is no repair. */
	w->tunnels[0].vni = 7;
	expect(w, "+ device roost.vxlan\n");
}

/* --- what is too much ----------------------------------------------------------------------- */

static void who_left_leaves_nothing_behind(void **state)
{
	struct world *w = *state;

	all_there(w);
	remote(w, "198.51.100.9", 2, "10.3.0.1");
	w->state.n_remotes = w->state.n_remote_blocks = 0;
	expect(w, "- route 10.2.0.0/26 via 10.2.0.1 dev roost.vxlan\n"
		  "- neighbour 10.2.0.1 dev roost.vxlan\n"
		  "- FDB entry 02:00:00:00:00:01 dst 198.51.100.8 dev roost.vxlan\n");
	/* The device takes the rest with it. */
	w->state.n_tunnels = 0;
	expect(w, "- device roost.vxlan\n");
}

static void strangers_on_other_devices_are_left(void **state)
{
	struct world *w = *state;

	all_there(w);
	take(&w->view, vxlan_message(6, "flannel.1", &ours));
	take(&w->view, fdb_message(RTM_NEWNEIGH, 6, 3, "198.51.100.9", 0));
	take(&w->view, address_message(RTM_NEWADDR, 6, "10.9.0.1", 32, 0));
	/* The kernel's own address on ours stays, another goes. */
	take(&w->view, address_message(RTM_NEWADDR, 5, "fe80::1", 64, 0));
	take(&w->view, address_message(RTM_NEWADDR, 5, "10.9.0.2", 32, 0));
	expect(w, "- address 10.9.0.2 of roost.vxlan\n");
}

static void a_dump_that_does_not_show_an_entry_says_it_is_gone(void **state)
{
	struct world *w = *state;

	all_there(w);
	kernel_view_begin(&w->view, VIEW_NEIGHBOURS);
	take(&w->view, neighbour_message(RTM_NEWNEIGH, 5, "10.2.0.1", 1, NUD_PERMANENT));
	kernel_view_end(&w->view, VIEW_NEIGHBOURS);
	expect(w, "");
	kernel_view_begin(&w->view, VIEW_FDB6);
	kernel_view_end(&w->view, VIEW_FDB6);
	expect(w, "");
	kernel_view_begin(&w->view, VIEW_FDB);
	kernel_view_end(&w->view, VIEW_FDB);
	expect(w, "! + FDB entry 02:00:00:00:00:01 dst 198.51.100.8 dev roost.vxlan\n");
}

/* Nobody has changed settings that were never wanted before. */
static void the_first_block_of_ipv6_repairs_nothing(void **state)
{
	struct world *w = *state;
	struct klink *l;

	all_there(w);
	l = &kernel_view_link(&w->view, 5)->link;
	l->known |= CONF_BIT(CONF6_FORWARDING);
	l->conf[CONF6_FORWARDING] = 0;
	w->remotes[0].vtep[1] = address("fd00:2::40");
	block(w, 0, "fd00:2::40/122");
	expect(w, "+ link roost.vxlan: ipv6.forwarding=1\n"
		  "+ neighbour fd00:2::40 dev roost.vxlan\n"
		  "+ route fd00:2::40/128 dev roost.vxlan\n"
		  "+ route fd00:2::40/122 via fd00:2::40 dev roost.vxlan\n");
	l->conf[CONF6_FORWARDING] = 1;
	delta_confirm(&w->desired, &w->view);
	l->conf[CONF6_FORWARDING] = 0;
	expect(w, "! + link roost.vxlan: ipv6.forwarding=1\n"
		  "+ neighbour fd00:2::40 dev roost.vxlan\n"
		  "+ route fd00:2::40/128 dev roost.vxlan\n"
		  "+ route fd00:2::40/122 via fd00:2::40 dev roost.vxlan\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_a_device_it_comes_first_and_alone),
		CASE(all_that_is_on_it_follows_in_order_of_dependence),
		CASE(what_differs_of_the_device_is_changed_in_place),
		CASE(a_node_is_near_by_the_subnets_of_other_links),
		CASE(what_is_lost_on_the_way_is_repaired),
		CASE(a_device_that_went_takes_all_with_it_and_is_one_repair),
		CASE(who_left_leaves_nothing_behind),
		CASE(strangers_on_other_devices_are_left),
		CASE(a_dump_that_does_not_show_an_entry_says_it_is_gone),
		CASE(the_first_block_of_ipv6_repairs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
