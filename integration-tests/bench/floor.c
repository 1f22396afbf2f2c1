/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni-floor: the least that the kernel must do for an ADD and a DEL, as a plugin.
 *
 * No address management, no agent, no checks: one message makes the veth pair with its end
 * already in the pod, one batch does everything there, four settings and one route on the
 * host. Benchmarks hold real plugins against it; nobody should run a pod with it.
 *
 * The address is 10.98.0.0 plus the number after the last '-' of the container's id.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/auto.h"

#define NETWORK  0x0a620000u /* 10.98.0.0 */
#define GATEWAY  0xa9fe0101u /* 169.254.1.1 */
#define MAKE_NEW (NLM_F_CREATE | NLM_F_EXCL)

static const unsigned char host_mac[6] = { 0xee, 0xee, 0xee, 0xee, 0xee, 0xee };
static const uint32_t mtu = 1450, one_queue = 1;

struct pod {
	const char *netns, *interface;
	char host_end[IFNAMSIZ];
	uint32_t address, gateway; /* in network order */
};

/* The error object of a plugin; what failed needs no cleaning in a benchmark. */
static void fail(const char *what, int error)
{
	printf("{\"cniVersion\":\"1.0.0\",\"code\":100,\"msg\":\"%s: %s\"}\n", what,
	       strerror(error));
	exit(1);
}

/* --- messages ------------------------------------------------------------------------------- */

struct batch {
	_Alignas(struct nlmsghdr) char data[2048];
	size_t len;
	unsigned n;
	struct nlmsghdr *last;
};

static void *grow(struct batch *b, size_t len)
{
	void *at = b->data + b->len;

	b->len += NLMSG_ALIGN(len);
	b->last->nlmsg_len = (uint32_t)(b->data + b->len - (char *)b->last);
	return at;
}

static void add_message(struct batch *b, uint16_t type, unsigned flags, const void *body,
			size_t len)
{
	b->last = (struct nlmsghdr *)(b->data + b->len);
	grow(b, sizeof(*b->last));
	b->last->nlmsg_type = type;
	b->last->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	b->last->nlmsg_seq = ++b->n;
	memcpy(grow(b, len), body, len);
}

static struct rtattr *add_attribute(struct batch *b, unsigned short type, const void *data,
				    size_t len)
{
	struct rtattr *attribute = grow(b, RTA_LENGTH(len));

	attribute->rta_type = type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(len);
	if (len > 0)
		memcpy(RTA_DATA(attribute), data, len);
	return attribute;
}

static void add_text(struct batch *b, unsigned short type, const char *text)
{
	add_attribute(b, type, text, strlen(text) + 1);
}

static void add_number(struct batch *b, unsigned short type, uint32_t number)
{
	add_attribute(b, type, &number, sizeof(number));
}

static void end_nest(const struct batch *b, struct rtattr *nest)
{
	nest->rta_len = (unsigned short)(b->data + b->len - (char *)nest);
}

static int open_netlink(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)) < 0)
		fail("netlink", errno);
	return fd;
}

/* The first refusal among the acks in one datagram; *left is what is still to come. */
static int read_acks(char *data, size_t len, unsigned *left)
{
	int error = 0;

	for (struct nlmsghdr *h = (void *)data; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type != NLMSG_ERROR)
			continue;
		error = error ?: -((const struct nlmsgerr *)NLMSG_DATA(h))->error;
		(*left)--;
	}
	return error;
}

/* All at once, and an ack for each. 0 or the kernel's (positive) errno. */
static int exchange(int fd, struct batch *b)
{
	_Alignas(struct nlmsghdr) char reply[8192];
	int error = 0;

	if (send(fd, b->data, b->len, 0) < 0)
		return errno;
	for (unsigned left = b->n; left > 0;) {
		ssize_t n = recv(fd, reply, sizeof(reply), 0);
		int refused = n < 0 ? errno : read_acks(reply, (size_t)n, &left);

		if (n < 0)
			return refused;
		if (refused != 0)
			error = refused;
	}
	return error;
}

static void must(const char *what, int fd, struct batch *b)
{
	int error = exchange(fd, b);

	if (error != 0)
		fail(what, error);
}

/* --- ADD ------------------------------------------------------------------------------------ */

/* More queues than one make the kernel wait for a grace period. */
static void add_end(struct batch *b, const char *name)
{
	add_text(b, IFLA_IFNAME, name);
	add_number(b, IFLA_MTU, mtu);
	add_number(b, IFLA_NUM_TX_QUEUES, one_queue);
	add_number(b, IFLA_NUM_RX_QUEUES, one_queue);
}

/* The host's end can be made up, the pod's cannot: its peer is not there yet. */
static void make_pair(int fd, const struct pod *pod, int netns)
{
	const struct ifinfomsg up = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct rtattr *info, *data, *peer;
	struct batch b = { 0 };

	add_message(&b, RTM_NEWLINK, MAKE_NEW, &up, sizeof(up));
	add_end(&b, pod->host_end);
	add_attribute(&b, IFLA_ADDRESS, host_mac, sizeof(host_mac));
	info = add_attribute(&b, IFLA_LINKINFO, NULL, 0);
	add_text(&b, IFLA_INFO_KIND, "veth");
	data = add_attribute(&b, IFLA_INFO_DATA, NULL, 0);
	peer = add_attribute(&b, VETH_INFO_PEER, NULL, 0);
	grow(&b, sizeof(struct ifinfomsg));
	add_end(&b, pod->interface);
	add_number(&b, IFLA_NET_NS_FD, (uint32_t)netns);
	end_nest(&b, peer);
	end_nest(&b, data);
	end_nest(&b, info);
	must("veth", fd, &b);
}

