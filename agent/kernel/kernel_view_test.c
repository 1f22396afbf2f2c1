/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/kernel_message_make.h"

#define POD  "roost0123456789"
#define POD2 "roostabcdef0123"

static int set_up(void **state)
{
	static struct kernel_view view;

	view = (struct kernel_view){ .own_port = OWN_PORT };
	*state = &view;
	return 0;
}

static int tear_down(void **state)
{
	kernel_view_done(*state);
	return 0;
}

/* As it should be, as far as the view goes. */
static void confirm_all(struct kernel_view *v)
{
	for (size_t i = 0; i < v->routes.n; i++)
		v->routes.v[i]->h.confirmed = true;
	for (size_t i = 0; i < v->neighbours.n; i++)
		v->neighbours.v[i]->h.confirmed = true;
	v->news = false;
}

#define expect(v, text) expect_at(v, text, __LINE__)
static void expect_at(const struct kernel_view *v, const char *text, int line)
{
	char all[4096] = "", one[KROUTE_TEXT], a[ADDRESS_TEXT];
	size_t n = 0;

	for (size_t i = 0; i < v->routes.n; i++) {
		const struct held_route *r = v->routes.v[i];

		kroute_print(&r->route, kernel_view_link_name(v, r->route.hop.oif), one);
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s\n", one,
				      r->h.held ? "" : " (lost)");
	}
	for (size_t i = 0; i < v->neighbours.n; i++) {
		const struct held_neighbour *m = v->neighbours.v[i];

		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s on %u is :%02x%s\n",
				      address_print(&m->neighbour.address, a), m->neighbour.link,
				      m->neighbour.mac.bytes[5], m->h.held ? "" : " (lost)");
	}
	if (strcmp(all, text) != 0)
		fail_msg("line %d:\n%swanted:\n%s", line, all, text);
}

static void links_are_found_by_name_and_number(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	take(v, link_message(RTM_NEWLINK, 6, "eth0", "dummy", IFF_UP));
	take(v, link_message(RTM_NEWLINK, 7, POD2, "dummy", IFF_UP));
	assert_int_equal(kernel_view_link_named(v, POD)->link.index, 5);
	assert_true(kernel_view_link(v, 5)->pod);
	assert_int_equal(kernel_view_link(v, 5)->link.mtu, 1500);
	assert_int_equal(kernel_view_link(v, 5)->link.conf[CONF6_ACCEPT_RA], 1);
	assert_false(kernel_view_link(v, 6)->pod);
	assert_false(kernel_view_link(v, 7)->pod); /* of our naming, and no veth */
	assert_int_equal(v->n_pod_links, 1);
	assert_null(kernel_view_link_named(v, "eth1"));
	assert_null(kernel_view_link_named(v, "a name that is longer than any"));
}

static void a_link_that_goes_is_told_and_takes_its_routes(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	add_link(v, 6, POD2);
	route(v, "10.1.0.5/32", 5);
	route(v, "10.1.0.6/32", 6);
	route(v, "10.1.0.0/26", 0);
	neighbour(v, 5, "10.1.0.5", 1);
	confirm_all(v);
	take(v, link_message(RTM_DELLINK, 5, POD, "veth", 0));
	kernel_view_settle(v);
	expect(v, "blackhole 10.1.0.0/26\n10.1.0.6/32 dev " POD2 "\n");
	assert_int_equal(v->gone.n, 1);
	assert_string_equal(v->gone.v[0], POD);
	assert_int_equal(v->n_routes, 2);
	assert_int_equal(v->n_neighbours, 0);
}

static void a_renamed_link_has_its_new_name_alone(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	add_link(v, 5, "eth7");
	assert_null(kernel_view_link_named(v, POD));
	assert_int_equal(kernel_view_link_named(v, "eth7")->link.index, 5);
	assert_int_equal(v->gone.n, 1);
	assert_int_equal(v->n_pod_links, 0);
	/* Another takes the name before its last bearer is told to have lost it. */
	add_link(v, 6, "eth7");
	add_link(v, 5, "eth8");
	assert_int_equal(kernel_view_link_named(v, "eth7")->link.index, 6);
	assert_int_equal(kernel_view_link_named(v, "eth8")->link.index, 5);
}

