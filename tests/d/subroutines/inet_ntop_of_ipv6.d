/* SPDX-License-Identifier: Apache-2.0 */
/* inet_ntop with AF_INET6, which is 10 on Linux: the longest run of zeros is left out. */
BEGIN
{
	this->p = (uint8_t *)alloca(16);
	this->p[0] = 0xfe;
	this->p[1] = 0x80;
	this->p[14] = 0x12;
	this->p[15] = 0x34;
	printf("%s\n", inet_ntop(10, this->p));
	exit(0);
}
/* output:
fe80::1234

*/
