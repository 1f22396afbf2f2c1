/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/netlink/netlink_reply.h"

#define SEQ 77

/* A received message of our own making. */
struct fake {
	struct nlmsghdr hdr;
	uint8_t body[512];
};

static struct fake fake(uint16_t type, uint16_t flags)
{
	return (struct fake){
		.hdr = { .nlmsg_len = NLMSG_HDRLEN,
			 .nlmsg_type = type,
			 .nlmsg_flags = flags,
			 .nlmsg_seq = SEQ },
	};
}

static void put(struct fake *f, const void *data, size_t length)
{
	memcpy((uint8_t *)f + f->hdr.nlmsg_len, data, length);
	f->hdr.nlmsg_len += NLMSG_ALIGN(length);
}

static void put_attribute(struct fake *f, uint16_t type, const void *data, uint16_t length)
{
	put(f, &(struct nlattr){ .nla_len = NLA_HDRLEN + length, .nla_type = type }, NLA_HDRLEN);
	put(f, data, length);
}

static struct netlink_reply read_all(const struct fake *f)
{
	struct netlink_reply r;

	netlink_reply_read(&f->hdr, f->hdr.nlmsg_len, SEQ, &r);
	return r;
}

static void an_answer_to_another_request_is_stale(void **unused)
{
	struct fake f = fake(NLMSG_DONE, NLM_F_DUMP_INTR);

	f.hdr.nlmsg_seq = SEQ - 1;
	assert_int_equal(read_all(&f).kind, NETLINK_REPLY_STALE);
	assert_false(read_all(&f).interrupted);
}

static void a_message_of_the_family_is_data(void **unused)
{
	struct fake f = fake(NLMSG_MIN_TYPE, NLM_F_MULTI);

	assert_int_equal(read_all(&f).kind, NETLINK_REPLY_DATA);
	assert_false(read_all(&f).interrupted);
	f = fake(NLMSG_NOOP, 0);
	assert_int_equal(read_all(&f).kind, NETLINK_REPLY_STALE);
}

static void an_interruption_is_seen_on_any_message(void **unused)
{
	struct fake data = fake(NLMSG_MIN_TYPE, NLM_F_MULTI | NLM_F_DUMP_INTR);
	struct fake done = fake(NLMSG_DONE, NLM_F_MULTI | NLM_F_DUMP_INTR);

	assert_true(read_all(&data).interrupted);
	assert_true(read_all(&done).interrupted);
	assert_int_equal(read_all(&done).kind, NETLINK_REPLY_END);
}

static void an_ack_without_error_is_a_good_end(void **unused)
{
	struct fake f = fake(NLMSG_ERROR, NLM_F_CAPPED);

	put(&f, &(struct nlmsgerr){ .error = 0 }, sizeof(struct nlmsgerr));
	assert_int_equal(read_all(&f).kind, NETLINK_REPLY_END);
	assert_int_equal(read_all(&f).error, 0);
	assert_string_equal(read_all(&f).extack, "");
}

static void a_refusal_has_its_errno_and_sentence(void **unused)
{
	struct fake f = fake(NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS);

	put(&f, &(struct nlmsgerr){ .error = -ENETUNREACH, .msg.nlmsg_len = 60 },
	    sizeof(struct nlmsgerr));
	put_attribute(&f, NLMSGERR_ATTR_OFFS, &(uint32_t){ 24 }, 4);
	put_attribute(&f, NLMSGERR_ATTR_MSG, "No way", sizeof("No way"));
	assert_int_equal(read_all(&f).error, -ENETUNREACH);
	assert_string_equal(read_all(&f).extack, "No way");
}

static void the_sentence_is_found_behind_a_whole_request(void **unused)
{
	struct fake f = fake(NLMSG_ERROR, NLM_F_ACK_TLVS);

	put(&f, &(struct nlmsgerr){ .error = -EINVAL, .msg.nlmsg_len = NLMSG_HDRLEN + 12 },
	    sizeof(struct nlmsgerr));
	put(&f, "twelve bytes", 12);
	put_attribute(&f, NLMSGERR_ATTR_MSG, "No way", sizeof("No way"));
	assert_string_equal(read_all(&f).extack, "No way");
}

static void a_dump_may_end_in_an_error(void **unused)
{
	struct fake f = fake(NLMSG_DONE, NLM_F_MULTI | NLM_F_ACK_TLVS);

	put(&f, &(int){ -ENODEV }, sizeof(int));
	put_attribute(&f, NLMSGERR_ATTR_MSG, "Gone", sizeof("Gone"));
	assert_int_equal(read_all(&f).error, -ENODEV);
	assert_string_equal(read_all(&f).extack, "Gone");
}

static void a_dump_may_end_in_a_count_or_nothing(void **unused)
{
	struct fake f = fake(NLMSG_DONE, NLM_F_MULTI);

	assert_int_equal(read_all(&f).error, 0);
	put(&f, &(int){ 12 }, sizeof(int));
	assert_int_equal(read_all(&f).error, 0);
}

static void a_long_sentence_is_cut(void **unused)
{
	struct fake f = fake(NLMSG_DONE, NLM_F_ACK_TLVS);
	char text[300];

	memset(text, 'x', sizeof(text)); /* and not even terminated */
	put(&f, &(int){ -EINVAL }, sizeof(int));
	put_attribute(&f, NLMSGERR_ATTR_MSG, text, sizeof(text));
	assert_int_equal(strlen(read_all(&f).extack), sizeof(read_all(&f).extack) - 1);
}

static void wrong_lengths_are_not_followed(void **unused)
{
	const uint16_t lengths[] = { 0, 3, 9, 0xffff };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct fake f = fake(NLMSG_DONE, NLM_F_ACK_TLVS);

		put(&f, &(int){ -EINVAL }, sizeof(int));
		put(&f, &(struct nlattr){ lengths[i], NLMSGERR_ATTR_MSG }, NLA_HDRLEN);
		put(&f, "abc", 4);
		assert_int_equal(read_all(&f).error, -EINVAL);
		assert_string_equal(read_all(&f).extack, "");
	}
}

static void an_error_too_short_to_hold_one_is_bad(void **unused)
{
	struct fake f = fake(NLMSG_ERROR, 0);
	struct netlink_reply r;

	put(&f, &(struct nlmsgerr){ .error = 0 }, sizeof(struct nlmsgerr));
	netlink_reply_read(&f.hdr, NLMSG_HDRLEN + 4, SEQ, &r);
	assert_int_equal(r.kind, NETLINK_REPLY_END);
	assert_int_equal(r.error, -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_to_another_request_is_stale),
		cmocka_unit_test(a_message_of_the_family_is_data),
		cmocka_unit_test(an_interruption_is_seen_on_any_message),
		cmocka_unit_test(an_ack_without_error_is_a_good_end),
		cmocka_unit_test(a_refusal_has_its_errno_and_sentence),
		cmocka_unit_test(the_sentence_is_found_behind_a_whole_request),
		cmocka_unit_test(a_dump_may_end_in_an_error),
		cmocka_unit_test(a_dump_may_end_in_a_count_or_nothing),
		cmocka_unit_test(a_long_sentence_is_cut),
		cmocka_unit_test(wrong_lengths_are_not_followed),
		cmocka_unit_test(an_error_too_short_to_hold_one_is_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
