/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: a subroutine that is given NULL faults. */
BEGIN
{
	this->s = strchr("a", 'b');
	trace(strjoin(this->s, "x"));
}
BEGIN
{
	printf("next\n");
	exit(0);
}
ERROR
{
	printf("fault %d\n", arg4);
}
/* output:
fault 1
next

*/
