/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ADD: check, address, link, inside, attach; and all of it back when one of them fails.
 *
 * What can be wrong with the input is found before anything is done, and the result is
 * printed before there is a link: after attach nothing is left that could fail.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "cni/ask.h"
#include "cni/fault.h"
#include "cni/inside.h"
#include "cni/ipam_plugin.h"
#include "cni/verbs.h"
#include "cni/veth.h"

/* How far it got is what must be undone. */
struct add {
	const struct cni_call *call;
	struct roost_conf conf;
	struct ipam_plugin ipam;
	struct netns netns;
	struct netlink *host, *inside;
	struct plugin_given given;
	struct sandbox pod;
	char *output;
	bool has_addresses, has_link, may_be_attached;
};

static void add_done_auto(struct add *a)
{
	sandbox_done(&a->pod);
	plugin_given_done(&a->given);
	netlink_close(a->inside);
	netlink_close(a->host);
	netns_close(&a->netns);
	roost_conf_done(&a->conf);
	free(a->output);
}

/* Nothing but looking. */
static int look(struct add *a, struct cni_error *e)
{
	const struct cni_env *env = &a->call->env;
	int r = roost_conf_read(a->call, &a->conf, e);

	if (r == 0)
		r = ipam_plugin_choose(a->call, &a->ipam, e);
	if (r == 0)
		r = netns_open(env->netns, env->netns_override, &a->netns, e);
	if (r < 0)
		return r;
	r = netlink_open(NETLINK_ROUTE, &a->host);
	r = r ?: netns_netlink(&a->netns, &a->inside);
	if (r < 0)
		return cni_fail(e, CNI_CODE_IO, "cannot open a netlink socket in %s: %s",
				env->netns, strerror(-r));
	/* Before an address is asked for: that of a live pod must not get into a roll-back. */
	r = inside_is_free(a->host, a->inside, a->call, e);
	return r ?: fault(e);
}

static int get_addresses(struct add *a, struct cni_error *e)
{
	int r = ipam_plugin_add(&a->ipam, a->call, &a->conf, &a->given, e);

	if (r < 0)
		return r;
	a->has_addresses = true;
	return fault(e);
}

/* Locally administered, of one device. The kernel would choose one too, but not tell. */
static struct mac random_mac(void)
{
	struct mac mac;

	/* Up to 256 bytes come whole, once the kernel has its seed; before, there are no pods. */
	if (getrandom(&mac, sizeof(mac), 0) < 0)
		memset(&mac, 0x5a, sizeof(mac));
	mac.bytes[0] = (uint8_t)((mac.bytes[0] & ~1U) | 2U);
	return mac;
}

static int plan(struct add *a, struct cni_error *e)
{
	const struct mac mac = random_mac();
	uint32_t mtu = a->given.mtu;
	int r = 0;

	/* The agent's own IPAM has told it with the addresses. */
	if (a->conf.mtu == 0 && !(a->ipam.own && a->given.reply))
		r = ask_mtu(a->call, &mtu, e);
	if (r == 0)
		r = sandbox_plan(&a->call->env, &a->conf, &a->given.result, mtu, &mac, &a->pod, e);
	if (r == 0)
		r = sandbox_result(&a->pod, &a->conf, &a->given.result, a->call->conf.version,
				   &a->output, e);
	return r ?: fault(e);
}

static int plumb(struct add *a, struct cni_error *e)
{
	int r = veth_make(a->host, &a->netns, &a->pod, &a->call->deadline, e);

	if (r < 0)
		return r;
	a->has_link = true;
	r = fault(e);
	if (r == 0)
		r = inside_make(a->inside, &a->netns, &a->pod, e);
	return r ?: fault(e);
}

static int attach(struct add *a, struct cni_error *e)
{
	int r = ask_attach(a->call, &a->conf, &a->pod,
			   ipam_plugin_name(&a->ipam, a->call, &a->given), e);

	/* An agent that refuses has undone its part; of one that is silent nobody knows. */
	a->may_be_attached = r == 0 || r == -ETIMEDOUT || r == -ECONNRESET || r == -EBADMSG;
	return r ?: fault(e);
}

static void undo(struct add *a)
{
	const struct deadline deadline = deadline_in(CNI_UNDO_MS);
	struct err why;

	if (a->has_link && veth_remove(a->host, a->pod.link, &why) < 0)
		cni_complain(a->call, "the link %s is not removed: %s", a->pod.link, why.text);
	if (a->has_link)
		inside_unmake(a->inside, &a->pod);
	if (a->may_be_attached && !a->given.existing)
		ask_detach(a->call, &deadline);
	/* Our own addresses went with that. */
	if (a->has_addresses && !(a->ipam.own && a->may_be_attached))
		ipam_plugin_undo(&a->ipam, a->call, &a->given);
}

int roost_add(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	__attribute__((cleanup(add_done_auto))) struct add a = { .call = call,
								 .netns = NETNS_NONE };
	int r = look(&a, e);

	r = r ?: get_addresses(&a, e);
	r = r ?: plan(&a, e);
	r = r ?: plumb(&a, e);
	r = r ?: attach(&a, e);
	if (r < 0) {
		undo(&a);
		return r;
	}
	*ret_output = TAKE(a.output);
	return 0;
}