static uint32_t index_of(const char *name)
{
	AUTO(close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFINDEX, &request) < 0)
		fail(name, errno);
	return (uint32_t)request.ifr_ifindex;
}

/* dst 0: the default. */
static void add_route(struct batch *b, unsigned flags, uint32_t dst, uint32_t gateway,
		      uint32_t link)
{
	const struct rtmsg body = {
		.rtm_family = AF_INET,
		.rtm_dst_len = dst ? 32 : 0,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
		.rtm_type = RTN_UNICAST,
	};

	add_message(b, RTM_NEWROUTE, NLM_F_CREATE | flags, &body, sizeof(body));
	if (dst)
		add_number(b, RTA_DST, dst);
	if (gateway)
		add_number(b, RTA_GATEWAY, gateway);
	add_number(b, RTA_OIF, link);
}

static void add_address(struct batch *b, uint32_t address, uint32_t link)
{
	const struct ifaddrmsg body = { .ifa_family = AF_INET,
					.ifa_prefixlen = 32,
					.ifa_index = link };

	add_message(b, RTM_NEWADDR, MAKE_NEW, &body, sizeof(body));
	add_number(b, IFA_LOCAL, address);
	add_number(b, IFA_ADDRESS, address);
}

static void add_neighbour(struct batch *b, uint32_t address, uint32_t link)
{
	const struct ndmsg body = { .ndm_family = AF_INET,
				    .ndm_ifindex = (int)link,
				    .ndm_state = NUD_PERMANENT };

	add_message(b, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof(body));
	add_number(b, NDA_DST, address);
	add_attribute(b, NDA_LLADDR, host_mac, sizeof(host_mac));
}

static void set_up_pod(const struct pod *pod, int netns)
{
	AUTO(close) int fd = -1;
	struct ifinfomsg up = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct batch b = { 0 };

	if (setns(netns, CLONE_NEWNET) < 0)
		fail(pod->netns, errno);
	fd = open_netlink();
	up.ifi_index = (int)index_of(pod->interface);
	add_message(&b, RTM_NEWLINK, 0, &up, sizeof(up));
	add_address(&b, pod->address, (uint32_t)up.ifi_index);
	add_route(&b, NLM_F_EXCL, pod->gateway, 0, (uint32_t)up.ifi_index);
	add_route(&b, NLM_F_EXCL, 0, pod->gateway, (uint32_t)up.ifi_index);
	add_neighbour(&b, pod->gateway, (uint32_t)up.ifi_index);
	must("in the pod", fd, &b);
}

static void set(const char *family, const char *link, const char *name, const char *value)
{
	AUTO(close) int fd = -1;
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s/%s/%s", family, link, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail(path, errno);
}

static void set_up_host(int fd, const struct pod *pod)
{
	struct batch b = { 0 };

	set("conf", pod->host_end, "proxy_arp", "1");
	set("conf", pod->host_end, "forwarding", "1");
	set("conf", pod->host_end, "rp_filter", "1");
	set("neigh", pod->host_end, "proxy_delay", "0");
	add_route(&b, NLM_F_REPLACE, pod->address, 0, index_of(pod->host_end));
	must("route on the host", fd, &b);
}

static void print_result(const struct pod *pod)
{
	char address[INET_ADDRSTRLEN];

	printf("{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"%s\"},"
	       "{\"name\":\"%s\",\"sandbox\":\"%s\"}],"
	       "\"ips\":[{\"interface\":1,\"address\":\"%s/32\"}]}\n",
	       pod->host_end, pod->interface, pod->netns,
	       inet_ntop(AF_INET, &pod->address, address, sizeof(address)));
}

static void add(const struct pod *pod)
{
	AUTO(close) int fd = open_netlink();
	AUTO(close) int netns = open(pod->netns, O_RDONLY | O_CLOEXEC);
	AUTO(close) int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (netns < 0 || home < 0)
		fail(pod->netns, errno);
	make_pair(fd, pod, netns);
	set_up_pod(pod, netns);
	if (setns(home, CLONE_NEWNET) < 0)
		fail("setns", errno);
	set_up_host(fd, pod);
	print_result(pod);
}

/* --- DEL ------------------------------------------------------------------------------------ */

static void del(const struct pod *pod)
{
	AUTO(close) int fd = open_netlink();
	const struct ifinfomsg none = { 0 };
	struct batch b = { 0 };
	int error;

	add_message(&b, RTM_DELLINK, 0, &none, sizeof(none));
	add_text(&b, IFLA_IFNAME, pod->host_end);
	error = exchange(fd, &b);
	if (error != 0 && error != ENODEV)
		fail("veth", error);
}

/* -------------------------------------------------------------------------------------------- */

static const char *need(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		fail(name, EINVAL);
	return value;
}

int main(void)
{
	const char *verb = need("CNI_COMMAND"), *dash = strrchr(need("CNI_CONTAINERID"), '-');
	struct pod pod = { .netns = need("CNI_NETNS"), .interface = need("CNI_IFNAME") };
	uint32_t number = dash ? (uint32_t)strtoul(dash + 1, NULL, 10) : 0;
	char conf[4096];

	/* A runtime writes it; a plugin reads it. */
	if (read(STDIN_FILENO, conf, sizeof(conf)) < 0)
		fail("stdin", errno);
	snprintf(pod.host_end, sizeof(pod.host_end), "floor%08x", number);
	pod.address = htonl(NETWORK + 1 + number % 0xfffe);
	pod.gateway = htonl(GATEWAY);
	if (strcmp(verb, "ADD") == 0)
		add(&pod);
	else if (strcmp(verb, "DEL") == 0)
		del(&pod);
	else
		puts("{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}");
	return 0;
}
