/* SPDX-License-Identifier: Apache-2.0 */
/* Stores through pointers change only their bytes. */
BEGIN
{
	this->p = (uint64_t *)alloca(8);
	*this->p = -1;
	*(uint8_t *)this->p = 0;
	*((uint16_t *)this->p + 1) = 0x1234;
	printf("%x\n", *this->p);
	exit(0);
}
/* output:
ffffffff1234ff00

*/
