/* SPDX-License-Identifier: Apache-2.0 */
/* Whole states: pods and blocks on one side, a kernel on the other, the changes as text. */
#include "agent/kernel/delta_kernel.h"

#include "agent/kernel/kernel_message_make.h"

#define A "roost00000000aa"
#define B "roost00000000bb"

struct world {
	struct kernel_view view;
	struct kernel_pod pods[4];
	struct address addresses[4][2];
	struct kernel_block blocks[4];
	struct kernel_wants state;
	struct prefixes protect;
	struct desired_kernel desired;
	uint64_t now;
};

static int set_up(void **state)
{
	static struct world world;

	world = (struct world){ .view.own_port = OWN_PORT, .now = 1000000 };
	world.state.pods = world.pods;
	world.state.blocks = world.blocks;
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	kernel_view_done(&w->view);
	desired_kernel_done(&w->desired);
	return 0;
}

static void pod(struct world *w, const char *link, const char *a, const char *b)
{
	size_t i = w->state.n_pods++;

	w->addresses[i][0] = address(a);
	if (b)
		w->addresses[i][1] = address(b);
	w->pods[i] = (struct kernel_pod){ .link = link,
					  .mac = { { 2, 0, 0, 0, 0, (uint8_t)i } },
					  .addresses = w->addresses[i],
					  .n_addresses = b ? 2 : 1 };
}

static void block(struct world *w, const char *text, bool no_blackhole)
{
	w->blocks[w->state.n_blocks++] = (struct kernel_block){ prefix(text), no_blackhole };
}

static void want(struct world *w)
{
	desired_kernel_done(&w->desired);
	assert_int_equal(desired_kernel(&w->state, &w->view, &w->protect, &w->desired), 0);
}

/* "+ route ...", "= route ..." in another's place, "- route ...", "! " in front of a repair. */
static void print(const struct world *w, const struct changes *c, char *text, size_t size)
{
	for (size_t i = 0, n = 0; i < c->n; i++) {
		const struct change *x = &c->v[i];
		char line[CHANGE_TEXT];
		bool gone = x->kind == CHANGE_ROUTE_OLD || x->kind == CHANGE_ROUTE_GONE ||
			    x->kind == CHANGE_NEIGHBOUR_GONE;

		n += (size_t)snprintf(text + n, size - n, "%s%s %s\n", x->repair ? "! " : "",
				      x->forget     ? "(forget)"
				      : gone        ? "-"
				      : x->replaces ? "="
						    : "+",
				      change_print(x, &w->view, line));
	}
}

#define expect(w, text) expect_at(w, text, __LINE__)
static void expect_at(struct world *w, const char *text, int line)
{
	struct changes c = { 0 };
	char got[8192] = "";

	want(w);
	assert_int_equal(delta_missing(&w->desired, &w->view, w->now, &c), 0);
	assert_int_equal(delta_surplus(&w->desired, &w->view, &c), 0);
	print(w, &c, got, sizeof(got));
	changes_done(&c);
	if (strcmp(got, text) != 0)
		fail_msg("line %d:\n%swanted:\n%s", line, got, text);
}

/* As if the changes had been made: settings right, and the link-local address there. */
static void settle_link(struct world *w, uint32_t index, bool ipv6)
{
	struct held_link *l = kernel_view_link(&w->view, index);
	const struct desired_link d = { .ipv6 = ipv6 };

	for (enum devconf c = 0; c < N_DEVCONF; c++)
		desired_conf(&d, c, &l->link.conf[c]);
	l->gateway6 = GATEWAY6_READY;
}

static void confirm(struct world *w)
{
	want(w);
	delta_confirm(&w->desired, &w->view);
}

static void a_new_pod_gets_settings_then_neighbours_then_routes(void **state)
{
	struct world *w = *state;

	add_link(&w->view, 7, A);
	pod(w, A, "10.1.0.5", NULL);
	expect(w, "+ link " A ": ipv6.disable_ipv6=1 proxy_arp=1 rp_filter=1 forwarding=1\n"
		  "+ neighbour 10.1.0.5 dev " A "\n"
		  "+ route 10.1.0.5/32 dev " A "\n");
}

