/* SPDX-License-Identifier: Apache-2.0 */
/* All records but pool and extent, which have model_pool_test.c. */
#include "lib/model/model_lab.h"

#define TIME "2026-11-16T02:45:55Z"

static void every_field_of_config_is_read_and_written(void **unused)
{
	ECHOES(cluster_config, "config",
	       "{\"asn\":4294967295,\"protocol\":\"ospf\",\"announce\":\"static\",\"mesh\":false,"
	       "\"bgp\":{\"holdTime\":30,\"keepaliveTime\":10,\"connectRetryTime\":7,"
	       "\"gracefulRestart\":false,\"gracefulRestartTime\":60,\"bfd\":true,\"ecmp\":16,"
	       "\"listenPort\":1179,\"communities\":[\"65000:1\",\"1:2:3\"]},"
	       "\"bfd\":{\"minRx\":100,\"minTx\":200,\"multiplier\":5},"
	       "\"ospf\":{\"area\":\"0.0.0.1\",\"interfaces\":[\"eth0\",\"bond*\"],\"cost\":5,"
	       "\"hello\":2,\"dead\":8,\"type\":\"ptp\",\"passwordFile\":\"/etc/o\"},"
	       "\"rip\":{\"interfaces\":[\"eth1\"],\"updateTime\":5,\"timeoutTime\":20,"
	       "\"passwordFile\":\"/etc/r\"},"
	       "\"exportTable\":119,\"vxlan\":{\"vni\":1,\"port\":8472,\"mtuOverhead\":70,"
	       "\"checksumOffload\":false},"
	       "\"reclaimAfter\":900,\"logLevel\":\"debug\"}");
	ECHOES(cluster_config, "config", "{}");
	ECHOES(cluster_config, "config", "{\"bgp\":{\"holdTime\":0}}");
}

static void config_has_the_documented_defaults(void **unused)
{
	AUTO_DONE(cluster_config_done) struct cluster_config c = { 0 };
	char text[ADDRESS_TEXT];

	assert_int_equal(
		cluster_config_decode("config", "{\"bgp\":{},\"mesh\":null}", 22, &c, NULL), 0);
	assert_int_equal(c.asn, 64512);
	assert_int_equal(c.protocol, PROTOCOL_BGP);
	assert_int_equal(c.announce, ANNOUNCE_LEARN);
	assert_true(c.mesh);
	assert_int_equal(c.bgp.hold_time, 90);
	assert_int_equal(c.bgp.keepalive_time, 0);
	assert_int_equal(c.bgp.connect_retry_time, 5);
	assert_true(c.bgp.graceful_restart);
	assert_int_equal(c.bgp.graceful_restart_time, 120);
	assert_false(c.bgp.bfd);
	assert_int_equal(c.bgp.ecmp, 8);
	assert_int_equal(c.bgp.listen_port, 179);
	assert_int_equal(c.bgp.communities.n, 0);
	assert_int_equal(c.bfd.min_rx, 300);
	assert_int_equal(c.bfd.min_tx, 300);
	assert_int_equal(c.bfd.multiplier, 3);
	assert_string_equal(address_print(&c.ospf.area, text), "0.0.0.0");
	assert_int_equal(c.ospf.cost, 10);
	assert_int_equal(c.ospf.hello, 10);
	assert_int_equal(c.ospf.dead, 40);
	assert_int_equal(c.ospf.type, OSPF_BROADCAST);
	assert_string_equal(c.ospf.password_file, "");
	assert_int_equal(c.rip.update_time, 30);
	assert_int_equal(c.rip.timeout_time, 180);
	assert_int_equal(c.export_table, 0);
	assert_int_equal(c.vxlan.vni, 4096);
	assert_int_equal(c.vxlan.port, 4789);
	assert_int_equal(c.vxlan.mtu_overhead, 0);
	assert_true(c.vxlan.checksum_offload);
	assert_int_equal(c.reclaim_after, 3600);
	assert_string_equal(c.log_level, "");
}

