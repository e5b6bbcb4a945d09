/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of Ethernet have 6 bytes, those of InfiniBand 20. */
BEGIN
{
	this->m = (unsigned char *)alloca(20);
	this->m[0] = 0x12;
	this->m[5] = 0xab;
	this->m[19] = 1;
	printf("%s\n", link_ntop(ARPHRD_ETHER, this->m));
	printf("%s\n", link_ntop(ARPHRD_INFINIBAND, this->m));
	exit(0);
}
/* output:
12:00:00:00:00:ab
12:00:00:00:00:ab:00:00:00:00:00:00:00:00:00:00:00:00:00:01

*/