static void an_ipv6_pod_needs_more(void **state)
{
	struct world *w = *state;

	add_link(&w->view, 7, A);
	pod(w, A, "fd00:1::5", "10.1.0.5");
	expect(w, "+ link " A ": ipv6.accept_dad=0 ipv6.dad_transmits=0 ipv6.accept_ra=0 "
		  "ipv6.proxy_ndp=1 ipv6.forwarding=1 proxy_arp=1 rp_filter=1 forwarding=1 "
		  "link-local address\n"
		  "+ neighbour 10.1.0.5 dev " A "\n"
		  "+ neighbour fd00:1::5 dev " A "\n"
		  "+ route 10.1.0.5/32 dev " A "\n"
		  "+ route fd00:1::5/128 dev " A "\n");
}

static void what_is_as_it_should_be_is_left(void **state)
{
	struct world *w = *state;

	add_link(&w->view, 7, A);
	settle_link(w, 7, true);
	route(&w->view, "10.1.0.5/32", 7);
	route(&w->view, "fd00:1::5/128", 7);
	route(&w->view, "10.1.0.0/26", 0);
	neighbour(&w->view, 7, "10.1.0.5", 0);
	neighbour(&w->view, 7, "fd00:1::5", 0);
	pod(w, A, "fd00:1::5", "10.1.0.5");
	block(w, "10.1.0.0/26", false);
	expect(w, "");
}

static void a_pod_without_link_contributes_nothing(void **state)
{
	struct world *w = *state;

	pod(w, A, "10.1.0.5", NULL);
	expect(w, "");
	assert_int_equal(w->desired.without_link, 1);
}

static void what_nobody_wants_goes_last(void **state)
{
	struct world *w = *state;

	add_link(&w->view, 7, A);
	add_link(&w->view, 8, B);
	settle_link(w, 7, false);
	route(&w->view, "10.1.0.4/32", 8);
	route(&w->view, "10.9.0.0/26", 0);
	neighbour(&w->view, 8, "10.1.0.4", 1);
	pod(w, A, "10.1.0.5", NULL);
	/* A living pod that nobody has a record of: what leads to it stays. */
	expect(w, "+ neighbour 10.1.0.5 dev " A "\n"
		  "+ route 10.1.0.5/32 dev " A "\n"
		  "- route blackhole 10.9.0.0/26\n");
	kernel_view_link(&w->view, 8)->link.group = DOOMED_GROUP;
	expect(w, "+ neighbour 10.1.0.5 dev " A "\n"
		  "+ route 10.1.0.5/32 dev " A "\n"
		  "- route 10.1.0.4/32 dev " B "\n"
		  "- route blackhole 10.9.0.0/26\n"
		  "- neighbour 10.1.0.4 dev " B "\n");
}

/* What is missing, right and too much in turn, along one order. */
static void what_is_and_what_should_be_may_alternate(void **state)
{
	static const char *const there[] = { "10.1.0.1", "10.1.0.3", "10.1.0.4", "10.1.0.7",
					     "10.1.0.9" };
	char text[PREFIX_TEXT];
	struct world *w = *state;

	add_link(&w->view, 7, A);
	settle_link(w, 7, false);
	pod(w, A, "10.1.0.2", "10.1.0.4");
	pod(w, A, "10.1.0.6", "10.1.0.8");
	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		snprintf(text, sizeof(text), "%s/32", there[i]);
		route(&w->view, text, 7);
		neighbour(&w->view, 7, there[i], 0);
	}
	confirm(w);
	assert_true(kernel_view_route(&w->view, &w->desired.routes[1])->h.confirmed);
	assert_true(kernel_view_neighbour(&w->view, &w->desired.neighbours[1])->h.confirmed);
	expect(w, "+ neighbour 10.1.0.2 dev " A "\n"
		  "+ neighbour 10.1.0.6 dev " A "\n"
		  "+ neighbour 10.1.0.8 dev " A "\n"
		  "+ route 10.1.0.2/32 dev " A "\n"
		  "+ route 10.1.0.6/32 dev " A "\n"
		  "+ route 10.1.0.8/32 dev " A "\n"
		  "- route 10.1.0.1/32 dev " A "\n"
		  "- route 10.1.0.3/32 dev " A "\n"
		  "- route 10.1.0.7/32 dev " A "\n"
		  "- route 10.1.0.9/32 dev " A "\n"
		  "- neighbour 10.1.0.1 dev " A "\n"
		  "- neighbour 10.1.0.3 dev " A "\n"
		  "- neighbour 10.1.0.7 dev " A "\n"
		  "- neighbour 10.1.0.9 dev " A "\n");
}