static void config_out_of_its_rules_is_refused(void **unused)
{
#define CONFIG(json, sentence) REFUSED(cluster_config, "config", json, "config: " sentence)
	CONFIG("{\"asn\":0}", "field \"asn\": 0 is not between 1 and 4294967295");
	CONFIG("{\"asn\":4294967296}", "field \"asn\": 4294967296 is not between 1 and 4294967295");
	CONFIG("{\"protocol\":\"isis\"}",
	       "field \"protocol\": \"isis\" is not one of bgp, ospf, rip, none");
	CONFIG("{\"protocol\":\"\"}",
	       "field \"protocol\": \"\" is not one of bgp, ospf, rip, none");
	CONFIG("{\"bgp\":{\"holdTime\":2}}",
	       "field \"bgp.holdTime\": 2 is neither 0 nor between 3 and 65535");
	CONFIG("{\"bgp\":{\"keepaliveTime\":90}}",
	       "field \"bgp.keepaliveTime\": 90 is not less than holdTime 90");
	CONFIG("{\"bgp\":{\"holdTime\":0,\"keepaliveTime\":5}}",
	       "field \"bgp.keepaliveTime\": 5 is not less than holdTime 0");
	CONFIG("{\"bgp\":[]}", "field \"bgp\": [] is an array, not an object");
	CONFIG("{\"bgp\":{\"communities\":[\"1:1\",\"x\"]}}",
	       "field \"bgp.communities[1]\": \"x\" is not a community: two numbers up to 65535 or "
	       "three up to 4294967295 with ':' between");
	CONFIG("{\"protocol\":\"ospf\"}",
	       "field \"ospf.interfaces\": is missing, and protocol \"ospf\" needs it");
	CONFIG("{\"ospf\":{\"area\":\"::1\"}}", "field \"ospf.area\": \"::1\" is not IPv4");
	CONFIG("{\"ospf\":{\"dead\":10}}", "field \"ospf.dead\": 10 is not more than hello 10");
	CONFIG("{\"rip\":{\"timeoutTime\":30}}",
	       "field \"rip.timeoutTime\": 30 is not more than updateTime 30");
	CONFIG("{\"exportTable\":254}", "field \"exportTable\": 254 is the kernel's main table");
	CONFIG("{\"exportTable\":255}", "field \"exportTable\": 255 is the kernel's local table");
	CONFIG("{\"vxlan\":{\"vni\":16777216}}",
	       "field \"vxlan.vni\": 16777216 is not between 1 and 16777215");
	CONFIG("{\"reclaimAfter\":899}",
	       "field \"reclaimAfter\": 899 is not between 900 and 2147483647");
	CONFIG("{\"logLevel\":\"loud\"}",
	       "field \"logLevel\": \"loud\" is not one of error, warning, info, debug");
	CONFIG("{\"mesh\":1}", "field \"mesh\": 1 is an integer, not true or false");
	CONFIG("{", "not a whole JSON object: ends at byte 1");
}

static void every_field_of_node_spec_and_removed_is_read_and_written(void **unused)
{
	ECHOES(node, "node/n1",
	       "{\"ipv4\":\"192.0.2.7/24\",\"ipv6\":\"fd00::7/64\",\"machine\":\"4c4c\","
	       "\"boot\":\"b-1\",\"vtep\":{\"mac\":\"02:00:0a:01:00:05\",\"ipv4\":\"10.1.0.1\","
	       "\"ipv6\":\"fd00:1::1\"},\"agent\":{\"version\":\"0.1.0\",\"started\":\"" TIME
	       "\"}}");
	ECHOES(node, "node/n1", "{\"ipv4\":\"192.0.2.7/24\"}");
	ECHOES(node, "node/n1", "{\"ipv6\":\"fd00::7/64\"}");
	ECHOES(node_spec, "spec/n1",
	       "{\"labels\":{\"disk\":\"ssd\",\"kubernetes.io/os\":\"linux\",\"x\":\"\"},"
	       "\"asn\":64513,\"routeReflectorClusterId\":\"224.0.0.1\","
	       "\"kubernetesUid\":\"6f1d-2\",\"podCIDRs\":[\"10.2.0.0/24\",\"fd00:2::/"
	       "64\"],\"drain\":true}");
	ECHOES(node_spec, "spec/n1", "{}");
	ROUND_TRIP(node_spec, "spec/n1", "{\"drain\":false}", "{}");
	ROUND_TRIP(node_spec, "spec/n1", "{\"labels\":{\"a\":null,\"b\":\"1\"}}",
		   "{\"labels\":{\"b\":\"1\"}}");
	ECHOES(node_removed, "removed/n1",
	       "{\"by\":\"roostctl by ada\",\"when\":\"" TIME "\",\"now\":true}");
	ECHOES(node_removed, "removed/n1", "{}");
	ECHOES(node, "node/n1",
	       "{\"ipv4\":\"192.0.2.7/24\",\"hardware\":[\"mac:02:00:00:00:00:01\",\"dmi:0a\"],"
	       "\"reclaimAfter\":900,\"recovery\":\"0a1b\"}");
	ECHOES(recovery, "recovery",
	       "{\"id\":\"0a1b\",\"by\":\"n1\",\"began\":\"" TIME "\",\"longest\":14400,"
	       "\"revision\":77,\"done\":true}");
	ECHOES(block, "block/default/10.1.0.0-26", "{\"node\":\"n1\",\"recovery\":\"0a1b\"}");
}

