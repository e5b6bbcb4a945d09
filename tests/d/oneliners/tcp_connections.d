/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
tcp:::accept-established
{
	@[args[2]->ip_saddr, args[4]->tcp_dport] = count();
}
