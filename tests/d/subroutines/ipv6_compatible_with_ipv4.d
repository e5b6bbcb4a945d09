/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that are those of IPv4 but for their length (RFC 4291, 2.5.5.1). */
BEGIN
{
	a = (struct in6_addr *)alloca(16);
	p = (uint8_t *)a;
	p[12] = 192;
	p[13] = 168;
	p[15] = 7;
	printf("%s %s ", inet_ntoa6(a), inet_ntoa6(a, 0));
	printf("%s %s\n", inet_ntoa6(a, 1), inet_ntop(AF_INET6, a));
	p[12] = 0;
	p[13] = 0;
	printf("%s %s\n", inet_ntoa6(a), inet_ntop(AF_INET6, a));
	exit(0);
}
/* output:
192.168.0.7 192.168.0.7 ::c0a8:7 ::192.168.0.7
::7 ::7

*/
