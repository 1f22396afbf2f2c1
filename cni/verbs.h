/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roost: the main plugin. It makes a pod's link and what the pod sees of it; the node's
 * side is the agent's.
 *
 *   runtime -> stdin, CNI_* -> [verb] -> ipam      own: the agent; else another plugin
 *                                     -> link      the veth pair, from the node's namespace
 *                                     -> inside    addresses, routes, neighbours in the pod
 *                                     -> agent     attach: sysctls, neighbours, routes here
 *
 * Nothing is kept between calls: the link's name follows from container and interface,
 * all else is the agent's to remember. A failed ADD leaves nothing of itself; DEL
 * succeeds with the agent, etcd and the namespace gone.
 */
#pragma once

#include "lib/cni/cni_main.h"

cni_verb_fn roost_add, roost_del, roost_check, roost_gc, roost_status;
