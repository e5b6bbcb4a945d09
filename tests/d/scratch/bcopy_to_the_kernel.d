/* SPDX-License-Identifier: Apache-2.0 */
/* bcopy() does not write to the kernel. */
BEGIN
{
	this->p = (char *)alloca(8);
	bcopy(this->p, curthread, 8);
	printf("wrong\n");
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("fault\n");
}
/* output:
fault

*/
