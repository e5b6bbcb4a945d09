/* SPDX-License-Identifier: Apache-2.0 */
/* inet_ntop with AF_INET, which is 2. */
BEGIN
{
	this->p = (uint32_t *)alloca(4);
	*this->p = htonl(0x7f000001);
	printf("%s\n", inet_ntop(2, this->p));
	exit(0);
}
/* output:
127.0.0.1

*/
