/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/netlink/netlink_reply.h"

#include "lib/netlink/attributes.h"

static void read_extack(const uint8_t *p, size_t length, char *ret, size_t size)
{
	const struct nlattr *t[NLMSGERR_ATTR_MSG + 1];
	const struct nlattr *text;

	attributes_table(p, length, t, NLMSGERR_ATTR_MSG);
	text = t[NLMSGERR_ATTR_MSG];
	if (text)
		snprintf(ret, size, "%.*s", (int)attribute_length(text),
			 (const char *)attribute_data(text));
}

/* Where the attributes start behind an error: past the request's header, or all of it. */
static size_t attributes_offset(const struct nlmsghdr *hdr, const struct nlmsgerr *e)
{
	size_t offset = NLMSG_HDRLEN + sizeof(*e);

	if (!(hdr->nlmsg_flags & NLM_F_CAPPED) && e->msg.nlmsg_len > NLMSG_HDRLEN)
		offset += NLMSG_ALIGN(e->msg.nlmsg_len) - NLMSG_HDRLEN;
	return offset;
}

static void read_end(const struct nlmsghdr *hdr, size_t length, struct netlink_reply *ret)
{
	const uint8_t *p = (const uint8_t *)hdr;
	size_t offset = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(int));
	struct nlmsgerr e = { 0 };

	/* Old dumps end in a bare header: nothing to complain of. */
	if (length >= offset)
		memcpy(&e.error, p + NLMSG_HDRLEN, sizeof(e.error));
	if (hdr->nlmsg_type == NLMSG_ERROR) {
		if (length < NLMSG_HDRLEN + sizeof(e)) {
			ret->error = -EBADMSG;
			return;
		}
		memcpy(&e, p + NLMSG_HDRLEN, sizeof(e));
		offset = attributes_offset(hdr, &e);
	}
	/* The end of a dump may carry a positive count of what was dumped. */
	ret->error = e.error < 0 ? e.error : 0;
	if ((hdr->nlmsg_flags & NLM_F_ACK_TLVS) && offset < length)
		read_extack(p + offset, length - offset, ret->extack, sizeof(ret->extack));
}

void netlink_reply_read(const struct nlmsghdr *hdr, size_t available, uint32_t seq,
			struct netlink_reply *ret)
{
	size_t length = hdr->nlmsg_len < available ? hdr->nlmsg_len : available;

	*ret = (struct netlink_reply){ .kind = NETLINK_REPLY_STALE };
	if (hdr->nlmsg_seq != seq)
		return;

	/* The flag stands on whichever message was being filled, so also on the last. */
	ret->interrupted = hdr->nlmsg_flags & NLM_F_DUMP_INTR;
	if (hdr->nlmsg_type == NLMSG_ERROR || hdr->nlmsg_type == NLMSG_DONE) {
		ret->kind = NETLINK_REPLY_END;
		read_end(hdr, length, ret);
	} else if (hdr->nlmsg_type >= NLMSG_MIN_TYPE) {
		ret->kind = NETLINK_REPLY_DATA;
	}
}
