/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: after ERROR, this-> variables of the faulting firing are as they were. */
BEGIN
{
	this->x = 5;
	y = *(int *)NULL;
}
BEGIN
{
	printf("%d\n", this->x);
	exit(0);
}
ERROR
{
	this->z = 7;
}
/* output:
5

*/
