/* SPDX-License-Identifier: Apache-2.0 */
/* Loads through pointers of each size and sign. */
BEGIN
{
	this->p = (uint64_t *)alloca(8);
	*this->p = 0xfedcba9876543210;
	printf("%d %d %x %x\n", *(char *)this->p, *((signed char *)this->p + 7),
	    *(unsigned short *)this->p, *(uint32_t *)this->p);
	exit(0);
}
/* output:
16 -2 3210 76543210

*/