static void every_field_that_controllers_write_is_read_and_written(void **unused)
{
	ECHOES(leader, "leader/controller",
	       "{\"id\":\"c1-0a1b\",\"address\":\"[::]:9114\",\"since\":\"2026-11-16T02:45:55Z\"}");
	ECHOES(pool_status, "status/pool/web",
	       "{\"invalid\":\"no cidr\",\"full\":true,\"lacking\":2,\"events\":["
	       "{\"when\":\"2026-11-16T02:45:55Z\",\"what\":\"full\"}]}");
	ECHOES(pool_status, "status/pool/web", "{}");
}

static void labels_are_sorted_and_can_be_asked(void **unused)
{
	const char json[] = "{\"labels\":{\"zone\":\"a\",\"disk\":\"ssd\"},"
			    "\"routeReflectorClusterId\":\"\"}";
	AUTO_DONE(node_spec_done) struct node_spec s = { 0 };
	AUTO(selector_free) struct selector *selector = NULL;
	struct labels labels;

	assert_int_equal(node_spec_decode("spec/n1", json, sizeof(json) - 1, &s, NULL), 0);
	assert_int_equal(s.labels.n, 2);
	assert_string_equal(s.labels.v[0].key, "disk");
	assert_string_equal(s.labels.v[1].value, "a");
	assert_int_equal(s.route_reflector_cluster_id.family, 0);
	assert_int_equal(selector_parse("zone == 'a' && disk == 'ssd'", &selector, NULL), 0);
	labels = (struct labels){ s.labels.v, s.labels.n };
	assert_true(selector_matches(selector, &labels));
}

static void node_out_of_its_rules_is_refused(void **unused)
{
#define NODE(json, sentence) REFUSED(node, "node/n1", json, "node/n1: " sentence)
	NODE("{}", "fields \"ipv4\" and \"ipv6\": at least one is required");
	NODE("{\"ipv4\":\"\"}", "fields \"ipv4\" and \"ipv6\": at least one is required");
	NODE("{\"ipv4\":\"fd00::7/64\"}", "field \"ipv4\": \"fd00::7/64\" is not IPv4");
	NODE("{\"ipv6\":\"192.0.2.7/24\"}", "field \"ipv6\": \"192.0.2.7/24\" is not IPv6");
	NODE("{\"ipv4\":\"192.0.2.7\"}",
	     "field \"ipv4\": \"192.0.2.7\" is not an address with its prefix length, such as "
	     "\"192.0.2.7/24\" or \"fd00::7/64\"");
	NODE("{\"ipv4\":\"0.0.0.0/0\"}", "field \"ipv4\": 0.0.0.0/0 is no machine's address");
	NODE("{\"ipv4\":\"192.0.2.7/24\",\"ipv6\":\"ff02::1/64\"}",
	     "field \"ipv6\": ff02::1/64 is no machine's address");
	NODE("{\"ipv4\":\"192.0.2.7/24\",\"vtep\":{\"mac\":\"01:00:5e:00:00:01\"}}",
	     "field \"vtep.mac\": \"01:00:5e:00:00:01\" is not the MAC address of a device, such "
	     "as "
	     "\"02:00:0a:01:00:05\"");
	NODE("{\"ipv4\":\"192.0.2.7/24\",\"agent\":{\"started\":\"now\"}}",
	     "field \"agent.started\": \"now\" is not a time in UTC such as \"" TIME "\"");
	NODE("{\"ipv4\":\"192.0.2.7/24\",\"machine\":\"a b\"}",
	     "field \"machine\": \"a b\" is not an id: 1 to 128 of A-Z, a-z, 0-9, '_', '.', ':', "
	     "'-'");
}