static void what_was_right_and_is_removed_is_remembered(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	route(v, "10.1.0.5/32", 5);
	confirm_all(v);
	route(v, "10.1.0.6/32", 5);
	v->news = false;
	/* Not known to be right, so its end says nothing. */
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.6/32", 5, route_protocol));
	assert_false(v->news);
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.5/32", 5, route_protocol));
	assert_true(v->news);
	expect(v, "10.1.0.5/32 dev " POD " (lost)\n");
	assert_int_equal(v->n_routes, 0);
	route(v, "10.1.0.5/32", 5);
	expect(v, "10.1.0.5/32 dev " POD "\n");
	assert_int_equal(v->n_routes, 1);
}

static void routes_of_bird_that_others_remove_are_noted(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, "eth0");
	v->own_port = OWN_PORT;
	v->bird_port = OTHERS + 1;
	take(v, route_message(RTM_DELROUTE, 0, OTHERS + 1, "10.1.0.0/26", 5, RTPROT_BIRD));
	take(v, route_message(RTM_DELROUTE, 0, OWN_PORT, "10.1.0.64/26", 5, RTPROT_BIRD));
	take(v, route_message(RTM_DELROUTE, 0, 0, "10.1.0.64/26", 5, RTPROT_BIRD));
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.64/26", 5, RTPROT_STATIC));
	take(v, route_message(RTM_NEWROUTE, 0, OTHERS, "10.1.0.64/26", 5, RTPROT_BIRD));
	assert_int_equal(v->bird_lost.port, 0);
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.128/26", 5, RTPROT_BIRD));
	take(v, route_message(RTM_DELROUTE, 0, OTHERS + 2, "10.1.0.192/26", 5, RTPROT_BIRD));
	assert_int_equal(v->bird_lost.port, OTHERS);
	assert_int_equal(v->bird_lost.dst.address.bytes[3], 128);
	assert_false(v->news);
}

static void our_own_changes_are_no_news(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	v->news = false;
	take(v, route_message(RTM_NEWROUTE, 0, OWN_PORT, "10.1.0.5/32", 5, route_protocol));
	confirm_all(v);
	take(v, route_message(RTM_DELROUTE, 0, OWN_PORT, "10.1.0.5/32", 5, route_protocol));
	assert_false(v->news);
}

static void strangers_routes_are_not_kept(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	v->news = false;
	take(v, route_message(RTM_NEWROUTE, 0, OTHERS, "10.1.0.5/32", 5, RTPROT_BIRD));
	take(v, route_message(RTM_NEWROUTE, 0, OTHERS, "10.1.0.6/32", 5, RTPROT_STATIC));
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.6/32", 5, RTPROT_STATIC));
	expect(v, "");
	assert_false(v->news);
}

static void a_stranger_who_takes_the_place_of_ours_is_noticed(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	route(v, "10.1.0.5/32", 5);
	confirm_all(v);
	take(v, route_message(RTM_NEWROUTE, NLM_F_REPLACE, OTHERS, "10.1.0.5/32", 5, RTPROT_BIRD));
	assert_true(v->news);
	expect(v, "10.1.0.5/32 dev " POD " (lost)\n");
}

static void the_end_of_a_conflict_is_news(void **state)
{
	struct kernel_view *v = *state;
	struct kroute ours = { .table = RT_TABLE_MAIN,
			       .dst = prefix("10.1.0.0/26"),
			       .type = RTN_BLACKHOLE,
			       .protocol = route_protocol };
	struct kroute theirs = ours;

	theirs.protocol = RTPROT_BIRD;
	assert_int_equal(kernel_view_conflict(v, &ours, &theirs), 0);
	assert_int_equal(v->n_conflicts, 1);
	assert_int_equal(v->n_routes, 0);
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.2.0.0/26", 0, RTPROT_BIRD));
	assert_false(v->news);
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.0/26", 0, RTPROT_BIRD));
	assert_true(v->news);
	assert_int_equal(v->n_conflicts, 0);
}