static void one_of_ours_with_other_attributes_is_replaced(void **state)
{
	struct world *w = *state;

	add_link(&w->view, 7, A);
	add_link(&w->view, 8, B);
	settle_link(w, 7, false);
	neighbour(&w->view, 7, "10.1.0.5", 9); /* another MAC */
	route(&w->view, "10.1.0.5/32", 8);
	pod(w, A, "10.1.0.5", NULL);
	expect(w, "+ neighbour 10.1.0.5 dev " A "\n"
		  "= route 10.1.0.5/32 dev " A "\n");
	confirm(w);
	assert_false(kernel_view_routes(&w->view, &w->desired.routes[0]).v[0]->h.confirmed);
	/* Beside the right one it is just too much. */
	route(&w->view, "10.1.0.5/32", 7);
	neighbour(&w->view, 7, "10.1.0.5", 0);
	expect(w, "- route 10.1.0.5/32 dev " B "\n");
}

/* What static routes there should be may be known later than pods and blocks. */
static void static_routes_stay_until_all_of_them_are_known(void **state)
{
	struct world *w = *state;

	take(&w->view, link_message(RTM_NEWLINK, 9, "eth0", "dummy", IFF_UP));
	take(&w->view, route_message(RTM_NEWROUTE, 0, OTHERS, "10.9.0.0/16", 9, 115));
	route(&w->view, "10.8.0.0/26", 0);
	expect(w, "- route blackhole 10.8.0.0/26\n");
	w->state.statics_known = true;
	expect(w, "- route blackhole 10.8.0.0/26\n"
		  "- route 10.9.0.0/16 dev eth0\n");
}

