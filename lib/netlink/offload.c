/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/netlink/offload.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/auto.h"

/* By the old call, which every kernel has and which stands for all kinds of checksums at once. */
static int ask(const char *device, struct ethtool_value *value)
{
	AUTO(close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_data = (char *)value };

	if (fd < 0)
		return -errno;
	strncpy(request.ifr_name, device, sizeof(request.ifr_name) - 1);
	return ioctl(fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
}

int offload_read(const char *device, bool *ret)
{
	struct ethtool_value value = { .cmd = ETHTOOL_GTXCSUM };
	int err = ask(device, &value);

	if (err == 0)
		*ret = value.data;
	return err;
}

int offload_write(const char *device, bool on)
{
	struct ethtool_value value = { .cmd = ETHTOOL_STXCSUM, .data = on };

	return ask(device, &value);
}
