/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer that leaves the program's variables faults. */
int a[4];
BEGIN
{
	this->p = &a[0];
	trace(this->p[1000000]);
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("fault %d\n", arg4);
}
/* output:
fault 1

*/