static void what_was_right_and_is_not_is_a_repair(void **state)
{
	struct world *w = *state;

	add_link(&w->view, 7, A);
	settle_link(w, 7, false);
	route(&w->view, "10.1.0.5/32", 7);
	neighbour(&w->view, 7, "10.1.0.5", 0);
	pod(w, A, "10.1.0.5", NULL);
	confirm(w);
	take(&w->view, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.5/32", 7, route_protocol));
	neighbour(&w->view, 7, "10.1.0.5", 9);
	kernel_view_link(&w->view, 7)->link.conf[CONF_RP_FILTER] = 2;
	expect(w, "! + link " A ": rp_filter=1\n"
		  "! + neighbour 10.1.0.5 dev " A "\n"
		  "! + route 10.1.0.5/32 dev " A "\n");
	/* Not wanted any more: nobody misses it. */
	w->state.n_pods = 0;
	kernel_view_link(&w->view, 7)->link.group = DOOMED_GROUP;
	expect(w, "(forget) route 10.1.0.5/32 dev " A "\n"
		  "- neighbour 10.1.0.5 dev " A "\n");
}

static void a_link_that_is_down_is_set_up(void **state)
{
	struct world *w = *state;

	take(&w->view, link_message(RTM_NEWLINK, 7, A, "veth", 0));
	settle_link(w, 7, false);
	route(&w->view, "10.1.0.5/32", 7);
	neighbour(&w->view, 7, "10.1.0.5", 0);
	pod(w, A, "10.1.0.5", NULL);
	expect(w, "+ link " A ": up\n");
}

/* Another program removes a thing `every` ms for so long; returns the longest wait for a repair. */
static uint64_t fight_on(struct fight *h, uint64_t *now, uint64_t every, uint64_t lasting,
			 unsigned *ret_repairs)
{
	uint64_t end = *now + lasting, longest = 0;

	for (*ret_repairs = 0; *now < end; ++*ret_repairs) {
		uint64_t wait = h->not_before > *now ? h->not_before - *now : 0;

		longest = wait > longest ? wait : longest;
		fight_repaired(h, *now + wait);
		*now += wait > every ? wait : every;
	}
	return longest;
}

static void repairs_do_not_outlast_the_tampering(void **state)
{
	uint64_t now = ((struct world *)*state)->now;
	struct fight h = { 0 };
	unsigned n;

	/* At a rate that costs nothing each is repaired at once, for as long as a minute or two. */
	assert_int_equal(fight_on(&h, &now, 1000, 100000, &n), 0);
	assert_int_equal(n, 100);
	now += 20000;
	assert_int_equal(fight_on(&h, &now, 200, 60000, &n), 0);
	now += 20000;
	/* Faster than that: five at once, then five a second. */
	assert_int_equal(fight_on(&h, &now, 0, 10000, &n), 200);
	assert_in_range(n, 50, 60);
	assert_int_equal(h.repairs, UINT8_MAX);
}

static void only_a_lasting_fight_slows_repairs(void **state)
{
	uint64_t now = ((struct world *)*state)->now;
	struct fight h = { 0 };
	unsigned n;

	assert_int_equal(fight_on(&h, &now, 1, 110000, &n), 200);
	assert_int_equal(fight_on(&h, &now, 1, 600000, &n), 2000);
	assert_in_range(n, 300, 360);
	/* It pauses: the next repair is at once. It ends: so are the five after it. */
	now += 3000;
	assert_int_equal(fight_on(&h, &now, 1, 1, &n), 0);
	now += 13000;
	assert_int_equal(fight_on(&h, &now, 1, 5, &n), 0);
	assert_true(h.repairs > FIGHT_LOGGED);
	now += 62000;
	assert_int_equal(fight_on(&h, &now, 1, 1, &n), 0);
	assert_int_equal(h.repairs, 1);
}

/* At 1 every 15 s it is no fight to slow down for, however long; only the log is limited. */
static void slow_tampering_is_repaired_at_once_for_ever(void **state)
{
	uint64_t now = ((struct world *)*state)->now;
	struct fight h = { 0 };
	unsigned n;

	assert_int_equal(fight_on(&h, &now, 15000, 3600000, &n), 0);
	assert_true(h.repairs > FIGHT_LOGGED);
	assert_int_equal(fight_on(&h, &now, 200, 60000, &n), 0);
}

static void what_is_put_off_comes_when_it_is_due(void **state)
{
	struct world *w = *state;
	struct changes c = { 0 };
	struct held_route *r;

	add_link(&w->view, 7, A);
	settle_link(w, 7, false);
	neighbour(&w->view, 7, "10.1.0.5", 0);
	route(&w->view, "10.1.0.5/32", 7);
	pod(w, A, "10.1.0.5", NULL);
	confirm(w);
	take(&w->view, route_message(RTM_DELROUTE, 0, OTHERS, "10.1.0.5/32", 7, route_protocol));
	r = kernel_view_routes(&w->view, &w->desired.routes[0]).v[0];
	r->h.fight.not_before = w->now + 10;
	expect(w, "");
	want(w);
	assert_int_equal(delta_missing(&w->desired, &w->view, w->now, &c), 0);
	assert_int_equal(c.next, w->now + 10);
	changes_done(&c);
	w->now += 10;
	expect(w, "! + route 10.1.0.5/32 dev " A "\n");
}

static void a_stranger_in_the_way_is_not_tried_again_and_again(void **state)
{
	struct world *w = *state;
	struct kroute theirs = { .table = RT_TABLE_MAIN, .protocol = RTPROT_BIRD };

	block(w, "10.1.0.0/26", false);
	want(w);
	assert_int_equal(kernel_view_conflict(&w->view, &w->desired.routes[0], &theirs), 0);
	expect(w, "");
	kernel_view_retry_conflicts(&w->view);
	expect(w, "+ route blackhole 10.1.0.0/26\n");
}

static void forwarding_is_set_for_the_families_in_use(void **state)
{
	struct world *w = *state;

	w->view.host4 = (struct kconf){ .known = CONF_BIT(CONF_FORWARDING) };
	w->view.host6 = (struct kconf){ .known = CONF_BIT(CONF6_FORWARDING) };
	expect(w, "+ net.ipv4.ip_forward\n");
	w->state.ipv6 = true;
	expect(w, "+ net.ipv4.ip_forward\n+ net.ipv6.conf.all.forwarding\n");
	w->view.host4.conf[CONF_FORWARDING] = w->view.host6.conf[CONF6_FORWARDING] = 1;
	expect(w, "");
}

static void blocks_are_black_holes_but_for_single_addresses(void **state)
{
	struct world *w = *state;

	add_link(&w->view, 7, A);
	settle_link(w, 7, false);
	neighbour(&w->view, 7, "10.9.0.1", 0);
	pod(w, A, "10.9.0.1", NULL);
	block(w, "10.1.0.0/26", false);
	block(w, "10.9.0.1/32", false);
	block(w, "10.2.0.0/26", true);
	block(w, "fd00:1::/122", false);
	expect(w, "+ route blackhole 10.1.0.0/26\n"
		  "+ route 10.9.0.1/32 dev " A "\n"
		  "+ route blackhole fd00:1::/122\n");
	w->state.export_table = 119;
	expect(w, "+ route blackhole 10.1.0.0/26 table 119\n"
		  "+ route 10.9.0.1/32 dev " A " table 119\n"
		  "+ route blackhole fd00:1::/122 table 119\n"
		  "+ route blackhole 10.1.0.0/26\n"
		  "+ route 10.9.0.1/32 dev " A "\n"
		  "+ route blackhole fd00:1::/122\n");
}

static void refused_is(const struct world *w, size_t i, const char *why)
{
	assert_true(i < w->desired.refused.n);
	assert_string_equal(w->desired.refused.v[i].why, why);
}

static void no_black_hole_over_what_the_node_needs(void **state)
{
	struct world *w = *state;
	struct prefix etcd = prefix("10.3.0.9/32");
	struct address gateway = address("10.2.0.1");

	take(&w->view, link_message(RTM_NEWLINK, 9, "eth0", "dummy", IFF_UP));
	take(&w->view, address_message(RTM_NEWADDR, 9, "10.1.0.7", 24, 0));
	take(&w->view, address_message(RTM_NEWADDR, 9, "10.4.0.7", 32, 0));
	assert_int_equal(array_append(&w->view.gateways, gateway), 0);
	w->protect = (struct prefixes){ &etcd, 1 };
	block(w, "10.1.0.0/26", false);
	block(w, "10.2.0.0/26", false);
	block(w, "10.3.0.0/26", false);
	block(w, "10.4.0.0/26", false);
	expect(w, "+ route blackhole 10.4.0.0/26\n");
	refused_is(w, 0, "the subnet 10.1.0.0/24 of eth0");
	refused_is(w, 1, "the gateway 10.2.0.1");
	refused_is(w, 2, "10.3.0.9/32, which is protected");
	/* One that was there before goes. */
	route(&w->view, "10.1.0.0/26", 0);
	expect(w, "+ route blackhole 10.4.0.0/26\n- route blackhole 10.1.0.0/26\n");
}

static void route_localnet_is_set_once_or_kept(void **state)
{
	struct desired_link l = { 0 };
	int32_t value = 7;

	assert_false(desired_conf(&l, CONF_ROUTE_LOCALNET, &value));
	l.fresh = true;
	assert_true(desired_conf(&l, CONF_ROUTE_LOCALNET, &value));
	assert_int_equal(value, 0);
	l = (struct desired_link){ .route_localnet = true };
	assert_true(desired_conf(&l, CONF_ROUTE_LOCALNET, &value));
	assert_int_equal(value, 1);
}

static void settings_that_the_kernel_lacks_are_not_asked_for(void **state)
{
	struct world *w = *state;

	add_link(&w->view, 7, A);
	kernel_view_link(&w->view, 7)->link.known = 0;
	kernel_view_link(&w->view, 7)->gateway6 = GATEWAY6_READY;
	pod(w, A, "fd00:1::5", NULL);
	expect(w, "+ neighbour fd00:1::5 dev " A "\n+ route fd00:1::5/128 dev " A "\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_new_pod_gets_settings_then_neighbours_then_routes),
		CASE(an_ipv6_pod_needs_more),
		CASE(what_is_as_it_should_be_is_left),
		CASE(a_pod_without_link_contributes_nothing),
		CASE(what_nobody_wants_goes_last),
		CASE(what_is_and_what_should_be_may_alternate),
		CASE(one_of_ours_with_other_attributes_is_replaced),
		CASE(static_routes_stay_until_all_of_them_are_known),
		CASE(what_was_right_and_is_not_is_a_repair),
		CASE(a_link_that_is_down_is_set_up),
		CASE(repairs_do_not_outlast_the_tampering),
		CASE(only_a_lasting_fight_slows_repairs),
		CASE(slow_tampering_is_repaired_at_once_for_ever),
		CASE(what_is_put_off_comes_when_it_is_due),
		CASE(a_stranger_in_the_way_is_not_tried_again_and_again),
		CASE(forwarding_is_set_for_the_families_in_use),
		CASE(blocks_are_black_holes_but_for_single_addresses),
		CASE(no_black_hole_over_what_the_node_needs),
		CASE(route_localnet_is_set_once_or_kept),
		CASE(settings_that_the_kernel_lacks_are_not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