static void a_mac_address_has_one_notation(void **unused)
{
	static const char *const wrong[] = { "02:00:0A:01:00:05", "2:0:a:1:0:5",
					     "02:00:0a:01:00",    "02:00:0a:01:00:05:06",
					     "02-00-0a-01-00-05", "00:00:00:00:00:00",
					     "02:00:0a:01:00:0",  "02:00:0a:01:00:05 " };
	struct node n;
	char json[200];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(json, sizeof(json),
			 "{\"ipv4\":\"192.0.2.7/24\",\"vtep\":{\"mac\":\"%s\"}}", wrong[i]);
		assert_int_equal(node_decode("node/n1", json, strlen(json), &n, NULL), -EINVAL);
	}
}

static void spec_out_of_its_rules_is_refused(void **unused)
{
#define SPEC(json, sentence) REFUSED(node_spec, "spec/n1", json, "spec/n1: " sentence)
	SPEC("{\"asn\":0}", "field \"asn\": 0 is not between 1 and 4294967295");
	SPEC("{\"routeReflectorClusterId\":\"fd00::1\"}",
	     "field \"routeReflectorClusterId\": \"fd00::1\" is not IPv4");
	SPEC("{\"labels\":{\"a b\":\"c\"}}",
	     "field \"labels.a b\": the name is not 1 to 317 of A-Z, a-z, 0-9, '.', '/', '_', '-'");
	SPEC("{\"labels\":{\"a\\nb\":\"c\"}}",
	     "field \"labels.a?b\": the name is not 1 to 317 of A-Z, a-z, 0-9, '.', '/', '_', '-'");
	SPEC("{\"labels\":{\"a\":\"b c\"}}",
	     "field \"labels.a\": \"b c\" is not up to 63 of A-Z, a-z, 0-9, '.', '_', '-'");
	SPEC("{\"labels\":{\"a\":1}}", "field \"labels.a\": 1 is an integer, not a string");
	SPEC("{\"drain\":1}", "field \"drain\": 1 is an integer, not true or false");
	SPEC("{\"podCIDRs\":[\"10.2.0.1/24\"]}",
	     "field \"podCIDRs[0]\": \"10.2.0.1/24\" has host bits set: write 10.2.0.0/24");
	SPEC("{\"podCIDRs\":[null]}", "field \"podCIDRs[0]\": null is not allowed here");
}

static void every_field_of_block_and_address_is_read_and_written(void **unused)
{
	ECHOES(block, "block/default/10.1.0.64-26",
	       "{\"node\":\"n1\",\"pool\":\"web\",\"token\":\"a-1\",\"claimed\":\"" TIME "\"}");
	ECHOES(block, "block/default/fd00::-122", "{\"node\":\"n1\"}");
	ECHOES(block, "block/default/10.5.1.0-24",
	       "{\"node\":\"lease-192.0.2.5\",\"lease\":{\"publicIP\":\"192.0.2.5\","
	       "\"backendType\":\"vxlan\",\"backendData\":{\"VNI\":1,\"x\":[1,{\"y\":null}]},"
	       "\"expires\":\"2026-11-16T02:45:55Z\"}}");
	ECHOES(block, "block/default/10.5.1.0-24",
	       "{\"node\":\"lease-192.0.2.5\",\"lease\":{\"publicIP\":\"192.0.2.5\"}}");
	ECHOES(host_block, "host/n1/ipv4/block/default/10.1.0.64-26",
	       "{\"pool\":\"web\",\"claimed\":\"" TIME "\"}");
	ECHOES(host_block, "host/n1/ipv4/block/default/10.1.0.64-26", "{}");
	ECHOES(address_record, "host/n1/address/default/10.1.0.5",
	       "{\"container\":\"c1\",\"interface\":\"eth0\",\"pool\":\"web\","
	       "\"namespace\":\"shop\",\"pod\":\"cart-1\",\"link\":\"roost0123456789\","
	       "\"netns\":\"/var/run/netns/x\",\"boot\":\"b-1\",\"assigned\":\"" TIME
	       "\",\"reserved\":true}");
	ECHOES(address_record, "host/n1/address/default/fd00::5", "{}");
}

static void what_the_key_says_is_part_of_the_record(void **unused)
{
	AUTO_DONE(address_record_done) struct address_record a = { 0 };
	AUTO_DONE(block_done) struct block b = { 0 }, c = { 0 };
	char text[PREFIX_TEXT];

	assert_int_equal(block_decode("block/net2/10.1.0.64-26", "{\"node\":\"n1\"}", 13, &b, NULL),
			 0);
	assert_string_equal(b.network, "net2");
	assert_string_equal(prefix_print(&b.block, text), "10.1.0.64/26");
	assert_string_equal(b.node, "n1");
	assert_int_equal(address_record_decode("host/n1/address/net2/10.1.0.5", "{}", 2, &a, NULL),
			 0);
	assert_string_equal(a.node, "n1");
	assert_string_equal(a.network, "net2");
	assert_string_equal(address_print(&a.address, text), "10.1.0.5");
	/* Equal values under another key are another record. */
	assert_int_equal(block_decode("block/net2/10.1.0.0-26", "{\"node\":\"n1\"}", 13, &c, NULL),
			 0);
	assert_false(block_equal(&b, &c));
}

