/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
ip:::send,
ip:::receive
{
	@[probename, args[2]->ip_saddr, args[2]->ip_daddr] = sum(args[2]->ip_plength);
}
