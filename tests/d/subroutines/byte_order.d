/* SPDX-License-Identifier: Apache-2.0 */
/* Network byte order is the other one on this machine. */
BEGIN
{
	printf("%x %x %x\n", htons(0x1234), htonl(0x12345678), htonll(0x123456789abcdef0));
	printf("%x %x %x\n", ntohs(0x1234), ntohl(0x12345678), ntohll(0x123456789abcdef0));
	exit(0);
}
/* output:
3412 78563412 f0debc9a78563412
3412 78563412 f0debc9a78563412

*/
