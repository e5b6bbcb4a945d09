/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in global arrays are read as those elsewhere are. */
uint32_t ip[2];
uint8_t six[16];
BEGIN
{
	ip[1] = htonl(0x7f000001);
	six[15] = 1;
	printf("%s %s %s %s\n", inet_ntoa(&ip[1]), inet_ntop(2, &ip[1]), inet_ntoa6((in6_addr_t *)six),
	    link_ntop(1, six));
	exit(0);
}
/* output:
127.0.0.1 127.0.0.1 ::1 00:00:00:00:00:00

*/
