/* SPDX-License-Identifier: Apache-2.0 */
/* An IPv4 address in IPv6. */
BEGIN
{
	this->p = (uint8_t *)alloca(16);
	this->p[10] = 0xff;
	this->p[11] = 0xff;
	this->p[12] = 10;
	this->p[15] = 1;
	printf("%s\n", inet_ntoa6((struct in6_addr *)this->p));
	exit(0);
}
/* output:
::ffff:10.0.0.1

*/
