/* SPDX-License-Identifier: Apache-2.0 */
/* An IPv4 address as text. */
BEGIN
{
	this->p = (uint32_t *)alloca(4);
	*this->p = htonl(0xc0a80117);
	printf("%s\n", inet_ntoa(this->p));
	exit(0);
}
/* output:
192.168.1.23

*/