static void several_routes_may_share_a_key(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	add_link(v, 6, POD2);
	route(v, "10.1.0.5/32", 5);
	route(v, "10.1.0.5/32", 6);
	expect(v, "10.1.0.5/32 dev " POD "\n10.1.0.5/32 dev " POD2 "\n");
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.5/32", 5, route_protocol));
	expect(v, "10.1.0.5/32 dev " POD2 "\n");
	take(v, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.5/32", 6, route_protocol));
	expect(v, "");
}

static void a_dump_drops_what_it_does_not_show(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	add_link(v, 6, POD2);
	route(v, "10.1.0.5/32", 5);
	route(v, "10.1.0.6/32", 6);
	route(v, "fd00::5/128", 5);
	neighbour(v, 5, "10.1.0.5", 1);
	take(v, address_message(RTM_NEWADDR, 9, "192.0.2.7", 24, 0));
	kernel_view_begin(v, VIEW_ROUTES4);
	route(v, "10.1.0.6/32", 6);
	kernel_view_end(v, VIEW_ROUTES4);
	expect(v, "10.1.0.6/32 dev " POD2 "\nfd00::5/128 dev " POD "\n10.1.0.5 on 5 is :01\n");
	kernel_view_begin(v, VIEW_NEIGHBOURS);
	kernel_view_end(v, VIEW_NEIGHBOURS);
	kernel_view_begin(v, VIEW_ADDRESSES);
	kernel_view_end(v, VIEW_ADDRESSES);
	assert_int_equal(v->addresses.n, 0);
	/* Torn and begun again: what the first half showed counts for nothing. */
	kernel_view_begin(v, VIEW_LINKS);
	add_link(v, 6, POD2);
	kernel_view_begin(v, VIEW_LINKS);
	add_link(v, 5, POD);
	kernel_view_end(v, VIEW_LINKS);
	kernel_view_settle(v);
	expect(v, "fd00::5/128 dev " POD "\n");
	assert_int_equal(v->gone.n, 1);
	assert_string_equal(v->gone.v[0], POD2);
}

static void a_link_that_goes_down_drops_its_ipv4_routes(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	route(v, "10.1.0.5/32", 5);
	route(v, "fd00::5/128", 5);
	confirm_all(v);
	kernel_view_link(v, 5)->h.confirmed = true;
	take(v, link_message(RTM_NEWLINK, 5, POD, "veth", 0));
	add_link(v, 5, POD);
	kernel_view_settle(v);
	assert_true(v->news);
	expect(v, "10.1.0.5/32 dev " POD " (lost)\nfd00::5/128 dev " POD "\n");
}

static void only_permanent_neighbours_of_pods_are_kept(void **state)
{
	struct kernel_view *v = *state;

	add_link(v, 5, POD);
	take(v, link_message(RTM_NEWLINK, 6, "eth0", "dummy", IFF_UP));
	neighbour(v, 5, "10.1.0.5", 1);
	neighbour(v, 6, "10.1.0.6", 1);
	take(v, neighbour_message(RTM_NEWNEIGH, 5, "10.1.0.7", 1, NUD_REACHABLE));
	expect(v, "10.1.0.5 on 5 is :01\n");
	confirm_all(v);
	neighbour(v, 5, "10.1.0.5", 2);
	assert_true(v->news);
	expect(v, "10.1.0.5 on 5 is :02\n");
	v->news = false;
	take(v, neighbour_message(RTM_NEWNEIGH, 5, "10.1.0.5", 1, NUD_STALE));
	assert_true(v->news);
	expect(v, "10.1.0.5 on 5 is :02 (lost)\n");
}

static void settings_come_by_links_and_by_their_own_messages(void **state)
{
	struct kernel_view *v = *state;
	const struct netconfmsg body = { .ncm_family = AF_INET };
	struct message m = begin(RTM_NEWNETCONF, 0, 0, &body, sizeof(body));
	const struct ndtmsg table = { .ndtm_family = AF_INET };
	uint64_t delay = 800;
	size_t parms;

	add_link(v, 5, POD);
	kernel_view_link(v, 5)->h.confirmed = true;
	v->news = false;
	put_u32(&m, NETCONFA_IFINDEX, 5);
	put_u32(&m, NETCONFA_RP_FILTER, 2);
	take(v, m);
	assert_true(v->news);
	assert_int_equal(kernel_view_link(v, 5)->link.conf[CONF_RP_FILTER], 2);

	m = begin(RTM_NEWNETCONF, 0, 0, &body, sizeof(body));
	put_u32(&m, NETCONFA_IFINDEX, (uint32_t)NETCONFA_IFINDEX_ALL);
	put_u32(&m, NETCONFA_FORWARDING, 1);
	take(v, m);
	assert_int_equal(v->host4.conf[CONF_FORWARDING], 1);

	m = begin(RTM_NEWNEIGHTBL, 0, 0, &table, sizeof(table));
	parms = nest(&m, NDTA_PARMS);
	put_u32(&m, NDTPA_IFINDEX, 5);
	put(&m, NDTPA_PROXY_DELAY, &delay, sizeof(delay));
	nest_end(&m, parms);
	take(v, m);
	assert_int_equal(kernel_view_link(v, 5)->link.conf[CONF_PROXY_DELAY], 800);
	/* A link's message does not have it, and does not take it away. */
	add_link(v, 5, POD);
	assert_int_equal(kernel_view_link(v, 5)->link.conf[CONF_PROXY_DELAY], 800);
}

static void the_pods_gateway_is_watched_for(void **state)
{
	struct kernel_view *v = *state;
	const char *gateway = "fe80::ecee:eeff:feee:eeee";

	add_link(v, 5, POD);
	kernel_view_link(v, 5)->h.confirmed = true;
	take(v, address_message(RTM_NEWADDR, 5, gateway, 64, IFA_F_TENTATIVE));
	assert_int_equal(kernel_view_link(v, 5)->gateway6, GATEWAY6_TENTATIVE);
	take(v, address_message(RTM_NEWADDR, 5, gateway, 64, 0));
	assert_int_equal(kernel_view_link(v, 5)->gateway6, GATEWAY6_READY);
	v->news = false;
	take(v, address_message(RTM_DELADDR, 5, gateway, 64, 0));
	assert_int_equal(kernel_view_link(v, 5)->gateway6, GATEWAY6_NONE);
	assert_true(v->news);
	assert_int_equal(v->addresses.n, 0);
	/* Our own removal, told after we have set it again. */
	kernel_view_link(v, 5)->gateway6 = GATEWAY6_READY;
	kernel_view_link(v, 5)->own_removals = 1;
	v->news = false;
	take(v, address_message(RTM_DELADDR, 5, gateway, 64, 0));
	assert_false(v->news);
	assert_int_equal(kernel_view_link(v, 5)->gateway6, GATEWAY6_READY);
	take(v, address_message(RTM_DELADDR, 5, gateway, 64, 0));
	assert_true(v->news);
}

/* Cut anywhere, a message is refused or tells less; it never tells nonsense. */
static void messages_cut_short_do_no_harm(void **state)
{
	struct kernel_view *v = *state;
	struct message all[] = { link_message(RTM_NEWLINK, 5, POD, "veth", IFF_UP),
				 route_message(RTM_NEWROUTE, 0, 1, "10.1.0.5/32", 5, 114),
				 neighbour_message(RTM_NEWNEIGH, 5, "fd00::5", 1, NUD_PERMANENT),
				 address_message(RTM_NEWADDR, 9, "192.0.2.7", 24, 0) };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		size_t used = all[i].used;

		for (size_t n = NLMSG_HDRLEN; n <= used; n++) {
			uint8_t *exact = malloc(n);
			int err;

			all[i].used = n;
			finished(&all[i]);
			memcpy(exact, all[i].bytes, n);
			err = kernel_view_take(v, (const struct nlmsghdr *)exact);
			assert_true(err == 0 || err == -EBADMSG);
			free(exact);
		}
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(links_are_found_by_name_and_number),
		CASE(a_link_that_goes_is_told_and_takes_its_routes),
		CASE(a_renamed_link_has_its_new_name_alone),
		CASE(what_was_right_and_is_removed_is_remembered),
		CASE(routes_of_bird_that_others_remove_are_noted),
		CASE(our_own_changes_are_no_news),
		CASE(strangers_routes_are_not_kept),
		CASE(a_stranger_who_takes_the_place_of_ours_is_noticed),
		CASE(the_end_of_a_conflict_is_news),
		CASE(several_routes_may_share_a_key),
		CASE(a_dump_drops_what_it_does_not_show),
		CASE(a_link_that_goes_down_drops_its_ipv4_routes),
		CASE(only_permanent_neighbours_of_pods_are_kept),
		CASE(settings_come_by_links_and_by_their_own_messages),
		CASE(the_pods_gateway_is_watched_for),
		CASE(messages_cut_short_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