static void block_and_address_out_of_their_rules_are_refused(void **unused)
{
	REFUSED(block, "block/default/10.1.0.64-26", "{}",
		"block/default/10.1.0.64-26: field \"node\": is missing");
	REFUSED(block, "block/default/10.1.0.64-26", "{\"node\":\"\"}",
		"block/default/10.1.0.64-26: field \"node\": \"\" is not a node name: 1 to 253 of "
		"a-z, 0-9, '.', '-', with a letter or digit at both ends");
	REFUSED(block, "block/default/10.1.0.65-26", "{\"node\":\"n1\"}",
		"\"block/default/10.1.0.65-26\" is not a key of the form block/<network>/<block>");
	REFUSED(block, "block/default/10.1.0.64-26", "{\"node\":\"n1\",\"lease\":{}}",
		"block/default/10.1.0.64-26: field \"lease.publicIP\": is missing");
	REFUSED(block, "block/default/10.1.0.64-26",
		"{\"node\":\"n1\",\"lease\":{\"publicIP\":\"192.0.2.5\",\"backendData\":\"x\"}}",
		"block/default/10.1.0.64-26: field \"lease.backendData\": \"x\" is a "
		"string, not an object");
	REFUSED(block, "pool/web", "{\"node\":\"n1\"}",
		"\"pool/web\" is not a key of the form block/<network>/<block>");
	REFUSED(address_record, "host/n1/address/default/10.1.0.5", "{\"link\":\"a b\"}",
		"host/n1/address/default/10.1.0.5: field \"link\": \"a b\" is not an interface "
		"name: 1 to 15 of A-Z, a-z, 0-9, '_', '.', '-', and not '.' or '..'");
	REFUSED(address_record, "host/n1/address/default/10.1.0.5", "{\"reserved\":\"yes\"}",
		"host/n1/address/default/10.1.0.5: field \"reserved\": \"yes\" is a string, not "
		"true or false");
}

static void unknown_fields_are_ignored_and_not_written(void **unused)
{
	ROUND_TRIP(block, "block/default/10.1.0.64-26",
		   "{\"later\":{\"x\":[1]},\"node\":\"n1\",\"pool\":\"\",\"token\":null}",
		   "{\"node\":\"n1\"}");
}

static void a_record_made_by_hand_is_encoded(void **unused)
{
	const struct block b = { .node = "n1", .claimed = TIME };
	AUTO(free) char *text = NULL;

	assert_int_equal(block_encode(&b, &text), 0);
	assert_string_equal(text, "{\"node\":\"n1\",\"claimed\":\"" TIME "\"}");
}

static void a_refused_record_leaves_ret_alone(void **unused)
{
	struct block b = { .node = "before" };

	assert_int_equal(block_decode("block/default/10.1.0.64-26", "{}", 2, &b, NULL), -EINVAL);
	assert_string_equal(b.node, "before");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_of_config_is_read_and_written),
		cmocka_unit_test(config_has_the_documented_defaults),
		cmocka_unit_test(config_out_of_its_rules_is_refused),
		cmocka_unit_test(every_field_of_node_spec_and_removed_is_read_and_written),
		cmocka_unit_test(every_field_that_controllers_write_is_read_and_written),
		cmocka_unit_test(labels_are_sorted_and_can_be_asked),
		cmocka_unit_test(node_out_of_its_rules_is_refused),
		cmocka_unit_test(a_mac_address_has_one_notation),
		cmocka_unit_test(spec_out_of_its_rules_is_refused),
		cmocka_unit_test(every_field_of_block_and_address_is_read_and_written),
		cmocka_unit_test(what_the_key_says_is_part_of_the_record),
		cmocka_unit_test(block_and_address_out_of_their_rules_are_refused),
		cmocka_unit_test(unknown_fields_are_ignored_and_not_written),
		cmocka_unit_test(a_record_made_by_hand_is_encoded),
		cmocka_unit_test(a_refused_record_leaves_ret_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
